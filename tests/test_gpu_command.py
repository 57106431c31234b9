"""`make gpu` and `make gpu-home`: what is done stays done, and only a GPU's record comes home.

The steps themselves are not run here: `python -m recordings.gpu run --rehearse` does that in small.
"""

import json
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from recordings import gpu
from transformer_lib.cli.options import parsers
from transformer_lib.cli.training import recipe_options
from transformer_lib.runs import checksums, pretrained
from transformer_lib.runs.device import uses_bf16
from transformer_lib.runs.files import write_json, write_json_lines

ROOT = Path(__file__).resolve().parents[1]


RUN = "multi30k-de-en"


def say(text, code=0):
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.delenv("OUT", raising=False)
    return tmp_path / "work"


def with_steps(monkeypatch, *steps):
    found = [gpu.Step(name, commands) for name, commands in steps]
    monkeypatch.setattr(gpu, "steps", lambda *_: found)
    where = {"device": "an H200", "torch": "2", "commit": "abc"}
    monkeypatch.setattr(gpu, "require_gpu", lambda small: where)


def test_steps_are_whole_and_train_can_read_them():
    """In the order of their value; each training command is one that `train` understands."""
    steps = gpu.steps()
    names = [step.name for step in steps]
    assert names[:7] == ["tests", *(f"multi30k-{run}-seed-{seed}" for run in ("de-en", "en-de")
                                    for seed in (0, 1, 2))]
    assert names[7:9] == ["fast-seed-0", "benchmark"]
    assert [name[:11] for name in names[9:]] == [f"notebook-{n}" for n in (16, 10, 13, 15)]
    for small in (False, True):
        for step in gpu.steps(small=small):
            for command in step.commands:
                if command[1:3] == gpu.LIBRARY[1:]:
                    options = parsers()[0].parse_args(command[3:])
                    assert options.device == ("cpu" if small else "cuda")
                    assert gpu.run_info(getattr(options, "like", None) or RUN)


@pytest.mark.parametrize(("src", "tgt"), [("de", "en"), ("en", "de")])
def test_the_recipes_can_be_trained_again(src, tgt):
    options = gpu.recipe(src, tgt)
    assert options[2:] == ["--src", src, "--tgt", tgt]
    assert recipe_options(options[1], own_batches=False)["data"] == "multi30k"


@pytest.mark.parametrize(("major", "minor", "rounds"), [(7, 5, False), (8, 0, True), (9, 0, True)])
def test_a_recipe_takes_the_precision_that_the_gpu_has(monkeypatch, major, minor, rounds):
    """A T4, as Colab lends it, has compute capability 7.5 and only emulates bf16: float32 there."""
    card = SimpleNamespace(major=major, minor=minor)
    for name, value in {"is_available": True, "current_device": 0, "get_device_properties": card,
                        "get_device_capability": (major, minor)}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.version, "cuda", "batches_loss_schedule.8")
    for src, tgt in (("de", "en"), ("en", "de")):
        options = gpu.recipe(src, tgt)
        precision = recipe_options(options[1], own_batches=False)["precision"]
        assert uses_bf16(precision, torch.device("cuda")) == rounds


def test_what_is_done_is_not_done_again(work, monkeypatch, capsys):
    with_steps(monkeypatch, ("one", [say("a"), say("b")]), ("bad", [say("c", 3), say("never")]),
               ("last", [say("d")]))
    assert gpu.run(work, False, None, []) == 1  # a failure does not stop the others
    assert "failed: bad" in capsys.readouterr().out
    log = (work / "logs" / "one.log").read_text()
    assert "\na\n" in log and "\nb\n" in log
    assert "never" not in (work / "logs" / "bad.log").read_text().partition("\nc\n")[2]
    record = json.loads((work / "steps" / "last.json").read_text())
    assert record["device"] == "an H200" and record["seconds"] > 0 and not record["rehearsed"]

    with_steps(monkeypatch, ("one", [say("a", 1)]), ("bad", [say("c")]), ("last", [say("d", 1)]))
    assert gpu.run(work, False, None, []) == 0
    assert capsys.readouterr().out.count("done before") == 2
    assert gpu.run(work, True, None, ["one"]) == 1  # a rehearsal is no record of the real step


def test_time_that_runs_out_is_no_failure(work, monkeypatch, tmp_path):
    """The step gets the signal of Ctrl-C, so that training saves; the next call goes on with it."""
    done = tmp_path / "saved"
    code = (f"import pathlib, time\ntry: time.sleep(60)\n"
            f"except KeyboardInterrupt: pathlib.Path({str(done)!r}).write_text('x')")
    with_steps(monkeypatch, ("long", [[sys.executable, "-c", code]]), ("next", [say("a")]))
    assert gpu.run(work, False, 1 / 30, []) == 75
    assert done.exists() and not (work / "steps").exists()


