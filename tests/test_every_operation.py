"""Full disks, I/O errors and SIGKILL at each change that a run makes to its folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("every_operation.py")
EVERY = [37, pytest.param(1, marks=[pytest.mark.weekly, pytest.mark.timeout(3600)])]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("what", ["fail", "kill"])
def test_nothing_is_lost_whichever_change_fails(what, every):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([sys.executable, SCRIPT, what, str(every)], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    tally = json.loads(done.stdout)
    changes = tally.pop("changes")
    same = tally.pop("resumed, equal bit for bit, nothing left over")
    ends = [tally.pop(name, 0) for name in ("said", "went on", "died")]
    assert sum(tally.values()) == sum(ends) == same, tally  # the rest are the ways to fail
    assert changes > 200 and same * every >= changes
