"""The gate: what every recording has to hold before a page concludes anything from it."""

import copy
import json
from pathlib import Path

import pytest
import torch
from torch import nn

from recordings import experiments, replay
from recordings import gate as gates
from recordings import record as recorder
from recordings.gate import Gate, faults, page_source
from transformer_lib.config import TrainConfig
from transformer_lib.data import load_parallel
from transformer_lib.training import fit

RESULTS = Path(__file__).resolve().parents[1] / "results"
FILES = {
    f"{folder}/{path.stem}": path
    for folder in ("claims", "beyond") for path in sorted((RESULTS / folder).glob("*.json"))
}
MODULES, GATES = {}, {}  # of grids, by file; (pages, gate) of every file that has one
for _name in recorder.names():
    _module = recorder.module(_name)
    if hasattr(_module, "OUT"):
        _file = f"{_module.OUT.parent.name}/{_module.OUT.stem}"
        MODULES[_file] = _module
        if hasattr(_module, "GATE"):
            GATES[_file] = getattr(_module, "PAGES", None) or (_module.PAGE,), _module.GATE
    for _file, (_page, _gate) in getattr(_module, "GATES", {}).items():  # a module of several files
        GATES[f"beyond/{_file}"] = (_page,), _gate


def load(name):
    return json.loads(FILES[name].read_text(encoding="utf8"))


def gate_faults(name):
    if name not in GATES:
        return ["its module names no GATE"]
    pages, gate = GATES[name]
    return faults(load(name), gate, page_source(*pages))


@pytest.mark.parametrize("name", FILES)
def test_every_recording_passes_the_gate(name):
    found = gate_faults(name)
    assert not found, f"{name}: {found}. Mend it, and then `make record ONLY=...`."


# The grids that `make ablations` and its like train, and the pages that conclude from them. (Those
# of the ablations print ablations.conditions(), too: tests/test_ablations.py.)
RUNS = {
    "ablations": (experiments.BASE, ("choices", "05_tokens_and_embeddings")),
    "ladder": (experiments.GROUND, ("speedrun",)),
    "reverted": (experiments.TOP, ("speedrun",)),
    "tries": (experiments.QUICK, ("speedrun",)),
    "arms": (experiments.LONG, ("larger-runs",)),
}


@pytest.mark.parametrize("kind", RUNS)
def test_every_grid_of_runs_says_what_it_lacks(kind):
    base, pages = RUNS[kind]
    grid = json.loads((RESULTS / f"{kind}.json").read_text(encoding="utf8"))
    assert grid["base"] == base
    rates, seeds = {}, {}
    for run in grid["runs"]:
        words = f"--optimizer adam {base} {run['options']}".split()
        last = {name: words[i + 1] for i, name in enumerate(words[:-1])}  # the last one counts
        rates.setdefault(last["--optimizer"], set()).add(last["--peak-lr"])
        seeds.setdefault(run["variant"], []).append(run["seed"])
    lacking = {"edge"}  # each changes a setting to one value, or ends where the finding does
    lacking |= {"rate"} if any(len(of) < 2 for of in rates.values()) else set()
    lacking |= {"seeds"} if any(len(of) < 2 for of in seeds.values()) else set()
    lacking |= {"curve"} if any("curve" not in run for run in grid["runs"]) else set()
    assert not gates.not_said(lacking, experiments.MISSING[kind], grid, page_source(*pages))


# The files with the seeds of one recipe, by the page that shows their scores.
RECIPES = {
    "choices": ("multi30k-de-en/seeds", "multi30k-en-de/seeds", "multi30k-de-en-short/seeds"),
    "speedrun": ("multi30k-de-en-short/seeds", "five-minutes", "multi30k-en-de-short",
                 "multi30k-en-de-longer", "multi30k-de-en-612-seconds",
                 "multi30k-de-en-ten-minutes", "multi30k-de-en-five-minutes"),
    "larger-runs": ("multi30k-de-en/seeds", *(
        f"multi30k-{pair}-{how}" for pair in ("de-en", "en-de") for how in ("muon", "r-drop")
    )),
}


