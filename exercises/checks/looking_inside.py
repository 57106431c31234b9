"""Checks for chapter 18, looking inside a trained model."""

import torch
import torch.nn.functional as F

from exercises.checks import Part, exercise, expect, judged, values
from exercises.checks.recorded import recorded

count_heads = values(
    1,
    "count_heads",
    hint=(
        "give two numbers",
        "an encoder layer has one attention sublayer, a decoder layer has two",
        "the source is read by the encoder's own attention and by the cross-attention",
    ),
    all_heads=Part(
        6 * 8 + 3 * 2 * 8,
        "that isn't the right number of heads",
        {
            "a decoder layer attends twice, with self-attention and with cross-attention, with "
            "8 heads each time": (6 + 3) * 8,
            "only a decoder layer attends a second time": (6 + 3) * 2 * 8,
            "those are layers or attention sublayers; each attention sublayer has 8 heads": [9, 12],
        },
    ),
    heads_on_the_source=Part(
        (6 + 3) * 8,
        "that isn't the right number of heads that look at the source",
        {
            "the cross-attention of the decoder reads the source as well": 6 * 8,
            "the encoder's own heads look at the source as well": 3 * 8,
            "the decoder's self-attention sees only the translation so far": 96,
        },
    ),
)


def _words(n):
    """The word of each of n tokens: one to three tokens a word, in order."""
    return torch.randint(0, 2, (n,)).index_fill(0, torch.tensor([0]), 0).cumsum(0).tolist()


def _attention(T=6, S=5):
    target, source = _words(T), _words(S)
    # One word of several tokens on each side, one of a single token.
    target[:3], source[:3] = [0, 1, 1], [0, 0, 1]
    target[3:], source[3:] = [w + 2 for w in _words(T - 3)], [w + 2 for w in _words(S - 3)]
    return torch.randn(T, S).softmax(-1), target, source


def _between(out_mean=True, in_mean=False):
    def between(weights, target, source):
        out = F.one_hot(torch.tensor(target)).float()  # (T, target words)
        into = F.one_hot(torch.tensor(source)).float()  # (S, source words)
        out = out / out.sum(0) if out_mean else out
        return out.T @ weights @ (into / into.sum(0) if in_mean else into)

    return between


@exercise(
    2,
    inputs=_attention,
    vary=(dict(T=7, S=6), dict(T=5, S=5)),
    hint="sum over the pieces that are looked at, and take the mean over the pieces that look",
    wrong="that isn't the right attention between words",
    shape="return one row for each word of the target, and one column for each word of the source",
    shrinks=False,
    slips={
        "you added up the rows of a word's pieces, so its row sums to more than 1; take their "
        "mean": _between(out_mean=False),
        "you took the mean over the source pieces; weights are shares, so a word gets the sum of "
        "its pieces": _between(in_mean=True),
        "mean and sum are swapped: take the mean over the target's pieces and the sum over the "
        "source's": (
            _between(out_mean=False, in_mean=True)
        ),
        "rows and columns are swapped: the target's words come first": (
            lambda *args: _between()(*args).T
        ),
    },
)
def between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).float()  # (T, target words)
    into = F.one_hot(torch.tensor(source_words)).float()  # (S, source words)
    summed = weights @ into  # (T, source words)
    return (out / out.sum(0)).T @ summed


def _nearest(score, leave_out=True, largest=True):
    """The k rows with the largest score(table, i)."""

    def nearest(table, i, k):
        scores = score(table, i)
        if leave_out:
            scores = scores.index_fill(0, torch.tensor([i]), -torch.inf if largest else torch.inf)
        return scores.topk(k, largest=largest).indices.tolist()

    return nearest


def _cosine(table, i):
    unit = F.normalize(table, dim=-1)
    return unit @ unit[i]


# Row 1 points nearly where row 0 does; row 2 is much longer; row 3 lies nearer in space.
TABLE = torch.tensor([[1.0, 0.0], [4.0, 0.5], [9.0, 8.0], [0.7, 0.4], [-1.0, 0.1]])


