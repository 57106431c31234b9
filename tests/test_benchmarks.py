"""The benchmarks run, compare equal work, and report what they cannot measure."""

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import torch

from benchmarks import lighthouse, startup, training
from benchmarks.__main__ import main
from benchmarks.browser import served
from benchmarks.decoding import best_batch_size
from benchmarks.timing import alternate, compare


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One smoke run, in a process where CTranslate2 is not installed, and what it saved."""
    threads, folder = torch.get_num_threads(), tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ctranslate2", None)
        patch.setitem(sys.modules, "ctranslate2.specs", None)
        result = main(["--quick", "--threads", "1", "--out", str(folder)])
    torch.set_num_threads(threads)
    return result, folder


def find(result, what, against):
    rows = [r for r in result["rows"] if r["what"].startswith(what) and against in r["against"]]
    assert len(rows) == 1, f"{len(rows)} rows for {what} / {against}"
    return rows[0]


def test_every_comparison_has_a_row_with_a_positive_ratio(quick):
    result, _ = quick
    for what, against in [
        ("importing the library", "torch"),
        ("training step, 4+4", "same dropout"),
        ("training step, fast", "same dropout"),
        ("training step in bf16", "ours"),
        ("epoch", "ours, unsorted"),
        ("epoch", "torch.nn.Transformer, unsorted"),
        ("greedy decoding", "no cache"),
        ("greedy decoding,", "as printed"),
        ("greedy decoding in C", "as printed"),
        ("greedy decoding", "Marian"),
        ("beam 5 decoding", "no cache"),
        ("beam 5 decoding,", "as printed"),
        ("beam 5 decoding in C", "as printed"),
        ("beam 5 decoding", "Marian"),
    ]:
        assert find(result, what, against)["ratio"] > 0


def test_only_the_step_in_bf16_rounds_its_products():
    """And it is a step of ours: the same function, with torch's setting changed within it."""
    names = (training.OURS, training.FAST, training.TORCH, training.TORCH_SAME)
    seen = {name: [] for name in names}

    def step_of(name):
        return lambda *_, bf16=False: seen[name].append(bf16)

    corpus = training.Corpus([[5, 2]] * 4, [[1, 5, 2]] * 4)
    rows = training.step_rows(corpus, {name: step_of(name) for name in seen}, 1, rounds=3)
    assert len(rows) == 5
    assert set(seen.pop(training.FAST)) == {False, True}
    assert all(set(rounded) == {False} for rounded in seen.values())

    within, usual = [], torch.get_float32_matmul_precision()

    class Watched(torch.nn.Linear):
        def forward(self, src_ids, tgt_ids):
            within.append(torch.get_float32_matmul_precision())
            return super().forward(torch.ones(1, 2)).sum()

    step = training.make_step(Watched(2, 1))
    step(None, None)
    step(None, None, bf16=True)
    assert within == [usual, "medium"] and torch.get_float32_matmul_precision() == usual


def test_what_is_compared_writes_the_same(quick):
    result, _ = quick
    decoded = [r for r in result["rows"] if "outputs the same" in r["note"]]
    assert len(decoded) == 8
    for row in decoded:
        same, _, total = row["note"].split()[:3]
        assert same == total, row


def test_a_missing_peer_is_a_row_that_says_so(quick):
    result, _ = quick
    for what in ("greedy decoding in C", "beam 5 decoding in C"):
        row = find(result, what, "CTranslate2")
        assert row["ratio"] is None and "not installed" in row["note"]


def test_batches_by_length_hold_less_padding(quick):
    result, _ = quick
    row = find(result, "padding", "unsorted")
    assert 0 <= row["ours"] < row["peer"] <= 100


def test_curves_hold_every_point_for_both(quick):
    result, _ = quick
    for what in ("training step", "greedy decoding"):
        points = [c for c in result["curves"] if c["what"] == what]
        assert len(points) == 8 and all(c["ms"] > 0 for c in points)
        assert len({c["who"] for c in points}) == 2


def test_saved_files_hold_the_result(quick):
    result, folder = quick
    assert json.loads((folder / "bench.json").read_text()) == result
    table = (folder / "bench.md").read_text()
    assert "numbers mean nothing" in table and result["environment"]["date"] in table
    for row in result["rows"]:
        assert f"| {row['what']} | {row['against']} |" in table


