"""What all sources share: the names of the splits, and one row as a pair of strings."""

from pathlib import Path

from transformer_lib.guards import has_visible_text

SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "test2016", "test_2016_flickr"),
}


def to_pair(row: object, src: str, tgt: str, where: str) -> tuple[str, str]:
    """(source, target) of one row, in either layout: a column a language, or `translation`.

    where: names the row in the ValueError for a row that lacks one of the two.
    """
    if isinstance(row, dict) and isinstance(row.get("translation"), dict):
        row = row["translation"]
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object with the languages {src!r} and {tgt!r}.")
    for language in (src, tgt):
        if language not in row:
            raise ValueError(f"{where}: no {language!r}; this row has {sorted(row)}.")
        if problem := _problem(row[language]):
            raise ValueError(f"{where}: the {language!r} side {problem}")
    return row[src].strip(), row[tgt].strip()


def _problem(text) -> str:
    """Why this cannot be one side of a pair; empty if it can."""
    if text is not None and not isinstance(text, str):
        return f"is {text!r:.60}; expected a sentence in quotation marks."
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        return (
            f"holds half of a surrogate pair ({text[:40]!a}), which is not a character: write the "
            "file again as UTF-8."
        )
    if not has_visible_text(text or ""):
        return "is empty; every line needs both sides."
    return ""


def read_utf8(path: Path) -> str:
    """The text of a file. Raises ValueError, with the line, for one in another encoding."""
    if path.is_dir():
        raise ValueError(f"{path.name} is a folder; expected a file of this name.")
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        raise ValueError(f"{path.name} is compressed: unpack it first, for example with gunzip.")
    try:
        return content.decode("utf-8-sig")  # Windows programs may begin a file with a BOM
    except UnicodeDecodeError as error:
        if b"\0" in content and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            raise ValueError(
                f"{path.name} doesn't hold text, but other bytes. If a program wrote it as "
                f"UTF-16, convert it: iconv -f UTF-16LE -t UTF-8 {path.name}"
            ) from None
        known = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}.get(content[:2])
        kind = f"it begins like {known}" if known else "it may be Latin-1 or Windows-1252"
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name}, line {number}: not valid UTF-8 text ({kind}). Convert the file to "
            f"UTF-8, for example with: iconv -f {known or 'WINDOWS-1252'} -t UTF-8 {path.name}"
        ) from None
