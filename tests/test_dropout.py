"""Dropout: the law of torch.nn.Dropout, for the plain version and the fast one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import dropout, fast

both = pytest.mark.parametrize("Dropout", [dropout.Dropout, fast.Dropout], ids=["plain", "fast"])


@both
@given(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.integers(0, 20))
def test_drops_a_share_p_and_scales_the_rest(Dropout, p, seed):
    torch.manual_seed(seed)
    y = Dropout(p)(torch.ones(200, 200))
    assert (y == 0).float().mean().item() == pytest.approx(p, abs=0.015)
    assert y[y != 0].unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-4)


@both
def test_neighbours_are_dropped_independently(Dropout):
    # Fast: one draw of 64 bits decides for four numbers, which must not be related.
    kept = (Dropout(0.5)(torch.ones(100_000, 4)) != 0).float()
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 0.02


@both
@given(st.lists(st.integers(0, 5), max_size=3))
def test_keeps_any_shape(Dropout, shape):
    assert Dropout(0.5)(torch.ones(shape)).shape == torch.Size(shape)


@both
def test_the_gradient_passes_where_the_number_passed(Dropout):
    x = torch.ones(1000, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@both
def test_nothing_happens_outside_training_or_at_0(Dropout):
    x = torch.randn(3, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@both
def test_same_seed_same_drops_and_otherwise_new_ones(Dropout):
    dropout, x, results = Dropout(0.5), torch.ones(100), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(dropout(x))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


@both
def test_keeps_the_dtype(Dropout):
    assert Dropout(0.5)(torch.ones(4, dtype=torch.bfloat16)).dtype == torch.bfloat16


@both
@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_a_share_outside_0_to_1_is_named(Dropout, p):
    with pytest.raises(ValueError, match=rf"dropout is {p}; it must be in \[0, 1\)"):
        Dropout(p)


@both
def test_the_random_numbers_are_drawn_where_the_numbers_are(Dropout):
    """"meta" stands for any device that is not the processor."""
    assert Dropout(0.5)(torch.ones(3, 4, device="meta")).device.type == "meta"


def test_on_a_processor_the_fast_one_draws_for_itself(monkeypatch):
    drawn = []
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p: drawn.append(p) or x)
    for device in ("cpu", "meta"):
        fast.Dropout(0.5)(torch.ones(3, 4, device=device))
    assert drawn == [0.5], "a GPU's draws cost nothing"
