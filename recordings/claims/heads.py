"""Record what the chapter on looking inside claims: `make record ONLY=heads`.

Parts, all by default: whole (none removed), alone (each head removed), attention (all four of it),
pair (each two of an attention of the decoder). Damage is the rise of the loss of the reference, in
nats per token, on validation pairs that the page does not use, with a 95 % interval over these
pairs. For whole, alone and attention also how many greedy translations repeat a pair of words.
Resumable; under ten minutes on one core. Needs Multi30k.
"""

import functools
import itertools
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from recordings.record import RESULTS, cell, page_code
from transformer_lib import load_pretrained
from transformer_lib.batching import TokenBatchSampler, pad
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.tokenization import encode_pairs, encode_source

OUT = RESULTS / "heads.json"
PAGE = "18_looking_inside"
page = SimpleNamespace(**page_code(PAGE))

FIRST, COUNT = 400, 250  # of the validation pairs; the page takes those before
TEXTS = 150  # of them, to be translated
DRAWS = 1000
HEADS = 4
ATTENTIONS = [
    f"{part}.layers.{layer}.{kind}_attention"
    for part, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    for layer in range(4)
]
EVERY = [(name, head) for name in ATTENTIONS for head in range(HEADS)]


@functools.cache
def task():
    """The model, its batches (positions of the pairs, source, target), tokenizer and German."""
    translator = load_pretrained("multi30k-de-en")
    pairs = load_parallel("multi30k")["validation"][FIRST : FIRST + COUNT]
    src, tgt = encode_pairs(translator.tokenizer, pairs)
    sizes = [(len(s), len(t)) for s, t in zip(src, tgt, strict=True)]
    batches = TokenBatchSampler(sizes, 2048, shuffle=False).batches()
    padded = [(b, pad([src[i] for i in b]), pad([tgt[i] for i in b])) for b in batches]
    return translator.model, padded, translator.tokenizer, [german for german, _ in pairs]


@functools.cache
def losses(removed: tuple) -> torch.Tensor:
    """(COUNT, 2): the summed loss of each pair, and its tokens."""
    model, batches, *_ = task()
    found = torch.zeros(COUNT, 2)
    with torch.inference_mode(), page.without_heads(model, removed):
        for rows, src, tgt in batches:
            wanted = tgt[:, 1:]  # (B, T)
            each = F.cross_entropy(
                model(src, tgt[:, :-1]).mT, wanted, ignore_index=0, reduction="none"
            )
            found[rows] = torch.stack([each.sum(1), (wanted != 0).sum(1).float()], dim=1)
    return found


@functools.cache
def draws() -> torch.Tensor:
    """(1 + DRAWS, COUNT): how often each pair counts; first each of them once."""
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randint(COUNT, (DRAWS, COUNT), generator=generator)
    times = F.one_hot(chosen, COUNT).sum(1)
    return torch.cat([torch.ones(1, COUNT), times.float()])


@functools.cache
def damage(removed: tuple) -> torch.Tensor:
    """(1 + DRAWS,): the rise of the loss, of all pairs and of each draw."""
    summed, whole = (draws() @ losses(heads) for heads in (removed, ()))
    return summed[:, 0] / summed[:, 1] - whole[:, 0] / whole[:, 1]


def told(values: torch.Tensor) -> list[float]:
    """The value of all pairs, and the ends of its 95 % interval."""
    ends = values[1:].quantile(torch.tensor([0.025, 0.975])).tolist()
    return [values[0].item(), *ends]


def together(removed: tuple) -> dict:
    """Damage of several heads at once, beside that of each alone."""
    joint, single = damage(removed), torch.stack([damage((one,)) for one in removed])
    worst = single[single[:, 0].argmax()]
    return {
        "damage": told(joint),
        "sum": single.sum(0)[0].item(),
        "largest": worst[0].item(),
        "less_sum": told(joint - single.sum(0)),
        "less_largest": told(joint - worst),
    }


def written(removed: tuple) -> dict:
    """What some captions become, greedily."""
    model, _, tokenizer, german = task()
    sources, texts = sorted(encode_source(tokenizer, german[:TEXTS]), key=len), []
    with torch.inference_mode(), page.without_heads(model, removed):
        for start in range(0, TEXTS, 50):
            ids = greedy_decode(model, pad(sources[start : start + 50]), max_len=60)
            texts += tokenizer.decode_batch([[i for i in row if i] for row in ids.tolist()])
    words = sum(len(text.split()) for text in texts)
    return {"texts": TEXTS, "repeats": page.repeats(texts), "words": words}


def whole() -> dict:
    return written(())


def alone(name: str, head: int) -> dict:
    return {"damage": told(damage(((name, head),))), **written(((name, head),))}


def group(name: str, heads: list) -> dict:
    return together(tuple((name, head) for head in heads))


def attention(name: str, heads: list) -> dict:
    return {**group(name, heads), **written(tuple((name, head) for head in heads))}


def grid():
    """(settings, function) of every cell."""
    cells = [cell("whole", whole)]
    cells += [cell("alone", alone, name=name, head=head) for name, head in EVERY]
    cells += [cell("attention", attention, name=name, heads=[*range(HEADS)]) for name in ATTENTIONS]
    cells += [
        cell("pair", group, name=name, heads=list(two))
        for name in ATTENTIONS[:3:-1] for two in itertools.combinations(range(HEADS), 2)
    ]
    return cells
