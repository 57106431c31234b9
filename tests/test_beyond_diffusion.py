"""Masked diffusion: its objective is the any-order one, and its sampler follows the same orders."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from recordings.beyond import diffusion as recording
from transformer_lib.beyond import caption_grammar as grammar
from transformer_lib.beyond import diffusion
from transformer_lib.beyond.diffusion import (
    Counting,
    blank,
    diffusion_loss,
    fill_in,
    mask_at,
)
from transformer_lib.config import BOS, EOS, ModelConfig
from transformer_lib.models.classifier import MaskedLanguageModel

T, WORDS = 3, 4  # ids 0 to 3; <mask> is 4, <bos> is 1 and may be written, too


def tiny(seed=0, n_words=WORDS):
    torch.manual_seed(seed)
    config = ModelConfig(
        n_words + 1, 16, 2, 32, 1, 0, 0.0, max_len=8, positional="learned", activation="gelu"
    )
    model = MaskedLanguageModel(config).double().eval()
    with torch.no_grad():
        model.embedding.lookup.weight *= 3
        model.output.bias.copy_(torch.randn(n_words + 1))
    return model


@torch.no_grad()
def surprise(model, text, hidden):
    """{place: nats} of the hidden places of a text (1 + T,), read with those hidden."""
    mask_id = model.config.vocab_size - 1
    read = text.clone()
    read[list(hidden)] = mask_id
    log_p = model(read[None])[0, :, :mask_id].log_softmax(-1)
    return {i: -log_p[i, text[i]].item() for i in hidden}


def by_orders(model, text):
    """Nats of the text in each order of its places, one token a time."""
    places = range(1, len(text))
    return [
        sum(surprise(model, text, order[n:])[place] for n, place in enumerate(order))
        for order in itertools.permutations(places)
    ]


def by_masks(model, text):
    """The average over a uniform rate t of (sum over the masked) / t, done by hand.

    A set of k masked places of T comes up with probability t^k (1 - t)^(T - k); the integral of
    that over t, divided by t, is 1 / (k * C(T, k)).
    """
    n, total = len(text) - 1, 0.0
    for k in range(1, n + 1):
        for hidden in itertools.combinations(range(1, n + 1), k):
            total += sum(surprise(model, text, hidden).values()) / (k * math.comb(n, k))
    return total


def texts():
    words = [i for i in range(WORDS) if i not in (0, BOS)]
    return [torch.tensor([BOS, *w]) for w in itertools.product(words, repeat=T)]


def test_the_weights_are_those_of_the_integral():
    t = torch.linspace(0, 1, 200_001, dtype=torch.float64)
    for n, k in ((3, 1), (3, 2), (3, 3), (5, 2)):
        found = torch.trapezoid(t ** (k - 1) * (1 - t) ** (n - k), t)
        assert found.item() == pytest.approx(1 / (k * math.comb(n, k)), rel=1e-6)


def test_the_objective_is_the_mean_over_all_orders():
    model = tiny()
    for text in texts():
        orders = by_orders(model, text)
        assert by_masks(model, text) == pytest.approx(sum(orders) / len(orders), rel=1e-9)


def test_it_bounds_what_the_sampler_gives_the_text():
    model = tiny()
    for text in texts():
        orders = torch.tensor(by_orders(model, text), dtype=torch.float64)
        exact = -(torch.logsumexp(-orders, 0) - math.log(len(orders))).item()
        assert exact < by_masks(model, text)


def test_the_drawn_loss_is_the_objective_on_average(monkeypatch):
    model, text = tiny(), torch.tensor([BOS, 3, 2, 3])
    torch.manual_seed(0)
    ids = text.expand(4096, -1)
    with torch.no_grad():
        found = [diffusion_loss(model, ids).item() * T for _ in range(6)]
    mean = sum(found) / len(found)
    assert mean == pytest.approx(by_masks(model, text), rel=0.02)


def test_one_token_a_pass_in_random_order_is_the_any_order_sampler():
    """Chi-square over all texts of three words: what is written, and what the orders say."""
    n, n_words = 20_000, 3
    model = tiny(seed=4, n_words=n_words)
    everything = [torch.tensor([BOS, *w]) for w in itertools.product(range(n_words), repeat=T)]
    expected = torch.tensor([
        sum(math.exp(-nats) for nats in by_orders(model, text)) / math.factorial(T)
        for text in everything
    ])
    assert expected.sum().item() == pytest.approx(1, abs=1e-6)
    torch.manual_seed(1)
    drawn = fill_in(model, blank(n, T, n_words), passes=T)
    found = torch.stack([(drawn == text).all(-1).sum() for text in everything])
    large = expected * n > 5
    gaps = (found - expected * n)[large].square() / (expected * n)[large]
    freedom = large.sum().item() - 1
    assert gaps.sum() < freedom + 4 * math.sqrt(2 * freedom)
    # In a single pass the words know nothing of each other: another distribution.
    once = fill_in(model, blank(n, T, n_words), passes=1)
    found = torch.stack([(once == text).all(-1).sum() for text in everything])
    assert ((found - expected * n)[large].square() / (expected * n)[large]).sum() > 3 * freedom


def test_only_masks_are_filled_and_none_is_left():
    model, seen = tiny(), []
    for order in ("random", "sure"):
        for passes in (1, 2, 3):
            seen.clear()
            start = blank(5, T, WORDS)
            ids = fill_in(model, start, passes, order, watch=lambda x: seen.append(x.clone()))
            assert (ids[:, 1:] < WORDS).all() and (ids[:, 0] == BOS).all()
            assert len(seen) == passes
            for earlier, later in itertools.pairwise(seen):
                kept = earlier != WORDS
                assert torch.equal(earlier[kept], later[kept])
                assert (later != WORDS).sum() > kept.sum()


def test_the_sure_order_keeps_the_likeliest_draw():
    model = tiny()
    with torch.no_grad():
        model.output.bias.zero_()
        model.output.bias[2] = 50.0  # only one word is ever drawn, so every draw is as sure
    assert (fill_in(model, blank(4, T, WORDS), T, "sure")[:, 1:] == 2).all()

    class Known(MaskedLanguageModel):
        def forward(self, ids):
            logits = torch.zeros(*ids.shape, WORDS + 1)
            logits[:, 2, 3] = 100.0  # place 2 is certain, the others are not
            return logits

    known, seen = Known(tiny().config), []
    fill_in(known, blank(8, T, WORDS), T, "sure", watch=lambda x: seen.append(x.clone()))
    assert (seen[0][:, 2] == 3).all() and (seen[0][:, [1, 3]] == WORDS).all()


def test_words_that_stand_there_stay_and_each_text_gets_its_share():
    model, seen = tiny(), []
    start = blank(2, T, WORDS)
    start[0, 2] = 3  # two masks in the first text, three in the second
    fill_in(model, start, 2, watch=lambda x: seen.append(x.clone()))
    assert [(x == WORDS).sum(-1).tolist() for x in seen] == [[1, 1], [0, 0]]
    assert all((x[0, 2] == 3).all() for x in seen)
    assert (fill_in(model, start, 9)[:, 1:] < WORDS).all()  # more passes than masks


def test_bos_is_never_hidden_and_the_rate_is_each_texts_own():
    ids = torch.full((2000, 5), 3)
    ids[:, 0] = BOS
    rate = torch.tensor([0.2, 0.9]).repeat(1000)
    torch.manual_seed(0)
    read = mask_at(ids, rate, WORDS)
    assert (read[:, 0] == BOS).all()
    share = (read[:, 1:] == WORDS).float().mean(1)
    assert share[::2].mean() == pytest.approx(0.2, abs=0.02)
    assert share[1::2].mean() == pytest.approx(0.9, abs=0.02)


def test_the_gradient_reaches_the_model_and_padding_mask_does_not_hide():
    model = tiny()
    diffusion_loss(model, torch.stack(texts())).backward()
    assert model.embedding.lookup.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("order", ["random", "sure"])
def test_the_last_pass_fills_what_is_left_however_unsure(order):
    for passes in (1, 2):
        ids = fill_in(tiny(), blank(5, T, WORDS), passes, order, sure_enough=1.0)
        assert (ids[:, 1:] < WORDS).all()


@pytest.mark.parametrize("given", [{"order": "best"}, {"passes": 0}])
def test_what_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        fill_in(tiny(), blank(2, T, WORDS), **{"passes": 1} | given)


def test_a_masked_pass_reads_and_guesses_at_once():
    """diffusion_loss is the cross-entropy at the masked places, each divided by its text's rate."""
    model, ids = tiny(), torch.stack(texts())
    torch.manual_seed(5)
    with torch.no_grad():
        loss = diffusion_loss(model, ids)
    torch.manual_seed(5)
    n = len(ids)
    rate = (torch.randperm(n) + torch.rand(n)).clamp(min=1e-3) / n
    read = diffusion.mask_at(ids, rate, WORDS)
    with torch.no_grad():
        log_p = model(read)[..., :WORDS].log_softmax(-1)
    nats = F.nll_loss(log_p.mT, ids, reduction="none") * (read == WORDS) / rate[:, None]
    torch.testing.assert_close(loss, nats.sum() / ids[:, 1:].numel())


