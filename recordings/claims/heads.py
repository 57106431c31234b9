"""Record what the chapter on looking inside claims: `make record ONLY=heads`.

Parts, all by default: whole (none removed), alone (each head removed), attention (its four heads),
pair (every two heads of a decoder attention). Damage is the rise in the loss of the reference, in
nats per token, on validation pairs that the page does not use, with a 95 % interval over these
pairs. For whole, alone and attention also how many greedy translations repeat a pair of words.
The same for the two other translators that come with the book, which had other seeds, sizes or
directions. Resumable; five minutes on one core. Needs Multi30k.
"""

import functools
import itertools
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import load_pretrained
from transformer_lib.batching import TokenBatchSampler, pad
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.tokenization import encode_pairs, encode_source

OUT = RESULTS / "heads.json"
PAGE = "18_looking_inside"
page = SimpleNamespace(**page_code(PAGE))
BOOK, OTHERS = "multi30k-de-en", ("multi30k-de-en-short", "multi30k-en-de")
GATE = Gate(edge={"translator": {*OTHERS}})  # it trains nothing

FIRST, COUNT = 400, 250  # of the validation pairs; the page takes those before
TEXTS = 150  # of them, to be translated
DRAWS = 1000
HEADS = 4


def attentions(encoder_layers: int, decoder_layers: int) -> list[str]:
    """Their names in a model of so many layers."""
    kinds = (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    return [
        f"{part}.layers.{layer}.{kind}_attention"
        for part, kind in kinds
        for layer in range(encoder_layers if part == "encoder" else decoder_layers)
    ]


ATTENTIONS = attentions(4, 4)
OF_TRANSLATOR = {BOOK: ATTENTIONS, OTHERS[0]: attentions(3, 2), OTHERS[1]: ATTENTIONS}


@functools.cache
def task(name: str):
    """A translator, its batches (positions of the pairs, source, target), tokenizer and sources."""
    translator = load_pretrained(name)
    pairs = load_parallel("multi30k", *name.split("-")[1:3])["validation"][FIRST : FIRST + COUNT]
    src, tgt = encode_pairs(translator.tokenizer, pairs)
    sizes = [(len(s), len(t)) for s, t in zip(src, tgt, strict=True)]
    batches = TokenBatchSampler(sizes, 2048, shuffle=False).batches()
    padded = [(b, pad([src[i] for i in b]), pad([tgt[i] for i in b])) for b in batches]
    return translator.model, padded, translator.tokenizer, [source for source, _ in pairs]


@functools.cache
def losses(removed: tuple, translator: str) -> torch.Tensor:
    """(COUNT, 2): the summed loss of each pair, and its tokens."""
    model, batches, *_ = task(translator)
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
def damage(removed: tuple, translator: str) -> torch.Tensor:
    """(1 + DRAWS,): the rise of the loss, of all pairs and of each draw."""
    summed, whole = (draws() @ losses(heads, translator) for heads in (removed, ()))
    return summed[:, 0] / summed[:, 1] - whole[:, 0] / whole[:, 1]


def told(values: torch.Tensor) -> list[float]:
    """The value of all pairs, and the ends of its 95 % interval."""
    ends = values[1:].quantile(torch.tensor([0.025, 0.975])).tolist()
    return [values[0].item(), *ends]


def together(removed: tuple, translator: str = BOOK) -> dict:
    """Damage of several heads at once, beside that of each alone."""
    joint = damage(removed, translator)
    single = torch.stack([damage((one,), translator) for one in removed])
    worst = single[single[:, 0].argmax()]
    return {
        "damage": told(joint),
        "sum": single.sum(0)[0].item(),
        "largest": worst[0].item(),
        "less_sum": told(joint - single.sum(0)),
        "less_largest": told(joint - worst),
    }


def written(removed: tuple, translator: str) -> dict:
    """What some captions become, greedily."""
    model, _, tokenizer, captions = task(translator)
    sources, texts = sorted(encode_source(tokenizer, captions[:TEXTS]), key=len), []
    with torch.inference_mode(), page.without_heads(model, removed):
        for start in range(0, TEXTS, 50):
            ids = greedy_decode(model, pad(sources[start : start + 50]), max_len=60)
            texts += tokenizer.decode_batch([[i for i in row if i] for row in ids.tolist()])
    words = sum(len(text.split()) for text in texts)
    return {"texts": TEXTS, "repeats": page.repeats(texts), "words": words}


def whole(translator: str = BOOK) -> dict:
    return written((), translator)


def alone(name: str, head: int, translator: str = BOOK) -> dict:
    removed = ((name, head),)
    return {"damage": told(damage(removed, translator)), **written(removed, translator)}


def group(name: str, heads: list, translator: str = BOOK) -> dict:
    return together(tuple((name, head) for head in heads), translator)


def attention(name: str, heads: list, translator: str = BOOK) -> dict:
    removed = tuple((name, head) for head in heads)
    return {**group(name, heads, translator), **written(removed, translator)}


def grid():
    """(settings, function) of every cell; `translator` is missing where it is the book's."""
    for translator, names in OF_TRANSLATOR.items():
        of = {} if translator == BOOK else {"translator": translator}
        yield cell("whole", whole, **of)
        for name, head in itertools.product(names, range(HEADS)):
            yield cell("alone", alone, name=name, head=head, **of)
        for name in names:
            yield cell("attention", attention, name=name, heads=[*range(HEADS)], **of)
        of_decoder = [name for name in names if name.startswith("decoder")]
        for name in reversed(of_decoder):
            for two in itertools.combinations(range(HEADS), 2):
                yield cell("pair", group, name=name, heads=list(two), **of)
