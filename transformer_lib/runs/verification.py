"""Is a run what its folder says it is? Checks its files, its scores and its translations."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer_lib import data
from transformer_lib.corpora.rows import SPLITS
from transformer_lib.evaluation import score
from transformer_lib.guards import describe, require_pairs
from transformer_lib.guards.values import fits
from transformer_lib.runs import checksums
from transformer_lib.runs.checkpoint import load_weights, read_config
from transformer_lib.runs.files import read_json_lines, readable_json_lines, sha256
from transformer_lib.runs.pretrained import find_run, load_pretrained

# Another processor sums in another order, and where two hypotheses tie, the beam may flip.
SHARE_AGAIN, BLEU_AGAIN = 0.98, 0.2
# What scores must say about themselves before anything can be compared.
CLAIM = {"split": str, "bleu": float, "weights": str, "data": str, "src": str, "tgt": str,
         "sentences": int, "beam_size": int, "length_penalty": float}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked, and the outcome; `holds` is None if it couldn't be checked."""

    holds: bool | None
    about: str

    def __str__(self):
        return f"{ {True: '✓', False: '✗', None: '?'}[self.holds] } {self.about}"


def verify(
    run: str | Path = "multi30k-de-en",
    load: Callable[[str, str, str], dict] = data.load_parallel,
) -> Iterator[Finding]:
    """Check a run's files, its scores and its translations; yields a Finding for each.

    Every listed file must hold the bytes that were written; a folder without that list must at
    least hold a model that translates, if it is a translator. Saved scores must belong to these
    weights, and saved translations must give these scores again. The model translates the test set
    again, and a split without translations: ten seconds each on one core, or a minute without a C
    compiler. run: a name in results/ or a run folder. load: (data, src, tgt) -> splits, where the
    pairs come from. Raises ValueError when there is no such run, or its config.json can't be read.
    """
    folder = find_run(run, compare=False)
    listed = checksums.read(folder)
    if changed := checksums.differing(folder):
        yield from (Finding(False, f"{name} is damaged or was changed: it isn't the file that "
                                   f"{checksums.NAME} lists") for name in changed)
        return
    read_config(folder)  # where nothing is listed, too
    if listed is None:
        yield Finding(None, f"{folder} lists no checksums, so its files can't be compared")
        yield from (Finding(False, about) for about in _unreadable(folder))
        try:
            weights = load_weights(folder / checksums.WEIGHTS)
            if any(name.startswith("src_embedding") for name in weights):
                load_pretrained(folder)
            else:
                yield Finding(None, "its model isn't a translator, so it can't be tried")
        except (OSError, ValueError) as error:
            yield Finding(False, f"it can't translate: {error}")
            return
    elif lost := [name for name in listed if not (folder / name).exists()]:
        yield Finding(False, f"{', '.join(lost)}: listed, but missing")
        return
    else:
        yield Finding(True, f"{len(listed)} files hold what was written")
    if unlisted := checksums.unlisted(folder):
        yield Finding(False, f"{', '.join(unlisted)}: not listed, so saving was interrupted")
    paths = sorted(folder.glob("scores*.json"))
    if not paths:
        yield Finding(None, "no scores are kept (`evaluate --save` keeps them)")
    for path in paths:
        try:
            about = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            about = None
        if not isinstance(about, dict):
            yield Finding(False, f"{path.name} is damaged: it holds no scores")
            continue
        yield from _scores(folder, path.stem.removeprefix("scores"), about, load)


def _unreadable(folder: Path) -> Iterator[str]:
    """What isn't JSON, among the files that only record how the run went."""
    for name in ("environment.json", "shipping.json"):
        try:
            if (path := folder / name).exists() and not isinstance(json.loads(path.read_bytes()),
                                                                   dict):
                raise ValueError
        except (ValueError, RecursionError):
            yield f"{name} is damaged: it doesn't hold a JSON object"
    for name in ("metrics.jsonl", "sentences.jsonl"):
        if (path := folder / name).exists() and (wrong := readable_json_lines(path)[1]):
            yield f"{name} is damaged: line {wrong[0]} is not a JSON object"


def _scores(folder: Path, suffix: str, about: dict, load) -> Iterator[Finding]:
    """What the scores of one split claim."""
    if missing := [key for key in CLAIM if key not in about]:
        yield Finding(None, f"scores{suffix}.json doesn't say its {', '.join(missing)}, so it "
                            "can't be checked (`evaluate --save` writes all of that)")
        return
    wrong = [key for key, kind in CLAIM.items() if not fits(about[key], kind)]
    wrong += [key for key in ("sentences", "beam_size") if key not in wrong and about[key] < 1]
    if wrong:
        yield Finding(False, f"scores{suffix}.json is damaged: its {wrong[0]} is "
                             f"{describe(about[wrong[0]])}")
        return
    split, said = about["split"], f"{about['bleu']:.2f} BLEU on {about['split']}"
    if about.get("weights") != sha256(folder / checksums.WEIGHTS):
        yield Finding(False, f"{said} is the score of other weights")
        return
    kept = folder / f"translations{suffix}.jsonl"
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the findings name the data
            loaded = load(about["data"], about["src"], about["tgt"])
    except (ImportError, OSError, ValueError) as error:
        yield Finding(None, f"{said}: its data isn't available ({error})")
        return
    require_pairs(loaded, SPLITS, "what load returned")
    pairs = loaded.get(split, [])[: about["sentences"]]
    if len(pairs) != about["sentences"]:
        yield Finding(False, f"{said} is said to be of {about['sentences']:,} sentences, but the "
                             f"data has {len(pairs):,}")
        return
    sources, references = map(list, zip(*pairs, strict=True))
    written = None
    if kept.exists():
        written = [row.get("translation") for row in read_json_lines(kept)]
        if lacking := [n for n, text in enumerate(written, 1) if not isinstance(text, str)]:
            yield Finding(False, f"{kept.name} is damaged: line {lacking[0]} has no translation")
            return
        if len(written) != len(pairs):
            yield Finding(False, f"{said}: {len(written):,} translations are kept for "
                                 f"{len(pairs):,} sentences")
            return
        again = score(written, references).bleu
        yield Finding(abs(again - about["bleu"]) < 0.005,
                      f"{said}: the kept translations give {again:.2f}")
    if split != "test" and written:
        return
    options = about["beam_size"], about["length_penalty"]
    found = load_pretrained(folder).translate(sources, *options, attention=False)
    texts = [result.text for result in found]
    if written:
        same = sum(a == b for a, b in zip(texts, written, strict=True))
        yield Finding(same >= SHARE_AGAIN * len(texts),
                      f"translated again: {same:,} of {len(texts):,} come out the same")
    again = score(texts, references).bleu
    yield Finding(abs(again - about["bleu"]) <= BLEU_AGAIN,
                  f"{split} translated again: {again:.2f} BLEU; {about['bleu']:.2f} is claimed")
