"""A mixture of experts is the dense network at its limit; each law is seen to fail when broken."""

import copy
import json

import pytest
import torch
from torch import nn

from transformer_lib.beyond import experts
from transformer_lib.beyond.experts import ExpertLanguageModel, FixedRouter, MixtureOfExperts
from transformer_lib.beyond.one_stream import TwoPartLanguageModel
from transformer_lib.blocks import make_feed_forward
from transformer_lib.cache import DecoderCache
from transformer_lib.config import BOS, BlockConfig, ModelConfig
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.pretrained import results_dir

CONFIG = BlockConfig(16, 2, 24, 0, 1, 0.0)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def naive(mixture, x):
    """Every expert at every token, and most of it thrown away."""
    probabilities = mixture.router(x).softmax(-1)
    weight, chosen = probabilities.topk(mixture.k)
    if mixture.weighting == "share":
        weight = weight / weight.sum(-1, keepdim=True)
    if mixture.weighting == "one":
        weight = torch.ones_like(weight)
    gates = torch.zeros_like(probabilities).scatter(-1, chosen, weight)  # (B, T, E)
    answers = torch.stack([expert(x) for expert in mixture.experts], dim=-1)  # (B, T, D, E)
    return (answers * gates[:, :, None]).sum(-1) + sum(expert(x) for expert in mixture.shared)


@pytest.mark.parametrize(
    "k, weighting", [(1, "one"), (1, "probability"), (2, "share"), (3, "share")]
)
@pytest.mark.parametrize("n_shared", [0, 2])
def test_asking_a_few_is_asking_all_and_throwing_most_away(k, weighting, n_shared):
    mixture, x = MixtureOfExperts(CONFIG, 5, k, weighting, n_shared), torch.randn(3, 7, 16)
    torch.testing.assert_close(mixture(x), naive(mixture, x))
    assert mixture.asked.shape == (3, 7, k)


@pytest.mark.parametrize("weighting", ["share", "probability", "one"])
def test_one_expert_is_the_dense_network(weighting):
    mixture, dense = MixtureOfExperts(CONFIG, 1, 1, weighting), make_feed_forward(CONFIG)
    mixture.experts[0].load_state_dict(dense.state_dict())
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(mixture(x), dense(x))
    assert mixture.balance.item() == pytest.approx(1)


def test_equal_experts_are_the_dense_network_whoever_is_asked():
    dense, x = make_feed_forward(CONFIG), torch.randn(2, 5, 16)
    mixture = MixtureOfExperts(CONFIG, 6, 2)
    for expert in mixture.experts:
        expert.load_state_dict(dense.state_dict())
    torch.testing.assert_close(mixture(x), dense(x))
    # Seen to fail: probabilities that are left out are missing from the sum.
    mixture.weighting = "probability"
    assert (mixture(x) - dense(x)).abs().max() > 1e-2


def test_a_token_is_answered_alone():
    mixture, x = MixtureOfExperts(CONFIG, 4, 2), torch.randn(2, 5, 16)
    one_by_one = [mixture(x[i : i + 1, t : t + 1]) for i in range(2) for t in range(5)]
    torch.testing.assert_close(torch.cat(one_by_one).view(2, 5, 16), mixture(x))


def test_only_the_experts_that_are_asked_learn():
    mixture = MixtureOfExperts(CONFIG, 4, 1, "one")
    mixture(torch.randn(1, 1, 16)).square().sum().backward()
    learns = [
        any(p.grad is not None and p.grad.any() for p in e.parameters()) for e in mixture.experts
    ]
    assert sum(learns) == 1 and learns[mixture.asked.item()]


@pytest.mark.parametrize("weighting", ["one", "probability"])
def test_the_router_learns_from_a_single_choice(weighting):
    mixture = MixtureOfExperts(CONFIG, 4, 1, weighting)
    mixture(torch.randn(2, 5, 16)).square().sum().backward()
    assert mixture.router.weight.grad.abs().max() > 1e-4


def test_shares_of_a_single_choice_are_refused_since_the_router_would_not_learn():
    with pytest.raises(ValueError, match="no gradient"):
        MixtureOfExperts(CONFIG, 4, 1)
    with pytest.raises(ValueError, match="between 1 and all 4"):
        MixtureOfExperts(CONFIG, 4, 5)
    mixture = MixtureOfExperts(CONFIG, 4, 1, "one")
    mixture.weighting = "share"  # what would happen
    mixture(torch.randn(2, 5, 16)).square().sum().backward()
    assert mixture.router.weight.grad.abs().max() < 1e-6


def test_balance_is_1_when_even_and_e_when_one_is_asked_by_all():
    even = torch.full((8, 4), 0.25)
    assert experts.balance_loss(even, torch.arange(8)[:, None] % 4).item() == pytest.approx(1)
    sure = torch.eye(4)[torch.zeros(8, dtype=torch.long)]
    assert experts.balance_loss(sure, torch.zeros(8, 1, dtype=torch.long)).item() == 4


