"""Preferences: the law of the reweighted reference on all texts of a tiny language; the grammar."""

import copy
import itertools

import pytest
import torch

from transformer_lib.beyond import caption_grammar as grammar
from transformer_lib.beyond import preferences
from transformer_lib.beyond.preferences import (
    RewardModel,
    dpo_loss,
    log_probability,
    policy_gradient_loss,
    reward_loss,
    reweighted,
    write_texts,
)
from transformer_lib.config import BOS, EOS, ModelConfig
from transformer_lib.models.language_model import LanguageModel

PRICE = 0.4


def tiny(vocab_size=6, seed=0):
    torch.manual_seed(seed)
    config = ModelConfig(vocab_size, 16, 2, 32, 0, 1, 0.0, max_len=32, positional="learned")
    return LanguageModel(config).double()


def all_texts():
    """Every text of at most three words from {4, 5}, and the cut ones of length 3: (N, 4) ids."""
    rows = [[BOS, EOS, 0, 0]]
    for n in (1, 2):
        rows += [[BOS, *w, EOS, *[0] * (2 - n)] for w in itertools.product((4, 5), repeat=n)]
    return torch.tensor(rows)


@pytest.fixture
def known():
    """A distribution over 7 texts, and a reward for each."""
    torch.manual_seed(3)
    return torch.randn(7).double().log_softmax(-1), torch.randn(7).double()


def pair_loss(log_p, log_reference, reward, price):
    """The mean of DPO's loss over all pairs, both ways round, as Bradley and Terry would choose."""
    i, j = torch.tensor(list(itertools.product(range(len(reward)), repeat=2))).T
    chosen = torch.sigmoid(reward[i] - reward[j])
    each = torch.stack([
        dpo_loss(log_p[[a]], log_p[[b]], log_reference[[a]], log_reference[[b]], price)
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ])
    return (chosen * each).mean()


def gained(log_p, log_reference, reward, price):
    """What the policy gradient climbs: mean reward less the price of the KL divergence."""
    return (log_p.exp() * (reward - price * (log_p - log_reference))).sum()


def test_the_reweighted_reference_earns_most(known):
    reference, reward = known
    best = reweighted(reference, reward, PRICE)
    assert best.exp().sum() == pytest.approx(1)
    top = gained(best, reference, reward, PRICE)
    # Its value is the price times the logarithm of the mean of exp(reward / price).
    assert top == pytest.approx((PRICE * torch.logsumexp(reference + reward / PRICE, 0)).item())
    for seed in range(50):
        torch.manual_seed(seed)
        other = (best + 0.1 * torch.randn(7)).log_softmax(-1)
        assert gained(other, reference, reward, PRICE) < top


