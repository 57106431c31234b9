"""One recurrence, three ways to compute it; each law is seen to fail when broken."""

import json

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.beyond import states
from transformer_lib.beyond.far_links import N_VALUES
from transformer_lib.beyond.learning import learn
from transformer_lib.beyond.linear import RecurrentAttention
from transformer_lib.runs.pretrained import results_dir

T, M, K = 23, 6, 5


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def some_parts(rows=1, t=T):
    q, k = torch.randn(2, 2, 3, t, M, dtype=torch.float64)
    v = torch.randn(2, 3, t, K, dtype=torch.float64)
    log_decay = -2 * torch.rand(2, 3, t, rows, dtype=torch.float64)
    return q, F.normalize(k, dim=-1), v, log_decay, torch.rand(2, 3, t, 1, dtype=torch.float64)


KINDS = [(rows, replace) for rows in (1, M) for replace in (False, True)]


@pytest.mark.parametrize("rows, replace", KINDS)
def test_the_scan_is_the_masked_quadratic_form_and_the_chunks(rows, replace):
    parts = some_parts(rows)
    by_token, _ = states.scan(*parts, replace)
    torch.testing.assert_close(states.quadratic(*parts, replace), by_token)
    for size in (1, 4, 7, T, 40):
        torch.testing.assert_close(states.by_chunks(*parts, replace, size=size), by_token)


@pytest.mark.parametrize("rows, replace", KINDS)
def test_the_laws_gradients_are_equal_too(rows, replace):
    found = []
    for way in (lambda *p: states.scan(*p)[0], states.quadratic, states.by_chunks):
        torch.manual_seed(1)
        parts = [x.requires_grad_() for x in some_parts(rows)]
        way(*parts, replace).square().sum().backward()
        found.append([x.grad for x in parts])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


def test_the_law_is_seen_to_fail_when_the_mask_is_broken(monkeypatch):
    parts = some_parts()
    right, _ = states.scan(*parts)
    whole = states.what_is_left
    for broken in (
        lambda d: whole(d).transpose(2, 3),  # rows and columns exchanged
        lambda d: whole(d) * d.exp()[:, :, :, None],  # the own decay, too
        lambda d: (whole(d) > 0).to(d.dtype),  # the plain causal mask
    ):
        monkeypatch.setattr(states, "what_is_left", broken)
        assert (states.quadratic(*parts) - right).abs().max() > 1e-2


def test_the_delta_rule_needs_the_triangular_system():
    q, k, v, log_decay, write = some_parts()
    right, _ = states.scan(q, k, v, log_decay, write, True)
    naive = states.masked_scores(q, k, log_decay) @ (write * v)
    assert (naive - right).abs().max() > 1e-2


@pytest.mark.parametrize("rows, replace", KINDS)
def test_the_future_never_changes_the_past(rows, replace):
    parts = some_parts(rows)
    later = [torch.cat([x[:, :, :12], torch.rand_like(x[:, :, 12:])], dim=2) for x in parts]
    later[3] = -later[3].abs()
    same = states.quadratic(*later, replace)[:, :, :12]
    torch.testing.assert_close(same, states.quadratic(*parts, replace)[:, :, :12])


def test_without_a_gate_it_is_linear_attention_before_its_divisor():
    q, k, v, log_decay, _ = some_parts()
    ours, _ = states.scan(q, k, v, 0 * log_decay, torch.ones_like(log_decay))
    recurrent = RecurrentAttention()
    for t in range(T):
        divided = recurrent.step(q[:, :, t], k[:, :, t], v[:, :, t])
        weight = (q[:, :, t] * recurrent.total).sum(-1, keepdim=True)
        torch.testing.assert_close(ours[:, :, t], divided * weight)


def test_a_strong_decay_over_a_long_text_stays_finite():
    q, k, v = torch.randn(3, 1, 1, 2000, 4)
    out = states.quadratic(q, k, v, torch.full((1, 1, 2000, 1), -5.0), torch.ones(1, 1, 2000, 1))
    assert out.isfinite().all()


@pytest.mark.parametrize("gate", states.GATES)
def test_going_on_from_a_state_equals_reading_at_once(gate):
    mixer, x = states.StateMixer(16, 2, 4, gate).eval(), torch.randn(2, 20, 16)
    with torch.no_grad():
        whole, state, pieces = mixer(x)[0], None, []
        for part in x.split([9, 1, 1, 9], dim=1):
            out, state = mixer.step(part, state)
            pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-5, rtol=1e-4)
    assert state.shape == (2, 2, 4, 8)


def test_the_gates_differ_where_they_say():
    x = torch.randn(1, 5, 16)
    assert (states.StateMixer(16, 2, 4, "linear").log_decay(x) == 0).all()
    fixed = states.StateMixer(16, 2, 4, "RetNet").log_decay(x)
    torch.testing.assert_close(fixed[0, :, 0, 0].exp(), torch.tensor([1 - 1 / 32, 1 - 1 / 64]))
    for gate, rows in (("Mamba-2", 1), ("GLA", 4), ("Gated DeltaNet", 1)):
        found = states.StateMixer(16, 2, 4, gate).log_decay(x)
        assert found.shape == (1, 2, 5, rows) and (found < 0).all()
        assert found.std(dim=2).min() > 0  # computed from the token
    with pytest.raises(ValueError, match="there are linear, RetNet"):
        states.StateMixer(16, 2, 4, "LSTM")


