"""Runs on disk and on machines: what lies behind the loop of transformer_lib.training.

    files        written whole or not at all, even if the power fails
    checksums    what the files of a finished run hold: SHA-256
    lock         one run, one process
    checkpoint   weights and training state; reading them again
    settings     what a run is, as its config.json describes it
    folder       the folder of a run: its log, its checkpoints, where it stopped, its result
    device       where to compute, and how exactly
    processes    several processes that train one model (torchrun)
    signals      Ctrl-C: stop after the current update
    progress     what happened since the last entry of the log, and the bar that shows it
    pretrained   trained runs by name
    export       a run as one file for the book's page, with rounded weights
    to_ctranslate2   a run as a folder for CTranslate2
    download     trained runs for an installation without results/
"""
