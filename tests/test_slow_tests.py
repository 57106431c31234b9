"""What `make check` leaves out: a list of test functions, made from a report of a whole run."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from conftest import slow_tests, spread

from tools.slow_tests import slow

TESTS = Path(__file__).parent
REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_quick[1]" time="0.01"/>
<testcase classname="tests.test_a" name="test_quick[2]" time="0.04"/>
<testcase classname="tests.test_a" name="test_slow[1]" time="0.01"/>
<testcase classname="tests.test_a" name="test_slow[2]" time="0.20"/>
</testsuite></testsuites>"""


def test_a_function_is_slow_by_the_mean_of_its_cases(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert slow(report, limit=0.03) == ["test_a.py::test_slow"]


def test_what_is_listed_is_there():
    """A test that was renamed would be run by `make check` again, however slow it is."""
    for line in slow_tests():
        module, name = line.split("::")
        assert f"def {name}(" in (TESTS / module).read_text(encoding="utf8"), line


def test_a_function_is_slow_if_one_of_several_reports_says_so(tmp_path):
    """Without the test that made a shared fixture before, another one makes it, and gets slow."""
    for name, seconds in (("whole.xml", "0.01"), ("quick.xml", "0.02")):
        (tmp_path / name).write_text(REPORT.replace('2]" time="0.04"', f'2]" time="{seconds}"'))
    (tmp_path / "quick.xml").write_text(REPORT.replace("0.04", "0.40").replace("0.20", "0.01"))
    found = slow(tmp_path / "whole.xml", tmp_path / "quick.xml")
    assert found == ["test_a.py::test_quick", "test_a.py::test_slow"]


def test_of_many_cases_some_are_taken_from_the_first_to_the_last():
    assert spread([1, 2, 3], 3) == [1, 2, 3]
    assert spread(list(range(100)), 4) == [0, 33, 66, 99]
    assert spread([1, 2, 3], 1) == [1]


def test_quick_leaves_them_out():
    """A file with slow tests only isn't imported; of a test with many cases, N remain."""
    def collected(*options):
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
        names = ("model", "masks", "apple_gpu", "every_operation")
        files = [str(TESTS / f"test_{name}.py") for name in names]
        done = subprocess.run([*command, *options, *files], cwd=TESTS.parent, text=True,
                              capture_output=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("tests/")]
        return Counter(line.split("[")[0] for line in lines)

    every, quick = collected(), collected("--quick", "--cases", "8")
    listed = {f"tests/{line}" for line in slow_tests()}
    assert every.keys() & listed and quick.keys() == every.keys() - listed
    assert max(every.values()) > 8 and all(quick[name] == min(every[name], 8) for name in quick)
    assert not any("every_operation" in name for name in quick)
