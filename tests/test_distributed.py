"""Two processes under torchrun, on the CPU: the numbers of one process, and its safety."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_run import contents, run, without_timings
from torch.distributed.run import get_args_parser

from transformer_lib.cli.options import EXAMPLES, parsers
from transformer_lib.runs import checkpoint
from transformer_lib.runs.files import read_json_lines

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow

# With a larger eps, Adam does not turn rounding errors into steps where the true gradient is 0.
SETTINGS = {"dropout": 0.0, "eps": 1e-4}
SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
from tiny_run import run

def stop(entry):  # torchrun passes the signal on to both processes
    if entry["step"] == 3:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(2)

settings = dict({settings})
if settings.pop("freeze_and_die", False):
    from transformer_lib import training
    from transformer_lib.runs import processes
    rate = training.learning_rate

    def freeze_and_die(config, step, d_model):
        processes.PATIENCE = 2 if step == 5 else 120
        if step == 5 and os.environ["RANK"] == "1":  # for a while
            os.system(f"(sleep 4; kill -CONT {{os.getpid()}}) & kill -STOP {{os.getpid()}}")
        if step == 7 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return rate(config, step, d_model)

    training.learning_rate = freeze_and_die
run({folder!r}, on_log=stop if settings.pop("stop", False) else None, **settings)
"""


def torchrun(*command: str) -> subprocess.CompletedProcess:
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    return subprocess.run(
        [*torchrun, *command], env=environment, capture_output=True, text=True, timeout=250
    )


def two_processes(folder: Path, **settings) -> subprocess.CompletedProcess:
    folder.mkdir(exist_ok=True)
    script = folder.with_suffix(".py")
    script.write_text(
        SCRIPT.format(tests=str(Path(__file__).parent), folder=str(folder), settings=settings)
    )
    return torchrun(str(script))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two") / "run"
    done = two_processes(folder, **SETTINGS)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two processes that nothing interrupts, with dropout."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = two_processes(folder, max_steps=9)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def assert_close_runs(one: Path, two: Path):
    ours, theirs = (read_json_lines(folder / "metrics.jsonl") for folder in (one, two))
    assert [e["step"] for e in ours] == [e["step"] for e in theirs]
    for a, b in zip(without_timings(ours), without_timings(theirs), strict=True):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-5)
    kept = checkpoint.checkpoints(one)
    assert [p.name for p in kept] == [p.name for p in checkpoint.checkpoints(two)] and kept
    for path in kept:
        a, b = (
            checkpoint.load_weights(folder / "checkpoints" / path.name / "model.safetensors")
            for folder in (one, two)
        )
        for name in a:
            torch.testing.assert_close(a[name], b[name], atol=1e-5, rtol=1e-5)


def test_two_processes_equal_one_with_the_same_global_batch(unbroken, tmp_path):
    run(tmp_path / "one", **SETTINGS, accumulate=2)
    assert_close_runs(unbroken, tmp_path / "one")
    # Neither half of the batch alone gives these numbers.
    _, half = run(tmp_path / "half", **SETTINGS)
    assert half[0]["loss"] != pytest.approx(read_json_lines(unbroken / "metrics.jsonl")[0]["loss"])
    # One process may take over the run of two, with the same global batch, and only so.
    with pytest.raises(ValueError, match="accumulate x processes = 2, not 1"):
        run(unbroken, **SETTINGS)
    run(unbroken, **SETTINGS, accumulate=2)


def test_ctrl_c_under_torchrun_saves_and_the_run_goes_on(whole, tmp_path):
    """With dropout: each process has its own random numbers, and finds them again."""
    done = two_processes(tmp_path / "run", max_steps=9, stop=True)
    assert done.returncode != 0
    assert done.stdout.count("Stopped at step 3; saved.") + done.stdout.count(
        "Stopped at step 6; saved."
    ) == 1, done.stdout + done.stderr[-3000:]
    done = two_processes(tmp_path / "run", max_steps=9)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("Resuming") == 1
    ours, theirs = contents(tmp_path / "run"), contents(whole)
    assert [name for name in theirs if ours.get(name) != theirs[name]] == []


def test_a_frozen_process_is_named_and_when_one_dies_the_other_says_what_to_do(whole, tmp_path):
    done = two_processes(tmp_path / "run", max_steps=9, freeze_and_die=True)
    assert done.returncode != 0
    said = "Process 0 has waited 2 s for the others. If none of them is scoring or saving, one is"
    assert done.stderr.count(said) == 1, done.stderr[-3000:]
    assert "Process 1 has waited" not in done.stderr
    said = f"{tmp_path / 'run'} holds the run up to step 6; start the same command again."
    assert done.stderr.count(said) == 1, done.stderr[-3000:]
    done = two_processes(tmp_path / "run", max_steps=9)
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = contents(tmp_path / "run"), contents(whole)
    assert [name for name in theirs if ours.get(name) != theirs[name]] == []


def test_the_command_line_runs_unchanged(tmp_path):
    settings = (
        "--data mini --vocab-size 200 --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 "
        "--n-decoder-layers 1 --max-len 100 --max-steps 2 --no-validation-bleu --device cpu "
        "--max-tokens 200 --no-progress"
    )
    done = torchrun(
        "-m", "transformer_lib", "train", *settings.split(), "--run-dir", str(tmp_path / "run")
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("Data: ") == done.stdout.count("Done: ") == 1
    assert (tmp_path / "run" / "model.safetensors").exists()


def written_commands() -> list[list[str]]:
    """Every torchrun command that the book, the README or the command line's help shows."""
    pages = [*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md"), ROOT / "README.md"]
    texts = [EXAMPLES["train"]]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        texts.append(text)
    lines = "\n".join(texts).replace("\\\n", " ").splitlines()
    return [shlex.split(x, comments=True)[1:] for x in lines if x.strip().startswith("torchrun ")]


@pytest.mark.parametrize("command", written_commands())
def test_a_torchrun_command_that_is_shown_works(command):
    """torchrun takes some options of `train`, such as --run, for its own."""
    given = get_args_parser().parse_args(command)
    assert given.training_script == "transformer_lib" and given.module
    parsers()[0].parse_args(given.training_script_args)
    if "--nnodes" in command:  # else every machine would take itself for the first
        assert given.rdzv_backend == "c10d" and given.rdzv_endpoint and given.rdzv_id != "none"


def test_the_book_shows_one_and_several_machines():
    assert len(written_commands()) >= 3
    assert any("--nnodes" in command for command in written_commands())
