"""Multi30k (Elliott et al. 2016): what it holds, and the places that have it, tried in order.

The captions are for non-commercial research and education, so they are fetched, never shipped.
"""

import contextlib
import gzip
import hashlib
import os
import shutil
import zlib
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from transformer_lib.corpora import folder, hub
from transformer_lib.corpora.cache import cache_dir, keep

HUB_NAME = "bentrevett/multi30k"
# Folders of gzipped text files, one sentence a line, tried in this order.
MIRRORS = ("https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",)
FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
# SHA-256 of the stripped sentences of one split and language, each followed by a newline.
CHECKSUMS = {
    ("train", "de"): "67aa53ff412b6af1f47c604a623e112e2c28c61519aa7cf8a5348af21722b67a",
    ("train", "en"): "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    ("validation", "de"): "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    ("validation", "en"): "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    ("test", "de"): "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    ("test", "en"): "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
}


def load(src: str, tgt: str) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """Split -> (source, target) strings, and where they were found.

    From the folder in MULTI30K_DIR if that is set, else the hub, else the first mirror that has
    them. Prints a line if they are not the sentences of the recorded runs.
    Raises ConnectionError when none can be reached, ImportError where the hub would need a package.
    """
    splits, origin = _first_found(src, tgt)
    if other := differences(splits, src, tgt):
        print(
            f"Not the sentences of the recorded runs: {', '.join(other)}; "
            "scores cannot be compared with theirs."
        )
    return splits, origin


def _first_found(src: str, tgt: str) -> tuple[dict, str]:
    if named := os.environ.get("MULTI30K_DIR"):
        if not Path(named).is_dir():
            raise ValueError(f"MULTI30K_DIR is {named}, not a folder; correct it or unset it.")
        return folder.load(Path(named), src, tgt), "Multi30k from MULTI30K_DIR"
    try:
        return hub.load(HUB_NAME, src, tgt), f"Multi30k ({HUB_NAME} on the hub)"
    except (ImportError, ConnectionError) as hub_error:
        try:
            return from_mirrors(src, tgt), "Multi30k from a mirror"
        except ConnectionError as error:
            raise ConnectionError(f"{hub_error}; {error}") from None


def checksum(texts: list[str]) -> str:
    """SHA-256 of sentences in their order."""
    return hashlib.sha256("".join(text.strip() + "\n" for text in texts).encode()).hexdigest()


def differences(splits: dict, src: str, tgt: str) -> list[str]:
    """The splits and languages whose sentences are not those of the recorded runs."""
    return [
        f"{split}.{language}"
        for split, rows in splits.items()
        for column, language in enumerate((src, tgt))
        if (known := CHECKSUMS.get((split, language)))
        and checksum([row[column] for row in rows]) != known
    ]


def from_mirrors(src: str, tgt: str) -> dict[str, list[tuple[str, str]]]:
    """Split -> (source, target) strings, from the first mirror that has them whole.

    Files are kept in the cache, so a mirror is asked once. Raises ConnectionError, naming what
    was wrong with each mirror, when none will do.
    """
    failures = []
    for mirror in MIRRORS:
        try:
            splits = {}
            for split, name in FILES.items():
                sides = [_sentences(mirror, f"{name}.{language}.gz") for language in (src, tgt)]
                splits[split] = list(zip(*sides, strict=True))
            if damaged := differences(splits, src, tgt):
                raise ValueError(f"other sentences than expected in {', '.join(damaged)}")
        except (OSError, HTTPException, EOFError, zlib.error, ValueError) as error:
            failures.append(f"{mirror}: {error}")
            # A lost connection or a missing file says nothing against the files that are kept.
            if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error, ValueError)):
                _forget(mirror)
        else:
            return splits
    raise ConnectionError("no mirror of Multi30k could be used: " + "; ".join(failures))


def _kept(mirror: str) -> Path:
    return cache_dir("multi30k") / hashlib.sha256(mirror.encode()).hexdigest()[:8]


def _sentences(mirror: str, name: str) -> list[str]:
    path = _kept(mirror) / name
    if path.exists():
        content = path.read_bytes()
    else:
        with urlopen(f"{mirror}/{name}", timeout=6) as answer:
            content = answer.read()
        with contextlib.suppress(OSError):  # nowhere to keep it: it is fetched again next time
            keep(path, content)
    text = gzip.decompress(content).decode("utf-8")
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def _forget(mirror: str) -> None:
    """Remove a mirror's files: a damaged one must not be found in the cache again."""
    shutil.rmtree(_kept(mirror), ignore_errors=True)
