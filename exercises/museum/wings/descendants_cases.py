# ruff: noqa: E501 (lines of the program are quoted whole)
"""The wing of descendants: laws, cases, and how they look."""

import copy
import functools

import torch
from torch import nn

from exercises.museum.laws import close
from exercises.museum.specimens import Catalogue
from exercises.museum.wings import Case, Wing, descendants
from transformer_lib.beyond.learning import learn

LAWS = {}


def law(function):
    LAWS[function.__name__] = function
    return function


def a_model(p):
    torch.manual_seed(0)
    return p.Model().eval()


@law
def only_distances_count(p):
    """With rotary positions, the same tokens give the same outputs seven places later."""
    torch.manual_seed(0)
    attention, x = p.Attention(8, 2), torch.randn(1, 5, 8)
    with torch.no_grad():
        far = (attention(x, start=0) - attention(x, start=7)).abs().max().item()
    assert far < 1e-4, f"seven places later, the same tokens give outputs that differ by {far:.2f}"


@law
def the_cache_changes_nothing(p):
    """Reading token by token with the cache gives the same logits as reading all at once."""
    model, ids = a_model(p), torch.randint(0, 12, (1, 8))
    caches = [{} for _ in model.attentions]
    with torch.no_grad():
        steps = torch.cat([model(ids[:, i : i + 1], caches) for i in range(8)], 1)
        assert close(steps, model(ids)), "with the cache, later tokens come out differently"


@law
def drafts_change_nothing(p):
    """Whatever the drafts guess, the text is the same as without drafts."""
    model = a_model(p)
    with torch.no_grad():  # so that what is written depends on all that was read
        for attention in model.attentions:
            attention.w_qkv.weight.mul_(3)
            attention.w_o.weight.mul_(20)
        for network in model.networks:
            network[0].weight.mul_(5), network[2].weight.mul_(5)
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        ids = torch.randint(0, 12, (1, 5), generator=draw)
        plain = p.write(model, ids, 12)

        def half_right(known, ahead, plain=plain, draw=draw):
            right = plain[len(known) - 5 :][:ahead]
            return [t if torch.rand((), generator=draw) < 0.7 else (t + 1) % 12 for t in right]

        found = p.write_with_drafts(model, half_right, ids, 12)
        assert found == plain, f"with drafts it writes {found}, without them {plain}"


@law
def only_what_is_hidden_is_learned(p):
    """The loss of a masked model has no gradient where the model could see the token."""
    torch.manual_seed(0)
    logits, ids = torch.randn(2, 6, 12, requires_grad=True), torch.randint(0, 12, (2, 6))
    hidden = torch.zeros(2, 6, dtype=torch.bool)
    hidden[0, 1] = hidden[1, 4] = True
    p.hidden_loss(logits, ids, hidden).backward()
    asked = logits.grad.abs().sum(-1) > 0
    assert torch.equal(asked, hidden), (
        f"two places were hidden, but the loss counts {int(asked.sum())}"
    )


def a_mixture():
    torch.manual_seed(0)
    networks = [nn.Linear(6, 6) for _ in range(4)]
    router = torch.randn(6, 4)
    router[:, 0] += 0.5  # the first expert is preferred
    return torch.randn(40, 6) + 0.5, router, networks


@law
def what_no_expert_takes_passes_unchanged(p):
    """A token for which an expert has no room keeps its vector."""
    x, router, networks = a_mixture()
    with torch.no_grad():
        out = p.mixture(x, router, networks, training=True)
        empty = [nn.Linear(6, 6) for _ in networks]
        for network in empty:
            nn.init.zeros_(network.weight), nn.init.zeros_(network.bias)
        same = p.mixture(x, router, empty, training=True)
    lost = int((out.abs().sum(-1) == 0).sum())
    assert close(same, x), f"experts that add nothing change the tokens; {lost} of 40 are zeros"