@pytest.mark.parametrize("page", RECIPES)
def test_single_recipes_say_what_they_lack_and_so_do_the_pages_that_show_them(page):
    for name in RECIPES[page]:
        found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
        lacking = gates.recipe_lacks(found["seeds"])
        words = {what: experiments.MISSING_OF_A_RECIPE[what] for what in lacking}
        assert not gates.not_said(lacking, words, found, page_source(page)), name


def test_no_recipe_is_left_out():
    files = [*RESULTS.glob("*.json"), *RESULTS.glob("*/seeds.json")]
    of_recipes = {path.relative_to(RESULTS).with_suffix("").as_posix() for path in files
                  if "seeds" in json.loads(path.read_text(encoding="utf8"))}
    assert of_recipes == {name for names in RECIPES.values() for name in names}


def test_further_training_says_what_it_lacks():
    found = json.loads((RESULTS / "further-training.json").read_text(encoding="utf8"))
    arms = found["with_teachers"], found["without_teachers"]
    lacking = set().union(*map(gates.recipe_lacks, arms))
    page = page_source("16_training_on_multi30k")
    assert not gates.not_said(lacking, found["missing"], found, page)


def test_a_recipe_lacks_what_its_seeds_do_not_have():
    curve = {"curve": [{"step": 500, "validation_loss": 2.0}]}
    assert gates.recipe_lacks([curve, curve]) == {"rate", "edge"}
    assert gates.recipe_lacks([curve]) == {"rate", "edge", "seeds"}
    assert gates.recipe_lacks([curve, {}]) == {"rate", "edge", "curve"}


def test_one_command_makes_every_recording():
    for name in recorder.names():
        module = recorder.module(name)
        assert hasattr(module, "OUT") and hasattr(module, "grid") or hasattr(module, "record_all")


def test_the_command_in_a_file_is_known():
    known = {name.split(".")[1] for name in recorder.names()}
    for name in GATES:
        command = load(name).get("made", {}).get("command", "make record ONLY=toys")
        assert command.removeprefix("make record ONLY=") in known, name


def test_every_grid_has_its_file():
    assert MODULES.keys() | GATES.keys() <= FILES.keys()


# ---- tokens that were counted again ------------------------------------------------------------


class Enough(Exception):
    """Raised at the first entry of a training log."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arm"), [
    ("encoder-decoders-layers", "reversed"), ("encoder-decoders-tags", "one"),
    ("one-stream-mini", "prefix"), ("one-stream-mini", "encoder-decoder"),
])
def test_what_is_counted_again_is_what_a_run_reads(name, arm, monkeypatch, tmp_path):
    """The first updates of a recorded run, really trained: its loss, and the recorder's tokens."""
    module, seen = replay.FILES[name], {}

    def first_updates(model, batches, loss, config, *given, **named):
        def stop(entry):
            raise Enough(entry)

        with recorder.watch() as watched, pytest.raises(Enough) as caught:
            fit(model, batches, loss, config, tmp_path / "run", on_log=stop)
        entry = caught.value.args[0]
        stream = name.startswith("one-stream") and arm != "encoder-decoder"
        seen.update(
            loss=entry["loss"], read=watched.run()["tokens"],
            counted=replay.tokens(batches, entry["step"], stream),
        )
        raise Enough

    monkeypatch.setattr(module, "fit", first_updates)
    monkeypatch.setattr(module, "RUNS", tmp_path)
    with pytest.raises(Enough):
        if name == "one-stream-mini":
            config = TrainConfig(**module.DATA["mini"][-1])
            module.translation("mini", arm, config, load_parallel("mini"))
        else:
            measure = module.layers if name.endswith("layers") else module.directions
            measure(module.captions_of("mini"), arm, 0)
    (record,) = [
        r for r in load(f"beyond/{name}")["records"]
        if r["settings"].items() >= {"data": "mini", "arm": arm, "seed": 0, "rate": 5e-3}.items()
    ]
    assert seen["read"] == seen["counted"]
    assert seen["loss"] == pytest.approx(record["run"]["curve"][0][1], rel=1e-3)
    assert record["run"]["tokens"] == replay.count(name, record["settings"])


# ---- the gate itself: each fault is found ------------------------------------------------------


def run(curve=((10, 2.0), (20, 0.5)), parameters=1000, updates=20, tokens=500):
    run = {"parameters": parameters, "updates": updates, "tokens": tokens}
    return run | {"curve": [list(point) for point in curve]}


def recorded(**changes):
    records = [
        {"settings": {"arm": arm, "rate": rate, "seed": seed}, "seconds": 1.0, "run": run()}
        for arm in ("a", "b") for rate in (0.001, 0.01, 0.1) for seed in (0, 1)
    ]
    made = {"device": "CPU", "python": "3", "torch": "2", "threads": 1, "command": "make record"}
    return {"made": made, "records": records} | changes


GATE = Gate(chance=2.3, arms=("arm",), edge={"rate": (0.01, 0.01)})


def test_a_good_recording_passes():
    assert faults(recorded(), GATE, "") == []


def test_an_arm_that_never_began_is_found():
    bad = recorded()
    bad["records"][0]["run"] = run(curve=((10, 2.31), (20, 2.29)))
    (fault,) = faults(bad, GATE, "")
    assert fault.startswith("never began: {'arm': 'a', 'rate': 0.001, 'seed': 0}")
    words = "a learns nothing at a rate of 0.001"
    said = Gate(2.3, ("arm",), GATE.edge, did_not_learn=(({"arm": "a", "rate": 0.001}, words),))
    assert faults(bad, said, "") == [f"the page does not say: {words}"]
    assert faults(bad, said, f"... {words} ...") == []
    assert faults(recorded(), said, words) == [
        "{'arm': 'a', 'rate': 0.001} is said not to learn, but learns"
    ]


@pytest.mark.parametrize(
    ("what", "value"), [("parameters", 1200), ("updates", 21), ("tokens", 600)]
)
def test_arms_that_were_not_given_the_same_are_found(what, value):
    bad = recorded()
    bad["records"][0]["run"][what] = value
    assert faults(bad, GATE, "") == [f"arms differ in {what}, and `differs` does not say so"]
    said = Gate(2.3, ("arm",), GATE.edge, differs={what: "one arm has more"})
    assert faults(bad, said, "one arm has more") == []
    assert faults(bad, said, "") == ["the page does not say: one arm has more"]
    assert faults(recorded(), said, "one arm has more") == [
        f"arms do not differ in {what}, as `differs` says"
    ]


def test_what_is_no_arm_may_differ():
    bad = recorded()
    for r in bad["records"]:
        if r["settings"]["rate"] == 0.1:  # both arms had twice the updates there
            r["run"]["updates"] = 40
    assert faults(bad, GATE, "") == []


def test_a_grid_that_ends_where_the_finding_does_is_found():
    edge = {"rate": (0.001, 0.1)}
    assert faults(recorded(), Gate(2.3, ("arm",), edge), "") == [
        "rate: nothing below 0.001 is recorded", "rate: nothing above 0.1 is recorded"
    ]
    assert faults(recorded(), Gate(2.3, ("arm",)), "") == [
        "no knob is named whose edge was crossed"
    ]


def test_a_grid_of_one_rate_or_one_side_says_so_in_its_file_and_on_its_page():
    poor = recorded()
    poor["records"] = [r for r in poor["records"] if r["settings"]["rate"] == 0.01]
    edge = {"rate": (None, 0.001)}
    assert faults(poor, Gate(2.3, ("arm",), edge), "") == [
        "no second rate, and `missing` does not say so",
        "rate below: nothing is recorded, and `missing` does not say so",
    ]
    missing = {"rate": "at one rate", "rate below": "none lower"}
    gate = Gate(2.3, ("arm",), edge, missing=missing)
    assert faults(poor, gate, "at one rate, none lower") == [
        f"the file does not say what it lacks: {missing}"
    ]
    poor["made"]["missing"] = missing
    assert faults(poor, gate, "at one rate, none lower") == []
    assert faults(poor, gate, "at one rate") == ["the page does not say: none lower"]
    ends = Gate(2.3, ("arm",), edge, missing=missing, ends=("rate below",))
    assert "rate below is not missing, as `missing` says" in faults(poor, ends, "none lower")
    assert "rate is not missing, as `missing` says" in faults(
        recorded(made=poor["made"]), gate, "at one rate, none lower"
    )


