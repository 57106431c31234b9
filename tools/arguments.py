"""The types of the commands' arguments, each with a sentence for values that don't fit."""

import re
from argparse import ArgumentTypeError
from pathlib import Path


def count(text: str) -> int:
    """A whole number, at least 1."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text):
        raise ArgumentTypeError(f"{text!r} isn't a whole number from 1 up")
    return int(text)


def file(text: str) -> Path:
    """A file that is there."""
    if not name(text).is_file():
        raise ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def folder(text: str) -> Path:
    """A folder that is there."""
    if not name(text).is_dir():
        raise ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def new_folder(text: str) -> Path:
    """A folder that is there or can be made."""
    path = name(text)
    there = next(above for above in (path, *path.absolute().parents) if above.exists())
    if not there.is_dir():
        raise ArgumentTypeError(f"{there} is a file; expected a folder")
    return path


def new_file(text: str) -> Path:
    """A file that can be written: a folder of this name can't be."""
    path = name(text)
    if path.is_dir():
        raise ArgumentTypeError(f"{text} is a folder; expected the name of a file")
    new_folder(str(path.absolute().parent))
    return path


def name(text: str) -> Path:
    """The name of a file or folder, there or not."""
    if not text.strip():
        raise ArgumentTypeError("it is empty: give a name, or leave the option out")
    if "\0" in text:
        raise ArgumentTypeError("it holds a NUL character, which no name can have")
    return Path(text)
