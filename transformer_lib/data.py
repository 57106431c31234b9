"""Sentence pairs: where the text comes from.

Every source ends in the same shape: a dictionary from split ("train", "validation", "test") to a
list of (source, target) strings.
"""

import json
import os
import socket
import warnings
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from transformer_lib import multi30k


class Pairs(dict):
    """Split -> list of (source, target) strings; `.source` names where they came from:
    "multi30k", "mini", or the folder or hub name that was asked for."""

    def __init__(self, splits: dict[str, list[tuple[str, str]]], source: str):
        super().__init__(splits)
        self.source = source


SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "test2016", "test_2016_flickr"),
}


def load_parallel(source: str = "auto", src: str = "de", tgt: str = "en") -> Pairs:
    """Sentence pairs of each split, and one printed line that says where they came from.

    source: "multi30k" is the folder in the environment variable MULTI30K_DIR if that is set,
    else bentrevett/multi30k on the Hugging Face hub, cached by `datasets`, else the first mirror
    that has it; a line warns if the sentences are not those of the recorded runs. "mini" is this
    project's own small German-English corpus, which needs no network; "auto" is "multi30k" where
    it can be had, else "mini". Anything else is a folder or another data set of the hub.
    src, tgt: language codes, the names of the columns (or the keys of a `translation` column).
    Returns Pairs, whose `.source` tells "multi30k" from "mini".
    Raises ValueError for a missing language, a damaged or one-sided line (with its number), or an
    empty split; ConnectionError when neither the hub nor a mirror can be reached.
    """
    if source == "auto":
        try:
            return load_parallel("multi30k", src, tgt)
        except (ImportError, ConnectionError) as error:
            print(f"Multi30k is not at hand ({error})")
            return load_parallel("mini", src, tgt)
    source = str(source)
    if source not in ("mini", "multi30k") and Path(source).expanduser().is_dir():
        source = str(Path(source).expanduser().resolve())  # the same from wherever it is named
    folder = os.environ.get("MULTI30K_DIR")
    if source == "mini":
        pairs, origin = _mini(src, tgt), "the embedded mini corpus (not Multi30k)"
    elif source == "multi30k" and folder:
        if not Path(folder).is_dir():
            raise ValueError(f"MULTI30K_DIR is {folder}, not a folder; correct it or unset it.")
        pairs, origin = _from_folder(Path(folder), src, tgt), "Multi30k from MULTI30K_DIR"
    elif source == "multi30k":
        pairs, origin = _multi30k(src, tgt)
    elif Path(source).is_dir():
        pairs, origin = _from_folder(Path(source), src, tgt), f"the folder {source}"
    elif source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise ValueError(f"there is no folder {source}; give an existing folder or a hub name.")
    else:
        pairs, origin = _from_hub(source, src, tgt), f"{source} on the hub"
    sizes = ", ".join(f"{len(rows):,} {split}" for split, rows in pairs.items())
    print(f"Data: {origin}, {src} -> {tgt}: {sizes}")
    if source == "multi30k" and (other := multi30k.differences(pairs, src, tgt)):
        print(
            f"Other sentences than those of the recorded runs in {', '.join(other)}: "
            "scores cannot be compared with theirs."
        )
    return Pairs(pairs, source)


def _multi30k(src: str, tgt: str) -> tuple[dict, str]:
    """Multi30k and where it was found: the hub, else a mirror."""
    try:
        pairs = _from_hub(multi30k.HUB_NAME, src, tgt)
        return pairs, f"Multi30k ({multi30k.HUB_NAME} on the hub)"
    except (ImportError, ConnectionError) as hub_error:
        try:
            return multi30k.from_mirrors(src, tgt), "Multi30k from a mirror"
        except ConnectionError as error:
            raise ConnectionError(f"{hub_error}; {error}") from None


