"""Files that can be fetched again: kept once for all processes. Whoever reads one checks it."""

import contextlib
import os
import tempfile
from pathlib import Path


def cache_dir(kind: str) -> Path:
    """Where files of a kind are kept: under XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "transformer_lib" / kind


def keep(path: Path, content: bytes) -> None:
    """Write a file, even if another process is writing the same one. OSError: it can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as own:
        partial = Path(own) / path.name
        partial.write_bytes(content)
        with contextlib.suppress(PermissionError):  # Windows: another process is reading it
            partial.replace(path)
