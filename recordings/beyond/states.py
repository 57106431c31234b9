"""Where a state of fixed size fails: facts that are told, and asked for at the end.

    make record ONLY=states

One layer whose attention is a `StateMixer`. Each run is trained on texts of 4 to 48 facts and asked
on texts of every size, so one run gives the whole curve. A quarter of an hour on one core.
"""

import math
from functools import partial

import torch
from torch import nn

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import states
from transformer_lib.beyond.far_links import N_VALUES
from transformer_lib.beyond.learning import learn
from transformer_lib.normalization import RMSNorm

OUT = ROOT / "results" / "beyond" / "states.json"
PAGE = "27_states"
TRAINED_ON, ASKED_ON = (4, 8, 16, 32, 48), (2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64)
BASE = {"told": 1, "rows": 16, "heads": 1, "layers": 1, "updates": 500, "rate": 0.006}
ALL = [*states.GATES, "softmax", "softmax, gated"]
GATE = Gate(
    chance=math.log(N_VALUES),
    arms=("gate", "rows", "columns", "heads", "layers", "fade"),
    edge={"rows": (8, 32), "rate": (0.006, 0.006), "updates": (None, 500)},
    differs={"parameters": "more rows also mean larger maps for keys and queries"},
)


def faded(fade, heads, x):
    """A decay for all tokens and heads alike: (B, T, D) -> (B, H, T, 1)."""
    return x.new_full((len(x), heads, x.size(1), 1), math.log1p(-fade))


def recalls(
    gate, told, rows, heads, layers, updates, rate, seed, columns=None, fade=None
) -> dict:
    """Share of the questions answered correctly, for each of ASKED_ON.

    columns: numbers in a value of all heads together, in place of the model's width.
    fade: what RetNet forgets at each token, in place of 1/32, 1/64 and so on.
    """
    torch.manual_seed(seed)
    model = states.Recaller(gate, rows, layers, heads)
    for mixer in (layer.self_attention for layer in model.decoder.layers):
        if columns:
            mixer.w_v = nn.Linear(mixer.w_v.in_features, columns, bias=False)
            mixer.w_o = nn.Linear(columns, mixer.w_o.out_features, bias=False)
            mixer.norm = RMSNorm(columns // heads)
        if fade:
            mixer.log_decay = partial(faded, fade, heads)
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
        # Rows, columns and heads one at a time: 1,024 numbers as 64 x 16, 256 as 16 x 16.
        *arms(linear, three, rows=64, columns=16),
        *arms(linear, three, rows=16, columns=16),
        *arms(linear, (2,), heads=4),
        *arms(linear, (2,), heads=4, rows=4),
        # Is it the speed of its fading that RetNet lacks?
        *[c for fade in (1 / 16, 1 / 256) for c in arms(("RetNet",), three, fade=fade)],
        *arms(("RetNet",), three, heads=4),
        *arms(("GLA",), three, rate=0.002),  # does a third of the rate free its stuck seeds?
    ]
