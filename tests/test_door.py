"""The door: whatever of the library is imported has its guards, and nothing else has any."""

import importlib
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import transformer_lib
from transformer_lib import _door, schedule

EVERY = [one.name for one in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib.")
         if not one.name.endswith("__main__")]


def is_guarded(function) -> bool:
    return function.__code__.co_name == "guarded"


@pytest.mark.parametrize("name", EVERY)
def test_whatever_is_imported_is_guarded_and_what_stands_apart_is_not(name):
    module = importlib.import_module(name)
    public = [value for key, value in vars(module).items()
              if key[0] != "_" and hasattr(value, "__code__") and value.__module__ == name]
    expected = name.split(".")[1] not in _door.FREE and not module.__name__.endswith("._door")
    assert [one.__name__ for one in public if is_guarded(one) != expected] == []


def test_a_module_imported_anew_is_guarded_once():
    before = schedule.noam
    again = importlib.reload(schedule).noam
    assert again is not before and is_guarded(again)
    assert not is_guarded(again.__wrapped__)


def test_the_library_imported_anew_gets_no_second_door():
    code = ("import importlib, sys, transformer_lib; importlib.reload(transformer_lib); "
            "print([type(one).__name__ for one in sys.meta_path].count('Door'))")
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_out_of_a_zip_each_module_has_its_own_guards(tmp_path):
    library = Path(transformer_lib.__file__).parent
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as archive:
        for path in library.rglob("*.py"):
            archive.write(path, path.relative_to(library.parent))
    code = f"""
import sys
import zipfile
from pathlib import Path
sys.path.insert(0, {str(tmp_path / "library.zip")!r})
from transformer_lib import masks, schedule
print(".zip" in masks.__file__, *(
    [one.__code__.co_name for one in (function, function.__wrapped__)]
    for function in (masks.causal_mask, schedule.noam)
))
"""
    command = [sys.executable, "-P", "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert said == "True ['guarded', 'causal_mask'] ['guarded', 'noam']\n"


def test_a_name_of_the_library_that_does_not_exist_is_missing_as_any_other():
    with pytest.raises(ModuleNotFoundError, match="No module named 'transformer_lib.maks'"):
        importlib.import_module("transformer_lib.maks")
