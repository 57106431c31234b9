"""The library on Apple's GPU, under its name: what "auto" takes on a Mac.

Here it is the pretend device named mps (pretend.py), which refuses what Apple's lacks: float64,
pinned memory, copies without waiting. On a Mac with a GPU the same tests take that. They compare
with the CPU within a tolerance, since a GPU adds numbers up in another order: 1e-4 of a loss or a
logit, and 0.02 of a weight after twelve updates, because Adam divides by small gradients.

No Mac was at hand when this was written, so nothing here says how fast or how exact Apple's GPU is.
"""

import contextlib

import pretend
import pytest
import tiny_run
import torch
from conftest import random_ids, tiny_config

from transformer_lib import Transformer, load_pretrained
from transformer_lib.decoding import beam_search, greedy_decode, sample
from transformer_lib.runs.device import environment, pick_device, sums_in, uses_bf16
from transformer_lib.runs.files import read_json_lines

REAL = torch.backends.mps.is_available()


@pytest.fixture
def mps():
    here = contextlib.nullcontext(torch.device("mps", 0))
    with here if REAL else pretend.named_mps() as found:
        yield found


@pytest.fixture
def pretended(mps):
    if REAL:
        pytest.skip("there is an Apple GPU here")
    return mps


def test_what_apple_refuses_is_refused(pretended):
    there = torch.ones(3, device="mps")
    assert there.device == torch.device("mps", 0) and there.sum().item() == 3
    for refused in (
        lambda: there.double(),
        lambda: torch.zeros(3, dtype=torch.float64, device="mps"),
        lambda: torch.zeros(3).double().to("mps"),
    ):
        with pytest.raises(TypeError, match="float64"):
            refused()
    with pytest.raises(RuntimeError, match="pinned"):
        torch.ones(3).pin_memory()
    with pytest.raises(RuntimeError, match="nobody waits"):
        torch.ones(3).to("mps", non_blocking=True)
    with pytest.raises(pretend.Mixed):
        there + torch.ones(3)


def test_auto_takes_it_in_full_precision(mps):
    device = pick_device("auto")
    assert device.type == pick_device("mps").type == "mps"
    assert not uses_bf16("auto", device) and uses_bf16("bf16", device)
    assert sums_in(device) == torch.float32 and sums_in(torch.device("cpu")) == torch.float64
    about = environment(device)
    assert "Apple" in about["device"] and "GPU" in about["device"]


def test_several_processes_pass_it_over(mps, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert pick_device("auto").type != "mps"
    with pytest.raises(ValueError, match="'mps', which serves only one process"):
        pick_device("mps")


def test_a_gpu_of_another_maker_comes_first(mps, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto").type == "cuda"


@pytest.mark.skipif(REAL, reason="there is an Apple GPU here")
def test_where_there_is_none_the_error_names_it():
    assert pick_device("auto").type != "mps"
    with pytest.raises(ValueError, match="device is 'mps', but this torch finds no Apple GPU"):
        pick_device("mps")
    with pytest.raises(ValueError, match="'cuda:1' or 'mps'"):
        pick_device("apple")


@pytest.mark.parametrize("fast", [False, True])
def test_training_gives_the_numbers_of_the_cpu(mps, tmp_path, fast):
    same = {"fast": fast, "dropout": 0.0, "validation_bleu": True}
    model, given = tiny_run.run(tmp_path / "mps", device="auto", **same)
    other, expected = tiny_run.run(tmp_path / "cpu", **same)
    assert next(model.parameters()).device.type == "mps"
    for one, two in zip(given, expected, strict=True):
        for name in {"loss", "validation_loss"} & {*two}:
            assert one[name] == pytest.approx(two[name], rel=1e-3)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.detach().cpu(), two.detach(), atol=0.02, rtol=0.02)
    assert "Apple" in (tmp_path / "mps" / "environment.json").read_text()


def test_a_resumed_run_is_the_run_never_stopped(mps, tmp_path):
    """Dropout draws on the device: its random numbers are in the checkpoint."""
    tiny_run.run(tmp_path / "whole", device="mps")

    def stop(entry):
        if entry["step"] == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_run.run(tmp_path / "parts", stop, device="mps")
    torch.manual_seed(5)
    tiny_run.run(tmp_path / "parts", device="mps")
    if not REAL:
        tiny_run.assert_same_run(tmp_path / "whole", tmp_path / "parts")
    whole, parts = (read_json_lines(tmp_path / run / "metrics.jsonl") for run in ("whole", "parts"))
    losses = [[entry["loss"] for entry in run if "loss" in entry] for run in (whole, parts)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("positional", ["sinusoidal", "rotary", "alibi"])
def test_decoding_gives_the_words_of_the_cpu(mps, positional):
    torch.manual_seed(0)
    model = Transformer(tiny_config(positional=positional)).eval()
    src = random_ids(4, 7)
    src[1, 4:] = 0
    expected = greedy_decode(model, src, max_len=8), beam_search(model, src, max_len=8)[0]
    model, src = model.to(mps), src.to(mps)
    given = greedy_decode(model, src, max_len=8), beam_search(model, src, max_len=8)[0]
    assert [ids.tolist() for ids in given[:1]] == [ids.tolist() for ids in expected[:1]]
    assert [list(map(int, ids)) for ids in given[1]] == [list(map(int, ids)) for ids in expected[1]]
    torch.manual_seed(1)
    assert sample(model, src, max_len=8).device.type == "mps"


def test_a_translator_moves_there(mps, tmp_path):
    tiny_run.run(tmp_path, device="cpu", max_steps=4)
    texts = [source for source, _ in tiny_run.data()[0]["validation"]]
    here, there = load_pretrained(tmp_path), load_pretrained(tmp_path, device="auto")
    assert there.device.type == "mps"
    written = [[found.text for found in t.translate(texts, 3)] for t in (here, there)]
    assert written[0] == written[1]
