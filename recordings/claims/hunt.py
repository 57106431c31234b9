"""Record what the chapter on the encoder claims about depth: `make record ONLY=hunt`.

A treasure hunt of four notes, by encoder, learning rate and steps: single layers of several widths,
one layer that runs twice, and two layers. The experiment is the one that the page prints, in its
cells tagged `recorded`. Resumable; about four minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code, seed_by_seed
from transformer_lib.encoder import Encoder

OUT = RESULTS / "hunt.json"
PAGE = "09_encoder"
SEEDS = (0, 1)
# The page's encoder is the library's, letter by letter.
page = SimpleNamespace(**page_code(PAGE, Encoder=Encoder))
GATE = Gate(
    chance=math.log(8), arms=("encoder",), edge={"heads": (None, 4), "rate": (0.003, 0.003)},
    missing={"heads below": "none with fewer than four heads"},
    differs={"parameters": "Wider single layers have more parameters but only one look"},
)


NOTES = 4
ENCODERS = {  # name -> layers, width, how often the whole encoder runs, heads, d_ff
    "1 layer": (1, 32, 1, 4, 64),
    "1 layer, wide": (1, 48, 1, 4, 96),
    "1 layer, wider": (1, 96, 1, 4, 192),
    "1 layer, run twice": (1, 32, 2, 4, 64),
    "2 layers": (2, 32, 1, 4, 64),
}
LARGE = {
    "1 layer, 4 heads": (1, 64, 1, 4, 1024),
    "1 layer, 8 heads": (1, 64, 1, 8, 1024),  # one for each place, to gather the permutation
}
RATES = (0.003, 0.01)
LOOKS = (300, 900, 1800)  # steps
LONGER = (900, 1500, 2700, 4000)  # of those with a large network


def hunting(encoder: str, rate: float, seed: int, heads: int = 4, looks=None) -> dict:
    """Share of right answers on new hunts, at some of the steps."""
    layers, width, passes, _, d_ff = (ENCODERS | LARGE)[encoder]
    first, right, looks = [], [], looks or LOOKS

    def look(step, net):
        if step in (1, *looks):
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            (right if step in looks else first).append(page.hunts_right(net, NOTES))
            page.torch.set_rng_state(state)

    net, _ = page.train_hunt(
        layers, NOTES, seed, looks[-1], width, passes=passes, rate=rate, look=look, heads=heads,
        d_ff=d_ff,
    )
    parameters = sum(p.numel() for p in net.encoder.parameters())
    return {"first": first[0], "steps": looks, "right": right, "parameters": parameters}


def with_more_heads(encoder: str, heads: int, rate: float, seed: int) -> dict:
    """The same for longer: one look needs time."""
    return hunting(encoder, rate, seed, heads, LONGER)


def grid():
    """(settings, function) of every cell."""
    yield from seed_by_seed("hunt", hunting, SEEDS, encoder=ENCODERS, rate=RATES)
    for rate, seed in ((0.002, 0), (0.002, 1), (0.001, 0)):
        for encoder, (_, _, _, heads, _) in reversed(LARGE.items()):
            if rate == 0.002 or heads == 8:
                yield cell(
                    "heads", with_more_heads, encoder=encoder, heads=heads, rate=rate, seed=seed
                )
