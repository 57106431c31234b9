"""Record what the chapter on the encoder claims of depth: `make record ONLY=hunt`.

A treasure hunt of four notes, by encoder, learning rate and steps: single layers of several widths,
one layer that runs twice, and two layers. The experiment is the one that the page prints, in its
cells tagged `recorded`. Resumable; about four minutes on one core.
"""

from types import SimpleNamespace

from recordings.record import RESULTS, page_code, seed_by_seed
from transformer_lib.encoder import Encoder

OUT = RESULTS / "hunt.json"
PAGE = "09_encoder"
SEEDS = (0, 1)
# The page's encoder is the library's, letter by letter.
page = SimpleNamespace(**page_code(PAGE, Encoder=Encoder))

NOTES = 4
ENCODERS = {  # name -> layers, width, how often the whole encoder runs
    "1 layer": (1, 32, 1),
    "1 layer, wide": (1, 48, 1),
    "1 layer, wider": (1, 96, 1),
    "1 layer, run twice": (1, 32, 2),
    "2 layers": (2, 32, 1),
}
RATES = (0.003, 0.01)
LOOKS = (300, 900, 1800)  # steps


def hunting(encoder: str, rate: float, seed: int) -> dict:
    """Share of right answers on new hunts, at some of the steps."""
    layers, width, passes = ENCODERS[encoder]
    first, right = [], []

    def look(step, net):
        if step in (1, *LOOKS):
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            (right if step in LOOKS else first).append(page.hunts_right(net, NOTES))
            page.torch.set_rng_state(state)

    net, _ = page.train_hunt(
        layers, NOTES, seed, LOOKS[-1], width, passes=passes, rate=rate, look=look
    )
    parameters = sum(p.numel() for p in net.encoder.parameters())
    return {"first": first[0], "steps": LOOKS, "right": right, "parameters": parameters}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("hunt", hunting, SEEDS, encoder=ENCODERS, rate=RATES)