def test_what_was_not_tried_elsewhere_is_found():
    gate = Gate(2.3, ("arm",), {"arm": {"b", "c"}})
    assert faults(recorded(), gate, "") == ["arm: c is not recorded"]


def test_a_record_without_its_curve_is_found():
    bad = copy.deepcopy(recorded())
    del bad["records"][3]["run"]["curve"]
    del bad["made"]["threads"]
    assert faults(bad, GATE, "")[0] == "`made` has no threads"
    assert "1 records have no training curve" in faults(bad, GATE, "")[1]


# ---- the recorder ------------------------------------------------------------------------------


def train(updates, seed=0, width=8):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Embedding(10, width), nn.Linear(width, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(updates):
        ids = torch.randint(10, (4, 3))
        loss = nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            net(ids)  # looking at it is not training
    return net, loss.item()


def test_the_recorder_watches_a_training_run(tmp_path):
    backward, embedding = torch.Tensor.backward, nn.functional.embedding
    with recorder.watch() as seen:
        train(2)  # a shorter one beside it
        net, last = train(100)
    found = seen.run()
    assert found["parameters"] == sum(p.numel() for p in net.parameters())
    assert found["updates"] == 100 and found["tokens"] == 100 * 12
    assert len(found["curve"]) <= recorder.POINTS and found["curve"][-1][0] == 100
    assert found["curve"][0][1] > found["curve"][-1][1]
    assert found["curve"][-1][1] == pytest.approx(last, rel=0.2)
    assert torch.Tensor.backward is backward and nn.functional.embedding is embedding
    train(1)
    assert seen.run() == found  # it looks away when it is done


def test_the_curve_is_the_losses():
    assert recorder.curve([3.0, 1.0]) == [[1, 3.0], [2, 1.0]]
    long = recorder.curve([float(i) for i in range(99)])
    assert long[0] == [5, 2.0] and long[-1] == [99, 96.5] and len(long) == recorder.POINTS


def test_what_lacks_its_curve_is_recorded_again(tmp_path):
    path, grid = tmp_path / "x.json", [({"part": "a", "seed": 0}, lambda: {"loss": train(5)[1]})]
    recorder.record(path, grid)
    (first,) = recorder.read(path)
    assert first["run"]["updates"] == 5 and not GATE.lacks(first)
    path.write_text(path.read_text().replace('"run"', '"ran"'))
    recorder.record(path, grid, again=GATE.lacks)
    (second,) = recorder.read(path)
    assert second["run"] == first["run"] and second["loss"] == first["loss"]
    made = json.loads(path.read_text())["made"]
    assert made["threads"] == 1 and made["command"] == "make record ONLY=x"


def test_records_are_added_to_what_a_file_has(tmp_path):
    path = tmp_path / "x.json"
    old, other = ({"settings": {"arm": arm}, "seconds": 1.0, "loss": 7.0} for arm in "ab")
    recorder.add(path, [old, other], "toys")
    recorder.add(path, [old | {"loss": 3.0}, {"settings": {"arm": "c"}, "seconds": 2.0}], "toys")
    found = {r["settings"]["arm"]: r.get("loss") for r in recorder.read(path)}
    assert found == {"a": 3.0, "b": 7.0, "c": None}
    made = json.loads(path.read_text())["made"]
    assert made["threads"] == 1 and made["command"] == "make record ONLY=toys"


def test_the_command_knows_every_recording(capsys, monkeypatch):
    assert {"claims.hunt", "claims.normalization", "beyond.vision"} <= set(recorder.names())
    monkeypatch.setattr("sys.argv", ["record", "no-such-thing"])
    with pytest.raises(SystemExit):
        recorder.main()
    assert "no recording is called no-such-thing" in capsys.readouterr().err


def test_margins_are_those_of_the_text():
    assert gates.MARGIN == 0.1 and gates.TOLERANCE["updates"] == 0


def test_a_loss_for_a_part_of_the_parameters_is_not_in_the_curve():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with recorder.watch() as seen:
        (100 * model.bias.square().sum() + 100).backward(inputs=[model.bias])
        model.weight.square().sum().backward()
        optimizer.step()
    assert seen.run()["curve"][-1][1] < 2
