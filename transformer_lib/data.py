"""Sentence pairs: where the text comes from.

Every source is read into the same form: a dictionary from split ("train", "validation", "test")
to a list of (source, target) strings. The subpackage `corpora` reads the individual sources.
"""

from transformer_lib.corpora import folder, hub, mini, multi30k


class Pairs(dict):
    """Split -> list of (source, target) strings; `.source` names where they came from:
    "multi30k", "mini", or the requested folder or hub name."""

    def __init__(self, splits: dict[str, list[tuple[str, str]]], source: str):
        super().__init__(splits)
        self.source = source

    def __missing__(self, split):
        raise KeyError(f"there is no split {split!r}; {self.source} has {', '.join(self)}.")


def load_parallel(source: str = "auto", src: str = "de", tgt: str = "en") -> Pairs:
    """Load the sentence pairs of each split, and print one line that says where they came from.

    source: "multi30k" is the folder in the environment variable MULTI30K_DIR if that is set,
    else bentrevett/multi30k on the Hugging Face hub, cached by `datasets`, else the first mirror
    that has it; a line warns if the sentences are not those of the recorded runs. "mini" is this
    project's own small German-English corpus, which needs no network; "auto" is "multi30k" if
    it is available, else "mini". Anything else is a folder or another data set on the hub.
    src, tgt: language codes, the names of the columns (or the keys of a `translation` column).
    Returns Pairs, whose `.source` is "multi30k", "mini", or the folder or hub name.
    Raises ValueError for a missing language, a damaged or one-sided line (with its number), or an
    empty split; ConnectionError when neither the hub nor a mirror can be reached.
    """
    if source == "auto":
        try:
            return load_parallel("multi30k", src, tgt)
        except (ImportError, ConnectionError) as error:
            print(f"Multi30k is not available ({error})")
            return load_parallel("mini", src, tgt)
    if not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise TypeError(f"source is {source!r}; expected a name such as 'multi30k', or a folder.")
    if src == tgt:
        raise ValueError(f"source and target are both {src!r}: give two languages.")
    source = str(source)
    if source == "multi30k":
        splits, origin = multi30k.load(src, tgt)
    elif source == "mini":
        splits, origin = mini.load(src, tgt), "the embedded mini corpus (not Multi30k)"
    elif path := folder.find(source):
        source = str(path)
        splits, origin = folder.load(path, src, tgt), f"the folder {path}"
    else:
        splits, origin = hub.load(source, src, tgt), f"{source} on the hub"
    sizes = ", ".join(f"{len(rows):,} {split}" for split, rows in splits.items())
    print(f"Data: {origin}, {src} -> {tgt}: {sizes}")
    return Pairs(splits, source)
