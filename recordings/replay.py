"""Count again what recorded runs read. Their batches follow from the seed: nothing is trained.

    python -m recordings.replay        # about ten minutes

The runs of encoder_decoders and decoder_only were made before the recorder counted tokens. Their
`tokens` come from here: each run's batches drawn once more, padding included. Prints what differs
from the files. That these are the batches of the run is checked by tests/test_recordings.py: its
first updates, trained again, give the recorded loss, and the recorder counts the same tokens.
"""

from itertools import islice

import torch

from recordings import record
from recordings.beyond import decoder_only, encoder_decoders
from recordings.gate import ROOT
from transformer_lib.batching import Batches

RESULTS = ROOT / "results" / "beyond"
FILES = {
    "encoder-decoders-denoising": encoder_decoders,
    "encoder-decoders-layers": encoder_decoders,
    "encoder-decoders-tags": encoder_decoders,
    "one-stream-mini": decoder_only,
    "one-stream-multi30k": decoder_only,
}


def looked_up(tensors: tuple[torch.Tensor, torch.Tensor], stream: bool) -> int:
    """Ids of a batch that embeddings are looked up for. A decoder never reads its last one."""
    first, second = tensors
    return first.numel() if stream else first.numel() + second[:, :-1].numel()


def tokens(batches: Batches, updates: int, stream: bool) -> int:
    """Ids that are looked up in so many updates from the beginning."""
    batches.restore({"epoch": 0, "next_batch": 0})
    device = torch.device("cpu")
    return sum(looked_up(batches.tensors(b, device), stream) for b in islice(batches, updates))


def count(name: str, settings: dict) -> int:
    """Ids that a recorded run looked up."""
    module = FILES[name]
    stream = module is decoder_only and decoder_only.ARMS[settings["arm"]][-1] is not None
    return sum(tokens(*read, stream) for read in module.what_was_read(settings))


def main() -> None:
    for name in FILES:
        runs = [r for r in record.read(RESULTS / f"{name}.json") if "run" in r]
        for r in runs:
            if (found := count(name, r["settings"])) != r["run"]["tokens"]:
                print(f"{name}, {r['settings']}: {found:,} tokens, recorded {r['run']['tokens']:,}")
        print(f"{name}: {len(runs)} runs counted")


if __name__ == "__main__":
    main()
