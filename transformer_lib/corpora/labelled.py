"""Data sets with labels from the Hugging Face hub: sentences to classify, and pictures."""

import os
from pathlib import Path

from transformer_lib.corpora import folder, hub


def load_labelled(
    name: str, inputs: str, labels: str = "label"
) -> dict[str, tuple[list, list[int]]]:
    """Split -> (inputs, labels) of a hub data set, or of a folder that `datasets` reads.

    inputs, labels: the names of two columns. Raises ImportError without `datasets`,
    ConnectionError if the data can't be loaded, ValueError if a column is missing or, with its file
    and line, for a file that can't be read.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f"name is {name!r:.60}; expected a hub data set's name, or a folder.")
    name = str(name)
    if name in ("auto", "mini", "multi30k"):
        raise ValueError(
            f"{name} holds sentence pairs without labels: read it with data.load_parallel, or name "
            "a data set with labels."
        )
    folder.find(name)  # raises for a path to a folder that is not there
    try:
        from datasets import load_dataset
    except ImportError:
        raise ImportError(f"{name} needs one package: pip install datasets.") from None
    local = Path(name).is_dir()
    hub.require_equal_columns(name)
    waits = not local and not os.environ.get("HF_HUB_OFFLINE")
    if waits and not hub.answers(name):  # `datasets` would wait for minutes
        raise ConnectionError(f"{name} cannot be loaded here: the hub does not answer.")
    try:
        loaded = load_dataset(name)
    except Exception as error:  # from `datasets` or the libraries below it
        if local:
            raise hub.of_folder(name, error, row="one input and its label") from None
        raise ConnectionError(f"{name} cannot be loaded here: {error}") from None
    found = {}
    for split, rows in loaded.items():
        if not {inputs, labels} <= set(rows.column_names):
            raise ValueError(
                f"{name}, split {split}, has the columns {rows.column_names}; "
                f"it needs {inputs!r} and {labels!r}."
            )
        found[split] = list(rows[inputs]), list(rows[labels])
        for column, values in zip((inputs, labels), found[split], strict=True):
            if None in values:
                raise ValueError(
                    f"{name}, split {split}, row {values.index(None) + 1}: no {column!r}; every "
                    "row needs both."
                )
        if wrong := [label for label in found[split][1] if not isinstance(label, int)]:
            raise ValueError(
                f"{name}, split {split}, has the label {wrong[0]!r:.40} in {labels!r}; expected "
                "whole numbers from 0: number the classes."
            )
    return found