@law
def a_token_is_computed_alike_in_company(p):
    """At inference, the rest of the batch does not change a token's output."""
    x, router, networks = a_mixture()
    with torch.no_grad():
        together = p.mixture(x, router, networks)
        alone = torch.cat([p.mixture(one[None], router, networks) for one in x])
    changed = int(((together - alone).abs().amax(-1) > 1e-5).sum())
    assert not changed, f"{changed} of 40 tokens come out differently in a batch"


@law
def a_target_is_what_is_still_to_come(p):
    """The target starts at the return asked for, and each reward is subtracted from it."""
    found = p.target_returns(10.0, [1.0, 2.0, 4.0])
    assert found == [10.0, 9.0, 7.0, 3.0], f"with 10 asked for and 1, 2, 4 paid, the targets are {found}"


# ------------------------------------------------------------------------------- how it looks

HALF, SEPARATOR, MASK = 6, 10, 11


def doubled(n, draw):
    """n rows of six letters, a separator, and the six letters again: (n, 13)."""
    first = torch.randint(0, 10, (n, HALF), generator=draw)
    return torch.cat([first, torch.full((n, 1), SEPARATOR), first], 1)


@torch.enable_grad()
def trained(p, causal, updates=300):
    """(a model that writes the second half, or fills gaps; its last loss)"""
    torch.manual_seed(0)
    model, draw = p.Model(), torch.Generator().manual_seed(1)

    def loss():
        ids = doubled(64, draw)
        if causal:
            logits = model(ids[:, :-1])[:, HALF:]
            return torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), ids[:, HALF + 1 :].flatten()
            )
        hidden = torch.rand(ids.shape, generator=draw) < 0.15
        hidden[:, 0] |= ~hidden.any(-1)
        return p.hidden_loss(model(ids.masked_fill(hidden, MASK), causal=False), ids, hidden)

    losses = learn(model, loss, updates, 3e-3, warmup=20, cooldown=2)
    return model.eval(), sum(losses[-10:]) / 10


@functools.cache
def healthy_weights(causal):
    model, loss = trained(descendants, causal)
    return model.state_dict(), loss


def model_of(p, causal, trains):
    """A program's model, with weights of its own training or of the healthy one."""
    if trains:
        return trained(p, causal)
    model = p.Model().eval()
    weights, loss = healthy_weights(causal)
    model.load_state_dict(copy.deepcopy(weights))
    return model, loss


def measure(p, trains):
    """Written copies, filled gaps, experts and a game, in numbers."""
    found = of_writing(p, trains) | of_gaps(p, trains) | of_experts(p)
    found |= {f"asked_{asked}": played(p, asked) for asked in (40, 100)}
    return {name: round(value, 3) for name, value in found.items()}


def rows_to_copy():
    return doubled(40, torch.Generator().manual_seed(2))


@torch.no_grad()
def of_writing(p, trains):
    """The second half of a row, written with the first at hand."""
    test = rows_to_copy()
    model, loss = model_of(p, True, trains)
    targets = [row[HALF + 1 :].tolist() for row in test]
    starts = [row[None, : HALF + 1] for row in test]

    def share(outputs):
        return sum(a == b for a, b in zip(outputs, targets, strict=True)) / len(targets)

    def draft(known, ahead):  # every second guess is wrong
        at = len(known) - HALF - 1
        rest = known[at : at + ahead] if at < HALF else []
        return [(t + 1) % 10 if (at + i) % 2 else t for i, t in enumerate(rest)]

    others = torch.randint(0, 10, (40, 40), generator=torch.Generator().manual_seed(4))
    later = torch.cat([others, test], 1)  # the same, behind 40 other letters
    logits = model(test[:, :-1])[:, HALF:]
    return {
        "loss": loss,
        "right": (logits.argmax(-1) == test[:, HALF + 1 :]).float().mean().item(),
        "written": share([p.write(model, start, HALF) for start in starts]),
        "drafted": share([p.write_with_drafts(model, draft, start, HALF) for start in starts]),
        "later": (model(later[:, :-1])[:, 40 + HALF :].argmax(-1) == test[:, HALF + 1 :])
        .float().mean().item(),
    }


