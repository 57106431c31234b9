"""Files that are written whole or not at all, even where the power fails.

Everything that the library writes goes through `replacing`, or, for a log that grows, `append`.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | Path, temporary: Path | None = None) -> Iterator[Path]:
    """A temporary name for a file or a folder; what the block writes there takes the place of
    `path` at the end, on the disk for sure, and is removed after an error.

    temporary: in the folder of `path`; by default its name with ".partial" behind it. The files in
    a folder are to be written through `replacing`, too. A folder replaces no other: `remove` that.
    """
    path = Path(path)
    partial = temporary or path.with_name(f"{path.name}.partial")
    remove(partial)  # what a killed process left
    try:
        yield partial
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    except BaseException:
        remove(partial)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, UTF-8."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value) -> None:
    """Write JSON that people can read."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_json_lines(path: str | Path, rows: Iterable) -> None:
    """Write one JSON value per line."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def append_json_line(path: str | Path, row) -> None:
    """Add one JSON value to a file of them."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_json_lines(path: str | Path) -> list:
    """The values of a file of JSON lines; a last line cut short by an interruption is left out."""
    rows = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there. A folder gets the name "old" first, so that an
    interruption leaves no half of it under its own."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    old = path.with_name("old")
    if path != old:
        shutil.rmtree(old, ignore_errors=True)
        path.rename(old)
    shutil.rmtree(old)


def _sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    with suppress(PermissionError):  # Windows opens no folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
