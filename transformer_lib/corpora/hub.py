"""A data set of the Hugging Face hub, read by `datasets` in a process of its own.

A hub that accepts a connection and then says nothing would hold `datasets` up for minutes, and
whether to work only from the cache (HF_HUB_OFFLINE) is settled when it is imported. So another
process imports it: one that asks the hub first and, if no answer comes, one that reads the cache.
"""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from transformer_lib.corpora.rows import SPLITS, read_utf8, to_pair

PATIENCE = 5  # seconds within which the hub must answer
ERRORS = {error.__name__: error for error in (ConnectionError, ImportError, ValueError)}
_SILENT_STATUS = 3  # the exit status of a process that got no answer from the hub
_silent_hubs = set()  # asked once, remembered for as long as this program runs


def load(name: str, src: str, tgt: str) -> dict[str, list[tuple[str, str]]]:
    """Split -> (source, target) strings of a hub data set, or of a folder that `datasets` reads.

    If the hub does not answer, what `datasets` has cached of it is used.
    Raises ImportError without `datasets`, ConnectionError if neither hub nor cache has the data,
    ValueError if no split is known or a row isn't a pair of sentences.
    """
    hub = os.environ.get("HF_ENDPOINT", "")
    if not Path(name).is_dir() and hub not in _silent_hubs:
        found = _in_a_process(name, src, tgt, offline=False)
        if found is not None:
            return found
        _silent_hubs.add(hub)
    return _in_a_process(name, src, tgt, offline=True)


def answers(name: str) -> bool:
    """Whether the hub says anything about a data set. A program asks a silent hub only once."""
    hub = os.environ.get("HF_ENDPOINT", "")
    if hub not in _silent_hubs:
        command = [sys.executable, "-m", __name__, name, str(PATIENCE)]
        if subprocess.run(command, env=_environment(), capture_output=True).returncode == 0:
            return True
        _silent_hubs.add(hub)
    return False


