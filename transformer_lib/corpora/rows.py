"""What all sources share: the names of the splits, and one row as a pair of strings."""

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
        if not isinstance(row[language], str) or not row[language].strip():
            raise ValueError(
                f"{where}: the {language!r} side is empty; every line needs both sides."
            )
    return row[src].strip(), row[tgt].strip()
