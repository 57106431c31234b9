"""Record what the chapter on the encoder claims of depth: `make record ONLY=hunt`.

A treasure hunt of four notes, by encoder, learning rate and steps: single layers of several widths,
one layer that runs twice, and two layers. The experiment is the one that the page prints, in its
cells tagged `recorded`. Resumable; about four minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib.encoder import Encoder

OUT = RESULTS / "hunt.json"
PAGE = "09_encoder"
SEEDS = (0, 1)
# The page's encoder is the library's, letter by letter.
page = SimpleNamespace(**page_code(PAGE, Encoder=Encoder))
GATE = Gate(chance=math.log(8), arms=("encoder",), edge={"heads": (4, 4), "rate": (0.003, 0.003)})


NOTES = 4
ENCODERS = {  # name -> layers, width, how often the whole encoder runs, heads, d_ff
    "1 layer": (1, 32, 1, 4, 64),
    "1 layer, wide": (1, 48, 1, 4, 96),
    "1 layer, wider": (1, 96, 1, 4, 192),
    "1 layer, run twice": (1, 32, 2, 4, 64),
    "2 layers": (2, 32, 1, 4, 64),
    "1 layer, 2 heads": (1, 64, 1, 2, 1024),
    "1 layer, 4 heads": (1, 64, 1, 4, 1024),
    "1 layer, 8 heads": (1, 64, 1, 8, 1024),  # one for each place, to gather the permutation
}
RATES = (0.003, 0.01)
LARGE = (0.002, 0.003)  # rates of the three with a large network
LOOKS = (300, 900, 1800, 4000)  # steps


def hunting(encoder: str, rate: float, seed: int, **_) -> dict:
    """Share of right answers on new hunts, at some of the steps."""
    layers, width, passes, heads, d_ff = ENCODERS[encoder]
    first, right = [], []

    def look(step, net):
        if step in (1, *LOOKS):
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            (right if step in LOOKS else first).append(page.hunts_right(net, NOTES))
            page.torch.set_rng_state(state)

    net, _ = page.train_hunt(
        layers, NOTES, seed, LOOKS[-1], width, passes=passes, rate=rate, look=look, heads=heads,
        d_ff=d_ff,
    )
    parameters = sum(p.numel() for p in net.encoder.parameters())
    return {"first": first[0], "steps": LOOKS, "right": right, "parameters": parameters}


def grid():
    """(settings, function) of every cell."""
    for seed in SEEDS:
        for encoder, (*_, heads, d_ff) in ENCODERS.items():
            large = d_ff > 500
            for rate in LARGE if large else RATES:
                if heads != 2 or rate == LARGE[0]:
                    yield cell(
                        "hunt", hunting, encoder=encoder, heads=heads, rate=rate, seed=seed
                    )
