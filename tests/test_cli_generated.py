"""Every option of every command with values that it cannot mean, and texts that nobody expects.

The law: a command ends with 0, 1 or 2, never with a traceback. 2 says how it is used; 1 is one line
that quotes what was given or names what it was given to. What a configuration refuses, the command
that makes it refuses, and nothing else.
"""

import argparse
import dataclasses
import io
import math

import pytest
from test_cli import TINY, elsewhere, trained  # noqa: F401
from tiny_run import data as tiny_data

from transformer_lib import ModelConfig, TrainConfig, data, training
from transformer_lib.cli import main
from transformer_lib.cli.options import NOT_OFFERED, parsers

WRONG = {  # values by what an option takes
    int: ["", " ", "many", "1.5", "1e3", "0x10", "nan", "-1", "0", "-99999999999999999999"],
    float: ["", "much", "1,5", "nan", "inf", "-inf", "-1", "2", "1e400"],
    str: ["", " ", "nothing-like-this", "../..", "\0", "ä" * 300, "-"],
}
TEXTS = [
    "", " ", "\t\t", ".", "?!", "-", "-1", "--", "--fly", "-h x", "a" * 10_000, "Hund " * 2_000,
    "\0", "\x1b[31mrot", "\u200b", "\ufeffHund", "\u202eHund", "👩‍👩‍👧 spielt", "Ein\nHund",
    "Ein\r\nHund", "Ein\u2028Hund", "\ud800", "日本語", "عربى", "<pad>", "<bos> <eos>",
    "<unk>" * 20, "%s %d {}", "\\", "'; drop table", "<script>", "nan", "null", "0", "ſtraße",
    "e\u0301" * 500,
]


def options_of(name: str) -> dict[str, argparse.Action]:
    """The options of a command that take a value, by their last name."""
    [commands] = [a for a in parsers()[0]._actions if isinstance(a, argparse._SubParsersAction)]
    return {action.option_strings[-1]: action for action in commands.choices[name]._actions
            if action.option_strings and action.nargs != 0}


def cases(name: str) -> list[tuple[str, str]]:
    found = []
    for option, action in options_of(name).items():
        kind = action.type if action.type in WRONG else str
        found += [(option, value) for value in WRONG[kind]]
    return found


def outcome(arguments: list[str], capsys) -> tuple[int, str]:
    """The exit code and what was said, which is held to the law."""
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    error = capsys.readouterr().err
    assert code in (0, 1, 2), (arguments, code)
    assert "Traceback" not in error
    if code == 1:
        assert error.startswith("error: ") and error.count("\n") == 1, error
        assert len(error) < 900, error
    if code == 2:
        assert "usage: python -m transformer_lib" in error
    return code, error


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch):
    """What comes before the first update, on pairs that take no time."""
    pairs, load, usual = tiny_data()[0], data.load_parallel, ("mini", "de", "en")
    monkeypatch.setattr(data, "load_parallel", lambda *a: pairs if a == usual else load(*a))
    monkeypatch.setattr(training, "train", lambda *_, **__: [])


def refused_by_a_config(option: str, action: argparse.Action, value: str) -> bool | None:
    """Whether the configuration that has this setting refuses it; None: no configuration has it."""
    name = option.removeprefix("--").replace("-", "_")
    for cls, known in ((TrainConfig, {}), (ModelConfig, {"vocab_size": 200, "n_heads": 2})):
        if name in {field.name for field in dataclasses.fields(cls)} - NOT_OFFERED:
            typed = action.type(value)
            typed = (typed,) * action.nargs if isinstance(action.nargs, int) else typed
            try:
                cls(**known | {name: typed})
            except (ValueError, TypeError):
                return True
            return False
    return None


@pytest.mark.parametrize(("option", "value"), cases("train"))
def test_train(option, value, capsys):
    action = options_of("train")[option]
    given = [value] * action.nargs if isinstance(action.nargs, int) else [value]
    start = ["train", "--data", "mini", *TINY]
    code, error = outcome([*start, f"{option}={value}"] if len(given) == 1 else
                          [*start, option, *given], capsys)
    if code == 2:
        assert option in error
        return
    refused = refused_by_a_config(option, action, value)
    if refused:
        assert code == 1 and option.removeprefix("--").replace("-", "_") in error, (value, error)
    elif option in ("--src", "--tgt", "--like"):
        assert code == 1 and ascii(value)[1:-1][:15] in ascii(error), (value, error)
    elif option == "--data":
        assert code == 1


