"""How far preferences push a writer of captions before its language breaks.

    make record ONLY=preferences        # about three minutes on one core; resumable

A judge who likes colours compares captions of the small grammar, two at a time. A policy then
chases a learned reward (policy gradient) or takes the pairs as they are (DPO), at many KL prices.
`reweighted` trains nothing: it weighs 4,000 captions of the reference.
"""

import copy
import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import caption_grammar as grammar
from transformer_lib.beyond import preferences
from transformer_lib.beyond.learning import learn
from transformer_lib.config import PAD, ModelConfig
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.checkpoint import load_state, load_weights, save_weights

OUT = ROOT / "results" / "beyond" / "preferences.json"
WEIGHTS = OUT.with_suffix("")
PAGE = "28_preferences"
SEEDS, BATCH, N_PAIRS, N_LOOK = (0, 1, 2), 32, 2000, 256
PRICES = (0.0, 0.1, 0.5, 2.0)
UPDATES, RATE = 60, 3e-3
LEAST = 62  # captions that are left of 4,000 when one of 64 is kept
LIKES = 2.0  # what a colour word is worth to the judge
CONFIG = ModelConfig(
    len(grammar.vocabulary()), 64, 4, 128, 0, 2, 0.0, max_len=32, positional="learned",
    activation="gelu",
)


def liked(ids: torch.Tensor) -> torch.Tensor:
    """What the judge truly likes: LIKES for each colour word. ids (B, 1 + T) -> (B,)."""
    return LIKES * colours(grammar.to_texts(ids))


def colours(texts) -> torch.Tensor:
    return torch.tensor([sum(w in grammar.COLOUR_WORDS for w in t.split()) for t in texts]).float()


def apart(function, *given):
    """What a function returns in a process of its own, where the recorder counts no updates."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def train_reference() -> dict:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, ids = LanguageModel(CONFIG), grammar.to_ids(grammar.captions(10_000))

    def loss():
        some = ids[torch.randint(len(ids), (64,))]
        logits = model(some[:, :-1]).flatten(0, 1)
        return F.cross_entropy(logits, some[:, 1:].flatten(), ignore_index=PAD)

    learn(model, loss, 1200, 3e-3, warmup=50, cooldown=2.0)
    return model.state_dict()


@cache
def reference() -> LanguageModel:
    """A language model of 10,000 captions, as it is shipped: everything else starts from it."""
    path = WEIGHTS / "reference.safetensors"
    if not path.exists():
        WEIGHTS.mkdir(parents=True, exist_ok=True)
        save_weights(path, apart(train_reference), torch.float16)
    model = LanguageModel(CONFIG)
    load_state(model, load_weights(path), path)
    return model.float().eval()


def draw_pairs(model: LanguageModel, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(better, worse): n pairs of the model's captions, as the judge chose. (n, 1 + T) each."""
    return choose(preferences.write_texts(model, 2 * n).view(2, n, -1))


