"""Checks for chapter 18, looking inside a trained model."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("18.1", hint="give two numbers")
def count_heads(all_heads, heads_on_the_source):
    expect(
        all_heads != (6 + 3) * 8,
        "a decoder layer has two attentions, its own and the cross-attention, with 8 heads each",
    )
    expect(all_heads not in (9, 12), "those are layers or attentions; each attention has 8 heads")
    expect_close(all_heads, 6 * 8 + 3 * 2 * 8, "the number of heads is not right", 0)
    expect(
        heads_on_the_source != 6 * 8, "the cross-attention of the decoder reads the source as well"
    )
    expect(
        heads_on_the_source != 3 * 8,
        "the encoder's own heads look at the source as well",
    )
    expect(
        heads_on_the_source != all_heads,
        "the decoder's self-attention sees only the translation so far",
    )
    expect_close(heads_on_the_source, (6 + 3) * 8, "the heads on the source are not right", 0)


@exercise("18.2", hint="sum over the pieces that are looked at, mean over the pieces that look")
def between_words(answer):
    weights = torch.rand(6, 5).softmax(-1)  # (T, S)
    target, source = [0, 1, 1, 1, 2, 3], [0, 0, 0, 1, 2]
    out = F.one_hot(torch.tensor(target)).float()  # (T, target words)
    into = F.one_hot(torch.tensor(source)).float()  # (S, source words)
    given = torch.as_tensor(answer(weights.clone(), target, source))
    expect_shape(given, (4, 3), "4 words in the target, 3 in the source")
    mean_out, mean_into = out / out.sum(0), into / into.sum(0)
    slips = {
        "you added up the rows of a word's pieces, so its row sums to more than 1; take their "
        "mean": out.T @ weights @ into,
        "you took the mean over the source pieces; weights are shares, so a word gets the sum of "
        "its pieces": mean_out.T @ weights @ mean_into,
        "mean and sum are exchanged: mean over the target's pieces, sum over the source's": (
            out.T @ weights @ mean_into
        ),
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    expect_close(given.sum(-1), torch.ones(4), "each row must sum to 1")
    expect_close(given, mean_out.T @ weights @ into, "the attention between words is not right")


@exercise("18.3", hint="make every row a unit vector first")
def neighbours(answer):
    # Row 1 points nearly where row 0 does; row 2 is much longer; row 3 lies nearer in space.
    table = torch.tensor([[1.0, 0.0], [4.0, 0.5], [9.0, 8.0], [0.7, 0.4], [-1.0, 0.1]])
    given = answer(table.clone(), 0, 3)
    given = given.tolist() if isinstance(given, torch.Tensor) else list(given)
    expect(0 not in given, "the row itself is in your list; leave it out")
    expect(len(given) == 3, f"asked for 3 neighbours, you gave {len(given)}")
    expect(
        given != [2, 1, 3],
        "that is the order of the dot products, where long rows win; divide by the lengths",
    )
    expect(
        given != [3, 4, 1],
        "that is the order of the distances; the cosine compares directions only",
    )
    expect(given[0] != 4, "you have the farthest first; the largest cosine is the nearest")
    expect(given == [1, 3, 2], f"expected rows [1, 3, 2], nearest first; yours are {given}")
    random = torch.randn(20, 8)
    unit = F.normalize(random, dim=-1)
    cosines = (unit @ unit[5]).index_fill(0, torch.tensor([5]), -2.0)
    again = [int(row) for row in answer(random.clone(), 5, 4)]
    expect(again == cosines.topk(4).indices.tolist(), "on a random table the order is not right")


@exercise("18.4", given=0xFA17F2D7)
def silent_head(answer):
    x = torch.randn(2, 3, 12)
    given = x.clone()
    result = torch.as_tensor(answer(given, 1, 4))
    expect_shape(result, (2, 3, 12), "the copy has the shape of x")
    expected, strided, later = x.clone(), x.clone(), x.clone()
    expected[..., 3:6] = 0
    strided[..., 1::4] = 0
    later[..., 1:4] = 0
    expect(
        not torch.equal(result, strided),
        "you silence every fourth column; a head owns neighbouring columns, "
        "d_model / n_heads of them",
    )
    expect(
        not torch.equal(result, later),
        "the slice starts at head; it starts at head times the size of a head",
    )
    expect_close(result, expected, "the wrong numbers are zero")
    expect(
        torch.equal(given, x),
        "the result is right, but you changed the x that you were given; work on x.clone()",
    )


@exercise("18.5", hint="AER = 1 - 2 |A and G| / (|A| + |G|)")
def alignment_error(answer):
    true = {(0, 0), (1, 1), (2, 2), (2, 3)}
    found = {(0, 0), (1, 1), (2, 4)}
    given = answer(set(found), set(true))
    expect(abs(given - 4 / 7) > 1e-6, "that is the share that agrees; the error is 1 minus it")
    expect(
        abs(given - 1 / 3) > 1e-6,
        "you divide by the found links only; a missing link is an error too",
    )
    expect(
        abs(given - 1 / 2) > 1e-6, "you divide by the true links only; false links are errors too"
    )
    expect(
        abs(given - 5 / 7) > 1e-6,
        "a common link is in both sets, so it counts twice: 2 |A and G| / (|A| + |G|)",
    )
    expect(
        abs(given - 3 / 5) > 1e-6,
        "you divide by the union; the AER divides by the sum of the two sizes",
    )
    expect_close(given, 3 / 7, "two common links, 3 found and 4 true", 1e-6)
    expect_close(answer(set(true), set(true)), 0.0, "equal sets have no error", 1e-6)
    expect_close(answer({(5, 5)}, {(1, 1)}), 1.0, "no common link is an error of 1", 1e-6)
    expect_close(answer(set(), set()), 0.0, "two empty sets have no error", 1e-6)