def test_mamba_2s_scan_of_transformers():
    mamba = pytest.importorskip("transformers.models.mamba2.modeling_mamba2")
    q, k, v, _, write = (x.float() for x in some_parts())
    first, rate = (lambda x: x.transpose(1, 2)), -torch.rand(3)
    theirs = mamba.mamba2_chunk_scan(
        first(v), first(write)[..., 0], rate, first(k), first(q), chunk_size=8
    )
    ours = states.quadratic(q, k, v, write * rate[:, None, None], write)
    torch.testing.assert_close(first(ours), theirs, atol=1e-5, rtol=1e-5)


def test_the_gated_delta_rule_of_transformers():
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    q, k, v, log_decay, write = (x.float() for x in some_parts())
    swapped = [x.transpose(1, 2) for x in (q, k, v, log_decay, write)]
    theirs, _ = qwen.torch_recurrent_gated_delta_rule(
        *swapped[:3], swapped[3][..., 0], swapped[4][..., 0]
    )
    ours = states.quadratic(q / M**0.5, k, v, log_decay, write, replace=True)
    torch.testing.assert_close(ours.transpose(1, 2), theirs, atol=1e-5, rtol=1e-5)


def test_the_control_with_no_decay_is_softmax_attention():
    mixer, x = states.SharpMixer(16, 2, 4, "softmax"), torch.randn(2, 9, 16)
    q, k, v, *_ = mixer.parts(x)
    out = F.scaled_dot_product_attention(q * mixer.sharpness, k, v, is_causal=True, scale=1.0)
    want = mixer.w_o(mixer.norm(out).transpose(1, 2).flatten(2))
    torch.testing.assert_close(mixer(x)[0], want)
    gated = states.SharpMixer(16, 2, 4, "softmax, gated")
    assert gated(x)[0].isfinite().all() and gated.to_decay is not None


@pytest.mark.parametrize("other", ["RetNet", "Mamba-2"])
def test_gla_with_equal_rows_is_mamba_2_and_with_a_fixed_decay_retnet(other):
    simple, gla = states.StateMixer(16, 2, 4, other), states.StateMixer(16, 2, 4, "GLA")
    decays = {k: v for k, v in simple.state_dict().items() if not k.startswith("to_decay")}
    gla.load_state_dict(decays, strict=False)
    x = torch.randn(2, 30, 16)
    with torch.no_grad():
        if other == "RetNet":
            gla.to_decay.weight.zero_()
            kept = 1 - 2.0 ** (-5 - torch.arange(2))
            gla.to_decay.bias.copy_(torch.logit(kept).repeat_interleave(4))
        else:
            gla.to_decay.weight.copy_(simple.to_decay.weight.repeat_interleave(4, 0))
            gla.to_decay.bias.copy_(simple.to_decay.bias.repeat_interleave(4))
    torch.testing.assert_close(gla(x)[0], simple(x)[0], atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        gla.to_decay.weight[1] += 1.0  # one row forgets at a speed of its own
    assert (gla(x)[0] - simple(x)[0]).abs().max() > 1e-3


def test_the_control_cannot_step_and_says_so():
    with pytest.raises(TypeError, match="needs all keys and values"):
        states.SharpMixer(16, 2, 4, "softmax").step(torch.randn(2, 1, 16))


@pytest.mark.parametrize("n_told", [1, 2, 3])
def test_the_text_says_what_is_asked(n_told):
    generator = torch.Generator().manual_seed(0)
    names, values, answers = states.draw(50, 9, generator, n_told)
    assert names.shape == values.shape == answers.shape == (50, 9 * (n_told + 1))
    for name, value, answer in zip(names.tolist(), values.tolist(), answers.tolist(), strict=True):
        known = {}
        for n, v, a in zip(name, value, answer, strict=True):
            if v < N_VALUES:
                assert a == -1
                known[n] = v  # the last one holds
            else:
                assert a == known.pop(n)
        assert not known


def test_a_small_recaller_learns_two_facts():
    model = states.Recaller("DeltaNet", 8)
    generator = torch.Generator().manual_seed(0)
    losses = learn(
        model, lambda: states.answer_loss(model, states.draw(16, 2, generator)), 150, 0.006, 20
    )
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])
    assert states.share_right(model, states.draw(64, 2, generator)) > 0.5


def test_every_recorded_run_has_the_whole_curve():
    records = json.loads((results_dir() / "beyond" / "states.json").read_text())["records"]
    assert all(len(r["right"]) == 12 and 0 <= min(r["right"]) for r in records)


ASKED = (2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64)


