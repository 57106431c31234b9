"""Record what the chapter on scaled attention claims: `make record ONLY=scaling`.

What the division by the root of d_k is worth, by d_k, the size of the first weights, rate and
steps. The experiment is the one that the page prints, in its cells tagged `recorded`. Resumable;
about three minutes on one core.
"""

from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "scaling.json"
PAGE = "02_scaled_dot_product_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))
# Guessing is the plain average of all labels: the loss of weights that never leave uniform.
GATE = Gate(
    chance=0.139, arms=("scores",), edge={"d_k": (16, 256)},
    did_not_learn=(
        (
            {"scores": "not divided"},
            "without the division, most runs at the higher rate with 64 numbers or more",
        ),
        (
            {"start": 2.0},
            "if the weights start at twice the usual size, some runs under either division",
        ),
        (
            {"scores": "divided", "d_k": 1024, "rate": 0.03},
            "one of seven doesn't learn within 500 steps",
        ),
    ),
)


SIZES = (4, 16, 64, 256, 1024)  # d_k
STARTS = (0.12, 0.25, 0.35, 0.5, 1.0, 2.0)  # times the page's first weights
RATES = (0.003, 0.03)
LOOKS = (120, 500)  # steps
SCORES = {"divided": True, "not divided": False, "divided by d_k": "d_k"}


def averaging(scores: str, d_k: int, start: float, rate: float, seed: int) -> dict:
    """The loss at the end of so many steps, as the page takes it."""
    losses = page.averaging_losses(SCORES[scores], seed, d_k, LOOKS[-1], start, rate)
    ends = [page.end_of(losses[:steps]) for steps in LOOKS]
    return {"first": losses[0], "steps": LOOKS, "loss": ends}


def grid():
    """(settings, function) of every cell."""
    yield from seed_by_seed(
        "averaging", averaging, SEEDS, scores=SCORES, d_k=SIZES, start=STARTS, rate=RATES,
    )
    yield from seed_by_seed(  # where the two divisors part: three seeds decide nothing
        "seeds", averaging, range(3, 7), scores=("divided", "divided by d_k"), d_k=SIZES[-1:],
        start=(1.0,), rate=RATES[-1:],
    )
