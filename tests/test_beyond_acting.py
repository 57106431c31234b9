"""Gates, the corridor, the Decision Transformer and its episodes: what must hold of them."""

import json
import math
import statistics
from pathlib import Path

import pytest
import torch
from torch import nn

from transformer_lib.beyond import corridor, families, gates
from transformer_lib.config import BlockConfig
from transformer_lib.decoder import Decoder
from transformer_lib.models.decision_transformer import DecisionTransformer
from transformer_lib.scoring.verdict import compare_runs

ROOT = Path(__file__).resolve().parents[1]
CONFIG = BlockConfig(16, 2, 32, 0, 3, dropout=0.0, max_len=40)


# ---- gates -------------------------------------------------------------------------------------

@pytest.mark.parametrize("gate", [gates.OutputGate, gates.GruGate])
def test_a_closed_gate_is_the_identity_and_a_larger_bias_closes_it(gate):
    torch.manual_seed(0)
    x, y = torch.randn(2, 2, 5, 16)
    with torch.no_grad():
        assert torch.equal(gate(16, bias=1e4)(x, y), x)
        made = gate(16)
        moved = []
        for bias in (-2.0, 0.0, 2.0, 4.0):
            if gate is gates.GruGate:
                made.bias.fill_(bias)
            else:
                made.from_x.bias.fill_(-bias)
            moved.append((made(x, y) - x).norm().item())
    assert moved == sorted(moved, reverse=True)
    assert torch.equal(gate(16, bias=2.0).state_dict().get("bias", torch.full((16,), 2.0)),
                       torch.full((16,), 2.0))


def test_an_open_output_gate_is_the_plain_residual():
    x, y = torch.randn(2, 3, 16)
    torch.testing.assert_close(gates.OutputGate(16, bias=-1e4)(x, y), x + y)


def test_an_open_gru_gate_with_identity_maps_is_the_plain_residual_of_small_numbers():
    gate = gates.GruGate(16, bias=-1e4)  # open
    x, y = 0.01 * torch.rand(2, 3, 16)
    with torch.no_grad():
        for weight in (gate.from_y.weight, gate.from_x.weight):
            weight.zero_()
        gate.from_y.weight[32:] = torch.eye(16)
        gate.from_kept.weight.copy_(2 * torch.eye(16))  # the reset gate stands at a half
        torch.testing.assert_close(gate(x, y), x + y, rtol=1e-3, atol=0)


def test_the_gru_gate_is_the_step_of_torchs_gru():
    """With a diagonal map of what is kept: torch resets behind that map, the paper before it."""
    torch.manual_seed(0)
    gate, cell = gates.GruGate(8, bias=1.5), nn.GRUCell(8, 8)
    reset_y, update_y, new_y = gate.from_y.weight.chunk(3)
    reset_x, update_x = gate.from_x.weight.chunk(2)
    with torch.no_grad():
        gate.from_kept.weight.copy_(torch.randn(8).diag())
        # torch's update gate says what stays, ours what comes
        cell.weight_ih.copy_(torch.cat([reset_y, -update_y, new_y]))
        cell.weight_hh.copy_(torch.cat([reset_x, -update_x, gate.from_kept.weight]))
        cell.bias_ih.copy_(torch.cat([torch.zeros(8), gate.bias, torch.zeros(8)]))
        cell.bias_hh.zero_()
        x, y = torch.randn(2, 5, 8)
        torch.testing.assert_close(gate(x, y), cell(y, x))


def test_a_stack_of_closed_gates_passes_its_input_through():
    stack, x = Decoder(CONFIG, cross_attention=False), torch.randn(2, 7, 16)
    before = stack(x)
    gates.add_gates(stack, CONFIG, bias=1e4)
    assert len([m for m in stack.modules() if isinstance(m, gates.GatedResidual)]) == 6
    torch.testing.assert_close(stack(x), stack.norm(x))
    assert not torch.allclose(before, stack(x))
    with pytest.raises(ValueError, match="norm_first"):
        gates.add_gates(stack, BlockConfig(16, 2, 32, norm_first=False))