def test_balance_lowers_the_expert_that_is_asked_too_often():
    logits = torch.tensor([[2.0, 0.0, 0.0]] * 6, requires_grad=True)
    experts.balance_loss(logits.softmax(-1), torch.zeros(6, 1, dtype=torch.long)).backward()
    assert (logits.grad[:, 0] > 0).all() and (logits.grad[:, 1:] < 0).all()


def test_the_balance_loss_of_transformers():
    switch = pytest.importorskip(
        "transformers.models.switch_transformers.modeling_switch_transformers"
    )
    probabilities = torch.randn(1, 30, 5).softmax(-1)
    chosen = probabilities.argmax(-1)
    theirs = switch.load_balancing_loss_func(probabilities, chosen)
    ours = experts.balance_loss(probabilities[0], chosen[0, :, None])
    torch.testing.assert_close(ours, theirs)


def test_the_sparse_block_of_mixtral():
    mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    from transformers import MixtralConfig

    given = MixtralConfig(
        hidden_size=16,
        intermediate_size=24,
        num_local_experts=5,
        num_experts_per_tok=2,
        hidden_act="silu",
    )
    theirs = mixtral.MixtralSparseMoeBlock(given).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    config = BlockConfig(16, 2, 24, 0, 1, 0.0, activation="swiglu", bias=False)
    ours = MixtureOfExperts(config, 5, 2)
    with torch.no_grad():
        ours.router.weight.copy_(theirs.gate.weight)
        for i, expert in enumerate(ours.experts):
            gate, up = theirs.experts.gate_up_proj[i].chunk(2)
            expert.gate.weight.copy_(gate)
            expert.expand.weight.copy_(up)
            expert.contract.weight.copy_(theirs.experts.down_proj[i])
        x = torch.randn(2, 7, 16)
        found = theirs(x)
    found = found[0] if isinstance(found, tuple) else found
    torch.testing.assert_close(ours(x), found, atol=1e-5, rtol=1e-5)


def test_the_two_part_language_model_is_two_experts_with_a_fixed_router():
    config = ModelConfig(30, 16, 2, 24, 0, 2, 0.0, positional="rotary")
    two_part = TwoPartLanguageModel(config).eval()
    for parameter in two_part.parameters():
        nn.init.normal_(parameter, std=0.3)
    ids = torch.tensor([[7, 8, 9, BOS, 11, 12, 13]])
    want = two_part(ids)
    mixed = copy.deepcopy(two_part)
    for layer in mixed.decoder.layers:
        layer.feed_forward = experts.as_mixture(layer.feed_forward, config)
        layer.feed_forward.router.which = ((ids == BOS).cumsum(1) > 0).long()
    torch.testing.assert_close(mixed(ids), want)
    for layer in mixed.decoder.layers:  # seen to fail: everybody asks the source's expert
        layer.feed_forward.router.which = torch.zeros_like(ids)
    assert (mixed(ids) - want).abs().max() > 1e-2


def test_a_hash_asks_one_expert_for_each_token_with_a_cache_too():
    config = ModelConfig(30, 16, 2, 24, 0, 2, 0.0, positional="rotary")
    model = ExpertLanguageModel(config, 4, hashed=True).eval()
    ids = torch.randint(4, 30, (2, 9))
    with torch.no_grad():
        whole, cache = model.decode(ids), DecoderCache(2)
        for layer in model.decoder.layers:
            assert isinstance(layer.feed_forward.router, FixedRouter)
            assert (layer.feed_forward.asked[..., 0] == model.table[ids]).all()
        pieces = [model.decode(part, cache) for part in ids.split([5, 1, 3], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-5, rtol=1e-5)


def test_a_language_model_of_one_expert_is_the_language_model():
    config = ModelConfig(30, 16, 2, 24, 0, 2, 0.0, positional="rotary")
    plain, mixed = LanguageModel(config), ExpertLanguageModel(config, 1)
    state = {
        name.replace("feed_forward.", "feed_forward.experts.0."): value
        for name, value in plain.state_dict().items()
    }
    missing, unexpected = mixed.load_state_dict(state, strict=False)
    assert not unexpected and all("router" in name for name in missing)
    ids = torch.randint(4, 30, (2, 9))
    torch.testing.assert_close(mixed(ids), plain(ids))
    assert mixed.balance().item() == pytest.approx(1)


def recorded(arm, key="bits", **change):
    from recordings.beyond.experts import BASE

    wanted = BASE | change | {"arm": arm}
    records = json.loads((results_dir() / "beyond" / "experts.json").read_text())["records"]
    return {
        r["settings"]["seed"]: r[key] for r in records if wanted.items() <= r["settings"].items()
    }


def test_the_recorded_arms_do_equal_work_where_they_say_so():
    from recordings.beyond.experts import ARMS, WIDTH

    def work(arm):  # multiplications for each token in the networks of a layer
        width, n_experts, settings = ARMS[arm]
        return settings.get("k", 1) * width if n_experts else width

    assert {work(arm) for arm in ARMS if arm != "wide"} == {WIDTH} and work("wide") == 8 * WIDTH
    many = {arm: recorded(arm, "run")[0]["parameters"] for arm in ARMS}
    large = [n for arm, n in many.items() if arm != "narrow"]
    assert max(large) < 1.03 * min(large) and 0.3 < many["narrow"] / min(large) < 0.36
