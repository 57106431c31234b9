"""A folder of JSON lines, read here so that an error can name its line, or of another format."""

import json
from pathlib import Path

from transformer_lib.corpora import hub
from transformer_lib.corpora.rows import SPLITS, read_utf8, to_pair
from transformer_lib.guards.checks import require_regular


def find(name: str) -> Path | None:
    """The folder of this name, as an absolute path: the same from wherever it is named.

    None if it isn't a folder; ValueError for a path to a folder that does not exist.
    """
    if not name.strip():
        raise ValueError("the name is empty; give a folder, or a data set of the hub.")
    if len(name) > 4000 or "\0" in name:
        raise ValueError(f"no folder and no data set has such a name: {name[:40]!r}.")
    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    if path.is_file():
        raise ValueError(f"{name} is a file; give the folder that holds a file for each split.")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ValueError(f"there is no folder {name}; give an existing folder or a hub name.")
    return None


def load(folder: Path, src: str, tgt: str) -> dict[str, list[tuple[str, str]]]:
    """Split -> (source, target) strings. Formats other than `.jsonl` are left to `datasets`.

    A `.jsonl` file of no split is left out, and a line says so. ValueError: a file can't be read.
    """
    files = {}
    for path in folder.iterdir():
        require_regular(path)
        if path.is_symlink() and not path.exists():
            raise ValueError(f"{path} is a link to something that does not exist.")
    for split, names in SPLITS.items():
        paths = [folder / f"{name}.jsonl" for name in names]
        if found := [path for path in paths if path.exists()]:
            files[split] = found[0]
    if not files:
        return hub.load(str(folder), src, tgt)
    if others := sorted(path.name for path in {*folder.glob("*.jsonl")} - {*files.values()}):
        print(
            f"Not read: {', '.join(others)} (the files of the splits are train.jsonl, "
            "validation.jsonl and test.jsonl)."
        )
    return {split: read_json_lines(path, src, tgt) for split, path in files.items()}


def read_json_lines(path: Path, src: str, tgt: str) -> list[tuple[str, str]]:
    """(source, target) strings of a file with one JSON object a line."""
    rows = []
    text = read_utf8(path).removesuffix("\n")
    for number, line in enumerate(text.split("\n") if text else [], start=1):
        where = f"{path.name}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # RecursionError: brackets in brackets without end
            raise ValueError(
                f"{where}: not valid JSON: {line[:60]!r}; expected an object such as "
                f'{{"{src}": "...", "{tgt}": "..."}}.'
            ) from None
        rows.append(to_pair(row, src, tgt, where))
    if not rows:
        raise ValueError(f"{path.name} is empty; expected one JSON object a line.")
    return rows