# ---- a model without an error -------------------------------------------------------------------

FOUR = torch.tensor([[BOS, 2, 3, 2], [BOS, 2, 2, 3], [BOS, 3, 3, 2], [BOS, 2, 3, 3]])


def counting():
    return Counting(FOUR, ModelConfig(WORDS + 1))


def test_its_guesses_are_the_shares_among_the_texts_that_agree():
    p = counting()(torch.tensor([[BOS, 2, WORDS, WORDS], [BOS, WORDS, WORDS, WORDS]])).softmax(-1)
    # Three of the texts begin with 2: two go on with 3, and two of the three end with 3.
    torch.testing.assert_close(p[0, 2, [2, 3]], torch.tensor([1 / 3, 2 / 3]))
    torch.testing.assert_close(p[0, 3, [2, 3]], torch.tensor([1 / 3, 2 / 3]))
    torch.testing.assert_close(p[1, 1, [2, 3]], torch.tensor([3 / 4, 1 / 4]))
    assert p[..., 0].max() < 1e-6


def test_where_no_text_agrees_the_nearest_count():
    p = counting()(torch.tensor([[BOS, 3, 2, WORDS]])).softmax(-1)
    # Two texts differ in one place: 2 2 3 and 3 3 2.
    torch.testing.assert_close(p[0, 3, [2, 3]], torch.tensor([0.5, 0.5]))


