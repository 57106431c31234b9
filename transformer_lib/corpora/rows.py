"""What all sources share: the names of the splits, and one row as a pair of strings."""

from transformer_lib.guards import has_visible_text

SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "test2016", "test_2016_flickr"),
}


def to_pair(row, src: str, tgt: str, where: str) -> tuple[str, str]:
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
            f"holds half of a surrogate pair ({text[:40]!a}), which is no character: write the "
            "file again as UTF-8."
        )
    if not has_visible_text(text or ""):
        return "is empty; every line needs both sides."
    return ""