def test_the_gated_sublayer_sees_the_norm_and_adds_nothing_negative():
    block = gates.GatedResidual(CONFIG, gates.OutputGate(16, bias=-1e4))
    x = 5 + 3 * torch.randn(2, 4, 16)
    seen = []
    out = block(x, lambda y: seen.append(y) or y)
    torch.testing.assert_close(seen[0], block.norm(x))
    torch.testing.assert_close(out, x + block.norm(x).relu())


# ---- the corridor ------------------------------------------------------------------------------

def test_walks_begin_with_the_sign_and_end_at_the_junction():
    walks = corridor.draw_walks(50, 7, torch.Generator().manual_seed(0))
    assert walks.sights.shape == (50, 7)
    assert torch.equal(walks.sights[:, 0] + corridor.LEFT, walks.turn)
    assert (walks.sights[:, -1] == corridor.JUNCTION).all()
    between = walks.sights[:, 1:-1]
    assert between.min() >= 2 and between.max() < corridor.JUNCTION
    assert set(walks.turn.tolist()) == {corridor.LEFT, corridor.RIGHT}


def test_what_a_walk_earns():
    go, left, right = corridor.FORWARD, corridor.LEFT, corridor.RIGHT
    actions = torch.tensor([[go, go, right], [go, go, left], [go, right, right],
                            [left, go, right], [go, go, go]])
    rewards, alive = corridor.rewards_of(actions, torch.full((5,), right))
    assert rewards.sum(-1).tolist() == [2, 1, 0.5, 0, 1]
    assert alive.sum(-1).tolist() == [3, 3, 2, 1, 3]


def test_returns_to_go_are_the_sums_of_what_comes():
    rewards = torch.rand(3, 8)
    returns = corridor.returns_to_go(rewards)
    torch.testing.assert_close(returns[:, 0], rewards.sum(-1))
    torch.testing.assert_close(returns[:, -1], rewards[:, -1])
    torch.testing.assert_close(returns[:, :-1] - returns[:, 1:], rewards[:, :-1])


def test_the_agent_is_causal_and_its_progress_is_a_probability():
    torch.manual_seed(0)
    agent = corridor.small_agent("gate 2", n_layers=2, length=9).eval()
    walks = corridor.draw_walks(4, 9)
    later = walks.sights.clone()
    later[:, 5:] = 3
    with torch.no_grad():
        logits, values = agent(walks.sights)
        other, _ = agent(later)
    assert logits.shape == (4, 9, 3) and values.shape == (4, 9)
    torch.testing.assert_close(logits[:, :5], other[:, :5])
    assert all(0 <= x <= 1 for x in corridor.progress(agent, walks))


def test_steps_after_a_bump_teach_nothing():
    """The loss of an agent that surely bumps at once does not depend on what it would do later."""

    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits = nn.Parameter(torch.zeros(6, 3))
            self.logits.data[0, corridor.LEFT] = 1e3

        def forward(self, sights):
            logits = self.logits.expand(len(sights), 6, 3)
            return logits, logits.new_zeros(len(sights), 6)

    agent = Fixed()
    corridor.policy_gradient_loss(agent, corridor.draw_walks(8, 6)).backward()
    assert agent.logits.grad[1:].abs().max() == 0