def _tables():
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(20, 8, generator=generator) for _ in range(2)]
    return [(TABLE, 0, 3), (TABLE, 0, 4), (drawn[0], 5, 4), (3 * drawn[1][:7], 6, 6)]


@exercise(
    3,
    inputs=_tables(),
    hint=(
        "first make every row a unit vector",
        "then the products with row i are the cosines; leave out i itself, and sort from the "
        "largest down",
    ),
    view=lambda rows, *args: [int(row) for row in rows],
    tell=lambda given, expected, table, i, k: (
        f"{k} neighbours are expected; you gave {len(given)}"
        if len(given) != k
        else "you took the row out of the table, so the ids after it are one too small"
        if [row + (row >= i) for row in given] == expected
        else "the row itself is in your list; leave it out"
        if i in given
        else "these are not the nearest rows, nearest first"
    ),
    slips={
        "that is the order of the dot products, where long rows win; divide by the lengths": (
            _nearest(lambda table, i: table @ table[i])
        ),
        "that is the order of the distances; the cosine compares directions only": (
            _nearest(lambda table, i: -(table - table[i]).norm(dim=-1))
        ),
        "you have the farthest first; the largest cosine is the nearest": [
            _nearest(_cosine, largest=False),
            lambda table, i, k: _nearest(_cosine)(table, i, k)[::-1],
        ],
        "the row itself is in your list; leave it out": _nearest(_cosine, leave_out=False),
        "you rank by the size of the cosine; a row that points the other way is far": (
            _nearest(lambda table, i: _cosine(table, i).abs())
        ),
        "you normalise columns, not rows: dim=-1": _nearest(
            lambda table, i: F.normalize(table, dim=0) @ F.normalize(table, dim=0)[i]
        ),
    },
)
def neighbours(table, i, k):
    return _nearest(_cosine)(table, i, k)