def test_it_saves_where_ctrl_c_was_ignored_at_the_start(work, monkeypatch, tmp_path):
    """As in `nohup make gpu &` of a script: the step is told to stop all the same."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        test_time_that_runs_out_is_no_failure(work, monkeypatch, tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_a_gpu_nothing_is_begun(work, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu.main(["run", "--work", str(work)]) == 1
    assert "torch sees no GPU here" in capsys.readouterr().err and not work.exists()


# ------------------------------------------------------------------------------------ come home


def a_finished_run(work, name, seed, bleu, device="NVIDIA H200", rehearsed=False):
    folder = work / "runs" / name / f"seed-{seed}"
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {"train": {"seed": seed}, "model": {}, "data": {}})
    write_json(folder / "environment.json", {"device": device, "training_seconds": 60 + seed})
    write_json_lines(folder / "metrics.jsonl", [
        {"step": 250, "seconds": 8.0}, {"step": 250, "validation_bleu": 40.0},
        {"step": 500, "seconds": 7.0}, {"step": 500, "validation_bleu": 42.5},
    ])
    for file, score in (("scores-validation.json", bleu), ("scores.json", bleu - 1)):
        write_json(folder / file, {"bleu": score})
    (folder / "tokenizer.json").write_text("{}")
    (folder / "translations.jsonl").write_text("{}\n")
    (folder / "model.safetensors").write_bytes(bytes([seed]) * 100)
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "large").write_text("stays")
    checksums.write(folder, gpu.experiments.SHIPPED)
    step = f"{name}-seed-{seed}"
    write_json(gpu.make(work / "steps" / f"{step}.json"),
               {"step": step, "rehearsed": rehearsed, "device": device, "seconds": 70.0})


@pytest.fixture
def results(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("RESULTS_DIR", str(folder))
    monkeypatch.setattr(pretrained, "_compared", {str(folder)})
    return folder


def test_the_best_seed_comes_home_with_its_device_and_seconds(work, results, monkeypatch):
    """Also through archives, of which none is larger than can be carried."""
    for seed, bleu in enumerate((43.0, 44.0, 42.0)):
        a_finished_run(work, RUN, seed, bleu)
    a_finished_run(work, "fast", 0, 42.0)
    write_json(gpu.make(work / "benchmark" / "bench.json"), {"rows": []})
    out = work.with_name("out")
    monkeypatch.setenv("OUT", str(out))
    monkeypatch.setattr(gpu, "ARCHIVE", 1000)
    gpu.pack(work)
    assert len(list(out.glob("gpu-*.tar"))) > 3
    shutil.rmtree(work)
    assert gpu.main(["home", str(out)]) == 0

    run = results / f"{RUN}-gpu"
    seeds = json.loads((run / "seeds.json").read_text())
    assert [row["chosen"] for row in seeds["seeds"]] == [False, True, False]
    assert seeds["seeds"][1]["device"] == "NVIDIA H200"
    assert seeds["seeds"][2]["training_seconds"] == 62 and seeds["test_bleu"]["mean"] == 42
    assert (run / "model.safetensors").read_bytes() == b"\1" * 100
    assert json.loads((run / "environment.json").read_text())["device"] == "NVIDIA H200"
    assert not (run / "checkpoints").exists() and checksums.differing(run) == []
    fast = json.loads((results / "gpu" / "fast.json").read_text())
    assert fast["seconds"] == 15 and len(fast["curve"]) == 2
    assert len(json.loads((results / "gpu" / "steps.json").read_text())) == 4
    assert (results / "gpu" / "benchmark.json").exists()


@pytest.mark.parametrize(("change", "what"), [
    ({"device": "x86_64 CPU, 2 threads"}, "CPU"), ({"rehearsed": True}, "a rehearsal"),
])
def test_what_no_gpu_made_is_refused_unless_it_is_meant(work, results, capsys, change, what):
    a_finished_run(work, RUN, 0, 43.0, **change)
    assert gpu.main(["home", str(work)]) == 1
    said = capsys.readouterr().err
    assert what in said and "--anyway" in said and list(results.iterdir()) == []
    assert gpu.main(["home", str(work), "--anyway"]) == 0
    assert (results / f"{RUN}-gpu" / "seeds.json").exists()


def test_a_run_of_a_cpu_inside_a_gpus_record_is_refused(work, results, capsys):
    a_finished_run(work, RUN, 0, 43.0)
    folder = work / "runs" / RUN / "seed-0"
    write_json(folder / "environment.json", {"device": "x86_64 CPU", "training_seconds": 1})
    assert gpu.main(["home", str(work)]) == 1
    assert "was trained on x86_64 CPU" in capsys.readouterr().err


def test_damaged_or_empty_folders_are_named(work, results, capsys):
    work.mkdir()
    assert gpu.main(["home", str(work)]) == 1
    assert "holds no finished step" in capsys.readouterr().err
    a_finished_run(work, RUN, 0, 43.0)
    (work / "runs" / RUN / "seed-0" / "model.safetensors").write_bytes(b"other")
    assert gpu.main(["home", str(work)]) == 1
    assert list(results.iterdir()) == []
