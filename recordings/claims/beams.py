"""Record what the chapter on decoding claims about wider beams: `make record ONLY=beams`.

For each translator that comes with the book, each set of sentences and each length penalty: what a
wider beam writes, and what the model and BLEU say of that. Part wide has a beam twice the page's
widest, on the validation set. The experiment is the one that the page prints, in its cells tagged
`recorded`. Resumable; about a quarter of an hour on one core. Needs Multi30k.
"""

import functools
from types import SimpleNamespace

import torch

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import decoding, fast, load_pretrained
from transformer_lib.config import EOS
from transformer_lib.data import load_parallel
from transformer_lib.evaluation import paired_bootstrap

OUT = RESULTS / "beams.json"
PAGE = "15_decoding"
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(  # it trains nothing; the best length penalty lies between 0.5 and 1.5
    edge={"alpha": (0.5, 1.5), "beam": (None, 15), "translator": {"multi30k-de-en-short"}},
    ends=("beam below",),
)

TRANSLATORS = ("multi30k-de-en", "multi30k-de-en-short", "multi30k-en-de")
SETS = ("validation", "test")
EXPONENTS = (1.0, 0.0, 0.5, 1.5, 2.0, 2.5)  # length penalties; 1 is what the others are held to
WIDTHS = (1, 2, 5, 15)  # beams, where the length penalty is 0 or 1
WIDER = 30
BEAM = 5  # of the other length penalties, and what the other widths are held to
SENTENCES = 500  # the first of each set
FIRST = 20  # of them, translated greedily


@functools.cache
def bench(translator: str, sentences: str):
    """The page's workbench, the model to search with, and the pairs."""
    loaded = load_pretrained(translator)
    source, target = translator.split("-")[1:3]
    pairs = load_parallel("multi30k", source, target)[sentences][:SENTENCES]
    tools = page.workbench(loaded.model, loaded.tokenizer, pairs)
    return tools, fast.for_decoding(loaded.model), loaded.tokenizer, pairs


@functools.cache
def written(translator: str, sentences: str, alpha: float, width: int) -> list[list[int]]:
    (decode_all, *_), model, *_ = bench(translator, sentences)
    return decode_all(lambda src: decoding.beam_search(model, src, width, None, alpha)[0])


def difference(translator, sentences, a, b) -> list[float]:
    """BLEU of a minus that of b, each (length penalty, width), and its 95 % interval."""
    *_, tokenizer, pairs = bench(translator, sentences)
    texts = [tokenizer.decode_batch(written(translator, sentences, *it)) for it in (a, b)]
    found = paired_bootstrap(*texts, [reference for _, reference in pairs])
    return [found.delta, found.low, found.high]


def empty_wins(translator, sentences) -> list[float]:
    """Where the empty translation is likelier than what a beam found: short and long sources."""
    (_, log_probability, _), _, tokenizer, pairs = bench(translator, sentences)
    empty = log_probability([[EOS]] * len(pairs))
    wins = empty > log_probability(written(translator, sentences, 0.0, BEAM))
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0].split()))
    half = len(order) // 2
    return [wins[part].float().mean().item() for part in (order[:half], order[half:])]


def first(translator: str, sentences: str, alpha: float) -> float:
    """The mean log-probability of the first translations, greedy."""
    _, model, tokenizer, pairs = bench(translator, sentences)
    decode_all, log_probability, _ = page.workbench(
        load_pretrained(translator).model, tokenizer, pairs[:FIRST]
    )
    found = decode_all(lambda src: decoding.beam_search(model, src, 1)[0])
    return log_probability(found).mean().item()


@torch.no_grad()
def searching(translator: str, sentences: str, alpha: float) -> dict:
    (_, log_probability, bleu), _, tokenizer, pairs = bench(translator, sentences)
    widths = WIDTHS if alpha in (0.0, 1.0) else (BEAM,)
    found = {width: written(translator, sentences, alpha, width) for width in widths}
    at_beam = tokenizer.decode_batch(written(translator, sentences, alpha, BEAM))
    said, wanted = (
        sum(len(text.split()) for text in texts) for texts in (at_beam, [b for _, b in pairs])
    )
    against_beam = [
        difference(translator, sentences, (alpha, width), (alpha, BEAM)) for width in widths
    ]
    result = {
        "first": first(translator, sentences, alpha),
        "widths": widths,
        "log_probability": [log_probability(ids).mean().item() for ids in found.values()],
        "tokens": [sum(map(len, ids)) / len(pairs) for ids in found.values()],
        "bleu": [bleu(ids) for ids in found.values()],
        "against_beam": against_beam,
        "against_1": difference(translator, sentences, (alpha, BEAM), (1.0, BEAM)),
        "words": 100 * said / wanted,
    }
    return result | ({"empty": empty_wins(translator, sentences)} if alpha == 0 else {})


@torch.no_grad()
def wide(translator: str, sentences: str, alpha: float, beam: int) -> dict:
    """A beam wider than the page's: what it writes, against one of 5."""
    (_, log_probability, bleu), *_, pairs = bench(translator, sentences)
    ids = written(translator, sentences, alpha, beam)
    return {
        "log_probability": log_probability(ids).mean().item(),
        "tokens": sum(map(len, ids)) / len(pairs),
        "bleu": bleu(ids),
        "against_beam": difference(translator, sentences, (alpha, beam), (alpha, BEAM)),
    }


def grid():
    """(settings, function) of every cell."""
    return [
        cell("beams", searching, translator=translator, sentences=sentences, alpha=alpha)
        for translator in TRANSLATORS for sentences in SETS for alpha in EXPONENTS
    ] + [
        cell("wide", wide, translator=translator, sentences=SETS[0], alpha=alpha, beam=WIDER)
        for translator in TRANSLATORS for alpha in (1.0, 0.0)
    ]
