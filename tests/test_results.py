"""The recorded runs: what results/ and the README say is what the shipped weights do."""

import json
import math
import os
import re
import shlex
import statistics
from pathlib import Path

import pytest

from transformer_lib import data, evaluation, load_pretrained
from transformer_lib.cli.options import parsers
from transformer_lib.runs import recipes
from transformer_lib.runs.pretrained import results_dir

ROOT = Path(__file__).resolve().parents[1]
RUNS = sorted(path.parent for path in results_dir().glob("*/config.json"))


def recorded_of(run):
    """The scores of a run, and the sentences, references and translations that they belong to."""
    if not os.environ.get("MULTI30K_DIR"):
        pytest.skip("needs Multi30k: set MULTI30K_DIR")
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    pairs = data.load_parallel(scores["data"], scores["src"], scores["tgt"])
    lines = (run / "translations.jsonl").read_text(encoding="utf-8").splitlines()
    written = [json.loads(line)["translation"] for line in lines]
    return scores, *map(list, zip(*pairs[scores["split"]], strict=True)), written


def translate(run, scores, sources):
    found = load_pretrained(run).translate(
        sources, scores["beam_size"], scores["length_penalty"], attention=False
    )
    return [result.text for result in found]


@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_the_recorded_translations_have_the_recorded_scores(run):
    scores, sources, references, written = recorded_of(run)
    assert len(written) == len(sources) == scores["sentences"]
    assert evaluation.bleu(written, references, "13a") == pytest.approx(scores["bleu"], abs=1e-9)


@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_the_weights_write_the_recorded_translations(run):
    """Every tenth sentence. Sums in another order may change a word here and there."""
    scores, sources, _, written = recorded_of(run)
    found = translate(run, scores, sources[::10])
    assert sum(map(str.__eq__, found, written[::10])) >= 0.98 * len(found)


@pytest.mark.weekly  # the whole test set; the two tests above tell as much, but for a tenth of it
@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_the_weights_give_the_recorded_score(run):
    scores, sources, references, written = recorded_of(run)
    found = translate(run, scores, sources)
    assert evaluation.score(found, references).bleu == pytest.approx(scores["bleu"], abs=0.1)
    assert sum(map(str.__eq__, found, written)) > 0.99 * len(written)


@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_the_shipped_seed_is_the_best_on_validation(run):
    def read(name):
        return json.loads((run / name).read_text(encoding="utf-8"))

    if not (run / "seeds.json").exists():
        pytest.skip("one seed, not chosen among several")
    seeds = read("seeds.json")["seeds"]
    best = max(seeds, key=lambda seed: seed["validation"]["bleu"])
    assert [seed["seed"] for seed in seeds if seed["chosen"]] == [best["seed"]]
    assert read("config.json")["train"]["seed"] == best["seed"]
    assert read("scores.json") == best["test"]
    assert read("scores-validation.json") == best["validation"]
    assert {seed["test"]["split"] for seed in seeds} == {"test"}
    assert {seed["validation"]["split"] for seed in seeds} == {"validation"}


def test_the_readme_states_the_recorded_scores():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    def recorded(run, kind):
        scores = json.loads((results_dir() / run / "scores.json").read_text(encoding="utf-8"))
        return f"{scores[kind]:.1f}"

    def over_seeds(run):
        path = results_dir() / run / "seeds.json"
        seeds = json.loads(path.read_text(encoding="utf-8"))["seeds"] if path.exists() else []
        found = [seed["test"]["bleu"] for seed in seeds]
        if len(found) < 2:
            return "one seed"
        mean, sd = statistics.mean(found), statistics.stdev(found)
        return f"mean and standard deviation of {len(found)} seeds {mean:.1f} ± {sd:.1f}"

    english = f"German to English scores {recorded('multi30k-de-en', 'bleu')} BLEU on test2016"
    assert f"{english} (cased sacrebleu, beam 5; {over_seeds('multi30k-de-en')})" in text
    german = recorded("multi30k-en-de", "bleu")
    moses = recorded("multi30k-en-de", "lowercased_tokenised_bleu")
    assert f"English to German scores {german} ({over_seeds('multi30k-en-de')})" in text
    assert f"or {moses} lowercased" in text
    rows = json.loads((results_dir() / "multi30k-de-en-short" / "seeds.json").read_text("utf-8"))
    short = [row["test"]["bleu"] for row in rows["seeds"]]
    seconds = max(row["training_seconds"] for row in rows["seeds"])
    mean, sd = statistics.mean(short), statistics.stdev(short)
    assert f"{mean:.1f} ± {sd:.1f} ({len(short)} seeds) after {math.ceil(seconds / 60)} mi" in text
    record = json.loads((results_dir() / "multi30k-de-en-ten-minutes.json").read_text("utf-8"))
    mean, sd = (record["test_bleu"][of] for of in ("mean", "sd"))
    seeds = len(record["seeds"])
    assert f"the record for ten minutes: {mean:.1f} ± {sd:.1f} ({seeds} seeds)" in text
    rows = json.loads((results_dir() / "multi30k-en-de-short.json").read_text("utf-8"))["seeds"]
    other = [row["test"]["bleu"] for row in rows]
    mean, sd = statistics.mean(other), statistics.stdev(other)
    assert f"English to German {mean:.1f} ± {sd:.1f} ({len(other)} seeds)" in text
    best = {}
    for pair, kind in (("de-en", "bleu"), ("en-de", "lowercased_tokenised_bleu")):
        about = json.loads((results_dir() / f"multi30k-{pair}-r-drop.json").read_text("utf-8"))
        found = [row["test"][kind] for row in about["seeds"]]
        assert len(found) == 3
        best[pair] = f"{statistics.mean(found):.1f} ± {statistics.stdev(found):.1f}"
    assert (f"reaches {best['de-en']} cased, German to English, and {best['en-de']} lowercased "
            "with Moses tokens, English to German, level with that result (3 seeds each") in text


