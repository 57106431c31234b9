"""The race times what gives the same result, refuses the rest, and keeps a table."""

import inspect
import json
import shutil
import textwrap

import pytest
import torch

from exercises import race
from transformer_lib import ModelConfig, Transformer
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.runs.verification import Finding

SHORT = results_dir() / "multi30k-de-en-short"
REFERENCE = "from collections import Counter\n" + textwrap.dedent(inspect.getsource(race.learn_bpe))


@pytest.fixture
def entry(tmp_path):
    def write(text):
        path = tmp_path / "entry.py"
        path.write_text(text)
        return path

    return write


def small_task(turn):
    words, _ = race.bpe_task(turn)
    return dict(list(words.items())[: 20 + turn]), 6


@pytest.fixture
def small(monkeypatch):
    name, reference, _, share = race.TIMED["bpe"]
    monkeypatch.setitem(race.TIMED, "bpe", (name, reference, small_task, share))


def test_the_reference_is_the_chapters(entry):
    """The same merges as the cells of the chapter on tokens give."""
    from recordings.record import ROOT

    page = (ROOT / "book" / "05_tokens_and_embeddings.ipynb").read_text("utf8")
    wanted = ("def merge(", "def learn_bpe(", "def count_pairs(")
    found = {"Counter": race.Counter}
    for cell in json.loads(page)["cells"]:
        source = "".join(cell["source"])
        for name in wanted:
            if cell["cell_type"] == "code" and name in source:
                start = source.index(name)
                body = source[start:].split("\n\n\n")[0]
                exec("from collections import Counter, defaultdict\n" + body, found)
    words, merges = race.bpe_task(0)
    assert found["learn_bpe"](words, 40)[0] == race.learn_bpe(words, 40)[0]


def test_every_turn_has_other_texts():
    assert race.bpe_task(0)[0] != race.bpe_task(1)[0]
    assert race.bpe_task(1) == race.bpe_task(1)


FOUR_TIMES = REFERENCE + """
once = learn_bpe


def learn_bpe(cut, n):
    for _ in range(3):
        once(cut, n)
    return once(cut, n)
"""


def test_four_times_the_work_is_a_quarter_as_fast(entry, small):
    found = race.against_the_reference("bpe", entry(FOUR_TIMES))
    assert 0.12 < found["score"] < 0.5 and found["low"] <= found["score"] <= found["high"]


