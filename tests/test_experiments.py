"""Runs that belong together: what is chosen on what, and that nothing is done twice."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest

from recordings import experiments
from transformer_lib.cli.options import parsers
from transformer_lib.cli.training import recipe_options

ROOT = Path(__file__).resolve().parents[1]


VALIDATION = {0: 40.0, 1: 42.0, 2: 41.0}
TEST = {0: 43.0, 1: 40.0, 2: 41.0}  # the best on the test set is the worst on validation


def finished(folder, seed, dropout=False):
    """What training leaves in a run folder."""
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).write_text(f"of seed {seed}")
    config = {"model": {"dropout": dropout}, "train": {"seed": seed}, "data": {"src": "de"}}
    where = {"training_seconds": 60, "device": "a CPU", "commit": "abc"}
    entry = {"step": 9, "validation_loss": 1.5}
    for name, content in (("config", config), ("environment", where), ("metrics", entry)):
        end = "jsonl" if name == "metrics" else "json"
        (folder / f"{name}.{end}").write_text(json.dumps(content) + "\n")


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """The commands that would run; each leaves in its run folder what the real one does."""
    called = []

    def command(*arguments, log):
        called.append(arguments)
        folder = log.parent
        folder.mkdir(parents=True, exist_ok=True)
        seed = int(folder.name.rsplit("-", 1)[1])
        if arguments[0] == "train":
            finished(folder, seed, "--dropout" in arguments)
        elif "validation" in arguments:
            scores = {"bleu": VALIDATION[seed], "chrf": 60.0}
            (folder / "scores-validation.json").write_text(json.dumps(scores))
        else:
            (folder / "scores.json").write_text(json.dumps({"bleu": TEST[seed]}))
            (folder / "translations.jsonl").write_text("")

    monkeypatch.setattr(experiments, "command", command)
    monkeypatch.setattr(experiments, "beam", lambda folder, size: 30.0 + size)
    monkeypatch.setattr(experiments, "RUNS", tmp_path / "runs")
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()
    return called


def test_the_seed_is_chosen_on_validation_before_the_test_set_is_seen(commands, tmp_path):
    experiments.seeds("a-run", [0, 1, 2], [], jobs=1)
    folder = tmp_path / "results" / "a-run"
    assert (folder / "model.safetensors").read_text() == "of seed 1"
    assert json.loads((folder / "config.json").read_text())["train"]["seed"] == 1
    kinds = [
        "train" if c[0] == "train" else "validation" if "validation" in c else "test"
        for c in commands
    ]
    assert kinds == ["train", "validation"] * 3 + ["test"] * 3
    assert commands[0][1:3] == ("--like", "a-run")
    tried = " --length-penalty " + " ".join(map(str, experiments.LENGTH_PENALTIES)) + " --save"
    assert all(" ".join(c).endswith(tried) for c in commands if "validation" in c)
    assert not any("--length-penalty" in c for c in commands if "validation" not in c)
    summary = json.loads((folder / "seeds.json").read_text())
    assert summary["test_bleu"]["mean"] == pytest.approx(124 / 3)
    assert summary["test_bleu"]["sd"] == pytest.approx(1.5275, abs=1e-4)
    assert [row["chosen"] for row in summary["seeds"]] == [False, True, False]


def test_what_is_done_is_not_done_again(commands):
    experiments.seeds("a-run", [0, 1], [], jobs=1)
    before = len(commands)
    experiments.seeds("a-run", [0, 1, 2], ["--like", "other"], jobs=1)
    assert [c[0] for c in commands[before:]] == ["train", "evaluate", "evaluate"]
    assert commands[before][1:] == (
        "--like", "other", "--seed", "2", "--run-dir", str(experiments.RUNS / "a-run" / "seed-2"),
    )


def test_scores_can_be_recorded_without_weights(commands, tmp_path):
    options = ["--recipe", "short", "--max-steps", "9"]
    experiments.seeds("quick", [0], options, jobs=1, scores_only=True)
    experiments.seeds("quick", [0, 1], options, jobs=1, scores_only=True)
    assert [c[:5] for c in commands if c[0] == "train"] == [("train", *options)[:5]] * 2
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["quick.json"]
    found = json.loads((tmp_path / "results" / "quick.json").read_text())
    assert found["options"] == "--recipe short --max-steps 9"
    assert [(row["seed"], row["test"]["bleu"], row["chosen"]) for row in found["seeds"]] == [
        (0, TEST[0], False), (1, TEST[1], True),
    ]
    assert found["test_bleu"]["mean"] == (TEST[0] + TEST[1]) / 2
    assert all(row["curve"] == [{"step": 9, "validation_loss": 1.5}] for row in found["seeds"])
    with pytest.raises(ValueError, match="holds seeds of '--recipe short --max-steps 9', not of"):
        experiments.seeds("quick", [2], ["--recipe", "short"], jobs=1, scores_only=True)


@pytest.mark.parametrize(("first", "best"), [(0, 2), (1, 1)])
def test_seeds_are_added_to_a_recorded_run(commands, tmp_path, first, best):
    """The folder of a single run, as `train` and `evaluate` leave it, is the first seed."""
    folder = tmp_path / "results" / "a-run"
    folder.mkdir()
    finished(folder, first)
    (folder / "scores-validation.json").write_text(json.dumps({"bleu": VALIDATION[first]}))
    with pytest.raises(ValueError, match="no scores.json.* evaluate --save"):
        experiments.seeds("a-run", [2], [], jobs=1)
    assert not commands
    (folder / "scores.json").write_text(json.dumps({"bleu": TEST[first]}))

    experiments.seeds("a-run", [first, 2], [], jobs=1)
    rows = json.loads((folder / "seeds.json").read_text())["seeds"]
    assert [(row["seed"], row["test"]["bleu"]) for row in rows] == [
        (first, TEST[first]), (2, TEST[2]),
    ]
    assert [row["seed"] for row in rows if row["chosen"]] == [best]
    assert (folder / "model.safetensors").read_text() == f"of seed {best}"
    assert sum(c[0] == "train" for c in commands) == 1  # the recorded seed is not trained again


@pytest.mark.parametrize(
    ("given", "passed"),
    [([], ["--like", "a-run"]), (["--no-progress"], ["--like", "a-run", "--no-progress"]),
     (["--like=b"], ["--like=b"])],
)
def test_more_seeds_take_the_recipe_of_the_recorded_run(commands, given, passed):
    experiments.seeds("a-run", [0], ["--dropout", "0.3"], jobs=1)
    assert commands[0][1:5] == ("--dropout", "0.3", "--seed", "0")  # no run to be like as yet
    before = len(commands)
    with contextlib.suppress(ValueError):  # the fake runs have another dropout
        experiments.seeds("a-run", [1], given, jobs=1)
    assert list(commands[before][1:-4]) == passed


def test_scores_of_earlier_weights_are_not_used(commands):
    """The run in this folder went on after it was scored: it has other weights."""
    experiments.seeds("a-run", [0], [], jobs=1)
    folder = experiments.RUNS / "a-run" / "seed-0"
    assert experiments.scored(folder, "scores.json")
    os.utime(folder / "model.safetensors", (2e9, 2e9))
    assert not experiments.scored(folder, "scores.json")
    assert not experiments.scored(folder, "scores-nothing.json")


def test_a_finished_run_is_shown_to_train_which_refuses_other_settings(commands, tmp_path):
    experiments.seeds("a-run", [0], [], jobs=1)
    shutil.rmtree(tmp_path / "results" / "a-run")
    before = len(commands)
    experiments.seeds("a-run", [0], ["--dropout", "0.2"], jobs=1)
    assert commands[before][:3] == ("train", "--dropout", "0.2")


def test_a_setting_that_an_older_run_did_not_record_is_compared(tmp_path):
    for name, train in (("old", {}), ("new", {"cooldown": 18}), ("same", {})):
        (tmp_path / name).mkdir()
        config = {"model": {}, "train": train | {"seed": 1}, "data": {}}
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    differ = experiments.other_settings(tmp_path / "old", tmp_path / "new")
    assert differ == ["cooldown = 0, not 18"]
    assert experiments.other_settings(tmp_path / "old", tmp_path / "same") == []


def test_seeds_of_another_recipe_are_not_mixed_in(commands, tmp_path):
    experiments.seeds("a-run", [0], [], jobs=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "results/a-run").iterdir()}
    with pytest.raises(ValueError, match=r"another recipe: \['dropout = False, not True'\]"):
        experiments.seeds("a-run", [1], ["--dropout", "0.3"], jobs=1)
    assert before == {
        path.name: path.read_bytes() for path in (tmp_path / "results/a-run").iterdir()
    }
    tested = [c for c in commands if c[0] == "evaluate" and "validation" not in c]
    assert len(tested) == 1 and tested[0][2].endswith("seed-0")  # the other's test stays unseen


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("killed", [True, False])
def test_a_stopped_publication_changes_nothing_and_is_made_up_for(
    commands, tmp_path, monkeypatch, recorded, killed
):
    """The disk fails (or the process dies) at each change of results/ in turn."""
    goal, numbers = tmp_path / "results" / "a-run", [0, 1] if recorded else [1, 2]
    if recorded:
        experiments.seeds("a-run", [0], [], jobs=1)
        (goal / "control.json").write_text("kept")
    before = contents(tmp_path / "results")
    experiments.seeds("a-run", numbers, [], jobs=1)
    whole, stops = contents(tmp_path / "results"), 0
    assert before.keys() <= whole.keys()
    for n in range(99):
        shutil.rmtree(goal)
        for name, content in before.items():
            (tmp_path / "results" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "results" / name).write_bytes(content)
        with monkeypatch.context() as patch:
            fail_at(patch, n, killed)
            with contextlib.suppress(Killed):
                code = experiments.main(["seeds", "a-run", "--seeds", *map(str, numbers)])
                if code == 0:
                    break
        stops += 1
        if not killed:
            assert contents(tmp_path / "results") == before
        experiments.seeds("a-run", numbers, [], jobs=1)
        assert contents(tmp_path / "results") == whole, f"after a stop at change {n}"
    assert stops > len(experiments.SHIPPED)


class Killed(BaseException):
    """The end of the process: nothing is cleared away."""


def fail_at(monkeypatch, n, killed):
    """The n-th copy, new file or rename fails, and if the process is killed all later ones, too."""
    calls = iter(range(10**6))

    def failing(function):
        def changed(*arguments, **options):
            call = next(calls)
            if killed and call >= n:
                raise Killed
            if call == n:
                raise OSError(28, "No space left on device")
            return function(*arguments, **options)

        return changed

    for owner, name in ((shutil, "copy"), (experiments, "write_json"), (Path, "rename")):
        monkeypatch.setattr(owner, name, failing(getattr(owner, name)))
    copytree, copy_file = shutil.copytree, failing(shutil.copy2)

    def copying(source, target, *inner):  # it calls itself for folders inside
        return copytree(source, target, *(inner or [False, None, copy_file]))

    monkeypatch.setattr(shutil, "copytree", copying)
    if killed:
        monkeypatch.setattr(experiments, "settle", lambda goal: None)


def test_averaging_shares_a_training_whole_or_not_at_all(tmp_path, monkeypatch):
    """A copy that was cut off must not pass for a run: it is begun again."""
    unchanged, folder = tmp_path / "unchanged" / "seed-0", tmp_path / "no-averaging" / "seed-0"
    (unchanged / "checkpoints" / "step-1").mkdir(parents=True)
    (unchanged / "checkpoints" / "step-1" / "state.json").write_text("{}")
    finished(unchanged, 0)
    (unchanged / "metrics.jsonl").write_text('{"step": 1}\n{"step": 1, "averaged": 5}\n')
    for n in range(9):
        with monkeypatch.context() as patch:
            fail_at(patch, n, killed=False)
            with contextlib.suppress(OSError):
                experiments.share_training(unchanged, folder)
                break
        assert not folder.exists(), f"after a stop at change {n}"
    assert n > 2
    shared = contents(folder)
    assert sorted(shared) == [
        "checkpoints/step-1/state.json", "config.json", "metrics.jsonl", "tokenizer.json",
    ]
    assert shared["metrics.jsonl"] == b'{"step": 1}\n'
    assert json.loads(shared["config.json"])["train"] == {"seed": 0, "average": 1}


def test_ablations_grow_run_by_run_and_never_see_the_test_set(commands, tmp_path):
    experiments.ablations(["unchanged", "post-norm"], [0], jobs=1)
    experiments.ablations(["post-norm", "unchanged"], [0, 1], jobs=2)
    rows = json.loads((tmp_path / "results" / "ablations.json").read_text())["runs"]
    assert [(row["variant"], row["seed"]) for row in rows] == [
        ("unchanged", 0), ("unchanged", 1), ("post-norm", 0), ("post-norm", 1),
    ]
    assert [row["validation_bleu"] for row in rows] == [40.0, 42.0, 40.0, 42.0]
    assert rows[0]["beam"]["5"] == 35.0 and "beam" not in rows[2]
    assert sum(c[0] == "train" for c in commands) == 4
    scored = [" ".join(c) for c in commands if c[0] == "evaluate"]
    assert all(c.endswith("--split validation --length-penalty 1 --save") for c in scored)


def test_runs_that_end_together_are_all_recorded(commands, tmp_path, monkeypatch):
    """Two writers of one file at once would rename each other's partial copy away."""
    at_work, write = [], experiments.write_json

    def slowly(path, content):
        at_work.append(path)
        alone = at_work.count(path) == 1
        time.sleep(0.05)
        at_work.remove(path)
        assert alone, "two threads wrote at once"
        write(path, content)

    monkeypatch.setattr(experiments, "write_json", slowly)
    names = ["unchanged", "post-norm", "BatchNorm", "RMSNorm"]
    experiments.ablations(names, [0], jobs=4)
    rows = json.loads((tmp_path / "results" / "ablations.json").read_text())["runs"]
    assert {row["variant"] for row in rows} == set(names)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"BASE": "--max-steps 9"}, "another base"), ({"VARIANTS": {"unchanged": ""}}, "post-norm"),
     ({"VARIANTS": experiments.VARIANTS | {"post-norm": "--norm rms"}}, "post-norm")],
)
def test_runs_with_other_settings_are_not_kept_under_the_new_name(
    commands, tmp_path, monkeypatch, change, named
):
    experiments.ablations(["unchanged", "post-norm"], [0], jobs=1)
    before = (tmp_path / "results" / "ablations.json").read_bytes()
    for name, value in change.items():
        monkeypatch.setattr(experiments, name, value)
    with pytest.raises(ValueError, match=f"with other settings .*{named}.* away to train"):
        experiments.ablations(["unchanged"], [1], jobs=1)
    assert (tmp_path / "results" / "ablations.json").read_bytes() == before


