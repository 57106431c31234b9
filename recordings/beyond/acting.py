"""The recorded runs of the chapter on acting: the corridor, and the pole on the cart.

    python -m recordings.beyond.acting corridor 0     # one seed of each arm, then 1, then 2
    python -m recordings.beyond.acting cartpole 0     # with --main: only the first arms

About a quarter of an hour of one core in all. Writes results/beyond/acting.json after every run; a
run that is there is not done again. The recorded episodes are made anew each time, with one seed.
"""

import argparse
import datetime
import functools
import json
import subprocess
import time
from pathlib import Path

import torch

from transformer_lib.beyond import acting, corridor
from transformer_lib.runs.checkpoint import save_weights
from transformer_lib.runs.files import write_text

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
N_MAIN = {"corridor": 12, "cartpole": 3}
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["corridor", "cartpole"])
    parser.add_argument("seed", type=int)
    parser.add_argument("--updates", type=int, default=600, help="of the cart's models")
    parser.add_argument("--main", action="store_true", help="only the arms that stand first")
    arguments = parser.parse_args()
    part, seed = arguments.part, arguments.seed
    torch.set_num_threads(1)
    found = json.loads(FILE.read_text()) if FILE.exists() else {"corridor": [], "cartpole": []}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    found["environment"] = {
        "torch": torch.__version__, "device": "one CPU core", "commit": commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
    }
    episodes = None
    if part == "cartpole":
        torch.manual_seed(0)  # the data is the same for every seed
        episodes = acting.record()
        found["data"] = {
            "returns": sorted(episodes.rewards.sum(-1).int().tolist()),
            "steps": int(episodes.lengths.sum()), "updates": arguments.updates,
        }
    arms = CORRIDOR if part == "corridor" else CARTPOLE
    for arm in arms[: N_MAIN[part]] if arguments.main else arms:
        key = {**(BASE if part == "corridor" else {}), **arm, "seed": seed}
        if any(all(row.get(k) == v for k, v in key.items()) for row in found[part]):
            continue
        begin = time.process_time()
        row = (
            walk_the_corridor(arm, seed) if part == "corridor"
            else balance(arm, seed, episodes, arguments.updates)
        )
        found[part].append(key | row | {"cpu_seconds": round(time.process_time() - begin, 1)})
        end = row["curve"][-1] if part == "corridor" else [row["got"][-1]]
        print(key, end[-1], found[part][-1]["cpu_seconds"], flush=True)
        FILE.parent.mkdir(parents=True, exist_ok=True)
        write_text(FILE, json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