@pytest.mark.parametrize("price", [0.2, 1.0])
def test_dpo_has_the_reweighted_reference_as_its_optimum(known, price):
    reference, reward = known
    logits = reweighted(reference, reward, price).clone().requires_grad_()
    loss = pair_loss(logits.log_softmax(-1), reference, reward, price)
    (slope,) = torch.autograd.grad(loss, logits)
    assert slope.abs().max() < 1e-12
    started = reference.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([started], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = pair_loss(started.log_softmax(-1), reference, reward, price)
        value.backward()
        return value

    for _ in range(3):
        optimizer.step(closure)
    torch.testing.assert_close(
        started.log_softmax(-1), reweighted(reference, reward, price), atol=1e-4, rtol=0
    )


def test_a_text_of_the_model_has_the_probability_that_writing_it_has():
    model = tiny()
    with torch.no_grad():
        model.embedding.lookup.weight *= 3
    texts, n = all_texts(), 6000
    expected = log_probability(model, texts).exp()
    torch.manual_seed(0)
    drawn = write_texts(model.float(), n)[:, :4]
    found = torch.tensor([(drawn == t).all(-1).float().mean() for t in texts])
    # `sample` never draws padding: what the model gives to it goes to the others.
    assert ((found - expected).abs() < 0.05).all()
    assert write_texts(model, 3).shape == (3, 1 + grammar.LENGTH)


def test_log_probability_is_the_sum_over_the_words_and_ignores_padding():
    model = tiny()
    ids = torch.tensor([[BOS, 4, 5, EOS]])
    log_p = model(ids).log_softmax(-1)[0]
    expected = log_p[0, 4] + log_p[1, 5] + log_p[2, EOS]
    torch.testing.assert_close(log_probability(model, ids)[0], expected)
    padded = torch.nn.functional.pad(ids, (0, 3))
    torch.testing.assert_close(log_probability(model, padded)[0], expected)


def test_the_policy_gradient_is_the_slope_of_what_is_gained(monkeypatch):
    """On all texts at once, each as often as the policy writes it, it is exact."""
    policy, reference = tiny(seed=1), tiny(seed=2)
    texts = torch.tensor([[BOS, *w] for w in itertools.product(range(1, 6), repeat=2)])
    torch.manual_seed(0)
    reward = torch.randn(len(texts)).double()

    def lookup(ids):
        return torch.stack([reward[(texts == row[:3]).all(-1)][0] for row in ids])

    def without_padding(model):
        return log_probability(model, texts)

    log_p = without_padding(policy)
    log_p = log_p - log_p.detach().logsumexp(0)  # over the texts without padding
    with torch.no_grad():
        earned = reward - PRICE * (without_padding(policy) - without_padding(reference))
    exact = torch.autograd.grad((log_p.exp() * earned).sum() - (
        log_p.exp().sum() * (log_p.exp() * earned).sum().detach()
    ), policy.output.weight)[0]
    copies = (log_p.exp() * 40_000).round().long()
    ids = texts.repeat_interleave(copies, 0)
    monkeypatch.setattr(preferences, "write_texts", lambda model, n: ids)
    loss = policy_gradient_loss(policy, reference, lookup, PRICE, len(ids))
    (slope,) = torch.autograd.grad(loss, policy.output.weight)
    torch.testing.assert_close(-slope, exact, atol=2e-3, rtol=2e-2)


def test_at_the_optimum_every_text_earns_the_same(monkeypatch):
    """Then the advantage is 0, and the policy gradient too, whatever was drawn."""
    policy, reference = tiny(seed=1), tiny(seed=2)
    ids = all_texts()
    monkeypatch.setattr(preferences, "write_texts", lambda model, n: ids)
    with torch.no_grad():
        moved = log_probability(policy, ids) - log_probability(reference, ids)
    reward = lambda _: PRICE * moved + 1.7  # noqa: E731
    policy_gradient_loss(policy, reference, reward, PRICE, len(ids)).backward()
    assert max(p.grad.abs().max() for p in policy.parameters() if p.grad is not None) < 1e-12


def test_the_reward_is_read_off_the_last_real_token():
    torch.manual_seed(0)
    model = RewardModel(tiny().config).double()
    ids = torch.tensor([[BOS, 4, 5, EOS], [BOS, 5, EOS, 0]])
    alone = model(ids[1:, :3])
    torch.testing.assert_close(model(ids)[1:], alone)
    changed = ids.clone()
    changed[0, 1] = 5
    assert (model(changed)[0] - model(ids)[0]).abs() > 1e-6


def test_reward_loss_is_that_of_the_chosen_side():
    better, worse = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])
    expected = -(torch.sigmoid(torch.tensor([1.0, 0.0])).log().mean())
    torch.testing.assert_close(reward_loss(better, worse), expected)


def test_dpo_begins_at_a_coin_flip():
    x = torch.randn(5)
    y = torch.randn(5)
    torch.testing.assert_close(dpo_loss(x, y, x, y, 0.3), torch.tensor(2.0).log())


# ---- the grammar as a judge ---------------------------------------------------------------------


def test_the_grammar_accepts_what_it_makes():
    made = grammar.captions(3000, seed=7)
    assert all(map(grammar.accepts, made))
    assert grammar.to_texts(grammar.to_ids(made)) == made
    assert grammar.to_texts(grammar.to_ids(made, fill=EOS)) == made


@pytest.mark.parametrize("text", [
    "a man are sleeping",  # agreement
    "two men is sleeping",
    "a old man is sleeping",  # article
    "an old child is sleeping",  # old fits no child
    "a dog is reading a book",  # who can do what
    "a man is reading a dog",
    "a man is photographing a man",  # one and the same noun
    "a man is sleeping in the beach",  # preposition
    "a man is reading",  # an object is missing
    "two men are wearing a hat",  # each wears one
    "a man is sleeping in the park in the garden",
    "a white white cat is sleeping",
    "a man and a man are sleeping",
    "",
])
def test_the_grammar_refuses(text):
    assert not grammar.accepts(text)


def test_most_captions_with_one_wrong_word_are_refused():
    import random

    rng, kept = random.Random(0), 0
    words = grammar.vocabulary()[4:]
    for caption in grammar.captions(1000, seed=3):
        text = caption.split()
        i = rng.randrange(len(text))
        text[i] = rng.choice([w for w in words if w != text[i]])
        kept += grammar.accepts(" ".join(text))
    assert kept < 50


def test_one_caption_can_be_trained_to_be_preferred():
    """A DPO step moves the better text up against the worse one."""
    model = tiny()
    before = copy.deepcopy(model)
    better, worse = torch.tensor([[BOS, 4, 5, EOS]]), torch.tensor([[BOS, 5, 4, EOS]])
    with torch.no_grad():
        start = [log_probability(before, x) for x in (better, worse)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        now = [log_probability(model, x) for x in (better, worse)]
        dpo_loss(*now, *start, PRICE).backward()
        optimizer.step()
    now = [log_probability(model, x) for x in (better, worse)]
    assert now[0] - now[1] > start[0] - start[1]