def test_after_ctrl_c_no_other_run_begins():
    begun = []

    def run(i):
        begun.append(i)
        time.sleep(0.2)  # until all are in the queue
        if i == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        experiments.at_once(2, run, range(6))
    time.sleep(0.5)
    assert sorted(begun) == [0, 1]


def test_a_run_that_is_not_there_is_named_and_nothing_is_made(monkeypatch, tmp_path, capsys):
    """The checkout may be one in which nothing may be written."""
    monkeypatch.setattr(experiments, "RUNS", tmp_path / "runs")
    assert experiments.main(["seeds", "nowhere"]) == 1
    assert "there is no trained run 'nowhere'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_is_no_error(commands, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "ablations", stop)
    assert experiments.main(["ablations"]) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_an_unknown_variant_is_named(commands):
    with pytest.raises(ValueError, match=r"no variant \['dropuot'\]"):
        experiments.ablations(["dropuot"], [0], jobs=1)


@pytest.mark.parametrize("position", [2, 4, 6])
def test_options_of_train_may_stand_anywhere(commands, position):
    line = ["seeds", "a-run", "--jobs", "1", "--seeds", "0"]
    line[position:position] = ["--like", "other"]
    assert experiments.main(line) == 0
    assert commands[0][1:5] == ("--like", "other", "--seed", "0")


