"""Trained runs, by name in results/ or by folder."""

import json
import os
from pathlib import Path

import torch

from transformer_lib.runs import checkpoint, checksums, download
from transformer_lib.runs.device import pick_device
from transformer_lib.runs.folder import said_of_unlisted, stale_scores
from transformer_lib.tokenization import load_tokenizer
from transformer_lib.translator import Translator


def results_dir() -> Path:
    """The folder of recorded runs: RESULTS_DIR, or results/ of this repository.

    A program's first call prints a line for each file in it that is not the one that a
    checksums.json lists. (The weights of a run are compared when the run is found.)
    """
    folder = os.environ.get("RESULTS_DIR") or Path(__file__).resolve().parents[2] / "results"
    for line in _differing_results(str(folder)):
        print(line)
    return Path(folder)


_compared: set[str] = set()  # folders of results, each compared once


def _differing_results(folder: str) -> list[str]:
    if folder in _compared:
        return []
    _compared.add(folder)
    lines = []
    for listed in sorted(Path(folder).glob("**/" + checksums.NAME)):
        try:
            small = checksums.read(listed.parent).keys() - {checksums.WEIGHTS}
            lines += [
                f"{listed.parent / name} is damaged or was changed since it was recorded: restore "
                "it, or record it again and run recordings/checksums.py."
                for name in (checksums.differing(listed.parent, *small) if small else [])
            ]
        except ValueError as error:
            lines.append(str(error))
    return lines


def find_run(name: str | Path, compare: bool = True) -> Path:
    """A run folder by its path, or by its name in results/.

    If the folder lists its files (checksums.json, which every finished run has), each must hold
    what it held when it was written; without that list nothing is compared. If there is no
    results/, as in an installation from a wheel, a run that the book ships is fetched from its
    repository, once. Raises ValueError when there is no such run. compare=False: compare nothing.
    """
    if len(str(name)) > 4000:
        raise ValueError(f"no run has a name of {len(str(name)):,} characters.")
    for folder in (Path(name), results_dir() / name):
        if (folder / "config.json").exists():
            if compare:
                checksums.require(folder)
            return folder
    if Path(name).is_file():
        raise ValueError(f"{name} is a file; give the run's folder, which holds its config.json.")
    if not results_dir().exists() and str(name) in download.shipped()["runs"]:
        try:
            return download.fetch(str(name))
        except (ValueError, ConnectionError) as error:
            if not os.environ.get("RESULTS_DIR"):
                raise
            where = f"RESULTS_DIR names {results_dir()}, {_no_folder(results_dir())}"
            raise type(error)(f"{where}; and {error}") from None
    if os.environ.get("RESULTS_DIR") and not results_dir().is_dir():
        raise ValueError(
            f"there is no trained run {str(name)!r}: RESULTS_DIR names {results_dir()}, "
            f"{_no_folder(results_dir())}."
        )
    if str(name) and Path(name).is_dir():
        raise ValueError(
            f"the folder {name} has no config.json, so it holds no trained run; give the folder "
            "that training wrote."
        )
    known = sorted(path.parent.name for path in results_dir().glob("*/config.json"))
    raise ValueError(
        f"there is no trained run {str(name)!r}; {results_dir()} holds {known or 'none'} "
        "(set RESULTS_DIR to look elsewhere), and a path to a run folder works too."
    )


def _no_folder(path: Path) -> str:
    return "which is a file" if path.is_file() else "a folder that does not exist"


def load_pretrained(
    name: str | Path = "multi30k-de-en", device: str | torch.device = "cpu"
) -> Translator:
    """A Translator from a run in results/ or from any run folder.

    Its length penalty is the one with which the run's validation set was last scored and saved
    (`evaluate --split validation --save`), else 1.
    Prints a line when the scores beside the weights belong to other weights.
    Raises ValueError when there is no such run, or its files are damaged or do not fit.
    """
    folder = find_run(name)
    for stale in stale_scores(folder):
        print(f"{folder / stale} holds scores of weights other than those beside it.")
    if unlisted := checksums.unlisted(folder):
        print(said_of_unlisted(folder, unlisted))
    model = checkpoint.load_model(folder).to(pick_device(str(device)))
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    read, written = model.config.vocab_size, tokenizer.get_vocab_size()
    if written != read:
        raise ValueError(
            f"{folder / 'tokenizer.json'} has {written} tokens, but the model of the config.json "
            f"beside it reads {read}: they come from different runs; copy all files of one again."
        )
    return Translator(model, tokenizer, _chosen_length_penalty(folder))


def _chosen_length_penalty(folder: Path) -> float:
    path = folder / "scores-validation.json"
    if not path.exists():
        return 1.0
    try:
        penalty = json.loads(path.read_text(encoding="utf-8"))["length_penalty"]
        if type(penalty) not in (int, float) or not abs(penalty) <= 100:
            raise ValueError
        return float(penalty)
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{path} is damaged: length_penalty should be a number from -100 to 100 in JSON. "
            "Delete it, or write it again with `evaluate --split validation --save`."
        ) from None


def run_info(name: str | Path) -> dict:
    """config.json of a run: its "model", "train" and "data" settings."""
    return checkpoint.read_config(find_run(name))
