"""Three wings of the museum: later models, measuring, and the machine.

As in the museum, a specimen is a healthy program with a line or two changed. Each wing has a small
healthy program of its own, laws that it keeps, and a `measure` that says with numbers how a program
looks from outside.
"""

import importlib
import types
from dataclasses import dataclass

from exercises.museum.specimens import changed, difference, run

PAGES = {  # page: its name
    "02_scaled_dot_product_attention": "Scaled dot-product attention",
    "06_positional_encodings": "Positional encodings",
    "14_multi30k_data": "Multi30k",
    "16_training_on_multi30k": "Training on Multi30k",
    "17_evaluation": "Evaluation and error analysis",
    "19_encoder_only": "Encoder-only",
    "20_decoder_only": "Decoder-only",
    "25_acting": "Acting",
    "choices": "Choices and comparisons",
    "experts": "Experts",
    "inside-an-update": "Inside an update",
    "scaling": "A scaling law, and where it breaks",
    "speculative": "Speculative decoding",
    "speed": "How fast it is",
}


@dataclass(frozen=True)
class Case:
    """One bug of a wing. `looks` is filled with what was measured of it, and {healthy[...]}."""

    name: str
    title: str  # what is wrong, in a few words
    page: str  # the page that builds the part
    edits: tuple  # ((lines of the healthy program, the broken lines), ...)
    looks: str  # what is seen from outside
    why: str  # how the line leads there
    hides: str  # how long, and behind what
    law: str  # the name of the law that catches it
    confused_with: tuple  # three cases of the wing that a guess may fall for
    trains: bool = False  # whether the bug acts in training, not only at inference


@dataclass(frozen=True)
class Wing:
    """A healthy program, its laws by name, its cases by name, and what is measured of a program."""

    title: str
    healthy: types.ModuleType
    laws: dict
    cases: dict
    measure: object  # (program, whether its training is its own) -> {name: number}

    def text(self, name: str) -> str:
        """The healthy program with the lines of a case."""
        return changed(self.cases[name].edits, self.healthy)

    def program(self, name: str) -> types.ModuleType:
        """The healthy program with the bug of a case, as a module."""
        return run(self.text(name), name)

    def diff(self, name: str) -> str:
        """The changed lines of a case; - is right, + is broken."""
        return difference(self.cases[name].edits, self.healthy)


class Wings(dict):
    """{name: wing}."""

    def __missing__(self, name):
        raise KeyError(f"there is no wing {name!r}; the wings are {', '.join(self)}.")


def wings() -> dict[str, Wing]:
    """{name: wing}, in the order of the page."""
    names = ("descendants", "measuring", "machine")
    modules = [importlib.import_module(f"{__name__}.{name}_cases") for name in names]
    return Wings((name, module.WING) for name, module in zip(names, modules, strict=True))
