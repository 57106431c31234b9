"""Importing the library is cheap: what is heavy is imported where it is used."""

import subprocess
import sys

import transformer_lib

HEAVY = (
    "altair",
    "bertviz",
    "datasets",
    "matplotlib",
    "pandas",
    "sacrebleu",
    "tensorboard",
    "transformers",
)


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


TIMED = """
import time, torch
start = time.process_time()
import transformer_lib
from transformer_lib import ModelConfig, Transformer, Translator, load_pretrained
print(time.process_time() - start)
"""


def test_the_public_names_cost_less_than_a_third_of_a_second_beyond_torch():
    # The processor's time, best of three: other programs on the machine do not count.
    assert min(float(run(TIMED)) for _ in range(3)) < 0.3


def test_nothing_heavy_is_imported_before_it_is_used():
    code = "import sys, transformer_lib\n"
    code += "import importlib, pkgutil\n"
    code += "found = pkgutil.walk_packages(transformer_lib.__path__, 'transformer_lib.')\n"
    code += "assert [importlib.import_module(module.name) for module in found]\n"
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code).strip() == "[]"


def test_the_package_alone_does_not_import_torch():
    assert run("import sys, transformer_lib; print('torch' in sys.modules)").strip() == "False"


def test_every_listed_name_exists():

    assert set(transformer_lib.__all__) <= set(dir(transformer_lib))
    for name in dir(transformer_lib):
        assert getattr(transformer_lib, name) is not None
    try:
        _ = transformer_lib.nothing
    except AttributeError as error:
        assert "'nothing'" in str(error)
    else:
        raise AssertionError("an unknown name must be an AttributeError")
