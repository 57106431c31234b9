"""Checks for chapter 15, decoding."""

import torch

from exercises.checks import Part, exercise, expect, judged, values
from transformer_lib.config import ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.models.transformer import Transformer


def _count_positions():
    """The rows that a decoder layer really computes while 50 tokens are written."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(12, 8, 2, 8, 1, 1, dropout=0.0)).eval()
    model.output.weight.data[2] = 0.0  # <eos> never comes first
    rows, found = [], {}
    model.decoder.layers[0].feed_forward.register_forward_pre_hook(
        lambda _module, inputs: rows.append(inputs[0].size(1))
    )
    for name, use_cache in (("without_cache", False), ("with_cache", True)):
        rows.clear()
        greedy_decode(model, torch.tensor([[5, 6, 7, 2]]), 50, eos_id=-1, use_cache=use_cache)
        found[name] = sum(rows)
    return found


positions = values(
    1,
    "positions",
    measure=_count_positions,
    hint=(
        "without a cache, step t computes t positions",
        "with a cache, each step computes only the newest position",
        "without a cache that's 1 + 2 + ... + 50",
    ),
    without_cache=Part(
        1275,
        "without a cache it is 1 + 2 + ... + 50",
        {
            "50 x 50 would be right if every step saw all 50 tokens; step t sees only t": 2500,
            "50 are new, but without a cache the old ones are computed again": 50,
            "the first step computes one position already: from 1 to 50, not from 0 to 49": 1225,
        },
    ),
    with_cache=Part(
        50,
        "with a cache each step computes one position",
        {"with a cache the earlier tokens are read, not computed again": 1275},
    ),
)


def _drawable(result, logits, k):
    """The logits, with -inf for every token that can never be drawn."""
    result = torch.as_tensor(result)
    if result.shape != logits.shape:
        return result
    return torch.where(result.softmax(-1) == 0, -torch.inf, result)


def _told_kept(given, expected, logits, k):
    mine, right = torch.isfinite(given), torch.isfinite(expected)
    for i, (one, other) in enumerate(zip(mine, right, strict=True)):
        if not torch.equal(one, other):
            kept = [j for j, stays in enumerate(one) if stays]
            return f"row {i} keeps the logits at {kept}, which are not its top {k}"
    return "the kept logits have changed"


def _kept(logits, k, largest=True):
    return torch.zeros_like(logits, dtype=torch.bool).scatter(
        -1, logits.topk(k, largest=largest).indices, True
    )


@exercise(
    2,
    inputs=lambda B=4, V=9, k=3: (torch.randn(B, V), k),
    vary=(dict(B=2, V=5, k=1), dict(B=3, V=4, k=4), dict(B=5, V=5, k=2)),
    hint="find the k-th largest logit of each row, and hide whatever is below it",
    tell=_told_kept,
    shape="logits go in and logits of the same shape come out",
    view=_drawable,
    in_place="work on a copy: the caller still needs the logits",
    slips={
        "you set the others to 0, but a logit of 0 still has a probability, e^0 over the sum; "
        "use -inf": lambda logits, k: logits * _kept(logits, k),
        "you kept the smallest logits, not the largest": (
            lambda logits, k: logits.masked_fill(~_kept(logits, k, False), -torch.inf)
        ),
        "each row needs its own k-th value": lambda logits, k: logits.masked_fill(
            logits < logits.flatten().topk(k).values[-1], -torch.inf
        ),
        "the k-th largest is hidden as well: hide what is smaller than it, but not what is equal": (
            lambda logits, k: logits.masked_fill(
                logits <= logits.topk(k).values[:, -1:], -torch.inf
            )
        ),
        "you return probabilities; return logits": lambda logits, k: logits.masked_fill(
            ~_kept(logits, k), -torch.inf
        ).softmax(-1),
        "each logit must stay in its own place: yours are sorted": lambda logits, k: torch.cat(
            [
                logits.topk(k).values,
                torch.full((len(logits), logits.size(1) - k), -torch.inf),
            ],
            dim=-1,
        ),
        "you use the k-th value of the first row for every "
        "row": lambda logits, k: logits.masked_fill(
            logits < logits[0].topk(k).values[-1], -torch.inf
        ),
        "you hid the largest logits and kept the others": (
            lambda logits, k: logits.masked_fill(_kept(logits, k), -torch.inf)
        ),
        "each row keeps one token too many: the threshold is the k-th largest": (
            lambda logits, k: logits.masked_fill(
                ~_kept(logits, min(k + 1, logits.size(1))), -torch.inf
            )
        ),
        "the k largest of each row are kept, not of each column": (
            lambda logits, k: logits.masked_fill(
                logits < logits.topk(min(k, len(logits)), dim=0).values[-1:], -torch.inf
            )
        ),
        "a token with a logit like -10 can still be drawn: use -inf": (
            lambda logits, k: logits.masked_fill(~_kept(logits, k), -10.0)
        ),
    },
)
def top_k(logits, k):
    threshold = logits.topk(k).values[:, -1:]  # (B, 1)
    return logits.masked_fill(logits < threshold, -torch.inf)


pencil = values(
    3,
    "pencil",
    hint=(
        "multiply along each path, and at each step keep the best n prefixes",
        "size 1 keeps only A, and each of A's sentences has probability 0.40 * 0.5",
        "size 2 keeps A and B, size 3 keeps C as well; take the best product each time",
    ),
    packed=True,
    one=Part(
        0.20,
        "beam size 1 takes A, then x or y: multiply",
        {"beam size 1 is greedy: it takes A and never looks back": 0.25},
        tolerance=1e-3,
    ),
    two=Part(
        0.21,
        "beam size 2 keeps A and B, then takes the best of four",
        {
            "C x is the best of all, but beam size 2 has dropped C after step one": 0.25,
            "beam size 2 keeps A and B, and B x is better than A x": 0.20,
        },
        tolerance=1e-3,
    ),
    three=Part(
        0.25, "beam size 3 keeps A, B and C, so it sees every sentence", tolerance=1e-3
    ),
)


def _nucleus(keep, back=True, share=True):
    """A filter of ranked probabilities by keep(ranked, p)."""

    def filtered(probabilities, p):
        ranked, order = probabilities.sort(-1, descending=True)
        ranked = ranked.masked_fill(~keep(ranked, p), 0.0)
        kept = torch.zeros_like(probabilities).scatter(-1, order, ranked) if back else ranked
        return kept / kept.sum(-1, keepdim=True) if share else kept

    return filtered


def _first_always(ranked, p):
    keep = ranked.cumsum(-1) <= p
    keep[:, 0] = True
    return keep


def _before(ranked, p):
    return ranked.cumsum(-1) - ranked < p


def _rows(B=5, V=12, p=0.7):
    return torch.randn(B, V).softmax(-1), p


def _ascending(probabilities, p):
    ranked, order = probabilities.sort(-1)
    left = ranked.masked_fill(ranked.cumsum(-1) - ranked >= p, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, left)
    return kept / kept.sum(-1, keepdim=True)


def _told_nucleus(given, expected, probabilities, p):
    given = torch.as_tensor(given)
    if given.isnan().any() and (probabilities.max(-1).values > p).any():
        return (
            "the first token alone is over p, so you drop every token and divide 0 by 0; the most "
            "probable token must always stay"
        )
    if ((given.sum(-1) - 1).abs() > 1e-4).any():
        return "the kept probabilities must sum to 1"
    return "these are not the probabilities of the nucleus"


@exercise(
    4,
    inputs=[
        (torch.tensor([[0.6, 0.3, 0.1]]), 0.5),
        (torch.tensor([[0.1, 0.4, 0.3, 0.2]]), 0.6),
        (torch.tensor([[0.5, 0.25, 0.25]]), 0.5),
        (torch.tensor([[0.1, 0.9], [0.5, 0.5]]), 0.95),
        (torch.tensor([[0.03, 0.3, 0.05, 0.42, 0.2], [0.31, 0.05, 0.1, 0.32, 0.22]]), 0.75),
        # One token is enough in the first row, two in the second, three in the last.
        (torch.tensor([[0.1, 0.7, 0.2], [0.4, 0.25, 0.35], [0.33, 0.33, 0.34]]), 0.69),
    ],
    given=0x9ACC4F64,
    tell=_told_nucleus,
    tolerance=1e-4,
    shrinks=False,
    slips={
        "the first token alone is over p, so you drop every token and divide 0 by 0; the most "
        "probable token must always stay": _nucleus(lambda ranked, p: ranked.cumsum(-1) <= p),
        "your probabilities are in sorted order; put each back in the place of its token": (
            _nucleus(_before, back=False)
        ),
        "the token that crosses p belongs to the nucleus: 0.4 on its own does not reach 0.6": (
            _nucleus(_first_always)
        ),
        "a token that reaches p exactly is enough: for [0.5, 0.25, 0.25] the first token reaches "
        "p = 0.5": _nucleus(lambda ranked, p: ranked.cumsum(-1) - ranked <= p),
        "the kept probabilities must sum to 1: for [0.6, 0.3, 0.1] the first is enough": (
            _nucleus(_before, share=False)
        ),
        "you keep as many tokens in every row as in the first; each row has a nucleus of its own": (
            _nucleus(lambda ranked, p: _before(ranked, p)[:1].expand_as(ranked))
        ),
        "you keep as many tokens in every row as the longest nucleus has; each row has its own": (
            _nucleus(
                lambda ranked, p: torch.arange(ranked.size(-1)) < _before(ranked, p).sum(-1).max()
            )
        ),
        "you keep each token that reaches p on its own; add up the probabilities": (
            lambda probabilities, p: (
                probabilities * (probabilities >= p)
                / (probabilities * (probabilities >= p)).sum(-1, keepdim=True)
            )
        ),
        "you keep each token with a probability above 1 - p; add up the probabilities": (
            lambda probabilities, p: (
                probabilities * (probabilities >= 1 - p)
                / (probabilities * (probabilities >= 1 - p)).sum(-1, keepdim=True)
            )
        ),
        "you begin with the least probable token; sort in descending order": (
            _ascending
        ),
        "divide what is kept by its sum; a softmax gives the others a share again": (
            lambda probabilities, p: _nucleus(_before, share=False)(probabilities, p).softmax(-1)
        ),
    },
)
def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)  # (B, V)
    before = ranked.cumsum(-1) - ranked
    left = ranked.masked_fill(before >= p, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, left)
    return kept / kept.sum(-1, keepdim=True)


def beam_search(language, width, length=3):
    """(probability, words) of the best sentence that a beam of this width finds."""
    beam = [(1.0, ())]
    for _ in range(length):
        longer = [(p * q, (*words, word)) for p, words in beam
                  for word, q in language[words].items()]
        beam = sorted(longer, key=lambda found: -found[0])[:width]
    return beam[0]


WORSE = {
    (): {"A": 0.55, "B": 0.45},
    ("A",): {"x": 0.4, "y": 0.3, "z": 0.3},
    ("B",): {"x": 0.5, "y": 0.5},
    ("A", "x"): {"end": 1.0},
    **{("B", word): dict.fromkeys("abcdefghij", 0.1) for word in "xy"},
    **{("A", word): {"end": 1.0} for word in "yz"},
}


@judged(5, hint=(
        "let the second beam be filled with prefixes that end badly",
        "the winner of beam size 1 must be pushed out of the second beam, so it can't be among the"
        " two best prefixes of length two",
        "give the other first word two good second words, each with nowhere good to go, and let "
        "the greedy path recover in its last word",
    ), example=WORSE)
def wider_is_worse(language):
    expect(isinstance(language, dict) and () in language, "the dictionary needs the prefix ()")
    for prefix, nexts in language.items():
        total = sum(nexts.values())
        expect(
            abs(total - 1) < 1e-6 and all(p >= 0 for p in nexts.values()),
            f"after {prefix} the probabilities must be at least 0 and sum to 1; yours sum to "
            f"{total:g}",
        )
        for word in nexts:
            longer = (*prefix, word)
            expect(
                len(longer) == 3 or longer in language, f"what comes after {longer} is missing"
            )
    (one, first), (two, second) = (beam_search(language, width) for width in (1, 2))
    expect(
        two < one,
        f"beam size 1 finds {' '.join(first)} with {one:.3f}, and beam size 2 finds "
        f"{' '.join(second)} with {two:.3f}: the wider beam should do worse",
    )
