"""Checks for the chapter on encoders alone."""

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("19.1", hint="count the tokens that each model is asked for")
def predictions(answer):
    for B, T, rate in ((64, 14, 0.15), (8, 20, 0.3)):
        given = answer(B, T, rate)
        expect(
            isinstance(given, (tuple, list)) and len(given) == 2,
            "return two numbers: masked model, language model",
        )
        masked, causal = map(float, given)
        expect(abs(masked - B * T) > 1e-6, "the masked model is asked only for what is hidden")
        expect(
            abs(masked - rate * B * (T + 2)) > 1e-6,
            "<bos> and <eos> are never hidden, so only the ordinary tokens count",
        )
        expect(
            abs(causal - B * T) > 1e-6,
            "the language model also predicts <eos>: it has to learn to stop",
        )
        expect(
            abs(causal - B * (T + 2)) > 1e-6, "nothing stands before <bos>: it is not predicted"
        )
        expect_close(masked, rate * B * T, "the masked model's number is not right")
        expect_close(causal, B * (T + 1), "the language model's number is not right")


@exercise("19.2", hint="compare each token's word with the words of the chosen tokens")
def whole_words(answer):
    word = torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1], [-1, 0, 1, 1, 2, -1, -1, -1]])
    chosen = torch.zeros_like(word, dtype=torch.bool)
    chosen[0, [2, 6]] = chosen[1, [4, 5]] = True
    right = torch.tensor([[0, 1, 1, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 0, 0, 0]]).bool()
    given = answer(word.clone(), chosen.clone())
    expect_shape(given, (2, 8), "return one bool per token")
    expect(not same(given, chosen), "that is `chosen` itself: take in the other pieces of words")
    expect(
        not (torch.as_tensor(given).bool() & (word < 0)).any(),
        "a special token is True: tokens with word -1 are never hidden",
    )
    batch = torch.isin(word, word[chosen]) & (word >= 0)
    expect(
        not same(given, batch),
        "a word chosen in one text hides its number in the others: each text for itself",
    )
    expect_close(given, right, "the mask is not right")
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(0, 2, (3, 9), generator=generator)
        word = steps.cumsum(1)
        word[:, 0] = word[:, -1] = -1
        chosen = torch.rand(3, 9, generator=generator) < 0.3
        together = word[:, :, None] == word[:, None, :]
        right = (together & chosen[:, None, :]).any(-1) & (word >= 0)
        expect_close(
            answer(word.clone(), chosen.clone()), right,
            "right on a small example, wrong on a longer one",
        )  # fmt: skip


@exercise("19.3", given=0x6CC37002)
def prepare(answer):
    ids = torch.tensor([[1, 7, 8, 9, 2], [1, 5, 6, 2, 0]])
    chosen = torch.tensor([[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]).bool()
    before = ids.clone()
    given = answer(ids, chosen, 19)
    expect(isinstance(given, (tuple, list)) and len(given) == 3, "return read, wanted and where")
    read, wanted, where = given
    expect(
        not (torch.as_tensor(wanted) == 19).any(),
        "<mask> stands among what is wanted: `read` and `ids` are still one tensor",
    )
    expect(
        torch.equal(ids, before),
        "the ids that came in are changed: the next epoch would find <mask> in its data",
    )
    expect((torch.as_tensor(read) == 19).any(), "nothing is hidden any more in what is read")
    expect_close(read, before.masked_fill(chosen, 19), "what is read is not right")
    expect_close(wanted, before, "what is wanted should be the caption as it was")
    expect_close(where, chosen, "the places should come back as they were")


@exercise("19.4", hint="one row for each ordinary token, with that token hidden")
def pseudo_log_likelihood(answer):
    torch.manual_seed(0)
    table = torch.randn(20, 20, dtype=torch.float64)

    def guess(ids):
        """What is guessed depends on all tokens and on the place."""
        around = table[ids]  # (B, T, V)
        return around.mean(1, keepdim=True) * 3 + around.roll(1, 1) + around

    ids = torch.tensor([1, 7, 12, 7, 5, 2])
    places = [1, 2, 3, 4]

    def score(hide):
        total = 0.0
        for place in places:
            hidden = ids.clone()
            hidden[hide(place)] = 19
            log_p = guess(hidden[None])[0].log_softmax(-1)
            total = total + log_p[place, ids[place]]
        return total

    given = answer(guess, ids.clone(), 19)
    expect_shape(given, (), "return one number")
    slips = {
        "nothing is hidden: the model reads each token that it is asked for": score(lambda p: []),
        "all tokens are hidden at once; hide one and leave the others": score(lambda p: places),
        "that is the mean; add the logarithms up": score(lambda p: p) / len(places),
        "what follows is hidden, too: only the token itself should be": score(
            lambda p: slice(p, 5)
        ),
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    with_special = score(lambda p: p)
    for place in (0, 5):
        hidden = ids.clone()
        hidden[place] = 19
        with_special = with_special + guess(hidden[None])[0].log_softmax(-1)[place, ids[place]]
    expect(not same(given, with_special), "<bos> and <eos> are never hidden, so they do not count")
    expect_close(given, score(lambda p: p), "the sum is not right")


@exercise("19.5", hint="V * E and E * D first, then one layer")
def albert_numbers(answer):
    for V, E, D, F, L in ((30_000, 128, 768, 3072, 12), (2_000, 16, 64, 128, 2)):
        given = float(answer(V, E, D, F, L))
        layer = 4 * D * D + 2 * D * F
        right = V * E + E * D + layer
        slips = {
            "the layers share their weights: count one of them": V * E + E * D + L * layer,
            "that is the plain embedding, V * D; here it goes through E": V * D + layer,
            "the map from E to D is missing": V * E + layer,
            "the feed-forward network has two maps, D to F and F to D": right - D * F,
            "attention has four maps: queries, keys, values, output": right - D * D,
        }
        for message, slip in slips.items():
            expect(abs(given - slip) > 1e-6, message)
        expect_close(given, right, f"for V = {V}, E = {E}, D = {D}, F = {F}, L = {L}")