def _environment() -> dict[str, str]:
    """The environment of a process that can find this library."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def _in_a_process(name: str, src: str, tgt: str, offline: bool) -> dict | None:
    """What `main` found or raised in a new process; None if the hub did not answer it."""
    env = _environment() | ({"HF_HUB_OFFLINE": "1"} if offline else {})
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", __name__, name, src, tgt, str(answer), str(PATIENCE)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace")
        if done.returncode == _SILENT_STATUS and not offline:
            return None
        if not answer.exists():
            raise RuntimeError(f"reading {name} failed: {done.stderr.strip()[-2000:]}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in found:
        raise ERRORS[found["error"]](found["message"])
    return {split: [tuple(pair) for pair in pairs] for split, pairs in found["pairs"].items()}


# ---------------------------------------------------------------------------- in the other process


def main(name: str, src: str, tgt: str, answer: str, patience: str) -> None:
    """Write what `load` returns or raises into the file `answer`."""
    if not Path(name).is_dir() and not os.environ.get("HF_HUB_OFFLINE"):
        _ask(name, float(patience))
    try:
        found = {"pairs": _read(name, src, tgt)}
    except tuple(ERRORS.values()) as error:
        kind = next(kind for kind, known in ERRORS.items() if isinstance(error, known))
        found = {"error": kind, "message": str(error)}
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


def _read(name: str, src: str, tgt: str) -> dict[str, list[tuple[str, str]]]:
    local = Path(name).is_dir()
    require_equal_columns(name)
    try:
        from datasets import get_dataset_config_names, load_dataset
    except ImportError:
        raise ImportError(
            f"{name} is not a folder of .jsonl files; other data needs one package: "
            "pip install datasets."
        ) from None
    try:
        # Data sets such as opus_books name a configuration by its languages, in either order.
        known = [] if local else get_dataset_config_names(name)
        wanted = [pair for pair in (f"{src}-{tgt}", f"{tgt}-{src}") if pair in known]
        loaded = load_dataset(name, *wanted[:1])
    except Exception as error:  # from `datasets` or the libraries below it
        if local:
            raise of_folder(name, error) from None
        if isinstance(error, ValueError):  # it was found, and is not as expected
            raise
        raise ConnectionError(f"{name} is neither on the hub nor in its cache: {error}") from None
    pairs = {}
    for split, names in SPLITS.items():
        found = next((known for known in names if known in loaded), None)
        if found is not None:
            pairs[split] = [
                to_pair(row, src, tgt, f"{name}, split {found}, row {number}")
                for number, row in enumerate(loaded[found], start=1)
            ]
    if not pairs:
        raise ValueError(f"{name} has none of the known splits; it has {sorted(loaded)}.")
    return pairs


def require_equal_columns(name: str) -> None:
    """Raise ValueError, with file and line, for a folder with a table whose rows differ in length:
    pandas would take the first column for the names of the rows.
    """
    for path in sorted(Path(name).glob("*.[ct]sv")):
        if " columns, but the first line" in (problem := _problem(path)):
            raise ValueError(f"the folder {name} holds no table that can be read: {problem}.")


def of_folder(name: str, error: Exception, row: str = "one sentence pair") -> Exception:
    """What to say about a folder that `datasets` could not read: the cause, and whose fault it is.

    row: what a row of its files should hold.
    """
    cause = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__
    place = Path(str(getattr(cause, "filename", None) or name)).resolve()
    if isinstance(cause, OSError) and not place.is_relative_to(Path(name).resolve()):
        return ConnectionError(
            f"`datasets` keeps what it reads in {place}, and cannot write there "
            f"({cause.strerror}): set HF_HOME to a folder that you can write to."
        )
    said = cause if type(error).__name__ == "DatasetGenerationError" else error
    said = " ".join(str(said).split())
    for path in sorted(path for path in Path(name).glob("*.*") if path.is_file()):
        if problem := _problem(path):
            said = problem
            break
    return ValueError(
        f"the folder {name} holds no data that `datasets` can read: {said}. Expected files such as "
        f"train.csv or train.jsonl with {row} a row."
    )


def _problem(path: Path) -> str:
    """What is wrong with one file of a folder, with its line; empty if nothing is known."""
    if not path.stat().st_size:
        return f"{path.name} is empty"
    if path.suffix == ".parquet":
        return "" if path.read_bytes()[:4] == b"PAR1" else f"{path.name} is not a Parquet file"
    if path.suffix not in (".csv", ".tsv", ".jsonl"):
        return ""
    try:
        text = read_utf8(path)
    except ValueError as error:
        return str(error).rstrip(".")
    if path.suffix == ".jsonl":
        return _problem_of_lines(path.name, text)
    between = "\t" if path.suffix == ".tsv" else ","
    rows = csv.reader(io.StringIO(text), delimiter=between, strict=True)
    try:
        header, line = next(rows), 1
        for row in rows:
            line += 1
            if row and len(row) != len(header):
                return (
                    f"{path.name}, line {rows.line_num}: {len(row)} columns, but the first line "
                    f"names {len(header)} (a sentence with a comma needs quotation marks around it)"
                )
    except csv.Error:
        return f"{path.name}, line {line + 1}: a quotation mark is not closed"
    return f"{path.name} holds a first line with names, but no rows" if line == 1 else ""


def _problem_of_lines(name: str, text: str) -> str:
    """The first line of a .jsonl file that isn't a JSON object; empty if there is none."""
    # Not splitlines: a string may hold other characters at which that cuts, such as U+2028.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            whole = isinstance(json.loads(line or "{}"), dict)
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            return f"{name}, line {number}: {line[:40]!r} is not a JSON object, such as {{...}}"
    return ""


def _ask(name: str, patience: float) -> None:
    """End this process with _SILENT_STATUS unless the hub says something about the data set."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import HfHubHTTPError
    except ImportError:
        return  # then `datasets` is missing too
    # The timeout is for one step of the exchange; a name that is not found may take longer.
    limit = threading.Timer(1.5 * patience, os._exit, [_SILENT_STATUS])
    limit.daemon = True
    limit.start()
    try:
        HfApi().dataset_info(name, timeout=patience)
    except HfHubHTTPError as error:  # an answer, unless it comes from a proxy or a broken server
        if error.response is not None and error.response.status_code >= 500:
            sys.exit(_SILENT_STATUS)
    except Exception:  # from the library that connects, which depends on the version
        sys.exit(_SILENT_STATUS)
    finally:
        limit.cancel()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _ask(sys.argv[1], float(sys.argv[2]))
    else:
        main(*sys.argv[1:])
