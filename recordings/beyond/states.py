"""Where a state of fixed size fails: facts that are told, and asked for at the end.

    make record ONLY=states

One layer whose attention is a `StateMixer`. Each run is trained on texts of 4 to 48 facts and asked
on texts of every size, so one run gives the whole curve. A quarter of an hour of one core.
"""

import math

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import states
from transformer_lib.beyond.far_links import N_VALUES
from transformer_lib.beyond.learning import learn

OUT = ROOT / "results" / "beyond" / "states.json"
PAGE = "27_states"
TRAINED_ON, ASKED_ON = (4, 8, 16, 32, 48), (2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64)
BASE = {"told": 1, "rows": 16, "heads": 1, "layers": 1, "updates": 500, "rate": 0.006}
ALL = [*states.GATES, "softmax", "softmax, gated"]
GATE = Gate(
    chance=math.log(N_VALUES),
    arms=("gate", "rows", "heads", "layers"),
    edge={"rows": (8, 32), "rate": (0.006, 0.006), "updates": (None, 500)},
    differs={"parameters": "more rows also mean larger maps for keys and queries"},
)


def recalls(gate, told, rows, heads, layers, updates, rate, seed) -> dict:
    """Share of the questions answered right, for each of ASKED_ON."""
    torch.manual_seed(seed)
    model = states.Recaller(gate, rows, layers, heads)
    generator = torch.Generator().manual_seed(seed)

    def loss():
        which = torch.randint(len(TRAINED_ON), (1,), generator=generator)
        return states.answer_loss(model, states.draw(16, TRAINED_ON[which], generator, told))

    learn(model, loss, updates, rate, warmup=50, cooldown=3)
    test = torch.Generator().manual_seed(99)
    return {"right": [states.share_right(model, states.draw(64, n, test, told)) for n in ASKED_ON]}


def grid():
    """(settings, function) of every cell."""

    def arms(gates, seeds, **change):
        return [
            cell("facts", recalls, gate=gate, **(BASE | change), seed=seed)
            for seed in seeds
            for gate in gates
        ]

    most = ("linear", "Mamba-2", "DeltaNet", "Gated DeltaNet", "softmax, gated")
    linear, two, three = ("linear",), (0, 1), (0, 1, 2)
    return [
        *arms(ALL[:-1], three),
        *arms(ALL, (0,), told=2),
        *[c for rows in (4, 8, 32) for c in arms(linear, two, rows=rows)],
        *arms(linear, (0,), rows=64),
        # The same 1,024 numbers as four heads of 16 x 16; a quarter of them as four of 4 x 16.
        *[c for rows in (16, 4) for c in arms(linear, two, heads=4, rows=rows)],
        *arms(most, (1, 2), told=2),
        *arms(("softmax",), (0,), rows=4),
        *[c for rate in (0.002, 0.02) for c in arms(linear, (0,), rate=rate)],
        *[c for rows in (16, 8, 4, 32) for c in arms(linear, (0,), updates=2000, rows=rows)],
        *arms(linear, (0,), layers=2),
        *arms(linear, (0,), told=2, updates=2000),
        *arms(("GLA",), three, updates=1000),
        *arms(("RetNet", "GLA", "softmax"), (1, 2), told=2),
        *arms(linear, (2,), rows=8),
        *arms(("Gated DeltaNet",), three, rows=8),
    ]
