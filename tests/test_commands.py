"""Commands besides `python -m transformer_lib`, given what a user might type by mistake: each says
in one line what was given and what it expects, and none ends in a traceback."""

import runpy
import sys

import pytest

# (module, arguments, in the last line). FILE: a file that is there; EMPTY: a folder with nothing.
WRONG = [
    ("transformer_lib.one_file", ["xyz"], "'xyz' must be made of the letters a to h"),
    ("transformer_lib.one_file", [""], "'' must be made of the letters"),
    ("recordings.record", ["nowhere"], "no recording is called nowhere"),
    ("recordings.record", ["hunt", "--parts", "nowhere"], "claims.hunt has no part nowhere; "),
    ("recordings.record", ["--parts", "hunt"], "of one recording with a grid: name it"),
    ("recordings.experiments", ["seeds"], "required: run"),
    ("recordings.experiments", ["seeds", "nowhere"], "there is no trained run 'nowhere'"),
    ("recordings.experiments", ["seeds", "x", "--jobs", "0"], "'0' isn't a whole number from 1 up"),
    ("recordings.experiments", ["ablations", "--only", "x"], "no variant ['x']; there are"),
    ("recordings.gpu", ["home", "nowhere"], "holds no finished step"),
    ("recordings.make_film", ["nowhere"], "there is no folder nowhere"),
    ("recordings.make_film", ["EMPTY"], "there is no model in"),
    ("recordings.own_run", ["--folder", "FILE"], "is a file; expected a folder"),
    ("course.plan", ["--start", "yesterday"], "'yesterday' isn't a date such as 2027-02-01"),
    ("course.plan", ["--start", "2027-02-02"], "2027-02-02 is a Tuesday; expected a Monday"),
    ("course.plan", ["--start", "2027-02-01", "--time", "25:99"], "'25:99' isn't a time such as"),
    ("course.plan", ["--start", "2027-02-01", "--out", "FILE"], "is a file; expected a folder"),
    ("course.slides", ["masks"], "'masks' isn't a whole number from 1 up"),
    ("course.slides", ["99"], "there is no session 99; there are 1 to 19"),
    ("course.slides", ["1", "--out", "FILE"], "is a file; expected a folder"),
    ("course.first_steps", ["dance"], "invalid choice: 'dance'"),
    ("course.first_steps", ["judge", "--out", "FILE"], "is a file; expected a folder"),
    ("course.exams", ["--out", "FILE"], "is a file; expected a folder"),
    ("course.exams", ["--out", "FILE/below"], "is a file; expected a folder"),
    ("course.export", ["--out", ""], "it is empty: give a name"),
    ("exercises.own", ["nowhere"], "there is no folder nowhere"),
    ("exercises.own", ["FILE"], "there is no folder "),
    ("tools.cards", ["--out", "EMPTY"], "is a folder; expected the name of a file"),
    ("tools.prose", ["nowhere"], "there is no file nowhere"),
    ("tools.build", ["--page", "nowhere"], "nowhere"),
    ("tools.build", ["--jobs", "0"], "'0' isn't a whole number from 1 up"),
    ("tools.execute", ["nowhere.ipynb"], "there is no file nowhere.ipynb"),
    ("tools.export_live", ["nowhere"], "there is no trained run 'nowhere'"),
    ("tools.repository", ["https://x.org/y", "--check"], "and sets nothing: leave the address out"),
    ("tools.repository", ["nowhere"], "'nowhere' isn't an address"),
    ("tools.offline", ["epub", "--executed", "nowhere"], "there is no folder nowhere"),
    ("tools.release", ["v0.0.1"], "in all places that tests/book/test_release.py compares"),
    ("benchmarks", ["--rounds", "0"], "'0' isn't a whole number from 1 up"),
    ("benchmarks", ["--quick", "--run", "nowhere"], "there is no trained run 'nowhere'"),
]


@pytest.mark.parametrize(("module", "arguments", "said"), WRONG)
def test_a_command_says_what_is_wrong(module, arguments, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "a-file").write_text("x")
    (tmp_path / "empty").mkdir()
    names = {"FILE": str(tmp_path / "a-file"), "EMPTY": str(tmp_path / "empty")}
    for name, path in names.items():
        arguments = [argument.replace(name, path) for argument in arguments]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    printed = capsys.readouterr()
    message = end.value.code if isinstance(end.value.code, str) else printed.out + printed.err
    assert end.value.code != 0
    assert said in message.strip().splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-file", "empty"]
