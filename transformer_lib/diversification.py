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

from transformer_lib.corpora.multi30k import cache_dir
from transformer_lib.data import Pairs
from transformer_lib.tokenization import encode_source
from transformer_lib.translator import Translator, find_run, load_pretrained, run_info

PIECE = 1000  # sentences a teacher translates before they are kept


def diversify(
    pairs: Pairs, teachers: Sequence[str | Path], src: str, tgt: str, device: str = "cpu"
) -> Pairs:
    """The same pairs, with those that each teacher writes added to the training split.

    teachers: trained runs, by name in results/ or folder, each from src to tgt or from tgt to src.
    A written pair that is in the set already, or whose translation is empty, is left out, and so is
    a sentence longer than the teacher reads. What a teacher wrote is kept in the user's cache, so
    it translates a training set once, and goes on after an interruption.
    Raises ValueError when there is no such run, or it was trained on other languages.
    """
    real = pairs["train"]
    writes_targets = []
    for teacher in teachers:  # all of them, before the first begins hours of work
        about = run_info(teacher).get("data", {})
        languages = (about.get("src"), about.get("tgt"))
        if languages not in ((src, tgt), (tgt, src)):
            raise ValueError(
                f"the teacher {teacher} translates {languages[0]} -> {languages[1]}; it can write "
                f"pairs for {src} -> {tgt} only if it translates between these two languages."
            )
        writes_targets.append(languages == (src, tgt))
    written = []
    for teacher, forward in zip(teachers, writes_targets, strict=True):
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
    """Beam search with the run's own length penalty, or what it wrote before; "" if too long."""
    translator = load_pretrained(run, device)
    weights = (run / "model.safetensors").read_bytes()
    translations = []
    for start in range(0, len(texts), PIECE):
        piece = texts[start : start + PIECE]
        key = hashlib.sha256(weights)
        key.update(json.dumps([translator.length_penalty, piece]).encode())
        path = cache_dir().parent / "translations" / f"{key.hexdigest()[:16]}.json"
        found = _kept(path, len(piece))
        if found is None:
            place = f"{start + 1:,} to {start + len(piece):,} of {len(texts):,}"
            print(f"{run.name} translates sentences {place} ...", flush=True)
            found = _translate(translator, piece)
            _keep(path, found)
        translations += found
    return translations


def _translate(translator: Translator, texts: list[str]) -> list[str]:
    limit = translator.model.config.max_len
    lengths = [len(ids) for ids in encode_source(translator.tokenizer, texts)]
    fits = [text for text, length in zip(texts, lengths, strict=True) if length <= limit]
    results = iter(translator.translate(fits, attention=False))
    return [next(results).text if length <= limit else "" for length in lengths]


def _kept(path: Path, n: int) -> list[str] | None:
    with contextlib.suppress(OSError, ValueError):  # not there, or damaged
        translations = json.loads(path.read_text(encoding="utf-8"))
        if len(translations) == n:
            return translations
    return None


def _keep(path: Path, translations: list[str]) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")  # torchrun: one a process
    with contextlib.suppress(OSError):  # nowhere to keep it: it is translated again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(translations, ensure_ascii=False), encoding="utf-8")
        partial.replace(path)
