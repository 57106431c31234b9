"""The autograder's zip, unpacked where nothing else is, and what it writes for Gradescope."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest
from test_real_labs import MASTERS, WRONG, answered

from labs.grader import contain, gradescope

NAME = "lab3_positions_and_normalization"


def as_documented(results: dict):
    """gradescope-autograders.readthedocs.io/en/latest/specs: fields, types and values."""
    assert isinstance(results.get("tests"), list)
    assert set(results) <= {"score", "execution_time", "output", "visibility", "stdout_visibility",
                            "tests", "extra_data", "leaderboard", "output_format",
                            "test_output_format", "test_name_format"}
    seen = ("hidden", "after_due_date", "after_published", "visible")
    for test in results["tests"]:
        assert set(test) <= {"score", "max_score", "status", "name", "name_format", "number",
                             "output", "output_format", "tags", "visibility", "extra_data"}
        assert test["visibility"] in seen and test.get("status", "passed") in ("passed", "failed")
        assert 0 <= test["score"] <= test["max_score"]
    assert "score" in results or results["tests"]
    assert results["stdout_visibility"] in seen if results["tests"] else True


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    root = tmp_path_factory.mktemp("autograder")
    made = gradescope.make("lab3", root, seed="a word")
    with zipfile.ZipFile(made) as file:
        assert {"setup.sh", "run_autograder"} <= set(file.namelist())
        assert all(file.getinfo(name).external_attr >> 16 & 0o111
                   for name in ("setup.sh", "run_autograder"))
        assert [name for name in file.namelist() if name.endswith(".ipynb")] == [
            f"labs/{NAME}.ipynb"]
        file.extractall(root / "source")
    made.unlink()
    for script in ("setup.sh", "run_autograder"):
        assert subprocess.run(["bash", "-n", root / "source" / script]).returncode == 0
    return root


def graded(root, notebook):
    shutil.rmtree(root / "submission", ignore_errors=True)
    (root / "submission").mkdir()
    if notebook is not None:
        nbformat.write(notebook, root / "submission" / "whatever.ipynb")
    done = subprocess.run([sys.executable, "-m", "labs.grader.gradescope", "run", root],
                          cwd=root, env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1",
                                         "PYTHONPATH": str(root / "source")})
    assert done.returncode == 0
    results = json.loads((root / "results" / "results.json").read_text())
    as_documented(results)
    return results


@pytest.mark.skipif(not contain.methods() and os.geteuid() != 0, reason="nothing contains here")
def test_the_zip_grades_by_itself(unpacked):
    """A submission with the master's own names meets the variant that the zip was made for."""
    from labs.grader import variants

    made = variants.variant(MASTERS[NAME], NAME, "a word")
    changes = variants.changes(NAME, "a word")
    wrong = {"order_gap": changes.text(WRONG[NAME]["order_gap"][0][1])}
    results = graded(unpacked, answered(made, wrong))
    points = {test["name"]: test["score"] for test in results["tests"]}
    lost = [name for name, score in points.items() if not score]
    assert lost and all(name.startswith("Task 1:") for name in lost)
    assert sum(points.values()) == 16 - len(lost)
    assert {test["visibility"] for test in results["tests"]} == {"visible", "after_published"}
    assert "4 more points" in results["output"]


def test_nothing_handed_in_is_no_crash(unpacked):
    results = graded(unpacked, None)
    assert results["score"] == 0 and "no file" in results["output"]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root")
def test_as_another_user_a_kernel_reads_no_answers(tmp_path):
    """The way that is left where a container allows no namespaces."""
    secret, folder = tmp_path / "labs", tmp_path / "work" / "k"
    secret.mkdir(mode=0o700)
    (secret / "lab1.ipynb").write_text("answers")
    (folder / "home").mkdir(parents=True)
    for parent in tmp_path.parents:
        if parent.name.startswith(("pytest-", "popen-")):  # the latter where tests run side by side
            parent.chmod(0o711)
    tmp_path.chmod(0o711)
    code = ("import os; assert os.getuid() == 65534; open('mine', 'w').close()\n"
            f"try: open({str(secret / 'lab1.ipynb')!r})\nexcept PermissionError: print('refused')")
    done = subprocess.run([*contain.command("user", folder), "/usr/bin/env", "python3", "-c", code],
                          capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr
