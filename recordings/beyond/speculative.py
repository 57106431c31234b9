"""What guesses gain, and what they cost: the long translator checks, others guess.

    make record ONLY=speculative

The short recipe's translator guesses, or a table of what most often follows in the training
captions, or of what follows in an older translation of the same sentence: the short translator's,
or a human's. Every sentence is translated both ways, one after the other, and the processor's time
is counted. A table gains so little that this is done several times, each way first in turn. Five
minutes on one core.
"""

import functools
import time
from statistics import median

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib import load_pretrained
from transformer_lib.beyond.speculative import (
    KeepByChance,
    ModelDraft,
    TableDraft,
    all_logits,
    keep_likeliest,
    roll_back,
    speculative_decode,
)
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.tokenization import encode_pairs, encode_target

OUT = ROOT / "results" / "beyond" / "speculative.json"
PAGE = "speculative"
AHEAD = (1, 2, 3, 4, 8)
GATE = Gate(edge={"ahead": (1, 4)})  # nothing is trained
SENTENCES = 30  # the first of the validation set
ROUNDS = {"short": 1, "table 1": 3, "table 3": 3, "old 3": 3, "human 3": 3}


@functools.cache
def bench():
    """The two translators, the sources for each, the pieces, and the training captions."""
    long, short = load_pretrained("multi30k-de-en"), load_pretrained("multi30k-de-en-short")
    pairs = load_parallel("multi30k", "de", "en")
    sources = [encode_pairs(t.tokenizer, pairs["validation"][:SENTENCES])[0] for t in (long, short)]
    captions = encode_target(long.tokenizer, [english for _, english in pairs["train"]])
    return long, short, [[torch.tensor([ids]) for ids in side] for side in sources], captions


def pieces_of(long, short) -> list[list[int]]:
    """For each token of the long translator its pieces in the short one's vocabulary."""
    known = short.tokenizer.get_vocab()
    words = sorted(long.tokenizer.get_vocab(), key=long.tokenizer.get_vocab().get)
    return [
        [known[word]] if word in known else [t.id for t in short.tokenizer.model.tokenize(word)]
        for word in words
    ]


@functools.cache
def table(order: int) -> TableDraft:
    return TableDraft(bench()[-1], order)


@functools.cache
def old_translations(by: str) -> list[list[int]]:
    """A translation of each source that was there before, in the long translator's tokens.

    by: "old", the short translator's; "human", the corpus's own.
    """
    long, short, (_, others), _ = bench()
    if by == "human":
        pairs = load_parallel("multi30k", "de", "en")["validation"][:SENTENCES]
        return encode_target(long.tokenizer, [english for _, english in pairs])
    found = [greedy_decode(short.model, other)[0].tolist() for other in others]
    return encode_target(long.tokenizer, [short.tokenizer.decode(ids) for ids in found])


def clock(function, *arguments):
    began = time.process_time()
    return function(*arguments), time.process_time() - began


def guessed(draft: str, ahead: int, by: str) -> dict:
    """Tokens a pass, share of sentences that stay the same, and the time, greedy's being 1."""
    long, short, (sources, others), _ = bench()
    pieces, generator = pieces_of(long, short), torch.Generator().manual_seed(0)
    same = passes = tokens = rare = 0
    ratios, totals = [], []

    def run(src, other, old):
        drawn = generator if by == "chance" else None
        guesser = (
            ModelDraft(short.model, other, pieces, drawn) if draft == "short"
            else TableDraft([old], order) if old
            else table(order)
        )
        keep = KeepByChance(generator) if by == "chance" else keep_likeliest
        return speculative_decode(long.model, guesser, src, ahead, keep)

    order = 0 if draft == "short" else int(draft.split()[1])
    if draft.startswith("table"):
        table(order)  # counted before the clock runs
    by_whom = draft.split()[0]
    olds = old_translations(by_whom) if by_whom in ("old", "human") else [None] * len(sources)
    for turn in range(ROUNDS[draft]):
        total = [0.0, 0.0]
        for src, other, old in zip(sources, others, olds, strict=True):
            if turn % 2:
                found, after = clock(run, src, other, old)
                plain, before = clock(greedy_decode, long.model, src)
            else:
                plain, before = clock(greedy_decode, long.model, src)
                found, after = clock(run, src, other, old)
            ids = plain[0].tolist()
            same += found.ids == ids
            # A sampled sentence has a length of its own: time a token.
            before, after = before / len(ids), after / len(found.ids)
            ratios.append(before / after)
            total = [total[0] + before, total[1] + after]
            passes, tokens = passes + len(found.kept), tokens + len(found.ids)
            rare += sum(token >= 5000 for token in found.ids)
        totals.append(total)
    plain, helped = map(sum, zip(*totals, strict=True))
    return {
        "same": same / len(ratios), "tokens_a_pass": tokens / passes, "rare": rare / tokens,
        "speed": plain / helped, "median_speed": median(ratios),
    } | ({"rounds": [a / b for a, b in totals]} if len(totals) > 1 else {})


@torch.inference_mode()
def cost(ahead: int) -> dict:
    """A guess of the short translator and a pass over `ahead` guesses, in steps of the long one."""
    long, short, (sources, others), _ = bench()

    def seconds(model, src, n):
        _, state = model.start(src, 1)
        all_logits(model, torch.tensor([[1, 5, 6, 7, 8, 9]]), state)
        best = []
        for _ in range(25):
            _, spent = clock(all_logits, model, torch.tensor([[10] * n]), state)
            roll_back(state, 6)
            best.append(spent)
        return median(best)

    rows = []
    for src, other in list(zip(sources, others, strict=True))[:8]:
        step = seconds(long.model, src, 1)
        rows.append((seconds(short.model, other, 1) / step,
                     seconds(long.model, src, ahead + 1) / step))
    guess, check = (median(row[i] for row in rows) for i in (0, 1))
    return {"guess": guess, "check": check}


def batches() -> dict:
    """Sixty sentences at once, with no guesses: tokens a second, one sentence's being 1."""
    long, _, (sources, _), _ = bench()
    from transformer_lib.batching import pad

    rows = [src[0].tolist() for src in sources]
    one = sum(clock(greedy_decode, long.model, src)[1] for src in sources)
    many = clock(greedy_decode, long.model, pad(rows * 2))[1]
    return {"speed": one / len(rows) * 2 * len(rows) / many, "sentences": 2 * len(rows)}


def making() -> dict:
    """A token of an old translation, made sixty sentences at once, in steps of the long one."""
    long, short, (sources, others), _ = bench()
    from transformer_lib.batching import pad

    step = tokens = 0
    for src in sources:
        ids, seconds = clock(greedy_decode, long.model, src)
        step, tokens = step + seconds, tokens + ids.size(1)
    rows = [other[0].tolist() for other in others] * 2
    ids, seconds = clock(greedy_decode, short.model, pad(rows))
    return {"guess": seconds / int((ids > 0).sum()) / (step / tokens), "sentences": len(rows)}


def grid():
    """(settings, function) of every cell."""
    return [
        *(cell("cost", cost, ahead=ahead) for ahead in AHEAD),
        *(cell("short", guessed, draft="short", ahead=ahead, by="greedy") for ahead in (0, *AHEAD)),
        *(cell("table", guessed, draft=f"table {order}", ahead=ahead, by="greedy")
          for order, ahead in ((3, 1), (3, 2), (3, 4), (1, 1))),
        *(cell("chance", guessed, draft="short", ahead=ahead, by="chance") for ahead in (1, 4)),
        cell("batch", batches),
        *(cell("old", guessed, draft="old 3", ahead=ahead, by="greedy") for ahead in AHEAD),
        *(cell("old", guessed, draft="human 3", ahead=ahead, by="greedy") for ahead in (1, 2, 4)),
        cell("made", making),
    ]
