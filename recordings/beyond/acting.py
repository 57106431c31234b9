"""The recorded runs of the chapter on acting: the corridor, and the pole on the cart.

    make record ONLY=acting        # about twenty minutes on one core; resumable

Which residual finds the turn at equal size, and with less exploration: see gates.py.
"""

import functools
import math

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import acting, corridor
from transformer_lib.runs.checkpoint import save_weights

OUT = ROOT / "results" / "beyond" / "acting.json"
PAGE = "25_acting"
WEIGHTS = OUT.with_suffix("") / "decision.safetensors"
SEEDS, UPDATES, CART_UPDATES = (0, 1, 2), 300, 600
RESIDUALS = ("post-norm", "pre-norm", "gate 2", "gate 0")
BASE = {"signal": "earned", "rate": 1e-3}
CORRIDOR = [
    *({"residual": r} for r in RESIDUALS),
    *({"residual": r, "signal": "told"} for r in RESIDUALS),
    *({"residual": r, "rate": rate} for rate in (3e-3, 5e-4) for r in RESIDUALS),
    *({"residual": r} for r in ("gate -2", "gate 4", "output gate 2")),
]
FULL = {"context": acting.CONTEXT, "windows": 64, "rate": 3e-3}
CARTPOLE = [  # data, what is learned; steps of the past, with as many steps in a batch for each
    {"data": "all", "model": "decision"} | FULL,
    {"data": "all", "model": "cloning"} | FULL,
    {"data": "best 10 %", "model": "cloning"} | FULL,
    {"data": "all", "model": "decision"} | FULL | {"context": 1, "windows": 64 * acting.CONTEXT},
    {"data": "below 100", "model": "decision"} | FULL,
    {"data": "best 10 % of below 100", "model": "cloning"} | FULL,
]
OTHER_RATES = [arm | {"rate": rate} for rate in (1e-3, 1e-2) for arm in (CARTPOLE[0], CARTPOLE[2])]
ASKED = (10, 25, 50, 75, 100, 125, 150, 175, 200, 250)
EACH = 24  # episodes for each return that is asked for


def began(record: dict) -> bool:
    """It reaches the junction (the loss of a policy says nothing), or its loss is low."""
    if record["settings"]["part"] == "corridor":
        return record["progress"][-1][1] > 0.5
    return record["run"]["curve"][-1][1] < 0.9 * math.log(2)


GATE = Gate(
    arms=("residual", "data", "model"), measures=("data",), began=began,
    edge={"rate": (1e-3, 3e-3)},
    differs={"parameters": "at equal width the gated agent has 2.4 times the parameters"},
    did_not_learn=(
        ({"residual": "gate -2"}, "two of the three didn't find the turn in that time"),
    ),
)


def walks(residual: str, signal: str, rate: float, seed: int) -> dict:
    """progress: [update, the junction is reached, the right turn is taken there], probabilities."""
    torch.manual_seed(seed)
    agent = corridor.small_agent(residual)
    loss = corridor.told_loss if signal == "told" else corridor.policy_gradient_loss
    seen = corridor.walk(agent, UPDATES, rate, loss)
    return {"progress": [[n, round(a, 3), round(t, 3)] for n, a, t in seen]}


@functools.cache
def episodes() -> acting.Episodes:
    """What is read: the same for every seed."""
    torch.manual_seed(0)
    return acting.record()


def returns() -> dict:
    seen = episodes()
    return {"returns": sorted(seen.rewards.sum(-1).int().tolist()),
            "steps": int(seen.lengths.sum()), "updates": CART_UPDATES}


def chosen(name: str) -> acting.Episodes:
    read = episodes()
    if "below 100" in name:
        read = acting.Episodes(*(x[read.rewards.sum(-1) < 100] for x in read))
    return acting.best(read) if name.startswith("best") else read


def balances(data: str, model: str, context: int, windows: int, rate: float, seed: int) -> dict:
    """The returns that a model gets, for each that it is asked for."""
    read = chosen(data)
    torch.manual_seed(seed)
    player, is_decision = acting.decision_transformer(), model == "decision"
    acting.train(player, read, CART_UPDATES, rate, is_decision, context, windows)
    player.eval()

    def got(n, asked, **options):
        played = acting.play(acting.asking(player, asked, context, **options), n, seed=seed)
        return played.rewards.sum(-1).int().tolist()

    def by_asked(**options):
        asked = torch.tensor(ASKED).repeat_interleave(EACH).float()
        found = got(len(asked), asked, **options)
        return [list(x) for x in zip(*[iter(found)] * EACH, strict=True)]

    row = {"episodes": len(read.lengths)}
    if not is_decision:
        return row | {"got": got(4 * EACH, None)}
    row |= {"asked": list(ASKED), "got": by_asked()}
    if (data, context, rate) == ("all", acting.CONTEXT, FULL["rate"]):
        row["got_without_counting"] = by_asked(count_down=False)
        if seed == 0:
            WEIGHTS.parent.mkdir(parents=True, exist_ok=True)
            save_weights(WEIGHTS, player.state_dict(), torch.float16)
    return row


def grid():
    """(settings, function) of every cell."""
    return [
        cell("data", returns),
        *(cell("cartpole", balances, **arm, seed=seed) for seed in SEEDS for arm in CARTPOLE),
        *(cell("cartpole", balances, **arm, seed=0) for arm in OTHER_RATES),
        *(cell("corridor", walks, **(BASE | arm), seed=seed) for seed in SEEDS for arm in CORRIDOR),
    ]