@pytest.mark.parametrize(("option", "value"), cases("translate"))
def test_translate(option, value, trained, capsys):  # noqa: F811
    code, error = outcome(["translate", "--run", str(trained), f"{option}={value}", "Ein Hund"],
                          capsys)
    said = math.isfinite(float(value)) if option == "--length-penalty" and code == 0 else True
    assert said, "a length penalty that is no number was taken"
    if option in ("--run", "--device"):
        assert code, (value, "was taken")


@pytest.mark.parametrize(("option", "value"), cases("evaluate"))
def test_evaluate(option, value, trained, capsys):  # noqa: F811
    start = ["evaluate", "--run", str(trained), "--data", "mini", "--split", "validation"]
    code, error = outcome([*start, "--beam-size", "1", f"{option}={value}"], capsys)
    if option not in ("--beam-size", "--length-penalty"):
        assert code, (value, "was taken")


@pytest.mark.parametrize(("option", "value"), cases("export"))
def test_export(option, value, trained, capsys, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    code, error = outcome(["export", str(trained), f"{option}={value}"], capsys)
    if option == "--beam-size":
        assert code, (value, "was taken")
    if option == "--out" and not code:
        assert (tmp_path / value).is_file()


MISSPELT = {
    "train --lr 0.01": "--peak-lr", "train --peak_lr=1": "--peak-lr", "train -seed 3": "--seed",
    "train --layers 2": "--n-encoder-layers or --n-decoder-layers", "train -help": "--help",
    "translate -length-penalty 1 a": "--length-penalty", "translate -run x a": "--run",
    "translate --text a": "text, without dashes", "verify --run x": "run, without dashes",
    "export --formt page": "--format", "evaluate --splits test": "--split",
}


@pytest.mark.parametrize("command", MISSPELT)
def test_an_option_that_is_not_there_names_the_one_that_was_meant(command, capsys):
    code, error = outcome(command.split(), capsys)
    assert code == 2 and f"(did you mean {MISSPELT[command]}?)" in error, error


def test_options_that_resemble_nothing_are_only_quoted(capsys):
    for wrong in ("--epochs", "-1", "--", "-x"):
        code, error = outcome(["train", wrong, "--fly"], capsys)
        assert code == 2 and "--fly" in error and "did you mean" not in error, error


def test_a_vocabulary_too_small_for_the_characters_says_what_is_lost(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    for size in ("10", "200"):
        assert main(["train", "--data", "mini", *TINY, "--vocab-size", size]) == 0
        said.append(capsys.readouterr().out)
    assert "warning: a vocabulary of 10 tokens has no room for" in said[0]
    assert "read as <unk>" in said[0] and "warning" not in said[1]


@pytest.mark.parametrize("run", WRONG[str])
@pytest.mark.parametrize("command", ["export", "verify"])
def test_a_run_that_is_none(command, run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, error = outcome([command, "--", run], capsys)
    assert code == 2 or ascii(run)[1:-1][:15] in ascii(error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:20]))
@pytest.mark.parametrize("way", ["argument", "input"])
def test_texts(text, way, trained, capsys, monkeypatch):  # noqa: F811
    command = ["translate", "--run", str(trained), "--beam-size", "2"]
    if way == "argument":
        outcome([*command, "--", text], capsys)
        return
    raw = io.TextIOWrapper(io.BytesIO(f"Hund\n{text}\nHund".encode(errors="surrogatepass")))
    monkeypatch.setattr("sys.stdin", raw)
    capsys.readouterr()
    code, said = main(command), capsys.readouterr()
    lines = [line for line in said.out.split("\n")][:-1]
    assert lines[0] == lines[-1] and code in (0, 1)  # what stands around it is translated
    assert len(lines) == text.count("\n") + 3
    assert (code == 1) == ("error: line 2" in said.err)
    assert "Traceback" not in said.err
