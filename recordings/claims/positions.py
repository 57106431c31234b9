"""Record what the chapter on positional encodings claims: `make record ONLY=positions`.

Learned positions against sinusoidal ones, by their size at the start, the number of sequences and
the steps. The experiment is the one that the page prints, in its cells tagged `recorded`.
Resumable; a few seconds a seed on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "positions.json"
PAGE = "06_positional_encodings"
SEEDS = (0, 1, 2, 3, 4, 5)
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(8), arms=("positions", "size"), edge={"base": (30, 30)},
    missing={"rate": "with 400 updates at one learning rate"},
)


SIZES = (0.02, 0.71)  # root mean square of the positions at the start
SEQUENCES = (25, 50, 200)
BASES = (3, 10, 30, 100, 1000)
LOOKS = (100, 200, 400)  # steps


def few(positions: str, size: float, sequences: int, seed: int, base: int | None = None) -> dict:
    """Share right on new sequences, at some of the steps. base: of the sinusoids, if not 10,000."""
    kind = positions if base is None else f"{positions}, base {base}"
    training = page.reading(sequences, kind, seed, size)
    first, *right = [
        share_right()
        for step, share_right in zip(range(1, LOOKS[-1] + 1), training, strict=False)
        if step in (1, *LOOKS)
    ]
    return {"first": first, "steps": LOOKS, "right": right}


def grid():
    """(settings, function) of every cell."""
    yield from seed_by_seed(
        "few", few, SEEDS, positions=("learned", "sinusoidal"), size=SIZES, sequences=SEQUENCES
    )
    # Neither trained nor made by the paper's formula; and the formula with other wavelengths.
    yield from seed_by_seed(
        "few", few, SEEDS, positions=("frozen",), size=SIZES[1:], sequences=SEQUENCES
    )
    yield from seed_by_seed(
        "few", few, SEEDS, positions=("sinusoidal",), size=SIZES[1:], sequences=SEQUENCES,
        base=BASES,
    )
