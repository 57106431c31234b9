"""Record what the chapter on the loss claims about targets that are not shifted:
`make record ONLY=shift`.

Ana's loss and Ben's, by learning rate, updates and seed: the training loss, and what the model
writes at inference. The experiment is the one that the page prints, in its cells tagged `recorded`.
Resumable; about five minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "shift.json"
PAGE = "12_batches_loss_schedule"
SEEDS = (0, 1, 2)
RATES = (0.003, 0.01, 0.001, 0.03)  # the highest; the last two lie beyond the page's own
LOOKS = (200, 400)  # updates
WARM = 30
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(page.tokenizer.get_vocab_size()), arms=("learner",),
    edge={"rate": (0.003, 0.01)},
)


def learning(learner: str, rate: float, seed: int) -> dict:
    """At some of the updates: the loss, a mean over ten, and BLEU of what is written."""
    model, in_use, loss = page.new_model(seed), [], {"Ana": page.ana, "Ben": page.ben}[learner]
    seen = []

    def watched(model, source, target):
        if len(seen) in LOOKS:
            look()
        value = loss(model, source, target)
        seen.append(value.item())
        return value

    def look():
        in_use.append(page.in_use(model))

    page.train(model, LOOKS[-1], lambda step: page.inverse_sqrt(step, rate, WARM), seed, watched)
    look()
    own, other = zip(*in_use, strict=True)
    ends = [sum(seen[:steps][-10:]) / len(seen[:steps][-10:]) for steps in LOOKS]
    return {"first": seen[0], "steps": LOOKS, "loss": ends, "bleu": own, "other": other}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("shift", learning, SEEDS, learner=("Ana", "Ben"), rate=RATES)