def test_ctranslate2_with_our_weights_writes_the_same(tmp_path):
    pytest.importorskip("ctranslate2")
    from benchmarks.decoding import ctranslate2_decoder, our_decoder, until_end
    from transformer_lib import load_pretrained
    from transformer_lib.tokenization import encode_source

    translator = load_pretrained("multi30k-de-en")
    texts = ["Ein Hund läuft im Schnee.", "Zwei Frauen sitzen auf einer Bank und lesen."]
    sources = encode_source(translator.tokenizer, texts)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    for beam in (1, 5):
        theirs = ctranslate2_decoder(translator, beam, str(tmp_path), workers=2)(sources, 2)
        assert torch.get_num_threads() == 2, "CTranslate2 changed torch's threads"
        ours = our_decoder(translator.model, beam)(sources, 2)
        assert until_end(ours) == theirs
    torch.set_num_threads(threads)


def test_every_batch_size_is_tried_and_all_at_once():
    tried = []
    best_batch_size(lambda sources, size: tried.append(size), [[5, 2]] * 6, [2, 4, 8])
    assert tried == [2, 2, 4, 6]  # the first call warms up


def test_importing_is_measured_after_a_first_time(quick, monkeypatch):
    result, _ = quick
    row = find(result, "importing the library", "torch")
    assert row["low"] <= row["ratio"] <= row["high"]
    taken = iter(["100 1", "8 2", "6 1", "9 3"])

    def run(*_, **__):
        return subprocess.CompletedProcess([], 0, stdout=next(taken))

    monkeypatch.setattr(startup.subprocess, "run", run)
    row = startup.startup_row(rounds=3)
    assert (row.ours, row.peer, row.ratio, row.low, row.high) == (2, 8, 4, 3, 6)


def test_contestants_take_turns():
    calls = []
    taken = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert "".join(calls) == "ab" + "abab"  # the first turn warms up
    assert [len(times) for times in taken.values()] == [2, 2]


def test_a_ratio_compares_neighbours_in_time():
    # The machine slows down tenfold in the last round, for both.
    row = compare("x", "y", "items/s", ours=[20, 22, 2], peer=[10, 10, 1])
    assert (row.ratio, row.low, row.high) == (2.0, 2.0, 2.2)


def test_lighthouse_judges_by_the_median_and_fails_below_its_mark(monkeypatch, tmp_path, capsys):
    given = {"index.html": [95, 40, 96], "book/translator.html": [80, 99, 85],
             "jumps.html": [99, 99, 99]}
    shifts = {"jumps.html": iter([0, 0.2, 0])}
    visits = {page: iter(scores) for page, scores in given.items()}
    monkeypatch.setattr(lighthouse, "PAGES", tuple(given))
    monkeypatch.setattr(lighthouse, "CHROMIUM", "chromium")
    monkeypatch.setattr(lighthouse.shutil, "which", lambda name: name)

    def judge(url):
        page = url.split("/", 3)[3]
        shown = dict.fromkeys(lighthouse.SHOWN, "1 s")
        return shown | {"score": next(visits[page]), "shift": next(shifts.get(page, iter([0])))}

    monkeypatch.setattr(lighthouse, "judge", judge)
    assert lighthouse.main(["--site", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "index.html: 95 of 100 (95, 40, 96)" in said
    last = "Below 90, or moving by 0.05 and more: book/translator.html, jumps.html"
    assert said.splitlines()[-1] == last


def test_pages_are_served_compressed_to_lighthouse(tmp_path):
    text = "attention " * 1000
    (tmp_path / "index.html").write_text(text)
    (tmp_path / "model.bin").write_text(text)
    with served(tmp_path, lighthouse.Compressed) as address:
        for name, shorter in (("", True), ("model.bin", False)):
            asked = urllib.request.Request(f"{address}/{name}", headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(asked) as answer:
                body = answer.read()
                assert (answer.headers["Content-Encoding"] == "gzip") is shorter
            assert (gzip.decompress(body) if shorter else body).decode() == text
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/not-there.js")