def test_one_token_a_pass_gives_the_texts_as_often_as_they_are():
    torch.manual_seed(0)
    drawn = fill_in(counting(), blank(4000, T, WORDS), T)
    found = torch.stack([(drawn == text).all(-1).float().mean() for text in FOUR])
    assert found.sum() == 1 and (found - 0.25).abs().max() < 0.03
    once = fill_in(counting(), blank(4000, T, WORDS), 1)
    made_up = 1 - torch.stack([(once == text).all(-1).float().mean() for text in FOUR]).sum()
    assert made_up > 0.2  # a quarter, by the product of the shares


def test_what_is_certain_is_kept_at_once_and_nothing_goes_wrong():
    """Two texts that differ everywhere: the first word decides all others."""
    two = torch.tensor([[BOS, 2, 2, 2], [BOS, 3, 3, 3]])
    model, seen = Counting(two, ModelConfig(WORDS + 1)), []
    torch.manual_seed(0)
    drawn = fill_in(model, blank(200, T, WORDS), T, sure_enough=0.9, watch=seen.append)
    assert len(seen) == T and (seen[0] == WORDS).sum() == 200 * (T - 1)
    assert not (seen[1] == WORDS).any()  # the second pass fills the rest
    assert (drawn[:, 1:] == drawn[:, 1:2]).all()


# ---- what is recorded ---------------------------------------------------------------------------


def test_passes_are_counted_until_a_text_is_full():
    known = grammar.captions(50)
    model = Counting(grammar.to_ids(known, EOS), recording.CONFIG)
    start = blank(8, grammar.LENGTH, recording.WORDS)
    torch.manual_seed(0)
    one_by_one = recording.filled(model, start, known, passes=grammar.LENGTH)
    assert one_by_one["used"] == grammar.LENGTH and one_by_one["copied"] == 1
    sure = recording.filled(model, start, known, passes=grammar.LENGTH, sure_enough=0.99)
    assert 1 < sure["used"] < grammar.LENGTH and sure["copied"] == 1
    assert recording.filled(model, start, known, passes=1)["used"] == 1


def test_captions_are_judged_by_the_grammar():
    found = recording.judged(["a dog is sleeping", "a dog are sleeping"] * 2, ["a dog is sleeping"])
    assert found == {"accepted": 0.5, "copied": 0.5, "distinct": 0.5, "words": 4}


def test_a_trained_model_is_measured_in_every_way(monkeypatch):
    monkeypatch.setattr(recording, "N_TEXTS", 60)
    monkeypatch.setattr(recording, "N_LOOK", 8)
    found = recording.trained(updates=3, rate=3e-3, seed=0)
    assert found["nats"] > 20  # per caption, by a model that knows next to nothing
    assert len(found["ways"]) == len(recording.WAYS)
    assert all(0 <= way["accepted"] <= 1 and way["used"] >= 1 for way in found["ways"])
