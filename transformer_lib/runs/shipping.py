"""What a run loses as one small file, and what it saves: scores, sizes, time.

`export.export_live` writes the file, and `export.load_exported` reads it back into the library's
own model. Here both translate the same sentences.
"""

import time
from pathlib import Path
from statistics import median

import torch

from transformer_lib import data
from transformer_lib.runs import checksums
from transformer_lib.runs.device import environment
from transformer_lib.runs.export import load_exported
from transformer_lib.runs.files import sha256
from transformer_lib.runs.pretrained import find_run, load_pretrained, run_info
from transformer_lib.translator import Translator

SPLITS = ("validation", "test")
TIMED = 40  # sentences, each translated on its own


def compare(run: str | Path, exported: str | Path, beam_size: int = 5) -> dict:
    """A run's own weights compared with its exported file's: what is kept as shipping.json.

    Both translate the run's own validation and test sets, with the run's length penalty.
    Raises ValueError when the run does not record its data, or the file is damaged.
    """
    folder = find_run(run)
    about = run_info(folder).get("data", {})
    if not {"source", "src", "tgt"} <= about.keys():
        raise ValueError(f"{run} does not record its data: leave out --score.")
    pairs = data.load_parallel(about["source"], about["src"], about["tgt"])
    # Both in float32: the file's int8 numbers are multiplied out when it is read.
    translators = {"float32": load_pretrained(folder), "int8": load_exported(exported)}
    result = {
        "data": pairs.source,
        "src": about["src"],
        "tgt": about["tgt"],
        "beam_size": beam_size,
        "length_penalty": translators["float32"].length_penalty,
        "weights": sha256(folder / checksums.WEIGHTS),
        "exported": sha256(Path(exported)),
        "bytes": sizes(folder, exported, translators["float32"].model.count_parameters()),
    }
    for split in SPLITS:
        result[split] = compare_on(pairs[split], translators, beam_size)
    texts = [source for source, _ in pairs["test"][:TIMED]]
    timed = milliseconds(texts, translators, beam_size)
    return result | {"milliseconds": timed, "environment": environment(torch.device("cpu"))}


def sizes(folder: Path, exported: str | Path, parameters: int) -> dict:
    """Bytes of the weights in float32, of the files that a run needs to translate, and of the
    exported one."""
    return {
        "float32": 4 * parameters,
        checksums.WEIGHTS: (folder / checksums.WEIGHTS).stat().st_size,
        "tokenizer.json": (folder / "tokenizer.json").stat().st_size,
        "exported": Path(exported).stat().st_size,
    }


def compare_on(pairs: list, translators: dict[str, Translator], beam_size: int) -> dict:
    """BLEU of each on these (source, reference) pairs, and how many translations are the same."""
    from transformer_lib.evaluation import score

    sources, references = zip(*pairs, strict=True)
    found, result = {}, {"sentences": len(sources)}
    for name, translator in translators.items():
        written = translator.translate(list(sources), beam_size, attention=False)
        found[name] = [translation.text for translation in written]
        scores = score(found[name], list(references))
        result[name], result["signature"] = {"bleu": scores.bleu}, scores.signature
    result["same"] = sum(a == b for a, b in zip(*found.values(), strict=True))
    return result


def milliseconds(texts: list[str], translators: dict[str, Translator], beam_size: int) -> dict:
    """Median time of a sentence translated on its own. The translators take turns to be first."""
    taken = {name: [] for name in translators}
    order = [*translators.items()]
    for text in texts:
        # Not timed: the first to see a sentence of a new length has to prepare the products.
        order[0][1].translate([text], beam_size, attention=False)
        for name, translator in order:
            start = time.perf_counter()
            translator.translate([text], beam_size, attention=False)
            taken[name].append(1000 * (time.perf_counter() - start))
        order.reverse()
    return {"sentences": len(texts)} | {name: median(times) for name, times in taken.items()}