def choose(two: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both captions of each pair, (2, n, 1 + T) -> (better, worse), as the judge chooses."""
    first = torch.rand(two.size(1)) < torch.sigmoid(liked(two[0]) - liked(two[1]))
    return torch.where(first[:, None], *two), torch.where(first[:, None], *two.flip(0))


def pairs_as_long(model: LanguageModel, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As `draw_pairs`, but the two captions of a pair have the same number of words."""
    ids = preferences.write_texts(model, 4 * n)
    ids = ids[(ids != PAD).sum(-1).argsort(stable=True)]  # short ones first
    two = ids.view(-1, 2, ids.size(-1)).transpose(0, 1)  # neighbours
    same = ((two != PAD).sum(-1).diff(dim=0) == 0)[0].nonzero().squeeze(-1)
    return choose(two[:, same[torch.randperm(len(same))[:n]]])


@cache
def pairs(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(100 + seed)
    return draw_pairs(reference(), N_PAIRS)


def train_judge(seed, state, better, worse) -> dict:
    torch.set_num_threads(1)
    torch.manual_seed(200 + seed)
    model = preferences.RewardModel(CONFIG)
    model.reader.load_state_dict(state)

    def loss():
        some = torch.randint(N_PAIRS, (BATCH,))
        return preferences.reward_loss(model(better[some]), model(worse[some]))

    learn(model, loss, 100, 2e-3, warmup=10, cooldown=2.0)
    return model.state_dict()


@cache
def judge(seed: int) -> preferences.RewardModel:
    """A reward model of the pairs; it starts as the reference."""
    model = preferences.RewardModel(CONFIG)
    state = apart(train_judge, seed, reference().state_dict(), *pairs(seed))
    model.load_state_dict(state)
    if seed == 0:
        save_weights(WEIGHTS / "reward.safetensors", state, torch.float16)
    return model.eval().requires_grad_(False)


@torch.no_grad()
def look(policy: LanguageModel, seed: int) -> dict:
    """What a policy writes: its reward, its distance, and whether it is still language."""
    torch.manual_seed(300 + seed)
    ids = preferences.write_texts(policy, N_LOOK)
    texts, reward = grammar.to_texts(ids), judge(seed)
    moved = preferences.log_probability(policy, ids)
    moved -= preferences.log_probability(reference(), ids)
    return {
        "reward": reward(ids).mean().item(),
        "colours": colours(texts).mean().item(),
        "kl": moved.mean().item(),
        "accepted": sum(map(grammar.accepts, texts)) / N_LOOK,
        "distinct": len(set(texts)) / N_LOOK,
        "distinct_62": len(set(texts[:LEAST])) / LEAST,
        "words": sum(len(t.split()) for t in texts) / N_LOOK,
        "samples": texts[:6],
    }


def went_for(loss_of, price: float, rate: float, updates: int, seed: int) -> dict:
    policy = copy.deepcopy(reference())
    loss = loss_of(policy, price, seed)
    torch.manual_seed(400 + seed)
    learn(policy, loss, updates, rate, warmup=10)
    return look(policy, seed)


def by_reward(policy, price, seed):
    return partial(
        preferences.policy_gradient_loss, policy, reference(), judge(seed), price, BATCH
    )


def by_pairs(policy, price, seed, kind="kept"):
    """DPO on N_PAIRS pairs, read again and again ("kept"), or on pairs that nobody saw before:
    the reference's ("fresh"), or those that the policy has just written itself ("own").

    Three more take one thing away from "fresh" each. "as long": both captions of a pair have the
    same number of words. "asked often": both sides count, each as often as the judge would choose
    it, so no choice is a toss. "judged": the same, and the reward model is asked in her place.
    """
    model, known = reference(), pairs(seed)

    def loss():
        if kind in ("asked often", "judged"):
            two = preferences.write_texts(model, 2 * BATCH).view(2, BATCH, -1)
            worth = judge(seed) if kind == "judged" else liked
            chosen = torch.sigmoid(worth(two[0]) - worth(two[1]))  # (BATCH,)
            now = [preferences.log_probability(policy, x) for x in two]
            with torch.no_grad():
                before = [preferences.log_probability(model, x) for x in two]
            margin = price * (now[0] - before[0] - now[1] + before[1])
            return -(chosen * F.logsigmoid(margin) + (1 - chosen) * F.logsigmoid(-margin)).mean()
        if kind == "as long":
            two = pairs_as_long(model, BATCH)
        elif kind != "kept":
            two = draw_pairs(policy if kind == "own" else model, BATCH)
        else:
            i = torch.randint(N_PAIRS, (BATCH,))
            two = [x[i] for x in known]
        with torch.no_grad():
            before = [preferences.log_probability(model, x) for x in two]
        now = [preferences.log_probability(policy, x) for x in two]
        return preferences.dpo_loss(*now, *before, price)

    return loss


def went_by_reward(price, rate, updates, seed):
    return went_for(by_reward, price, rate, updates, seed)


def went_by_pairs(pairs, price, rate, updates, seed):
    return went_for(partial(by_pairs, kind=pairs), price, rate, updates, seed)


def start(seed: int) -> dict:
    """The reference itself, which costs no KL."""
    found = look(reference(), seed)
    better, worse = pairs(seed)
    with torch.no_grad():
        agrees = (judge(seed)(better) > judge(seed)(worse)).float().mean().item()
        far = ["white white white white white white", "a red dog is eating a red apple"]
        strange = dict(zip(far, judge(seed)(grammar.to_ids(far)).tolist(), strict=True))
    return found | {"agrees": agrees, "strange": strange}


@torch.no_grad()
def weighed(seed: int, n: int = 4_000) -> dict:
    """The optimum at each price, from captions of the reference: weights exp(reward / price)."""
    torch.manual_seed(500 + seed)
    ids = preferences.write_texts(reference(), n)
    texts = grammar.to_texts(ids)
    reward = torch.cat([judge(seed)(part) for part in ids.split(1000)])
    accepted = torch.tensor([grammar.accepts(t) for t in texts]).float()
    found = []
    for price in PRICES[1:]:
        log_w = preferences.reweighted(torch.zeros(n), reward, price)
        w = log_w.exp()
        found.append({
            "price": price, "reward": (w @ reward).item(), "kl": (w @ log_w).item() + math.log(n),
            "colours": (w @ colours(texts)).item(), "accepted": (w @ accepted).item(),
            "effective": 1 / w.square().sum().item(),
        })
    best = []
    for size in (2, 4, 16, 64):
        groups = reward[: n // size * size].view(-1, size)
        chosen = groups.argmax(-1) + size * torch.arange(len(groups))
        best.append({
            "n": size, "reward": reward[chosen].mean().item(),
            "kl": math.log(size) - (size - 1) / size,
            "colours": colours([texts[i] for i in chosen.tolist()]).mean().item(),
            "accepted": accepted[chosen].mean().item(),
            # Of so few captions that 64 candidates each are enough for all: comparable over n.
            "distinct": len({texts[i] for i in chosen.tolist()[:LEAST]}) / LEAST,
        })
    return {"optimum": found, "best_of": best}


def rewarded(price, rate, updates, seed):
    return cell("policy gradient", went_by_reward, price=price, rate=rate, updates=updates,
                seed=seed)


def paired(kind, price, rate, updates, seed):
    return cell("DPO", went_by_pairs, pairs=kind, price=price, rate=rate, updates=updates,
                seed=seed)


def grid():
    """(settings, function) of every cell."""
    for seed in SEEDS:
        yield cell("start", start, seed=seed)
        yield cell("reweighted", weighed, seed=seed)
        yield from (rewarded(price, RATE, UPDATES, seed) for price in PRICES)
        # At a price of 0 the loss of DPO is a constant.
        yield from (paired("kept", price, RATE, UPDATES, seed) for price in PRICES[1:])
        yield from (paired("fresh", price, RATE, UPDATES, seed) for price in PRICES[1:2])
    for seed in SEEDS:
        yield rewarded(0.1, RATE / 3, UPDATES, seed)
        yield paired("kept", 0.5, RATE / 3, UPDATES, seed)
        yield paired("kept", 0.1, RATE / 3, UPDATES, seed)
        yield paired("kept", 0.1, 3e-4, UPDATES, seed)
        yield rewarded(0.0, RATE, 2 * UPDATES, seed)
        yield paired("kept", 0.5, RATE, 2 * UPDATES, seed)
        yield from (paired("own", price, RATE, UPDATES, seed) for price in PRICES[1:3])
    for seed in SEEDS:  # what else could drive DPO out of the language?
        for kind in ("as long", "asked often", "judged"):
            yield from (paired(kind, price, RATE, UPDATES, seed) for price in PRICES[1:3])


GATE = Gate(
    began=lambda record: record["colours"] > 0.25,  # the reference: about 0.19
    arms=("price", "pairs"),
    edge={"price": (0.1, 0.5), "rate": (RATE, None), "updates": (None, UPDATES)},
    missing={"rate above": "We tried none above 0.003"},
    measures=("start", "reweighted"),
    differs={"tokens": "The reward model reads the captions, too, so more tokens are read here."},
    did_not_learn=(
        ({"part": "policy gradient", "price": 2.0}, "the policy gradient gains next to nothing"),
    ),
)
