"""What `make check` leaves out: a list of test functions, made from a report of a whole run."""

import subprocess
import sys
from pathlib import Path

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
    for line in (TESTS / "slow.txt").read_text(encoding="utf8").splitlines():
        module, name = line.split("::")
        assert f"def {name}(" in (TESTS / module).read_text(encoding="utf8"), line


def test_quick_leaves_them_out():
    """Of this file nothing is listed; of the files of whole notebooks nearly everything is."""
    def collected(*options):
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
        files = [str(TESTS / "test_masks.py"), str(TESTS / "test_apple_gpu.py")]
        done = subprocess.run([*command, *options, *files], cwd=TESTS.parent, text=True,
                              capture_output=True)
        return {line.split("[")[0] for line in done.stdout.splitlines() if "::" in line}

    listed = {f"tests/{line}" for line in (TESTS / "slow.txt").read_text().split()}
    every = collected()
    assert every & listed and collected("--quick") == every - listed