def test_ablations_refuse_options_of_train(commands, capsys):
    with pytest.raises(SystemExit):
        experiments.main(["ablations", "--dropout", "0.2"])
    assert "ablations takes no --dropout 0.2" in capsys.readouterr().err
    assert not commands


def test_a_failed_run_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 1:\n.*there is no folder /nowhere"):
        experiments.command("train", "--data", "/nowhere", log=tmp_path / "log.txt")


@pytest.mark.parametrize("name", experiments.VARIANTS)
def test_every_variant_is_a_valid_command_that_changes_something(name):
    parser, _ = parsers()

    def settings(variant):
        return vars(parser.parse_args(["train", *shlex.split(f"{experiments.BASE} {variant}")]))

    changed = settings(experiments.VARIANTS[name]) != settings("")
    assert changed == (name != "unchanged")


def test_each_rung_of_the_ladder_changes_one_thing_and_the_last_is_the_recipe():
    """The control changes one thing, too: it is the last rung without Muon."""
    parser, train = parsers()

    def settings(*options):
        told = vars(parser.parse_args(["train", *shlex.split(" ".join(options)), "--fast"]))
        return {name: value for name, value in told.items() if name != "progress"}

    before = None
    for rung in experiments.CHANGES:
        now = settings(experiments.GROUND, experiments.RUNGS[rung])
        assert before is None or sum(now[name] != before[name] for name in now) == 1
        before = now
    control = settings(experiments.GROUND, experiments.RUNGS[experiments.CONTROL])
    assert {name for name in control if control[name] != before[name]} == {"optimizer"}
    length = {"max_steps", "warmup", "cooldown", "checkpoint_every", "validate_every"}
    train.set_defaults(**recipe_options("short", own_batches=False))
    recipe = settings()
    assert {name for name in recipe if recipe[name] != before[name]} <= length | {"run"}


def test_the_ladder_has_its_own_file(commands, tmp_path):
    experiments.ladder(["start", "Muon"], [0], jobs=1)
    kept = json.loads((tmp_path / "results" / "ladder.json").read_text())
    assert [row["variant"] for row in kept["runs"]] == ["start", "Muon"]
    assert kept["base"] == experiments.GROUND and kept["runs"][1]["options"].count("--") == 2


def test_an_arm_of_the_longer_recipe_differs_from_its_twin_in_r_drop_alone():
    parser, _ = parsers()

    def settings(name):
        options = f"{experiments.LONG} {experiments.ARMS[name]}"
        return vars(parser.parse_args(["train", *shlex.split(options)]))

    twins = [name for name in experiments.ARMS if not name.endswith(", R-Drop")]
    assert len(twins) == 6
    for name in twins:
        plain, other = settings(name), settings(f"{name}, R-Drop")
        assert {key for key in plain if plain[key] != other[key]} == {"r_drop"}


@pytest.mark.parametrize(
    ("kind", "variants"), [("arms", experiments.ARMS), ("tries", experiments.TRIES)]
)
def test_the_arms_and_tries_keep_their_curves(commands, tmp_path, kind, variants):
    name = next(iter(variants))
    getattr(experiments, kind)([name], [0], jobs=1)
    [row] = json.loads((tmp_path / "results" / f"{kind}.json").read_text())["runs"]
    assert row["variant"] == name and row["curve"]
    assert all({"step", "validation_loss"} <= entry.keys() for entry in row["curve"])
