"""Files that can be fetched again: kept once, for all processes and all runs."""

import os
import secrets
from pathlib import Path

from transformer_lib.runs.files import make_folder, replacing


def cache_dir(kind: str) -> Path:
    """Where files of a kind are kept: under XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "transformer_lib" / kind


def keep(path: Path, content: bytes) -> None:
    """Write a file, though another process may be writing the same one. OSError: it cannot be."""
    make_folder(path.parent)
    own = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with replacing(path, own) as partial:
            partial.write_bytes(content)
    except PermissionError:
        if not path.exists():  # on Windows, it does while another process reads it
            raise