@torch.no_grad()
def of_gaps(p, trains):
    """Letters that are hidden in a row, guessed from all others."""
    test = rows_to_copy()
    gaps, hidden_loss = model_of(p, False, trains)
    hidden = torch.rand(test.shape, generator=torch.Generator().manual_seed(3)) < 0.15
    guessed = gaps(test.masked_fill(hidden, MASK), causal=False).argmax(-1)
    return {
        "hidden_loss": hidden_loss,
        "guessed": (guessed == test)[hidden].float().mean().item(),
    }


@torch.no_grad()
def of_experts(p):
    """How many of 40 tokens differ in a batch at inference, and how many are zeros in training."""
    x, router, networks = a_mixture()
    together = p.mixture(x, router, networks)
    alone = torch.cat([p.mixture(one[None], router, networks) for one in x])
    crowded = p.mixture(x, router, networks, training=True)
    return {
        "in_company": int(((together - alone).abs().amax(-1) > 1e-5).sum()),
        "zeros": int((crowded.abs().sum(-1) == 0).sum()),
    }


@torch.no_grad()
def played(p, asked):
    """The mean of what the recorded Decision Transformer earns with a program's targets."""
    from exercises.own.adopted import Cart
    from transformer_lib.beyond import acting
    from transformer_lib.runs.checkpoint import load_weights
    from transformer_lib.runs.pretrained import results_dir

    model = acting.decision_transformer().eval()
    weights = load_weights(results_dir() / "beyond" / "acting" / "decision.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    totals = []
    for seed in range(5):
        env = Cart(seed)
        states, actions, rewards, ended = [env.reset()], [], [], False
        while not ended:
            t = len(rewards)
            seen = slice(max(0, t + 1 - acting.CONTEXT), t + 1)
            returns = torch.tensor(p.target_returns(float(asked), rewards))[seen] / acting.LIMIT
            logits = model(
                returns[None], torch.stack(states)[seen][None],
                torch.tensor([*actions, 0])[seen][None], torch.arange(t + 1)[seen][None],
            )
            actions.append(int(logits[0, -1].argmax()))
            state, reward, ended = env.step(actions[-1])
            states.append(state), rewards.append(reward)
        totals.append(sum(rewards))
    return sum(totals) / len(totals)


CASES = Catalogue(Case)
case = CASES.add


case(
    "values-turned", "Rotary positions rotate the values, too", "06_positional_encodings",
    ("        q, k = rotary(q, start), rotary(k, start)\n",
     "        q, k, v = (rotary(x, start) for x in (q, k, v))\n"),
    looks="Loss {loss:.2f} (healthy: {healthy[loss]:.2f}), and {written:.0%} of the copies are right. "
          "But with 40 other letters in front, {later:.0%} of the copied letters are right (healthy: "
          "{healthy[later]:.0%}).",
    why="With queries and keys rotated, a score depends only on the distance between two tokens. A "
        "rotated value still carries its own place, so the output depends on places that training "
        "never saw. (The healthy model gets worse there, too; the bug adds to it.)",
    hides="As long as no text is longer than those in training.",
    law="only_distances_count", trains=True,
    confused_with=("cache-at-place-zero", "draft-not-cropped", "visible-tokens-learned"),
)
case(
    "cache-at-place-zero", "With the cache, every new token is rotated as if it were the first",
    "20_decoder_only",
    ("            x = x + attention(self.norms[2 * i](x), start, caches and caches[i], causal)\n",
     "            x = x + attention(self.norms[2 * i](x), 0, caches and caches[i], causal)\n"),
    looks="Reading the whole text at once, the model has a loss of {loss:.2f} and gets {right:.0%} "
    "of the letters right, like the healthy one. Writing token by token, it gets {written:.0%} of the copies "
    "right (healthy: "
          "{healthy[written]:.0%}).",
    why="The prompt's keys were rotated for their own places. A new token that's rotated for place 0 "
        "has the wrong distance to all of them.",
    hides="Until somebody writes with the cache, since training doesn't use one.",
    law="the_cache_changes_nothing",
    confused_with=("values-turned", "draft-not-cropped", "experts-in-company"),
)
case(
    "draft-not-cropped", "The cache keeps the rejected guesses", "speculative",
    ("        crop(caches, read)  # the rejected guesses must not be read\n", ""),
    looks="Without drafts, {written:.0%} of the copies are right. With drafts, which should change "
          "nothing, {drafted:.0%} are (healthy: {healthy[drafted]:.0%}).",
    why="The pass that checks a draft puts the keys and values of all its guesses into the "
    "cache. The "
        "rejected ones are still read, and whatever follows ends up too far to the right.",
    hides="While the drafts are right, since nothing is rejected then.",
    law="drafts_change_nothing",
    confused_with=("cache-at-place-zero", "values-turned", "experts-in-company"),
)
case(
    "visible-tokens-learned", "BERT's loss counts the tokens that it can see", "19_encoder_only",
    ("    return F.cross_entropy(logits[hidden], ids[hidden])\n",
     "    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())\n"),
    looks="The loss for filling gaps is {hidden_loss:.2f} (healthy: {healthy[hidden_loss]:.2f}), "
    "and "
          "{guessed:.0%} of the gaps are filled correctly (healthy: {healthy[guessed]:.0%}).",
    why="Most tokens can be seen, and repeating them is easy. They make up most of the mean, so "
    "it's "
        "low however hard the gaps are. The gaps themselves are filled about as well as by the "
        "healthy model: "
        "with one training run each, the difference is too small to count.",
    hides="For good, if you only watch the loss, because it looks better than it should.",
    law="only_what_is_hidden_is_learned", trains=True,
    confused_with=("values-turned", "cache-at-place-zero", "experts-lose-tokens"),
)
case(
    "experts-lose-tokens", "A token that no expert takes becomes zero", "experts",
    ("    out = x.clone()\n", "    out = torch.zeros_like(x)\n"),
    looks="In a training batch of 40 tokens, {zeros} leave the layer as zeros (healthy: "
          "{healthy[zeros]}).",
    why="An expert takes only so many tokens. The residual connection has to carry the others, and "
        "this line cuts it.",
    hides="While the router is balanced, since no token is turned away then.",
    law="what_no_expert_takes_passes_unchanged",
    confused_with=("experts-in-company", "visible-tokens-learned", "wish-counts-up"),
)
case(
    "experts-in-company", "Experts turn tokens away at inference, too", "experts",
    ("    capacity = math.ceil(factor * len(x) / len(networks)) if training else len(x)\n",
     "    capacity = math.ceil(factor * len(x) / len(networks))\n"),
    looks="At inference, {in_company} of 40 tokens get a different output in a batch than on "
          "their own (healthy: {healthy[in_company]}).",
    why="A capacity is a limit for a whole batch, so at inference it makes a token's vector "
    "depend on "
        "what else is in the batch.",
    hides="While tokens come one at a time, because every expert has room then.",
    law="a_token_is_computed_alike_in_company",
    confused_with=("experts-lose-tokens", "cache-at-place-zero", "draft-not-cropped"),
)
case(
    "wish-counts-up", "The target return counts up what has been earned", "25_acting",
    ("    return [asked - sum(rewards[:t]) for t in range(len(rewards) + 1)]\n",
     "    return [sum(rewards[:t]) for t in range(len(rewards) + 1)]\n"),
    looks="The recorded Decision Transformer, asked for 40, earns {asked_40:.0f}, and asked for "
          "100, {asked_100:.0f} (healthy: {healthy[asked_40]:.0f} and {healthy[asked_100]:.0f}).",
    why="The model has learned what the return still to come looks like. If you give it what has "
    "been "
        "earned instead, that number grows with every step, and never says what you asked for.",
    hides="In training, where the model doesn't act, so nobody asks for a return.",
    law="a_target_is_what_is_still_to_come",
    confused_with=("values-turned", "visible-tokens-learned", "experts-in-company"),
)

WING = Wing("Descendants", descendants, LAWS, CASES, measure)
