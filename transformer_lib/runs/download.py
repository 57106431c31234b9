"""Trained runs for an installation without results/: fetched once, checked by their SHA-256.

shipped.json holds the address of the book's repository and what each file of its runs must hold; it
is written by recordings/checksums.py, and `make repository` changes the address.
"""

import json
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from transformer_lib.corpora.cache import cache_dir, keep
from transformer_lib.runs import checksums
from transformer_lib.runs.files import sha256

SHIPPED = Path(__file__).with_name("shipped.json")
# What it takes to translate and to evaluate.
FILES = ("config.json", "tokenizer.json", "model.safetensors", "scores-validation.json")
PATIENCE = 15  # seconds within which the host must answer


def shipped() -> dict:
    """{"repository": address, "branch": name, "runs": {run: {file: SHA-256}}}."""
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


def fetch(name: str) -> Path:
    """The folder of a shipped run, fetched if it is not kept already.

    Raises ValueError where the address is not set or a file does not hold what it must, and
    ConnectionError where it cannot be fetched; both say what to do.
    """
    about, folder = shipped(), cache_dir("results") / name
    if name not in about["runs"]:
        raise ValueError(f"the book ships no run {name!r}; it ships {', '.join(about['runs'])}.")
    known = about["runs"][name]
    if all((folder / file).exists() and sha256(folder / file) == known[file] for file in FILES):
        return folder
    clone = (
        "clone the book's repository and set RESULTS_DIR to its folder results/, or name a run "
        "folder of your own."
    )
    if "OWNER" in about["repository"].split("/"):  # a placeholder
        raise ValueError(
            f"{name} is not part of this installation, and the address to fetch it from is not "
            f"set: {clone}"
        )
    for file in FILES:
        address = f"{raw_address(about)}/results/{name}/{file}"
        try:
            with urlopen(address, timeout=PATIENCE) as answer:
                content = answer.read()
        except (OSError, HTTPException) as error:
            raise ConnectionError(f"{address} cannot be fetched ({error}): {clone}") from None
        if sha256(content) != known[file]:
            raise ValueError(
                f"{address} is not the file that this version of the library was made with (its "
                f"SHA-256 differs): install the newest version, or {clone}"
            )
        keep(folder / file, content)
    checksums.write(folder, FILES)
    return folder


def raw_address(about: dict) -> str:
    """The address at which the repository's files can be fetched one by one."""
    host, branch = "https://github.com/", about["branch"]
    if about["repository"].startswith(host):
        return f"https://raw.githubusercontent.com/{about['repository'].removeprefix(host)}/{branch}"
    return about["repository"]
