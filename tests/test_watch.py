"""What a reader sees while a model trains, and the numbers below it."""

import json
from dataclasses import replace

import pytest
import torch
from conftest import random_ids, tiny_model
from torch import nn

from transformer_lib import ModelConfig, TrainConfig, Transformer, data, tokenization, training
from transformer_lib import visualize as pictures
from transformer_lib.fast import training as training_part
from transformer_lib.runs import card, speed
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.pretrained import find_run
from transformer_lib.runs.watch import ROW, Watch

CONFIG = TrainConfig(
    max_steps=12, max_tokens=256, warmup=2, average=1, checkpoint_every=3, validate_every=4,
    log_every=2, validation_bleu=False, progress=False, device="cpu",
)


@pytest.fixture(scope="module")
def pairs():
    mini = data.load_parallel("mini")
    return data.Pairs({split: rows[:40] for split, rows in mini.items()}, "mini")


@pytest.fixture(scope="module")
def tokenizer(pairs):
    return tokenization.train_tokenizer([t for pair in pairs["train"] for t in pair], 200)


def go_on(folder, tokenizer, pairs, stop_after=None, config=CONFIG):
    """As the page does it: begin the run, or go on."""
    training.set_seed(0)
    model = Transformer(ModelConfig(tokenizer.get_vocab_size(), 16, 2, 16, 1, 1))
    said = []

    def translate(texts):
        said.append(texts)
        return [f"{text} {len(said)}" for text in texts]

    curve = pictures.LiveCurve("step", ("loss", "validation_loss"), seconds=1e9)
    curve.drawn_at = 1e18  # nothing is drawn
    watch = Watch(folder, config, translate, ["ein Hund", "eins"], curve, 100.0, 1e6, stop_after)
    try:
        training.train(model, tokenizer, pairs, config, folder, watch)
    except KeyboardInterrupt:
        pass
    return watch


def test_a_run_is_stopped_and_goes_on_with_all_that_was_seen(tmp_path, tokenizer, pairs, capsys):
    watch = go_on(tmp_path / "run", tokenizer, pairs, stop_after=4)
    assert "Stopped at step 5; saved." in capsys.readouterr().out
    assert [x for x, _ in watch.curve.points["loss"]] == [2, 4] and [*watch.said] == [4]
    assert watch.reached == 4 and "update 4 of 12, " in watch.status()
    again = go_on(tmp_path / "run", tokenizer, pairs)
    assert "Resuming" in capsys.readouterr().out
    assert [x for x, _ in again.curve.points["loss"]] == [2, 4, 6, 8, 10, 12]
    assert [x for x, _ in again.curve.points["validation_loss"]] == [4, 8, 12]
    assert [*again.said] == [4, 8, 12] and again.said[4] == ["ein Hund 1", "eins 1"]
    done = go_on(tmp_path / "run", tokenizer, pairs)  # nothing is left to do
    assert done.said == again.said and done.status() == "update 12 of 12"
    straight = go_on(tmp_path / "straight", tokenizer, pairs)
    assert straight.curve.points["loss"] == again.curve.points["loss"]


def test_no_flipped_bit_in_the_sentences_of_a_run_that_goes_on_is_silent(
    tmp_path, tokenizer, pairs
):
    """Nothing lists a file that still changes: each of its lines has its own checksum."""
    said = go_on(tmp_path, tokenizer, pairs, stop_after=8).said
    path = tmp_path / "sentences.jsonl"
    content = path.read_bytes()

    def look():
        curve = pictures.LiveCurve("step", ("loss", "validation_loss"))
        curve.drawn_at = 1e18
        return Watch(tmp_path, CONFIG, list, ["ein Hund", "eins"], curve).said

    assert look() == said and len(content) > 300
    for place in range(len(content)):
        bit = 1 << place % 8
        path.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        with pytest.raises(ValueError, match="sentences.jsonl is damaged: line [12] is not as"):
            look()
    rows = [json.loads(line) for line in content.splitlines()]
    path.write_text("".join(json.dumps({k: row[k] for k in ROW}) + "\n" for row in rows))
    with pytest.raises(ValueError, match="line 1 is not as it was written"):  # without SHA-256
        look()


