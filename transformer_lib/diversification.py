"""Data diversification: a trained model writes further training pairs (Nguyen et al. 2020).

A teacher that translates in the new model's direction writes a second target for each source
(sequence-level distillation, Kim and Rush 2016); one that translates the other way writes a second
source for each target (back-translation, Sennrich et al. 2016). The real pairs stay as they are.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.data import Pairs
from transformer_lib.multi30k import cache_dir
from transformer_lib.translator import find_run, load_pretrained, run_info


def diversify(
    pairs: Pairs, teachers: Sequence[str | Path], src: str, tgt: str, device: str = "cpu"
) -> Pairs:
    """The same pairs, with those that each teacher writes added to the training split.

    teachers: trained runs, by name in results/ or folder, each from src to tgt or from tgt to src.
    A written pair that is in the set already, or whose translation is empty, is left out. What a
    teacher wrote is kept in the user's cache, so it translates a training set once.
    Raises ValueError when there is no such run, or it was trained on other languages.
    """
    real = pairs["train"]
    written = []
    for teacher in teachers:
        about = run_info(teacher).get("data", {})
        languages = (about.get("src"), about.get("tgt"))
        if languages not in ((src, tgt), (tgt, src)):
            raise ValueError(
                f"the teacher {teacher} translates {languages[0]} -> {languages[1]}; it can write "
                f"pairs for {src} -> {tgt} only if it translates between these two languages."
            )
        forward = languages == (src, tgt)
        texts = [source if forward else target for source, target in real]
        translations = _translations(find_run(teacher), texts, device)
        if forward:
            written += zip(texts, translations, strict=True)
        else:
            written += zip(translations, texts, strict=True)
    known = dict.fromkeys(real)
    new = [pair for pair in dict.fromkeys(written) if pair not in known and all(pair)]
    print(f"Teachers wrote {len(new):,} new pairs for {len(real):,} real ones.")
    return Pairs({**pairs, "train": [*real, *new]}, pairs.source)


def _translations(run: Path, texts: list[str], device: str) -> list[str]:
    """Beam search with the run's own length penalty, or what it wrote before."""
    translator = load_pretrained(run, device)
    key = hashlib.sha256((run / "model.safetensors").read_bytes())
    key.update(json.dumps([translator.length_penalty, texts]).encode())
    path = cache_dir().parent / "translations" / f"{key.hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError):  # not there, or damaged
        kept = json.loads(path.read_text(encoding="utf-8"))
        if len(kept) == len(texts):
            return kept
    print(f"{run.name} translates {len(texts):,} sentences ...", flush=True)
    results = translator.translate(texts, attention=False)
    translations = [result.text for result in results]
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")  # torchrun: one a process
    with contextlib.suppress(OSError):  # nowhere to keep it: it is translated again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(translations, ensure_ascii=False), encoding="utf-8")
        partial.replace(path)
    return translations
