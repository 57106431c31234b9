"""Record what the chapter on positional encodings claims: `make record ONLY=positions`.

Learned positions against sinusoidal ones, by their size at the start, the number of sequences and
the steps. The experiment is the one that the page prints, in its cells tagged `recorded`.
Resumable; some seconds a seed on one core.
"""

from types import SimpleNamespace

from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "positions.json"
PAGE = "06_positional_encodings"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

SIZES = (0.02, 0.71)  # root mean square of the positions at the start
SEQUENCES = (25, 50, 200)
LOOKS = (100, 200, 400)  # steps


def few(positions: str, size: float, sequences: int, seed: int) -> dict:
    """Share right on new sequences, at some of the steps."""
    training = page.reading(sequences, positions, seed, size)
    first, *right = [
        share_right()
        for step, share_right in zip(range(1, LOOKS[-1] + 1), training, strict=False)
        if step in (1, *LOOKS)
    ]
    return {"first": first, "steps": LOOKS, "right": right}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed(
        "few", few, SEEDS, positions=("learned", "sinusoidal"), size=SIZES, sequences=SEQUENCES
    )
