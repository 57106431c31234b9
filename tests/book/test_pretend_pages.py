"""Every notebook's code with the pretend device chosen, as on a machine with a GPU.

Too slow for `make test`: `make weekly` runs it. A page that puts a model on the reader's device
stands in ON_DEVICE; the others stay on the processor there, too, and this shows that nothing of
theirs is moved behind their back.

Seen to fail: the page on training without its `model.cpu()`; the page on decoding without one of
its `.to(device)`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import sync

ROOT = Path(__file__).resolve().parents[2]


# flex_attention is compiled, and torch compiles nothing where every operation is looked at.
COMPILED = {"23_cheaper_attention.ipynb"}
PAGES = [path for path in sync.find_notebooks()
         if path.parent != ROOT / "book" / "labs" and path.name not in COMPILED]
ON_DEVICE = {"15_decoding.ipynb", "16_training_on_multi30k.ipynb"}


@pytest.mark.weekly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_the_page_runs_where_there_is_a_gpu(path):
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "pretend.py", path], capture_output=True, text=True,
        env=os.environ | {"BOOK_SCALE": "smoke", "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    there = int(re.search(r": ([\d,]+) operations on the device", ran.stdout)[1].replace(",", ""))
    on_device = path.name in ON_DEVICE and path.parent.name == "book"
    assert bool(there) == on_device, f"{there:,} operations on the device"
