"""Data sets with labels from the Hugging Face hub: sentences to classify, and pictures."""

import os
from pathlib import Path

from transformer_lib.corpora import folder, hub
from transformer_lib.guards import guard


def load_labelled(
    name: str, inputs: str, labels: str = "label"
) -> dict[str, tuple[list, list[int]]]:
    """Split -> (inputs, labels) of a hub data set, or of a folder that `datasets` reads.

    inputs, labels: the names of two columns. Raises ImportError without `datasets`,
    ConnectionError where the data cannot be had, ValueError where a column is missing.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f"name is {name!r:.60}; expected that of a hub data set, or a folder.")
    name = str(name)
    folder.find(name)  # raises for a path to a folder that is not there
    try:
        from datasets import load_dataset
    except ImportError:
        raise ImportError(f"{name} needs one package: pip install datasets.") from None
    waits = not Path(name).is_dir() and not os.environ.get("HF_HUB_OFFLINE")
    if waits and not hub.answers(name):  # `datasets` would wait for minutes
        raise ConnectionError(f"{name} cannot be had here: the hub does not answer.")
    try:
        loaded = load_dataset(name)
    except Exception as error:  # of `datasets` or of the libraries below it
        raise ConnectionError(f"{name} cannot be had here: {error}") from None
    for split, rows in loaded.items():
        if not {inputs, labels} <= set(rows.column_names):
            raise ValueError(
                f"{name}, split {split}, has the columns {rows.column_names}; "
                f"it needs {inputs!r} and {labels!r}."
            )
        if wrong := [label for label in rows[labels] if not isinstance(label, int)]:
            raise ValueError(
                f"{name}, split {split}, has the label {wrong[0]!r:.40} in {labels!r}; expected "
                "whole numbers from 0: number the classes."
            )
    return {split: (list(rows[inputs]), list(rows[labels])) for split, rows in loaded.items()}


guard(__name__)