def _mini(src: str, tgt: str) -> dict:
    from transformer_lib.mini import mini_corpus

    columns = {"de": 0, "en": 1}
    for language in (src, tgt):
        if language not in columns:
            raise ValueError(f"the mini corpus has 'de' and 'en', not {language!r}.")
    return {
        split: [(pair[columns[src]], pair[columns[tgt]]) for pair in rows]
        for split, rows in mini_corpus().items()
    }


def _from_folder(folder: Path, src: str, tgt: str) -> dict:
    """JSON lines are read here, so that an error can name its line; other formats by `datasets`."""
    files = {}
    for split, names in SPLITS.items():
        for name in names:
            if (folder / f"{name}.jsonl").exists():
                files[split] = folder / f"{name}.jsonl"
                break
    if not files:
        return _from_hub(str(folder), src, tgt)
    return {split: _read_json_lines(path, src, tgt) for split, path in files.items()}


def _read_json_lines(path: Path, src: str, tgt: str) -> list[tuple[str, str]]:
    rows = []
    text = path.read_text(encoding="utf-8-sig").removesuffix("\n")  # Windows may begin with a BOM
    for number, line in enumerate(text.split("\n") if text else [], start=1):
        where = f"{path.name}, line {number}"
        try:
            row = json.loads(line)
        except ValueError:
            raise ValueError(
                f"{where}: not valid JSON: {line[:60]!r}; expected an object such as "
                f'{{"{src}": "...", "{tgt}": "..."}}.'
            ) from None
        rows.append(_pair(row, src, tgt, where))
    if not rows:
        raise ValueError(f"{path.name} is empty; expected one JSON object a line.")
    return rows


def _from_hub(name: str, src: str, tgt: str) -> dict:
    """A data set of the hub, or a folder in a format that `datasets` reads."""
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets, which a progress bar alone would need.
            warnings.filterwarnings("ignore", "IProgress not found")
            from datasets import load_dataset  # heavy, and not needed for local JSON lines
    except ImportError:
        raise ImportError(
            f"{name} is no folder of .jsonl files; other data needs one package: "
            "pip install datasets."
        ) from None
    try:
        with _without_waiting():
            loaded = load_dataset(name, **_configuration(name, src, tgt))
    except (FileNotFoundError, OSError) as error:
        if Path(name).is_dir():
            raise ValueError(
                f"the folder {name} holds no data that `datasets` reads: {error}"
            ) from None
        raise ConnectionError(f"{name} is neither on the hub nor in its cache: {error}") from None
    pairs = {}
    for split, names in SPLITS.items():
        found = next((known for known in names if known in loaded), None)
        if found is not None:
            pairs[split] = [
                _pair(row, src, tgt, f"{name}, split {found}, row {number}")
                for number, row in enumerate(loaded[found], start=1)
            ]
    if not pairs:
        raise ValueError(f"{name} has no split that is known; it has {sorted(loaded)}.")
    return pairs


@contextmanager
def _without_waiting():
    """Where the hub cannot be reached, use the cache at once, not after retries."""
    import datasets
    import huggingface_hub

    modules = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in modules]
    address = urlsplit(huggingface_hub.constants.ENDPOINT)
    try:
        if "https" not in getproxies():  # behind a proxy, a direct connection says nothing
            socket.create_connection((address.hostname, address.port or 443), timeout=3).close()
    except OSError:
        for module in modules:
            module.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for module, value in zip(modules, before, strict=True):
            module.HF_HUB_OFFLINE = value


def _configuration(name: str, src: str, tgt: str) -> dict:
    """Data sets such as opus_books name a configuration by its language pair, in either order."""
    from datasets import get_dataset_config_names

    if Path(name).is_dir():
        return {}
    known = get_dataset_config_names(name)
    wanted = [pair for pair in (f"{src}-{tgt}", f"{tgt}-{src}") if pair in known]
    return {"name": wanted[0]} if wanted else {}


def _pair(row, src: str, tgt: str, where: str) -> tuple[str, str]:
    """(source, target) of one row, in either layout: a column a language, or `translation`."""
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