def recorded(gate, n, **change):
    """The shares right of all seeds of a recorded arm, with n facts."""
    base = {"told": 1, "rows": 16, "heads": 1, "layers": 1, "updates": 500, "rate": 0.006}
    base |= {"columns": None, "fade": None}
    wanted = base | change | {"gate": gate}
    records = json.loads((results_dir() / "beyond" / "states.json").read_text())["records"]
    found = [r["right"][ASKED.index(n)] for r in records
             if wanted.items() <= (base | r["settings"]).items()]
    assert found, wanted
    return torch.tensor(found, dtype=torch.float64)


def edges(**change):
    """Each seed's most facts with 90 % right, by a line between the sizes; 0 to 65, sorted."""
    found = []
    curves = torch.stack([recorded("linear", n, **change) for n in ASKED], 1)
    for right in curves.tolist():
        edge = 65.0 if right[-1] >= 0.9 else 0.0
        for a, b, high, low in zip(ASKED[:-1], ASKED[1:], right[:-1], right[1:], strict=True):
            if low < 0.9 <= high:
                edge = a + (high - 0.9) / (high - low) * (b - a)
                break
        found.append(round(edge))
    return sorted(found)


def test_the_page_says_what_was_recorded_of_the_gates():
    steady = ("linear", "Mamba-2", "DeltaNet", "Gated DeltaNet")
    for n, low, high in ((16, 0.97, 0.99), (32, 0.89, 0.915), (64, 0.69, 0.73)):
        assert all(low <= recorded(gate, n).mean() <= high for gate in steady)
        assert (recorded("softmax", n) == 1).all()
    assert recorded("RetNet", 32).mean() == pytest.approx(0.83, abs=0.005)
    assert recorded("RetNet", 32, fade=1 / 256).mean() == pytest.approx(0.90, abs=0.005)
    assert recorded("RetNet", 32, fade=1 / 16).mean() == pytest.approx(0.68, abs=0.005)
    assert sorted((recorded("GLA", 16) > 0.9).tolist()) == [False, False, True]
    # Each name twice: who cannot know the order is right 1/2 + 1/2 * 1/16 of the time at best.
    blind = [recorded("softmax", n, told=2).mean() for n in ASKED]
    assert 0.485 < min(blind) and max(blind) < 0.555
    assert recorded("linear", 16, told=2).mean() == pytest.approx(0.40, abs=0.005)
    assert recorded("softmax, gated", 16, told=2).mean() == pytest.approx(0.98, abs=0.005)
    assert recorded("Gated DeltaNet", 16, told=2).tolist() == pytest.approx([0.9] * 3, abs=0.005)
    found = recorded("DeltaNet", 16, told=2)
    assert (found > 0.89).sum() == 2 and found.min() == pytest.approx(0.71, abs=0.005)


def test_the_page_says_what_was_recorded_of_the_edge():
    assert edges() == [31, 32, 32]
    assert edges(rows=4) == [0, 0] and edges(rows=4, updates=2000) == [0]  # below 2
    assert edges(rows=8) == [0, 0, 7] and edges(rows=8, updates=2000) == [6]
    assert edges(updates=2000) == [37]
    assert edges(rows=32) == [54, 65] and edges(rows=32, updates=2000) == [65]  # 65: over 64
    assert edges(heads=4) == [59, 63, 65]
    assert edges(rows=64, columns=16) == [65] * 3  # a single head with as many rows and numbers
    assert edges(heads=4, rows=4) == [19, 24, 26] and edges(columns=16) == [0, 24, 33]
    assert (recorded("softmax", 64, rows=4) == 1).all()
    for change in ({"rate": 0.002}, {"rate": 0.02}, {"layers": 2}):
        (edge,) = edges(**change)
        assert 28 <= edge <= 34


def test_the_verdicts_of_the_page():
    from transformer_lib.scoring.verdict import BETTER, TIE, WORSE, compare_runs, pooled_spread

    def seeds(gate, n, told):
        return dict(enumerate(recorded(gate, n, told=told).tolist()))

    gates = [gate for gate in states.GATES if gate != "GLA"]
    spread = pooled_spread([seeds(gate, 32, 1) for gate in gates])
    twice = [gate for gate in gates if gate != "RetNet"]
    spread_twice = pooled_spread([seeds(gate, 16, 2) for gate in twice])
    said = {}
    for gate in gates[1:]:
        pair = seeds(gate, 32, 1), seeds("linear", 32, 1)
        said[gate] = [compare_runs(*pair, among=4, spread=spread)]
        if gate in twice:
            pair = seeds(gate, 16, 2), seeds("linear", 16, 2)
            said[gate].append(compare_runs(*pair, among=4, spread=spread_twice))
    assert [v.word for v in said.pop("RetNet")] == [WORSE]
    assert [v.word for v in said["Mamba-2"]] == [TIE, TIE]
    assert all([v.word for v in said[gate]] == [TIE, BETTER] for gate in list(said)[1:])
    assert all(max(-v[0].low, v[0].high) < 0.022 for v in said.values())
    assert sorted(seeds("Mamba-2", 16, 2).values()) == pytest.approx([0.415, 0.69, 0.72], abs=0.01)