WRONG = [
    (REFERENCE.replace("merges.append(pair)", "merges.append(pair[::-1])"), "merges that differ"),
    (REFERENCE.replace("(n_merges)", "(n_merges - 1)"), "returns 5 merges; 6 are expected"),
    (REFERENCE.replace("return merges, cut", "return None"), "it returns None"),
    ("def learn_bpe(cut, n):\n    1 / 0\n", "ZeroDivisionError"),
    ("def learn_bpe(cut, n):\n    while True:\n        pass\n", "still running after 1 seconds"),
    ("def train_bpe(cut, n):\n    pass\n", "defines no function learn_bpe"),
    ("1 / 0\n", "can't be imported: ZeroDivisionError"),
    # kept from the turn before, where the texts were others
    (REFERENCE + "\nonce, kept = learn_bpe, []\n\n\ndef learn_bpe(cut, n):\n"
     "    kept.append(kept[0] if kept else once(cut, n))\n    return kept[0]\n",
     "merges that differ"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_gives_something_else_is_refused(text, message, entry, small, monkeypatch):
    monkeypatch.setattr(race, "LIMIT", 1.0)
    with pytest.raises(race.Refused) as refused:
        race.against_the_reference("bpe", entry(text))
    assert message in str(refused.value)


def test_an_entry_cannot_change_the_task_of_the_other(entry, small):
    spoiling = "    merges, mine = [], dict(cut)\n    cut.clear()\n    cut = mine\n"
    text = REFERENCE.replace("    merges = []\n", spoiling)
    assert race.against_the_reference("bpe", entry(text), turns=1)["score"] > 0


def test_decoding_compares_what_is_written(entry, monkeypatch):
    torch.manual_seed(0)
    model = Transformer(ModelConfig(30, 16, 2, 16, 1, 1, max_len=80)).eval()

    def task(turn):
        return model, [[4 + (i * 7 + j + turn) % 26 for j in range(2 + i % 4)] + [2]
                       for i in range(6)]

    monkeypatch.setitem(race.TIMED, "decoding", ("decode", race.decode, task, 0.98))
    begin = "from exercises.race import decode as reference\n\n\ndef decode(model, sentences):\n"
    one_by_one = begin + "    return [reference(model, [s])[0] for s in sentences]\n"
    assert race.against_the_reference("decoding", entry(one_by_one), turns=1)["score"] > 0
    cut = begin + "    return [ids[:3] for ids in reference(model, sentences)]\n"
    with pytest.raises(race.Refused, match="sentences that differ: .* The first is number 0"):
        race.against_the_reference("decoding", entry(cut), turns=1)


def holds(folder):
    yield Finding(True, "all is well")


def test_a_translator_counts_by_its_bleu():
    found = race.translator(SHORT, verify=holds)
    assert found["score"] == pytest.approx(json.loads((SHORT / "scores.json").read_text())["bleu"])
    assert 0 < found["seconds"] <= race.SECONDS


@pytest.mark.parametrize(("change", "message"), [
    ({"verify": lambda folder: [Finding(False, "another score")]}, "another score"),
    ({"verify": lambda folder: [Finding(None, "no scores are kept")]}, "no scores are kept"),
    ({"SECONDS": 10}, "10 are allowed"),
    ({"MEGABYTES": 1}, "1 are allowed"),
])
def test_a_translator_that_breaks_a_rule_is_refused(change, message, monkeypatch):
    verify = change.pop("verify", holds)
    for name, value in change.items():
        monkeypatch.setattr(race, name, value)
    with pytest.raises(race.Refused, match=message):
        race.translator(SHORT, verify=verify)


def test_a_translator_without_a_test_score_is_told_how_to_get_one(tmp_path):
    """At once: before anything is translated."""
    shutil.copy(results_dir() / "multi30k-de-en-short" / "config.json", tmp_path)
    with pytest.raises(race.Refused, match="no score on the test set yet: .*evaluate --run"):
        race.translator(tmp_path, verify=lambda folder: pytest.fail("it was verified"))


def test_the_other_direction_is_no_entry(monkeypatch):
    monkeypatch.setattr(race, "SECONDS", 1e5)
    monkeypatch.setattr(race, "MEGABYTES", 100)
    with pytest.raises(race.Refused, match="its score is en to de on test of multi30k"):
        race.translator(results_dir() / "multi30k-en-de", verify=holds)


def test_the_table_is_kept_and_sorted(entry, small, tmp_path, capsys):
    table = tmp_path / "race.json"
    for name, text in (("Ana", REFERENCE), ("Ben", FOUR_TIMES)):
        arguments = ["bpe", str(entry(text)), "--name", name, "--table", str(table)]
        assert race.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3] == "bpe (times as fast as the reference)"
    assert "1." in lines[-2] and "Ana" in lines[-2] and "2." in lines[-1] and "Ben" in lines[-1]
    assert len(json.loads(table.read_text())) == 2
    none = ["bpe", str(tmp_path / "none.py"), "--name", "Cem", "--table", str(table)]
    assert race.main(none) == 1
    assert "No place: " in capsys.readouterr().err and len(json.loads(table.read_text())) == 2


def test_a_table_that_is_none_is_left_alone(tmp_path, capsys):
    table = tmp_path / "race.json"
    table.write_text('{"a": 1}')
    assert race.main(["--table", str(table)]) == 1
    assert "isn't a table of a race" in capsys.readouterr().err and table.read_text() == '{"a": 1}'
    assert race.main(["--table", str(tmp_path / "new.json")]) == 0
    assert "No entries yet." in capsys.readouterr().out
