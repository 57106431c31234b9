"""The recorded runs of the chapter on acting: the corridor, and the pole on the cart.

    make record ONLY=acting

About a quarter of an hour of one core in all. Writes results/beyond/acting.json after every run; a
run that is there is not done again. The recorded episodes are made anew each time, with one seed.
"""

import functools
from pathlib import Path

import torch

from recordings.record import record_runs
from transformer_lib.beyond import acting, corridor
from transformer_lib.runs.checkpoint import save_weights

FILE = Path(__file__).resolve().parents[2] / "results" / "beyond" / "acting.json"
WEIGHTS = FILE.with_suffix("") / "decision.safetensors"
UPDATES, RATES = 300, (1e-3, 3e-3, 5e-4)
RESIDUALS = ("post-norm", "pre-norm", "gate 2", "gate 0")
BASE = {
    "residual": "pre-norm", "signal": "earned", "rate": 1e-3, "layers": 4, "warmup": 1,
    "entropy": 0.05,
}
CORRIDOR = [
    *({"residual": r} for r in RESIDUALS),
    *({"residual": r, "signal": "told"} for r in RESIDUALS),
    *({"residual": r, "entropy": 0.01} for r in RESIDUALS),
    *({"residual": r, "rate": rate} for rate in RATES[1:] for r in RESIDUALS),
    *({"residual": r} for r in ("gate -2", "gate 4", "output gate 2")),
    *({"residual": r, "layers": 8} for r in RESIDUALS[:3]),
    *({"residual": r, "layers": 1} for r in RESIDUALS[:3]),
    {"residual": "post-norm", "warmup": 100},
]
SEEDS, CART_UPDATES = (0, 1, 2), 600
CARTPOLE = [  # data, what is learned, steps of the past; as many steps in a batch for each
    {"data": "all", "model": "decision", "context": acting.CONTEXT},
    {"data": "all", "model": "cloning", "context": acting.CONTEXT},
    {"data": "best 10 %", "model": "cloning", "context": acting.CONTEXT},
    {"data": "all", "model": "decision", "context": 1, "windows": 64 * acting.CONTEXT},
    {"data": "below 100", "model": "decision", "context": acting.CONTEXT},
    {"data": "best 10 % of below 100", "model": "cloning", "context": acting.CONTEXT},
]
ASKED = (10, 25, 50, 75, 100, 125, 150, 175, 200, 250)
EACH = 24  # episodes for each return that is asked for


def walk_the_corridor(arm, seed):
    arm = BASE | arm
    torch.manual_seed(seed)
    agent = corridor.small_agent(arm["residual"], arm["layers"])
    loss = corridor.told_loss
    if arm["signal"] == "earned":
        loss = functools.partial(corridor.policy_gradient_loss, entropy=arm["entropy"])
    curve = corridor.learn(agent, UPDATES, arm["rate"], loss, warmup=arm["warmup"])
    size = sum(p.numel() for p in agent.parameters())
    return {"parameters": size, "curve": [[n, round(a, 3), round(t, 3)] for n, a, t in curve]}


def chosen(episodes, name):
    returns = episodes.rewards.sum(-1)
    if "below 100" in name:
        episodes = acting.Episodes(*(x[returns < 100] for x in episodes))
    return acting.best(episodes) if name.startswith("best") else episodes


def balance(arm, seed, episodes, n_updates):
    torch.manual_seed(seed)
    model, data = acting.decision_transformer(), chosen(episodes, arm["data"])
    is_decision = arm["model"] == "decision"
    losses = acting.train(
        model, data, n_updates, see_returns=is_decision, context=arm["context"],
        n_windows=arm.get("windows", 64),
    )
    end = losses[-50:]
    row = {"episodes": len(data.lengths), "last_loss": round(sum(end) / len(end), 4)}
    model.eval()

    def got(asked, **options):
        played = acting.play(acting.asking(model, asked, arm["context"], **options), n, seed=seed)
        return played.rewards.sum(-1).int().tolist()

    if not is_decision:
        n = 4 * EACH
        return row | {"got": got(None)}
    n = EACH * len(ASKED)
    asked = torch.tensor(ASKED).repeat_interleave(EACH).float()
    row["asked"] = list(ASKED)
    row["got"] = [list(x) for x in zip(*[iter(got(asked))] * EACH, strict=True)]
    if arm == CARTPOLE[0]:
        never = got(asked, count_down=False)
        row["got_without_counting"] = [list(x) for x in zip(*[iter(never)] * EACH, strict=True)]
        if seed == 0:
            WEIGHTS.parent.mkdir(parents=True, exist_ok=True)
            save_weights(WEIGHTS, model.state_dict(), torch.float16)
    return row


def record_all():
    record_runs(
        FILE,
        [(BASE | arm | {"seed": seed}, functools.partial(walk_the_corridor, arm, seed))
         for seed in SEEDS for arm in CORRIDOR],
        "corridor",
    )
    torch.manual_seed(0)  # the data is the same for every seed
    episodes = acting.record()
    data = {"returns": sorted(episodes.rewards.sum(-1).int().tolist()),
            "steps": int(episodes.lengths.sum()), "updates": CART_UPDATES}
    record_runs(
        FILE,
        [(arm | {"seed": seed}, functools.partial(balance, arm, seed, episodes, CART_UPDATES))
         for seed in SEEDS for arm in CARTPOLE],
        "cartpole",
        {"data": data},
    )
