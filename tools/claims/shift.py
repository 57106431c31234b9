"""Record what becomes of a target that is not shifted: `python tools/claims/shift.py`.

Ana and Ben of the chapter on losses, by learning rate and updates: the loss of training, and what
the model writes. The experiment is the one that the page prints, in its cells tagged `recorded`.
Resumable; about four minutes on one core. `make claims` runs it.
"""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

from transformer_lib import evaluation  # noqa: E402
from transformer_lib.decoding import greedy_decode  # noqa: E402

OUT = RESULTS / "shift.json"
PAGE = "12_batches_loss_schedule"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

LEARNERS = {"Ana": page.ana, "Ben": page.ben}
RATES = (0.001, 0.003)  # the highest, after 30 updates
UPDATES = (200, 800)
SENTENCES = 100


def learning(learner: str, rate: float, updates: int, seed: int) -> dict:
    """The loss at the end, BLEU on new sentences, and how many different texts they get."""
    model = page.new_model(seed)
    rows = page.train(
        model, updates, lambda step: page.inverse_sqrt(step, rate, 30), seed, LEARNERS[learner]
    )
    german, english = zip(*page.pairs["test"][:SENTENCES], strict=True)
    source = page.pad(page.encode_source(page.tokenizer, list(german)))
    written = greedy_decode(model, source, max_len=14).tolist()
    texts = page.tokenizer.decode_batch(written)
    losses = [row["loss"] for row in rows]
    return {
        "first": losses[0],
        "loss": sum(losses[-10:]) / len(losses[-10:]),
        "BLEU": evaluation.bleu(texts, list(english), "13a"),
        "different": len(set(texts)),
    }


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed, updates, learner, rate in itertools.product(SEEDS, UPDATES, LEARNERS, RATES):
        settings = {"learner": learner, "rate": rate, "updates": updates, "seed": seed}
        yield {"part": "shift"} | settings, lambda s=settings: learning(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
