"""Record what the chapter on the decoder claims about other wirings.

    make record ONLY=wirings

Which memory the decoder's layers read, in which order their sublayers stand, and which are left
out, by learning rate and updates. The experiment is the one that the page prints, in its cells
tagged `recorded`. Resumable; about nine minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "wirings.json"
PAGE = "10_decoder"
SEEDS = (0, 1, 2)
# Rate: updates. The last two rates lie beyond the page's own.
TRAINED = {0.004: 600, 0.012: 300, 0.002: 600, 0.024: 300}
LOOKS = (300, 600)  # of them
page = SimpleNamespace(**page_code(PAGE))
# Guessing: ten symbols and <eos>.
GATE = Gate(chance=math.log(11), arms=("wiring",), edge={"rate": (0.004, 0.012)})


def learning(wiring: str, rate: float, seed: int) -> dict:
    """Share of sentences without an error, at some of the updates; and the first loss."""
    right = []

    def look(step, net):
        if step in LOOKS:
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            right.append(page.right_when_wired(net, wiring))
            page.torch.set_rng_state(state)

    steps = [step for step in LOOKS if step <= TRAINED[rate]]
    losses = page.train_wired(wiring, seed, steps[-1], rate, look)
    return {"first": losses[0], "steps": steps, "right": right}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("wirings", learning, SEEDS, rate=TRAINED, wiring=page.WIRINGS)