def test_the_policy_gradient_is_the_gradient_of_the_expected_return():
    """Held against the sum over all walks of three steps, for an agent that knows no sign."""
    torch.manual_seed(0)
    logits = torch.randn(3, 3, requires_grad=True)
    every = torch.cartesian_prod(*[torch.arange(3)] * 3)  # (27, 3)
    probability = logits.log_softmax(-1)[torch.arange(3), every].sum(-1).exp()
    expected = 0
    for turn in (corridor.LEFT, corridor.RIGHT):
        rewards, _ = corridor.rewards_of(every, torch.full((27,), turn))
        expected = expected + (probability * rewards.sum(-1)).sum() / 2
    (wanted,) = torch.autograd.grad(expected, logits)

    def agent(sights):  # a guess of the return that is wrong changes nothing on average
        return logits.expand(len(sights), 3, 3), torch.full(sights.shape, 0.7)

    loss = corridor.policy_gradient_loss(agent, corridor.draw_walks(100_000, 3), entropy=0.0)
    (found,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(-found, wanted, atol=0.01, rtol=0)
    assert wanted.abs().max() > 0.05


def test_told_what_to_do_an_agent_learns_the_corridor():
    torch.manual_seed(0)
    agent = corridor.small_agent("pre-norm", n_layers=1, length=6)
    curve = corridor.walk(agent, 100, 3e-3, corridor.told_loss, length=6)
    assert curve[0][0] == 0 and curve[-1][0] == 100
    assert curve[-1][1] > 0.9 and curve[-1][2] > 0.9


# ---- the Decision Transformer ------------------------------------------------------------------

def episode(batch=2, length=6):
    return [torch.rand(batch, length), torch.randn(batch, length, 4),
            torch.randint(2, (batch, length)), torch.arange(length).expand(batch, length)]


def model():
    torch.manual_seed(0)
    return DecisionTransformer(CONFIG, n_state=4, n_actions=2).eval()


@torch.no_grad()
def test_the_later_never_changes_the_earlier_and_an_action_does_not_see_itself():
    decide, given = model(), episode()
    before, t = decide(*given), 3
    assert before.shape == (2, 6, 2)
    for i, first in ((0, t), (1, t), (2, t + 1)):  # the return, the state, the action of step t
        changed = [x.clone() for x in given]
        changed[i][:, t] = 1 - changed[i][:, t]
        after = decide(*changed)
        torch.testing.assert_close(after[:, :first], before[:, :first])
        assert not torch.allclose(after[:, first:], before[:, first:])


def test_actions_and_steps_start_smaller_than_returns_and_states():
    torch.manual_seed(0)
    model = DecisionTransformer(BlockConfig(64, 2, 32, 0, 1, max_len=40), 4, 50)
    for table in (model.embed_action, model.embed_step):
        assert table.weight.std().item() == pytest.approx(0.1, rel=0.15)


@torch.no_grad()
def test_three_tokens_of_a_step_stand_together_and_carry_its_number():
    decide, given = model(), episode()
    x = decide.tokens(*given)
    assert x.shape == (2, 18, 16)
    wanted = decide.embed_state(given[1][:, 2]) + decide.embed_step.weight[2]
    torch.testing.assert_close(x[:, 7], decide.norm(wanted))
    moved = decide(*given[:3], given[3] + 5)
    assert not torch.allclose(moved, decide(*given))
    with pytest.raises(ValueError, match="steps holds 40; .* below 40, max_len"):
        decide(*given[:3], given[3] + 35)


@torch.no_grad()
def test_equals_the_decision_transformer_of_the_field():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.DecisionTransformerModel(transformers.DecisionTransformerConfig(
        state_dim=4, act_dim=2, hidden_size=16, max_ep_len=40, n_layer=3, n_head=2, n_inner=32,
        bos_token_id=None, eos_token_id=None,
        activation_function="gelu_new", action_tanh=False, resid_pdrop=0.0, attn_pdrop=0.0,
        initializer_range=0.3,
    )).eval()
    config = BlockConfig(16, 2, 32, 0, 3, dropout=0.0, max_len=40, activation="gelu_tanh")
    ours = families.from_decision_transformer(theirs.state_dict(), config, 4, 2)
    returns, states, actions, steps = episode()
    there = theirs(
        states=states, actions=nn.functional.one_hot(actions, 2).float(),
        returns_to_go=returns[..., None], timesteps=steps,
        attention_mask=torch.ones(2, 6, dtype=torch.long),
    )
    torch.testing.assert_close(
        ours(returns, states, actions, steps), there.action_preds, rtol=1e-5, atol=1e-5
    )


# ---- episodes ----------------------------------------------------------------------------------

pytest.importorskip("gymnasium")

from transformer_lib.beyond import acting  # noqa: E402


@pytest.fixture(scope="module")
def played():
    torch.manual_seed(0)
    return acting.play(lambda past: torch.randint(2, (len(past.lengths),)), 12, seed=3)


def test_an_episode_earns_one_for_each_step_that_the_pole_stands(played):
    assert torch.equal(played.rewards.sum(-1).long(), played.lengths)
    assert len(set(played.lengths.tolist())) > 3
    real = torch.arange(acting.LIMIT) < played.lengths[:, None]
    assert not played.states[~real].any() and not played.rewards[~real].any()


def test_an_episode_is_what_the_environment_does_with_its_actions(played):
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    for i in range(3):
        env.reset(seed=0)
        env.unwrapped.state = tuple(played.states[i, 0].double().tolist())
        for t in range(played.lengths[i]):
            state, _, fallen, _, _ = env.step(int(played.actions[i, t]))
            assert fallen == (t == played.lengths[i] - 1)
            if not fallen:
                torch.testing.assert_close(
                    torch.tensor(state), played.states[i, t + 1], rtol=1e-4, atol=1e-4
                )


def test_windows_are_pieces_of_the_data(played):
    torch.manual_seed(0)
    returns, states, actions, steps, real = acting.draw_windows(played, 300, context=6)
    assert returns.shape == actions.shape == steps.shape == real.shape == (300, 6)
    ends = set()
    for b in range(300):
        first = next(i for i in range(12) if (played.states[i] == states[b, 0]).all(-1).any())
        n, s = int(real[b].sum()), int(steps[b, 0])
        assert n == min(6, int(played.lengths[first]) - s)
        assert torch.equal(states[b, :n], played.states[first, s : s + n])
        assert torch.equal(actions[b, :n], played.actions[first, s : s + n])
        assert returns[b, 0] == played.lengths[first] - s
        assert (returns[b, :n].diff() == -1).all()
        ends.add(n)
    assert ends == set(range(1, 7))  # every step may be the first of a window


def test_the_best_episodes_are_the_longest(played):
    kept = acting.best(played, 0.25)
    assert len(kept.lengths) == 3
    assert kept.lengths.min() >= played.lengths.sort().values[-3]


class Spy(nn.Module):
    """Keeps what it is asked; pushes right at an even step."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, returns, states, actions, steps):
        self.seen.append((returns, states, actions.clone(), steps))  # actions are filled in later
        right = 1e3 * (1 - 2 * (steps % 2)).float()
        return torch.stack([-right, right], -1)


def test_what_is_earned_is_no_longer_asked_for():
    spy = Spy()
    played = acting.play(acting.asking(spy, torch.tensor([50.0, 120.0]), context=4), 2, seed=0)
    for t, (returns, _, actions, steps) in enumerate(spy.seen[: int(played.lengths.min())]):
        n = min(4, t + 1)
        assert steps.tolist() == [list(range(t + 1 - n, t + 1))] * 2
        wanted = torch.tensor([[50.0], [120.0]]) - steps
        torch.testing.assert_close(returns, wanted / acting.LIMIT)
        assert torch.equal(actions[:, :-1], (1 - steps[:, :-1] % 2))
        assert not actions[:, -1].any()  # not chosen yet
    spy = Spy()
    acting.play(acting.asking(spy, 50.0, context=4, count_down=False), 2, seed=0)
    assert all((returns == 50 / acting.LIMIT).all() for returns, *_ in spy.seen)
    spy = Spy()
    acting.play(acting.asking(spy, None), 2, seed=0)
    assert not any(returns.any() for returns, *_ in spy.seen)


def test_a_context_longer_than_the_episode_is_the_full_history():
    decide = acting.decision_transformer(16, 1).eval()
    got = []
    for context in (acting.LIMIT, 10 * acting.LIMIT):
        torch.manual_seed(1)
        got.append(acting.play(acting.asking(decide, 30.0, context), 4, seed=1))
    assert all(torch.equal(a, b) for a, b in zip(*got, strict=True))
    one = acting.Episodes(*(x[:1] for x in got[0]))
    n = int(one.lengths)
    returns, steps = (30 - torch.arange(n))[None] / acting.LIMIT, torch.arange(n)[None]
    with torch.no_grad():
        whole = decide(returns, one.states[:, :n], one.actions[:, :n], steps)
        for t in (0, n // 2, n - 1):
            piece = decide(*(x[:, : t + 1] for x in (returns, one.states, one.actions, steps)))
            torch.testing.assert_close(piece[:, -1], whole[:, t])


def test_without_returns_a_model_is_told_the_same_for_every_episode(played):
    torch.manual_seed(0)
    cloned = acting.decision_transformer(16, 1)
    before = cloned.embed_return.weight.clone()
    losses = acting.train(cloned, played, 5, see_returns=False)
    assert len(losses) == 5 and torch.equal(before, cloned.embed_return.weight)
    acting.train(cloned, played, 5)
    assert not torch.equal(before, cloned.embed_return.weight)


def test_a_policy_gets_better():
    torch.manual_seed(0)
    first, last = acting.train_policies(12, (0, 12))
    first, last = (
        acting.play(acting.by_chance(policy), 32, seed=5).lengths.float().mean()
        for policy in (first, last)
    )
    assert last > 1.5 * first


# ---- the recorded runs -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def recorded():
    """{"corridor": runs, "cartpole": runs, "data": [what was read]}"""
    records = json.loads((ROOT / "results" / "beyond" / "acting.json").read_text())["records"]
    found = {}
    for r in records:
        found.setdefault(r["settings"]["part"], []).append(r["settings"] | r)
    return found


def test_the_recorded_runs_are_whole(recorded):
    assert recorded["corridor"] and recorded["cartpole"] and recorded["data"][0]["returns"]
    for row in recorded["corridor"]:
        assert row["progress"][0][0] == 0 and len({x[0] for x in row["progress"]}) > 2
        assert all(0 <= a <= 1 and 0 <= t <= 1 for _, a, t in row["progress"])
    for row in recorded["cartpole"]:
        got = row["got"] if "asked" not in row else [x for xs in row["got"] for x in xs]
        assert all(1 <= x <= acting.LIMIT for x in got)
        assert "asked" not in row or len(row["asked"]) == len(row["got"])


def found_the_turn(rows, wanted):
    """Updates until the right turn is 90 percent likely, by seed."""
    rows = [row for row in rows if wanted.items() <= row.items()]
    return [next((u for u, _, t in row["progress"] if t >= 0.9), math.inf) for row in rows]


def test_what_the_page_says_of_the_control_holds(recorded):
    usual = {"rate": 0.001}
    found = {
        signal: [
            u for residual in ("post-norm", "pre-norm", "gate 2", "gate 0")
            for u in found_the_turn(
                recorded["corridor"], usual | {"signal": signal, "residual": residual}
            )
        ]
        for signal in ("told", "earned")
    }
    assert len(found["told"]) == len(found["earned"]) == 12
    assert (min(found["told"]), max(found["told"])) == (50, 75)
    assert (min(found["earned"]), max(found["earned"])) == (125, 275)


def test_what_the_page_says_of_the_bias_holds(recorded):
    usual = {"signal": "earned", "rate": 0.001}
    found = {
        bias: found_the_turn(recorded["corridor"], usual | {"residual": f"gate {bias}"})
        for bias in (-2, 0, 2, 4)
    }
    assert sorted(found[-2]) == [300, math.inf, math.inf]  # of runs of 300 updates
    means = {bias: statistics.mean(found[bias]) for bias in (0, 2, 4)}
    assert {k: round(v) for k, v in means.items()} == {0: 183, 2: 142, 4: 192}


def gates_found(entropy, residual, width):
    path = ROOT / "results" / "beyond" / "gates.json"
    records = json.loads(path.read_text())["records"]
    return {
        r["settings"]["seed"]: r["found"] or math.inf for r in records
        if (r["settings"]["entropy"], r["settings"]["residual"], r["settings"]["width"])
        == (entropy, residual, width)
    }


def test_what_the_page_says_of_gates_holds():
    usual, less = 0.05, 0.01
    small = [("pre-norm", 32), ("gate 2", 20)]
    large = [("pre-norm", 52), ("gate 2", 32)]
    found = {(e, *arm): gates_found(e, *arm) for e in (usual, less) for arm in small + large}
    found[usual, "post-norm", 32] = gates_found(usual, "post-norm", 32)
    assert all(len(seeds) == 9 for seeds in found.values())
    assert max(max(x.values()) for k, x in found.items() if k[0] == usual) <= 300
    means = {k: statistics.mean(x.values()) for k, x in found.items()}
    never = [k for k, x in found.items() for u in x.values() if u == math.inf]
    assert sorted(never) == [(less, "pre-norm", 32), (less, "pre-norm", 52)]
    said = {("gate 2", 20): 203, ("pre-norm", 32): 189, ("pre-norm", 52): 147, ("gate 2", 32): 147}
    assert {arm: round(means[usual, *arm]) for arm in said} == said
    found_late = sorted(found[less, "pre-norm", 32].values())
    assert sum(u <= 300 for u in found_late) == 3 and found_late[-2:] == [975, math.inf]
    assert statistics.median(found[less, "pre-norm", 52].values()) == 200
    gated = found[less, "gate 2", 20].values()
    assert (min(gated), max(gated), max(found[less, "gate 2", 32].values())) == (175, 275, 275)
    # Parameters buy speed: the larger of each residual against the smaller.
    larger, smaller = (
        {k: (found[usual, *a][k] + found[usual, *b][k]) / 2 for k in range(9)}
        for a, b in (large, small)
    )
    both = compare_runs(larger, smaller, better="lower")
    assert both.word == "better"
    assert [round(-x) for x in (both.difference, both.high, both.low)] == [49, 21, 76]
    plain = compare_runs(found[usual, "pre-norm", 52], found[usual, "pre-norm", 32], "lower")
    assert [round(-x) for x in (plain.difference, plain.high, plain.low)] == [42, -5, 89]
    for a, b in (small, large):  # and at equal size no residual is ahead
        assert compare_runs(found[usual, *a], found[usual, *b], "lower").word not in "better worse"
    # Only a quiet start: it arrives in every seed, and can't be told from plain pre-norm.
    starts = gates_found(less, "pre-norm, quiet", 32)
    plain = {seed: min(u, 1250) for seed, u in found[less, "pre-norm", 32].items()}
    verdict = compare_runs(starts, plain, "lower")
    assert verdict.word == "cannot be told apart" and round(verdict.difference) == -153
    quiet = sorted(starts.values())
    simple = gates_found(less, "output gate 2", 28).values()
    assert (len(quiet), statistics.median(quiet), quiet[-1]) == (9, 300, 725)
    assert (min(simple), statistics.median(simple), max(simple)) == (150, 200, 275)
    # Exploring less, a gate makes every run arrive: within 300 updates, at equal size.
    within = {arm: sum(u <= 300 for u in found[less, *arm].values()) for arm in small}
    a, b = within["gate 2", 20], within["pre-norm", 32]
    assert (a, b) == (9, 3) and round(fisher(a, 9, b, 9), 3) == 0.009


def fisher(a, n_a, b, n_b):
    """The two-sided p of Fisher's exact test for a of n_a against b of n_b."""
    def probability(x):
        return math.comb(n_a, x) * math.comb(n_b, a + b - x) / math.comb(n_a + n_b, a + b)

    likely = [probability(x) for x in range(n_a + 1) if 0 <= a + b - x <= n_b]
    return sum(p for p in likely if p <= probability(a) * (1 + 1e-9))


def test_what_the_page_says_of_wishes_holds(recorded):
    def runs(model="decision", data="all", context=acting.CONTEXT, rate=0.003):
        wanted = {"model": model, "data": data, "context": context, "rate": rate}
        return [run for run in recorded["cartpole"] if wanted.items() <= run.items()]

    def got(rows, asked, key="got"):
        return statistics.mean(x for r in rows for x in r[key][r["asked"].index(asked)])

    def cloned(data, rate=0.003):
        return round(statistics.mean(x for r in runs("cloning", data, rate=rate) for x in r["got"]))

    def off(rows):
        return [abs(got(rows, a) - a) for a in rows[0]["asked"] if a <= 200]

    assert f"{statistics.mean(off(runs())):.1f}" == "3.5" and round(max(off(runs()))) == 14
    assert (round(got(runs(), 175)), round(got(runs(), 200)), round(got(runs(), 250))) == (
        189, 198, 198
    )
    assert (cloned("all"), cloned("best 10 %"), cloned("best 10 % of below 100")) == (96, 196, 92)
    assert [
        (f"{statistics.mean(off(runs(rate=r))):.1f}", cloned("best 10 %", r),
         round(got(runs(rate=r), 200))) for r in (0.001, 0.01)
    ] == [("5.7", 195, 199), ("3.6", 197, 198)]
    assert round(got(runs(), 50, "got_without_counting")) == 128
    for asked in (25, 50, 100, 150):
        assert abs(got(runs(context=1), asked) - asked) < 8
    nobody_good = runs(data="below 100")
    assert [round(got(nobody_good, asked)) for asked in (125, 200, 250)] == [113, 136, 122]
    assert [round(got([run], 250)) for run in nobody_good] == [114, 131, 122]
    share = sum(r == acting.LIMIT for r in recorded["data"][0]["returns"]) / 500
    assert round(share, 2) == 0.22
