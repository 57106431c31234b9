"""Record what the chapter on the encoder says about looking both ways: `make record ONLY=one_way`.

A small translator from German is trained on short captions of Multi30k, with an encoder that looks
both ways and with one under a causal mask; the decoder may read every row of either. Kept are loss,
BLEU and chrF on validation captions, at three numbers of updates. Resumable; about ten minutes on
one core. Needs Multi30k.
"""

import functools

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import RESULTS, cell
from transformer_lib import ModelConfig, Transformer
from transformer_lib.batching import pad
from transformer_lib.data import load_parallel
from transformer_lib.decoding import evaluating
from transformer_lib.evaluation import score
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.tokenization import encode_pairs, train_tokenizer

UNIGRAM = 6.0  # nats per piece of captions, at 2,000 pieces

OUT = RESULTS / "one_way.json"
PAGE = "09_encoder"
GATE = Gate(
    chance=UNIGRAM, arms=("encoder",), edge={"rate": (0.003, None)},
    missing={"rate above": "a learning rate above 0.003 wasn't tried"},
)
PAIRS, PIECES, VOCABULARY, BATCH = 8000, 16, 2000, 64
LOOKS = (500, 1000)  # updates
WARM_UP = 100


@functools.cache
def captions():
    """The tokenizer; ids of the short captions to train on and to validate on; their English."""
    data = load_parallel("multi30k")
    tokenizer = train_tokenizer([text for pair in data["train"] for text in pair], VOCABULARY)
    found = []
    for split, count in (("train", PAIRS), ("validation", 300)):
        src, tgt = encode_pairs(tokenizer, data[split])
        rows = [i for i in range(len(src)) if max(len(src[i]), len(tgt[i])) <= PIECES][:count]
        texts = [data[split][i][1] for i in rows]
        found.append(([src[i] for i in rows], [tgt[i] for i in rows], texts))
    return tokenizer, *found


def read(model, src, encoder: str):
    """The memory (B, S, D), and the mask with which the decoder reads it: padding only."""
    real = padding_mask(src, 0)  # (B, 1, 1, S)
    mask = real & causal_mask(src.size(1)) if encoder == "causal" else real
    return model.encode(src, mask), real


def loss_of(model, src, tgt, encoder: str):
    memory, real = read(model, src, encoder)
    logits = model.project(model.decode(tgt[:, :-1], memory, real))
    return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=0)


@torch.no_grad()
def judged(model, encoder: str) -> dict:
    """Loss, BLEU and chrF of greedy translations, on the validation captions."""
    tokenizer, _, (sources, targets, texts) = captions()
    src, tgt = pad(sources), pad(targets)
    with evaluating(model):
        loss = loss_of(model, src, tgt, encoder).item()
        memory, real = read(model, src, encoder)
        ids = torch.ones(len(src), 1, dtype=torch.long)
        for _ in range(PIECES + 4):
            logits = model.project(model.decode(ids, memory, real)[:, -1])
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    rows = [row[1:].tolist() for row in ids]
    rows = [row[: row.index(2)] if 2 in row else row for row in rows]
    found = score(tokenizer.decode_batch(rows), texts)
    return {"loss": loss, "bleu": found.bleu, "chrf": found.chrf}


def translating(encoder: str, layers: int, rate: float, seed: int) -> dict:
    """layers: of the encoder; the decoder has two."""
    _, (sources, targets, _), _ = captions()
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(VOCABULARY, 64, 4, 128, layers, 2, dropout=0.1))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    found = []
    for update in range(1, LOOKS[-1] + 1):
        optimizer.param_groups[0]["lr"] = rate * min(update / WARM_UP, (WARM_UP / update) ** 0.5)
        rows = torch.randint(len(sources), (BATCH,)).tolist()
        src, tgt = pad([sources[i] for i in rows]), pad([targets[i] for i in rows])
        loss = loss_of(model, src, tgt, encoder)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update in LOOKS:
            state = torch.get_rng_state()
            found.append(judged(model, encoder))
            torch.set_rng_state(state)
    return {"updates": LOOKS} | {name: [f[name] for f in found] for name in found[0]}


def grid():
    """Seed 0 of the main setting first, then its other seeds, then what lies beyond it."""
    settings = [(2, 0.003, seed) for seed in range(3)]
    settings += [(2, 0.001, 0)]
    return [
        cell("one way", translating, encoder=encoder, layers=layers, rate=rate, seed=seed)
        for layers, rate, seed in settings for encoder in ("both ways", "causal")
    ]
