"""The healthy program of the descendants wing: what came after the Transformer, in miniature.

A decoder-only model with rotary positions and a cache, drafts that are checked in one pass, the
loss of a masked model, a mixture of experts, and the target return of a Decision Transformer.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def rotary(x, start):
    """Turn the pairs of x (B, H, T, K), whose first token is at place `start`."""
    place = torch.arange(start, start + x.size(-2))[:, None]  # (T, 1)
    angle = place * 10000.0 ** (-torch.arange(0, x.size(-1), 2) / x.size(-1))  # (T, K / 2)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_qkv, self.w_o = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, start=0, cache=None, causal=True):
        """x (B, T, D), the first token at place `start` -> (B, T, D)."""
        q, k, v = self.w_qkv(x).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = rotary(q, start), rotary(k, start)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, S)
        if causal:
            T, S = scores.shape[-2:]
            shown = torch.ones(T, S, dtype=torch.bool).tril(S - T)
            scores = scores.masked_fill(~shown, -math.inf)
        return self.w_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, vocab_size=12, d_model=32, n_heads=2, n_layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.attentions = nn.ModuleList([Attention(d_model, n_heads) for _ in range(n_layers)])
        self.networks = nn.ModuleList([
            nn.Sequential(nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model))
            for _ in range(n_layers)
        ])
        self.norms = nn.ModuleList([nn.RMSNorm(d_model) for _ in range(2 * n_layers + 1)])
        self.output = nn.Linear(d_model, vocab_size)

    def forward(self, ids, caches=None, causal=True):
        """ids (B, T), with caches only the new ones -> logits (B, T, V)."""
        start = caches[0]["k"].size(2) if caches and caches[0] else 0
        x = self.embed(ids)
        for i, (attention, network) in enumerate(zip(self.attentions, self.networks)):  # noqa: B905
            x = x + attention(self.norms[2 * i](x), start, caches and caches[i], causal)
            x = x + network(self.norms[2 * i + 1](x))
        return self.output(self.norms[-1](x))


# ----------------------------------------------------------------------------------------- writing


@torch.no_grad()
def write(model, ids, n):
    """Continue ids (1, T) with n tokens, the likeliest at each step: a list."""
    caches, found = [{} for _ in model.attentions], []
    for _ in range(n):
        token = model(ids, caches)[0, -1].argmax()
        found.append(int(token))
        ids = token.view(1, 1)
    return found


@torch.no_grad()
def write_with_drafts(model, propose, ids, n, ahead=3):
    """Like `write`. propose(tokens, ahead) guesses the next ones, and one pass checks them all."""
    caches, known, read = [{} for _ in model.attentions], ids[0].tolist(), 0
    wanted = len(known) + n
    while len(known) < wanted:
        guesses = propose(known, ahead)
        logits = model(torch.tensor([known[read:] + guesses]), caches)[0]
        choices = logits[len(known) - read - 1 :].argmax(-1).tolist()  # after each guess
        good = 0
        while good < len(guesses) and guesses[good] == choices[good]:
            good += 1
        known = known + guesses[:good] + [choices[good]]
        read = len(known) - 1
        crop(caches, read)  # the rejected guesses must not be read
    return known[wanted - n : wanted]


def crop(caches, length):
    """Keep the first `length` tokens."""
    for cache in caches:
        cache["k"], cache["v"] = cache["k"][:, :, :length], cache["v"][:, :, :length]


# ------------------------------------------------------------------------- a model that fills gaps


def hidden_loss(logits, ids, hidden):
    """Cross-entropy at the hidden places: logits (B, T, V), ids (B, T), hidden (B, T) bool."""
    return F.cross_entropy(logits[hidden], ids[hidden])


# ----------------------------------------------------------------------------------------- experts


def mixture(x, router, networks, training=False, factor=1.25):
    """x (N, D): each token goes through the expert that its router prefers, with a residual.

    In training an expert takes `factor` times its share at most; tokens above that pass unchanged.
    """
    capacity = math.ceil(factor * len(x) / len(networks)) if training else len(x)
    share, chosen = (x @ router).softmax(-1).max(-1)
    out = x.clone()
    for i, network in enumerate(networks):
        mine = (chosen == i).nonzero().flatten()[:capacity]
        out[mine] = x[mine] + share[mine, None] * network(x[mine])
    return out


# ------------------------------------------------------------------------------------------ acting


def target_returns(asked, rewards):
    """What is still to be earned before each step, the next included: len(rewards) + 1 numbers."""
    return [asked - sum(rewards[:t]) for t in range(len(rewards) + 1)]