def _silenced(columns):
    def silence(x, head, n_heads):
        x = x.clone()
        x[..., columns(head, x.size(-1) // n_heads, n_heads)] = 0
        return x

    return silence


@exercise(
    4,
    inputs=lambda B=2, T=6, H=4, K=3, head=1: (torch.randn(B, T, H * K), head, H),
    vary=(dict(H=3, K=5, head=2), dict(B=1, H=2, K=4, head=0), dict(B=3, T=16, H=4, K=4, head=3)),
    given=0xFA17F2D7,
    wrong="you've set the wrong numbers to zero",
    shape="the copy has the shape of x",
    in_place="work on x.clone(): the caller still needs x",
    shrinks=False,
    slips={
        "you silence every n-th column; a head owns a block of d_model / n_heads neighbouring "
        "columns": _silenced(lambda head, size, n: slice(head, None, n)),
        "the slice starts at head; it starts at head times the size of a head": (
            _silenced(lambda head, size, n: slice(head, head + size))
        ),
        "you silenced all the other heads and left this one": lambda x, head, n_heads: (
            x - silent_head.reference(x, head, n_heads)
        ),
        "a head has d_model / n_heads columns, not n_heads": (
            _silenced(lambda head, size, n: slice(head * n, (head + 1) * n))
        ),
        "you counted heads from 1; head 0 is the first": (
            _silenced(lambda head, size, n: slice((head - 1) * size, head * size))
        ),
        "nothing has been silenced": lambda x, head, n_heads: x.clone(),
        "you silence positions in the text; a head lies along the last axis, among the features": (
            lambda x, head, n_heads: torch.cat([
                x[:, : head * (size := x.size(-1) // n_heads)],
                0 * x[:, head * size : (head + 1) * size], x[:, (head + 1) * size :],
            ], 1)
        ),
    },
    hint=(
        "which columns belong to a head: neighbours, or every n-th? And whose tensor do you "
        "change?",
    ),
)
def silent_head(x, head, n_heads):
    size = x.size(-1) // n_heads
    return _silenced(lambda head, *_: slice(head * size, (head + 1) * size))(x, head, n_heads)


TRUE = {(0, 0), (1, 1), (2, 2), (2, 3)}
FOUND = {(0, 0), (1, 1), (2, 4)}


def _error(total):
    """1 less the agreement, for a total of the two sets; 0 where both are empty."""
    return lambda found, true: (
        1 - len(found & true) / max(1, total(found, true)) if found or true else 0
    )


@exercise(
    5,
    inputs=[
        (FOUND, TRUE), (TRUE, TRUE), ({(5, 5)}, {(1, 1)}), (set(), set()), (set(), {(0, 1)}),
        ({(0, 1), (1, 0), (3, 3)}, {(0, 1)}), ({(0, 0), (1, 2)}, {(0, 0), (2, 1)}),
    ],
    hint=(
        "AER = 1 - 2 |A and G| / (|A| + |G|)",
        "count the common links twice, since both sets hold them; and watch out for two empty sets",
    ),
    wrong="that isn't the alignment error rate",
    shrinks=False,
    slips={
        "that is the share that agrees; the error is 1 minus it": (
            lambda found, true: 2 * len(found & true) / max(1, len(found) + len(true))
        ),
        "you divide by the found links only; a missing link is an error too": (
            _error(lambda found, true: len(found))
        ),
        "you divide by the true links only; false links are errors too": (
            _error(lambda found, true: len(true))
        ),
        "a common link is in both sets, so it counts twice: 2 |A and G| / (|A| + |G|)": (
            _error(lambda found, true: len(found) + len(true))
        ),
        "you divide by the union; the AER divides by the sum of the two sizes": (
            _error(lambda found, true: len(found | true))
        ),
    },
)
def alignment_error(found, true):
    total = len(found) + len(true)
    return 1 - 2 * len(found & true) / total if total else 0.0


NAMES = {"encoder": "encoder.layers.{}.self", "decoder": "decoder.layers.{}.self"}
NAMES["cross"] = "decoder.layers.{}.cross"


def _two_heads(name, answer):
    """What is recorded of two heads of one attention: (kind, layer, head, head)."""
    expect(
        isinstance(answer, (tuple, list)) and len(answer) == 4,
        f'`{name}` is a kind, a layer and two heads, such as ("decoder", 0, 1, 3)',
    )
    kind, layer, *heads = answer
    expect(kind in NAMES, f"`{name}`: the kinds are {', '.join(NAMES)}, yours is {kind!r:.20}")
    whole = all(isinstance(n, int) and 0 <= n < 4 for n in (layer, *heads))
    expect(whole, f"`{name}`: layers and heads are counted from 0 to 3, yours are {answer[1:]}")
    expect(heads[0] != heads[1], f"`{name}`: give two different heads")
    name = NAMES[kind].format(layer) + "_attention"
    found = recorded("heads", part="pair", name=name, heads=sorted(heads))
    # The chapter's own translator is not named: the grid names the others.
    (found,) = [r for r in found if "translator" not in r["settings"]] or [None]
    expect(found is not None, "no pairs were recorded for the encoder: take the decoder")
    return found


def _told(values):
    return "{:+.3f} ({:+.3f} to {:+.3f})".format(*values)


@judged(
    7,
    hint=(
        "point at the marks of the figure that lie far below the line, and far above it",
        "far below the line, two heads together can cost less than the costlier one on its own; "
        "above it, each can do some of the other's work",
        "hover over a mark of the figure to see its kind, layer and heads, and check that its "
        "interval doesn't contain 0",
    ),
    example=(("cross", 0, 2, 3), 3, ("cross", 0, 1, 3)),
)
def two_heads(cheaper, harmful, dearer):
    found = _two_heads("cheaper", cheaper)
    alone, both = found["largest"], found["damage"][0]
    low, high = found["less_largest"][1:]
    expect(
        both < alone,
        f"`cheaper`: the loss rises by {both:+.3f} with both heads removed, and by {alone:+.3f} "
        "with only the costlier one removed; look for a pair that costs less",
    )
    expect(
        high < 0,
        f"`cheaper`: together they cost {both:+.3f}, the costlier one on its own {alone:+.3f}, but "
        f"the interval for the difference is {low:+.3f} to {high:+.3f} and contains 0, so these "
        "sentences can't settle it",
    )
    told = f"Loss added: {both:+.3f} with both removed, {alone:+.3f} with only the costlier one"
    first, second = found["settings"]["heads"]
    expect(
        harmful in (first, second),
        f"`harmful` should be one of your two heads, {first} or {second}",
    )
    single = {
        r["settings"]["head"]: r["damage"][0]
        for r in recorded("heads", part="alone", name=found["settings"]["name"])
        if "translator" not in r["settings"]
    }
    expect(
        harmful == min(first, second, key=single.get),
        f"`cheaper` is right, but once the other is silent, head {harmful} isn't the one that does "
        "harm: with only that head removed, the loss rises more than with both removed",
    )
    found = _two_heads("dearer", dearer)
    expect(
        found["less_sum"][1] > 0,
        f"`dearer`: the pair's cost minus the sum of its heads' is {_told(found['less_sum'])}; the "
        "interval must lie above 0",
    )
    return (
        f"{told}. The dearer pair costs {found['damage'][0]:+.3f}, and its heads cost "
        f"{found['sum']:+.3f} in total when they are removed one at a time."
    )


def _attended(T=4, S=5, K=4, size=1.0):
    """The output of T rows of attention, the weights on the first key, and its value."""
    weights, values = (size * torch.randn(T, S)).softmax(-1), torch.randn(S, K)
    return weights @ values, weights[:, 0].clone(), values[0].clone()


def _shift(formula):
    """A change from a formula of the output, the weight as a column, and the value."""
    return lambda output, weight, value: formula(output, weight[:, None], value)


@exercise(
    8,
    inputs=_attended,
    vary=(dict(T=6, S=7, K=3, size=3.0), dict(T=3, S=2, K=5)),
    hint=(
        "write the output as weight * value + the rest; what does masking do to the rest?",
        "the other scores stay, so the other weights keep their ratios and are divided by "
        "1 - weight",
        "the new output is (output - weight * value) / (1 - weight); subtract the old one and "
        "simplify",
    ),
    wrong="that isn't how the output changes",
    shape="one change for each row of the output, (T, K)",
    tolerance=1e-4,
    shrinks=False,
    slips={
        "each row has its own weight: make it a column, weight[:, None]": (
            lambda output, weight, value: weight / (1 - weight) * (output - value)
        ),
        "you only took the key's part away; its weight goes to the other keys, since the row must "
        "sum to 1": _shift(lambda o, w, v: -w * v),
        "the others grow by 1 / (1 - weight): that factor is missing": (
            _shift(lambda o, w, v: w * (o - v))
        ),
        "the sign is the wrong way round: without the key the output moves away from its value": (
            _shift(lambda o, w, v: w / (1 - w) * (v - o))
        ),
        "that is the new output; return how far it is from the old one": (
            _shift(lambda o, w, v: (o - w * v) / (1 - w))
        ),
        "that is the sum of the others as they were; they grow when this one goes": (
            _shift(lambda o, w, v: o - w * v)
        ),
        "the key's own part is still in the new output: subtract weight * value first": (
            _shift(lambda o, w, v: w / (1 - w) * o)
        ),
        "you scaled the old output, too; only the new one is divided by 1 - weight": (
            _shift(lambda o, w, v: -w * v / (1 - w))
        ),
        "what is left of the row is 1 - weight, not 1 + weight": (
            _shift(lambda o, w, v: w / (1 + w) * (o - v))
        ),
        "the factor is weight / (1 - weight): you return the difference of output and value as "
        "it is": _shift(lambda o, w, v: o - v),
    },
)
def erased_key(output, weight, value):
    odds = (weight / (1 - weight))[:, None]  # (T, 1)
    return odds * (output - value)