def test_after_a_crash_no_update_is_drawn_twice(tmp_path, tokenizer, pairs):
    class Crash(Exception):
        pass

    def crash(texts):
        raise Crash

    curve = pictures.LiveCurve("step", ("loss", "validation_loss"))
    curve.drawn_at = 1e18
    watch = Watch(tmp_path, CONFIG, crash, ["a"], curve)
    model = Transformer(ModelConfig(tokenizer.get_vocab_size(), 16, 2, 16, 1, 1))
    with pytest.raises(Crash):
        training.train(model, tokenizer, pairs, CONFIG, tmp_path, watch)  # the last checkpoint: 3
    again = go_on(tmp_path, tokenizer, pairs)
    assert [x for x, _ in again.curve.points["loss"]] == [2, 4, 6, 8, 10, 12]


def test_the_line_below_the_curve_says_how_fast_and_how_long():
    curve = pictures.LiveCurve("step", ("loss",))
    curve.drawn_at = 1e18
    watch = Watch("nowhere", replace(CONFIG, max_steps=1000), list, [], curve, flops=50.0, peak=1e6)
    for step in range(20, 120, 20):
        watch({"step": step, "loss": 1.0, "seconds": 10.0, "tokens_per_second": 4000.0})
    assert watch.status() == (
        "update 100 of 1,000, 4,000 target tokens a second, utilisation 20%, "
        "time left 8 min (training only)"
    )
    assert f"<p>{watch.status()}</p>" in curve.below


def test_a_run_speaks_early_where_it_is_asked_to(tmp_path):
    """At the first entry from each look on, and at no other; the first sentence at all of them."""
    curve = pictures.LiveCurve("step", ("loss",))
    curve.drawn_at = 1e18
    watch = Watch(tmp_path, CONFIG, lambda texts: [f"said {watch.reached}"] * len(texts),
                  ["eins", "zwei"], curve, looks=(3, 4, 9, 100, 110, 120, 130))
    for step in (2, 4, 6, 10, *range(90, 150, 10)):
        watch({"step": step, "loss": 1.0, "seconds": 1.0, "tokens_per_second": 9.0})
    looked = [4, 10, 100, 110, 120, 130]
    assert [*watch.said] == looked
    first, second = curve.below.split(">zwei<")
    assert [at for at in looked if f"said {at}<" in first] == looked
    assert [at for at in looked if f"said {at}<" in second] == [4, 100, 110, 130]


def test_sentences_are_shown_at_their_moments():
    told = [("25", ["a", "b & c"]), ("50", ["d" * 200, "e"])]
    drawn = pictures.stills.moments(["<ein>", "zwei"], told)
    places = [drawn.index(text) for text in ("&lt;ein&gt;", ">a<", "ddd", "zwei", "b &amp; c")]
    assert places == sorted(places)
    assert "d" * 90 + " …" in drawn and "d" * 91 not in drawn


# ------------------------------------------------------------------------------------------- speed


def test_operations_are_those_of_the_products():
    """Forward, and two products backward, but one for the first layer, whose input wants none."""
    model = nn.Sequential(nn.Linear(5, 7, bias=False), nn.ReLU(), nn.Linear(7, 3, bias=False))
    batch = (torch.ones(4, 5),)
    counted = speed.update_flops(model, lambda model, batch: model(*batch).sum(), batch)
    assert counted == 2 * 4 * (2 * 5 * 7 + 3 * 7 * 3)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_operations_grow_with_the_batch_and_hold_attention():
    model = tiny_model()

    def count(n, length):
        ids = random_ids(n, length)
        return speed.update_flops(model, training.translation_loss, (ids, ids))

    assert count(6, 9) == 2 * count(3, 9)
    short, long = count(4, 11), count(4, 21)
    assert long > 2.0 * short  # attention's share grows with the square of the length


