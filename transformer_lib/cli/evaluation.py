"""The command evaluate."""

import contextlib
import dataclasses
import time
from pathlib import Path

from transformer_lib import data
from transformer_lib.cli.options import load, recorded_by, require_writable, two_languages
from transformer_lib.evaluation import lowercased_tokenised_bleu, score
from transformer_lib.runs import checksums
from transformer_lib.runs.files import sha256, write_json, write_json_lines
from transformer_lib.runs.pretrained import find_run, run_info


def run(options) -> int:
    """Translate a split, print its scores, and with --save keep them in the run."""
    translator = load(options)  # bad options are rejected before the data are read
    penalties = [*dict.fromkeys(options.length_penalty or [translator.length_penalty])]
    if len(penalties) > 1 and options.split == "test":
        raise ValueError(
            f"{len(penalties)} length penalties on the test set would choose with data that should "
            "only measure: choose with --split validation --save, and the run keeps the choice."
        )
    pairs, about = _pairs(options)
    sources, references = map(list, zip(*pairs[options.split], strict=True))
    start = time.perf_counter()
    tried = {}  # penalty -> (scores, translations)
    for penalty in penalties:
        results = translator.translate(sources, options.beam_size, penalty, attention=False)
        tried[penalty] = score([result.text for result in results], references), results
        if len(penalties) > 1:
            print(f"length penalty {penalty:g}: BLEU {tried[penalty][0].bleu:.2f}", flush=True)
    seconds = time.perf_counter() - start
    penalty = max(tried, key=lambda penalty: tried[penalty][0].bleu)
    scores, results = dataclasses.asdict(tried[penalty][0]), tried[penalty][1]
    # The BLEU of older papers, if sacremoses is installed and knows the language.
    with contextlib.suppress(ImportError, ValueError):
        scores["lowercased_tokenised_bleu"] = lowercased_tokenised_bleu(
            [result.text for result in results], references, about["tgt"]
        )
    for name, value in scores.items():
        print(f"{name:>25}  {value:.2f}" if isinstance(value, float) else f"{name:>25}  {value}")
    if len(tried) > 1:
        print(f"{'length penalty':>25}  {penalty:g}")
    print(f"{len(results):,} sentences in {seconds:.1f} s")
    if options.save:
        about |= {
            "split": options.split,
            "sentences": len(results),
            "beam_size": options.beam_size,
            "length_penalty": penalty,
        }
        _save(find_run(options.run), about, scores, results, tried)
    return 0


def _pairs(options) -> tuple[data.Pairs, dict]:
    """The pairs that the options name, by default the run's own, and a description of them."""
    # "auto" could pick another corpus, and that would be scored.
    about = run_info(options.run).get("data", {})
    source = None if options.data == "auto" else options.data
    given = {"source": source, "src": options.src, "tgt": options.tgt}
    chosen = {name: value or about.get(name) for name, value in given.items()}
    missing = [name for name, value in chosen.items() if not value]
    if missing:
        raise ValueError(
            f"{options.run} does not record its data ({', '.join(missing)}); "
            "say which with --data, --src and --tgt."
        )
    two_languages(chosen["src"], chosen["tgt"])
    if about.get("src") == chosen["tgt"] or about.get("tgt") == chosen["src"]:
        raise ValueError(
            f"{options.run} translates {about.get('src')} to {about.get('tgt')}, not "
            f"{chosen['src']} to {chosen['tgt']}: leave out --src and --tgt, or give a run "
            "that was trained in that direction."
        )
    if options.save:
        require_writable(find_run(options.run))
    with recorded_by(None if source else options.run, chosen["source"]):
        pairs = data.load_parallel(chosen["source"], chosen["src"], chosen["tgt"])
    if options.split not in pairs:
        raise ValueError(f"the data has no {options.split} split; it has {sorted(pairs)}.")
    chosen["source"] = pairs.source
    other = [f"{name} {value}, not {about[name]}" for name, value in chosen.items()
             if about.get(name, value) != value]
    if options.save and other:
        raise ValueError(
            f"--save keeps the scores of {options.run} on its own data, but this is different data "
            f"({'; '.join(other)}): leave out --save."
        )
    return pairs, {"data": pairs.source, "src": chosen["src"], "tgt": chosen["tgt"]}


def _save(folder: Path, about: dict, scores: dict, results: list, tried: dict) -> None:
    """Keep scores and translations in the run's folder, with what they were made from."""
    about["weights"] = sha256(folder / checksums.WEIGHTS)
    if len(tried) > 1:
        about["length_penalties_tried"] = [
            {"length_penalty": penalty, "bleu": scored.bleu}
            for penalty, (scored, _) in tried.items()
        ]
    rows = [
        {"index": index, "translation": result.text, "score": round(result.score, 4)}
        for index, result in enumerate(results)
    ]
    suffix = "" if about["split"] == "test" else f"-{about['split']}"
    names = f"translations{suffix}.jsonl", f"scores{suffix}.json"
    with checksums.changing(folder, names):
        write_json_lines(folder / names[0], rows)
        about["translations"] = sha256(folder / names[0])  # so an interruption here is noticed
        write_json(folder / names[1], about | scores)
