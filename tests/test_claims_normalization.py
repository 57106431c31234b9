"""What the chapter on normalisation says is what was recorded, and the page's code records it."""

import contextlib
import copy
import io
import itertools
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "claims"))

import _record  # noqa: E402
import normalization  # noqa: E402

FILE = ROOT / "results" / "claims" / "normalization.json"
