"""The corridor of the chapter on acting: which residual finds the turn, how soon, how reliably.

    make record ONLY=gates

Arms at equal size and at their own size, nine seeds, up to 1,200 updates; a run ends once it has
found the turn. A quarter of an hour on one core.
"""

import functools

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import corridor

OUT = ROOT / "results" / "beyond" / "gates.json"
PAGE = "25_acting"
UPDATES, FOUND, SEEDS = 1200, 0.9, range(9)
BASE = {"signal": "earned", "entropy": 0.05, "rate": 0.001, "layers": 4}
# (residual, width): about 34,000 parameters each, then about 85,000 each.
SMALL = [("post-norm", 32), ("pre-norm", 32), ("gate 2", 20)]
LARGE = [("pre-norm", 52), ("gate 2", 32)]
# Is it the gate, or that the stack starts as almost nothing? Small, and exploring less.
QUIET = [("output gate 2", 28), ("pre-norm, quiet", 32)]
GATE = Gate(
    began=lambda record: record["reaches"] > 0.5,  # it walks; the loss of a policy says nothing
    arms=("residual", "width"),
    edge={"entropy": (None, 0.01)},  # rates and biases: acting.json, three seeds
    missing={"rate": "all nine seeds have the same learning rate",
             "entropy below": "We didn't try an entropy bonus below 0.01"},
    differs={
        "parameters": "once at equal width and once at equal size",
        "updates": "a training run stops as soon as it has found the turn",
        "tokens": "a training run stops as soon as it has found the turn",
    },
)


@torch.no_grad()
def quieten(agent: corridor.Agent) -> None:
    """Make what each sublayer adds at the start as small as an output gate of bias 2 would."""
    for layer in agent.decoder.layers:
        for last in (layer.self_attention.w_o, layer.feed_forward.contract):
            for parameter in last.parameters():
                parameter.mul_(torch.tensor(-2.0).sigmoid())


def walks(residual, width, signal, entropy, rate, layers, seed) -> dict:
    """Updates until the right turn was likely at three looks in a row, or None within UPDATES."""
    torch.manual_seed(seed)
    agent = corridor.small_agent(residual.removesuffix(", quiet"), layers, width=width)
    if residual.endswith(", quiet"):
        quieten(agent)
    loss = corridor.told_loss
    if signal == "earned":
        loss = functools.partial(corridor.policy_gradient_loss, entropy=entropy)
    seen = corridor.walk(agent, UPDATES, rate, loss, until=FOUND)
    found = seen[-3][0] if all(turn >= FOUND for *_, turn in seen[-3:]) else None
    turns = [[n, round(turn, 3)] for n, _, turn in seen[:: max(1, len(seen) // 24)]]
    return {"found": found, "reaches": seen[-1][1], "turns": turns}


def grid():
    """(settings, function) of every cell."""

    def arms(which, seeds, **change):
        return [
            cell("corridor", walks, residual=residual, width=width, **(BASE | change), seed=seed)
            for seed in seeds for residual, width in which
        ]

    less = SMALL[1:] + LARGE
    return [*arms(less, SEEDS, entropy=0.01), *arms(SMALL + LARGE, SEEDS),
            *arms(QUIET, SEEDS, entropy=0.01)]