@pytest.mark.parametrize(
    ("fast", "rows", "onednn"), [(False, 2048, False), (True, 2048, True), (True, 64, False)]
)
def test_the_product_that_is_measured_is_the_one_that_trains(fast, rows, onednn, monkeypatch):
    """With `fast` a run multiplies large batches through oneDNN, which may take half the time."""
    inside = []
    monkeypatch.setattr(training_part, "_onednn_product", lambda a, b: inside.append(a) or a + 1)
    monkeypatch.setattr(training_part, "for_onednn", lambda *matrices: not inside)
    one = speed.product_speed(rows, 32, 32, torch.device("cpu"), seconds=0.02, fast=fast)
    assert 1e6 < one < 1e15 and bool(inside) == onednn


def test_launches_are_what_is_computed():
    x = torch.ones(3, 4)
    assert speed.launches(lambda: (x @ x.T).relu().view(9).sum()) == 3
    assert speed.launches(lambda: None) == 0


@pytest.mark.parametrize(("name", "change", "same", "updates"), [
    ("multi30k-de-en-short", {}, True, 3000),
    ("multi30k-de-en", {}, True, 6250),
    ("multi30k-de-en-short", {"peak_lr": 0.1}, False, 6250),
])
def test_a_run_is_held_to_seeds_of_its_own_recipe(name, change, same, updates):
    about = json.loads((find_run(name) / "config.json").read_text(encoding="utf-8"))
    about["train"] |= change
    scores, made, of_it = card._recorded(about, "multi30k", "test")
    assert (made, of_it, len(scores)) == (updates, same, 3)
    assert card._recorded(about, "mini", "test") == ([], 0, False)


@pytest.mark.parametrize(("seconds", "text"), [(40.4, "40 s"), (720, "12 min"), (12600, "3.5 h")])
def test_seconds_are_told_as_readers_say_them(seconds, text):
    assert speed.format_seconds(seconds) == text


# -------------------------------------------------------------------------------------------- card


def test_the_card_of_a_run_that_goes_on_says_so(tmp_path, tokenizer, pairs):
    go_on(tmp_path, tokenizer, pairs, stop_after=4)
    found = card.run_card(tmp_path, pairs, list, "validation", 12)
    told = str(found)
    assert "training  4 of 12 updates on mini" in told and "yours" not in told
    assert f"on {found.n_scored} sentences of the validation set" in told
    assert len(found.sentences) == 10
    assert (tmp_path / "card.json").exists() and not (tmp_path / "scores.json").exists()
    go_on(tmp_path, tokenizer, pairs)
    ended = card.run_card(tmp_path, pairs, list, "test", 12)
    assert not ended.same_recipe and ended.recorded == []  # none of these pairs are recorded
    assert ended.planned == 0 and "training  12 updates on mini" in str(ended)
    card.keep_scores(tmp_path, ended, 5, 1.0)
    assert read_json_lines(tmp_path / "sentences.jsonl")[-1]["step"] == 12
    for name in ("card.json", "scores.json", "sentences.jsonl", "environment.json"):
        path = tmp_path / name
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        for look in (find_run, lambda run: card.keep_scores(run, ended, 5, 1.0)):
            with pytest.raises(ValueError, match=f"{name} is damaged"):
                look(tmp_path)
        path.write_bytes(content)
    assert find_run(tmp_path) == tmp_path


def test_the_card_stands_beside_the_recorded_seeds_on_multi30k_alone(tmp_path, tokenizer, pairs):
    go_on(tmp_path, tokenizer, pairs)
    assert card.run_card(tmp_path, pairs, list, "test", 12).recorded == []
    claimed = data.Pairs(pairs, "multi30k")
    path = tmp_path / "config.json"
    (tmp_path / "checksums.json").unlink()
    path.write_text(path.read_text().replace('"data": {', '"data": {"src": "de", "tgt": "en", '))
    for split in ("validation", "test"):
        found = card.run_card(tmp_path, claimed, list, split, 12)
        assert len(found.recorded) == 3 and found.recorded_updates == 6250
