"""Record what the chapter on the decoder claims of a source in one vector:
`make record ONLY=one_vector`.

Parts: rows (a row for each token), vector (one vector, by width and updates). The experiment is
that of the page, in its cells tagged `recorded`. Resumable; a few minutes on one core.
"""

from types import SimpleNamespace

from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "one_vector.json"
PAGE = "10_decoder"
SEEDS = (0, 1, 2, 3, 4, 5)
STEPS = (150, 300, 600, 1200)
page = SimpleNamespace(**page_code(PAGE))


def training(squeeze: bool, width: int, rate: float, steps: int, seed: int) -> dict:
    """Shares of sentences without an error, by length, at some of the updates."""
    at, whole = [], []

    def look(step, net):
        if step in STEPS:
            at.append(step)
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            whole.append({str(n): x for n, x in page.whole_sentences(net, squeeze).items()})
            page.torch.set_rng_state(state)

    page.train_reverser(squeeze, seed, steps, width, rate, look)
    return {"steps": at, "whole": whole}


def grid():
    """(settings, function) of every cell."""
    plan = [  # the longest trainings last
        ("rows", False, 32, 0.004, STEPS[2]),
        ("vector", True, 64, 0.004, STEPS[2]),
        ("vector", True, 32, 0.004, STEPS[3]),
    ]
    return [
        cell(part, training, squeeze=squeeze, width=width, rate=rate, steps=steps, seed=seed)
        for part, squeeze, width, rate, steps in plan for seed in SEEDS
    ]
