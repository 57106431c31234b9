"""The command export."""

from pathlib import Path

from transformer_lib.cli.options import require_writable
from transformer_lib.runs import checksums, export, shipping, to_ctranslate2
from transformer_lib.runs.files import write_json
from transformer_lib.runs.pretrained import find_run


def run(options) -> int:
    """Write the file, say how large it is, and with --score what the rounding costs."""
    if options.format == "ctranslate2":
        return for_ctranslate2(options)
    if options.save and not options.score:
        raise ValueError("--save keeps what --score finds: give --score as well.")
    if options.beam_size is not None and not options.score:
        raise ValueError("--beam-size is for --score, which translates: give --score as well.")
    beam_size = 5 if options.beam_size is None else options.beam_size
    folder = find_run(options.run)
    if options.save:
        require_writable(folder)
    out = Path(options.out or f"{folder.name}.bin")
    if out.is_dir():
        raise ValueError(f"{out} is a folder: --out names a file, as in --out {folder.name}.bin.")
    if options.save and out.resolve() == (folder / "shipping.json").resolve():
        raise ValueError(f"{out} is where --save keeps what --score finds: choose another name.")
    header = export.export_live(folder, out)
    export.load_exported(out)  # raises if it can't be read back
    held = shipping.sizes(folder, out, header["parameters"])
    print(f"{out}: {header['parameters']:,} parameters and the tokenizer")
    for name, size in held.items():
        about = {"float32": "weights in float32", "exported": str(out)}.get(name, name)
        print(f"{about:>25}  {size:>12,} bytes")
    if not options.score:
        return 0
    found = shipping.compare(folder, out, beam_size)
    for split in shipping.SPLITS:
        scores = found[split]
        print(
            f"{split:>25}  BLEU {scores['float32']['bleu']:.2f} in float32, "
            f"{scores['int8']['bleu']:.2f} in int8; {scores['same']:,} of "
            f"{scores['sentences']:,} translations are the same"
        )
    times = found["milliseconds"]
    print(
        f"{'one sentence':>25}  {times['float32']:.0f} ms in float32, {times['int8']:.0f} ms from "
        f"int8; median of {times['sentences']}, each by itself"
    )
    if options.save:
        with checksums.changing(folder, ["shipping.json"]):
            write_json(folder / "shipping.json", found)
    return 0


def for_ctranslate2(options) -> int:
    """Write the folder, and say how to open it."""
    if options.score or options.save:
        raise ValueError(
            "--score and --save are about the rounding of the page's file, and --format "
            "ctranslate2 rounds nothing: leave them out."
        )
    folder = find_run(options.run)
    out = Path(options.out or f"{folder.name}-ctranslate2")
    to_ctranslate2.export_ctranslate2(folder, out)
    size = (out / "model.bin").stat().st_size
    print(f"{out}: a model in float32 ({size:,} bytes), its vocabulary and tokenizer.json")
    print(f"Open it with ctranslate2.Translator({str(out)!r}).")
    return 0