RECORDED_AS_OPTIONS = sorted(path.name for path in results_dir().glob("*.json")
                             if "seeds" in json.loads(path.read_text("utf-8")))


@pytest.mark.parametrize("name", RECORDED_AS_OPTIONS)
def test_scores_without_weights_have_options_that_train_takes(name):
    """A run that doesn't ship can be trained again: `train` understands its options."""
    about = json.loads((results_dir() / name).read_text("utf-8"))
    options = parsers()[0].parse_args(["train", *shlex.split(about["options"])])
    if found := re.match(r"multi30k-(\w\w)-(\w\w)", name):
        assert (options.src, options.tgt) == found.groups()
    assert all(row["validation"]["split"] == "validation" and row["test"]["split"] == "test"
               and row["validation"]["length_penalty"] == row["test"]["length_penalty"]
               for row in about["seeds"])


def test_what_the_page_says_of_the_longer_run_holds():
    """book/speedrun.ipynb: ahead of every seed on validation, behind every one on test."""
    short, longer = (
        json.loads((results_dir() / f"multi30k-en-de-{name}.json").read_text("utf-8"))["seeds"]
        for name in ("short", "longer")
    )
    assert short and len(longer) == 1  # the page calls it one seed
    assert longer[0]["validation"]["bleu"] > max(row["validation"]["bleu"] for row in short)
    assert longer[0]["test"]["bleu"] < min(row["test"]["bleu"] for row in short)


def test_the_short_recipe_keeps_its_rules():
    """Ten minutes of training on two cores, 6 MB, three seeds, and its own recipe."""
    run = results_dir() / "multi30k-de-en-short"
    rows = json.loads((run / "seeds.json").read_text("utf-8"))["seeds"]
    assert len(rows) >= 3 and max(row["training_seconds"] for row in rows) <= 600
    assert json.loads((run / "environment.json").read_text("utf-8"))["device"].endswith("2 threads")
    assert (run / "model.safetensors").stat().st_size <= 6_000_000
    config = json.loads((run / "config.json").read_text("utf-8"))
    assert recipes.differences(recipes.find("short"), config) == []


@pytest.mark.parametrize(("name", "seconds"), [("ten", 600), ("five", 300)])
def test_each_seed_of_a_record_is_in_time(name, seconds):
    found = json.loads((results_dir() / f"multi30k-de-en-{name}-minutes.json").read_text("utf-8"))
    assert len(found["seeds"]) >= 3
    assert max(row["training_seconds"] for row in found["seeds"]) <= seconds


def test_the_cover_shows_the_shipped_model():
    """images/hero.svg is drawn by tools/make_hero.py from the weights that are shipped."""
    from tools import make_hero

    drawn, fresh = (ROOT / "images" / "hero.svg").read_text(encoding="utf-8"), make_hero.draw()

    def read(svg):
        words = re.findall(r"<text[^>]*>([^<]*)", svg)
        return words, [float(weight) for weight in re.findall(r'data-weight="([\d.]+)"', svg)]

    assert read(drawn)[0] == read(fresh)[0]
    assert read(drawn)[1] == pytest.approx(read(fresh)[1], abs=0.01), "run tools/make_hero.py"
    # The cover says: both look at "im", and neither looks at it most.
    looks = dict(re.findall(r'aria-label="(in|the): ([^"]+)"', drawn))
    assert len(looks) == 2
    assert all(" im " in look and not look.startswith("im ") for look in looks.values())
