"""Every cheaper attention is full attention at its limit; each law is seen to fail when broken."""

import itertools
import json
import shutil

import pytest
import torch
from torch import nn

from recordings.beyond import attention_cost
from transformer_lib import masks
from transformer_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.beyond import (
    far_links,
    flash,
    linear,
    low_rank,
    lsh,
    reversible,
    routing,
    sparse,
)
from transformer_lib.beyond.learning import learn
from transformer_lib.feed_forward import FeedForward
from transformer_lib.runs.pretrained import results_dir

T, BLOCK = 64, 8


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return torch.randn(3, 2, 2, T, 16).unbind(0)


def full(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, v, mask)[0]


RULES = {
    "local": sparse.local(5),
    "dilated": sparse.dilated(3, 4),
    "strided": sparse.strided(8),
    "blockwise": sparse.blockwise(BLOCK, T),
    "blockwise, shifted": sparse.blockwise(BLOCK, T, shift=3),
    "global and local": sparse.any_of(sparse.local(5), sparse.with_global(2)),
    "BigBird": sparse.any_of(
        sparse.local(8), sparse.with_global(8), sparse.random_links(T, BLOCK, 2)
    ),
    "causal": sparse.causal(sparse.local(9)),
}
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def test_each_rule_links_the_places_that_its_paper_links():
    blocks = T // BLOCK
    by_loop = {
        "local": lambda i, j: j in range(i - 5, i + 6),
        "dilated": lambda i, j: j in range(i - 12, i + 13, 4),
        "strided": lambda i, j: j in range(i - 7, i + 8) or j in range(i % 8, T, 8),
        "blockwise": lambda i, j: i // BLOCK == j // BLOCK,
        "blockwise, shifted": lambda i, j: (i // BLOCK + 3) % blocks == j // BLOCK,
        "global and local": lambda i, j: i in (0, 1) or j in (0, 1) or j in range(i - 5, i + 6),
        "causal": lambda i, j: j in range(i - 9, i + 1),
    }
    for name, linked in by_loop.items():
        expected = torch.tensor([[linked(i, j) for j in range(T)] for i in range(T)])
        assert torch.equal(sparse.as_mask(RULES[name], T)[0, 0], expected), name
    random = sparse.as_mask(sparse.random_links(T, BLOCK, 2, seed=1), T)[0, 0]
    of_blocks = random.view(blocks, BLOCK, blocks, BLOCK).transpose(1, 2).flatten(2)  # (N, N, ...)
    assert torch.equal(of_blocks.any(-1), of_blocks.all(-1))  # whole blocks or nothing
    assert (of_blocks.all(-1).sum(-1) == 2).all()
    other = sparse.as_mask(sparse.random_links(T, BLOCK, 2, seed=2), T)[0, 0]
    assert not torch.equal(random, other)


@each_rule
@pytest.mark.parametrize("block", [4, 16])
def test_without_the_masked_part_the_numbers_stay(rule, block, qkv):
    expected = full(*qkv, sparse.as_mask(rule, T))
    plan = sparse.plan_blocks(rule, T, block)
    torch.testing.assert_close(sparse.sparse_attention(*qkv, plan), expected)
    shuffled = sparse.plan_blocks(rule, T, block, order=torch.randperm(T))
    torch.testing.assert_close(sparse.sparse_attention(*qkv, shuffled), expected)


def test_a_missing_block_is_noticed(qkv):
    rule = sparse.local(5)
    plan = sparse.plan_blocks(rule, T, BLOCK)
    narrower = [(rows, keys[:, 1:], allowed[..., BLOCK:]) for rows, keys, allowed in plan.groups]
    broken = sparse.sparse_attention(*qkv, plan._replace(groups=narrower))
    assert not torch.allclose(broken, full(*qkv, sparse.as_mask(rule, T)), atol=1e-3)


@pytest.mark.parametrize(
    "rule",
    [
        sparse.local(T - 1),
        sparse.dilated(T, 1),
        sparse.strided(T),
        sparse.blockwise(T, T),
        sparse.with_global(T),
        sparse.random_links(T, BLOCK, T // BLOCK),
    ],
)
def test_every_rule_is_full_attention_at_its_limit(rule, qkv):
    assert sparse.as_mask(rule, T).all()
    plan = sparse.plan_blocks(rule, T, BLOCK)
    torch.testing.assert_close(sparse.sparse_attention(*qkv, plan), full(*qkv))


@each_rule
def test_flex_attention_takes_the_rule_as_it_is(rule, qkv):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    blocks = flex.create_block_mask(
        lambda b, h, i, j: rule(i, j), None, None, T, T, device="cpu", BLOCK_SIZE=16
    )
    expected = full(*qkv, sparse.as_mask(rule, T))
    torch.testing.assert_close(flex.flex_attention(*qkv, block_mask=blocks), expected)


def test_a_plan_saves_what_it_says():
    assert sparse.plan_blocks(sparse.blockwise(8, T), T, 8).n_cells == T * 8
    # Every eighth place: no block is free of links, until the places of a column stand together.
    column = lambda i, j: (i - j) % 8 == 0  # noqa: E731
    assert sparse.plan_blocks(column, T, 8).n_cells == T * T
    by_column = torch.arange(T).view(8, 8).T.flatten()
    assert sparse.plan_blocks(column, T, 8, by_column).n_cells == T * 8
    with pytest.raises(ValueError, match="multiple of block"):
        sparse.plan_blocks(column, T, 7)


def test_causal_rules_hide_the_future():
    assert torch.equal(sparse.as_mask(sparse.causal(sparse.local(T)), T), masks.causal_mask(T))


@pytest.mark.parametrize("window", [1, 3, 7])
def test_layers_are_counted_as_the_influence_spreads(window):
    """The count is what a stack of attentions really does, found by gradients."""
    size, rule = 16, sparse.local(window)
    torch.manual_seed(0)
    layers = [MultiHeadAttention(8, 2) for _ in range(20)]

    def all_heard(n_layers):
        x = torch.randn(1, size, 8, requires_grad=True)
        h = x
        for layer in layers[:n_layers]:
            h = h + layer(h, h, h, sparse.as_mask(rule, size))[0]
        return all(
            (torch.autograd.grad(h[0, i].sum(), x, retain_graph=True)[0][0] != 0).any(-1).all()
            for i in range(size)
        )

    count = sparse.layers_to_hear_all(sparse.as_mask(rule, size))
    assert count == -(-(size - 1) // window)
    assert all_heard(count) and not all_heard(count - 1)


def test_some_patterns_never_reach_everything():
    def count(rule):
        return sparse.layers_to_hear_all(sparse.as_mask(rule, T))

    assert count(sparse.blockwise(8, T)) is None
    assert count(sparse.causal(sparse.local(T))) is None
    assert count(sparse.any_of(sparse.local(1), sparse.with_global(1))) == 2
    assert count(sparse.local(T)) == 1
    # Who is not linked to itself keeps what it knows all the same: the residual connection.
    assert sparse.layers_to_hear_all(sparse.as_mask(lambda i, j: i != j, 3)) == 1


# ---- hashing -----------------------------------------------------------------------------------


def test_similar_vectors_share_a_bucket():
    torch.manual_seed(0)
    x = torch.randn(500, 16)
    buckets = [
        lsh.lsh_buckets(y, 16, torch.Generator().manual_seed(3))
        for y in (x, 5 * x, x + 0.1 * torch.randn_like(x), torch.randn_like(x))
    ]
    same = [(b == buckets[0]).float().mean().item() for b in buckets[1:]]
    assert same[0] == 1 and same[1] > 0.8 and same[2] < 0.15
    assert set(buckets[0].tolist()) == set(range(16))
    with pytest.raises(ValueError, match="even"):
        lsh.lsh_buckets(x, 3)


@pytest.mark.parametrize("n_rounds", [1, 3])
def test_one_bucket_is_full_attention(n_rounds, qkv):
    qk, _, v = qkv
    found = lsh.lsh_attention(qk, v, n_buckets=1, chunk=T, n_rounds=n_rounds)
    torch.testing.assert_close(found, lsh.shared_attention(qk, v))
    apart = lsh.lsh_attention(qk, v, n_buckets=8, chunk=T)
    assert not torch.allclose(apart, lsh.shared_attention(qk, v), atol=1e-2)


def test_buckets_are_a_mask(qkv):
    """Where a bucket fits its chunks, the sorted computation is attention masked by bucket."""
    qk, _, v = qkv
    bucket = lsh.lsh_buckets(qk, 8, torch.Generator().manual_seed(1))  # (B, H, T)
    mask = bucket[..., :, None] == bucket[..., None, :]
    found = lsh.lsh_attention(qk, v, 8, T // 2, generator=torch.Generator().manual_seed(1))
    # Two chunks, each with the one before: everything that was sorted is in sight.
    torch.testing.assert_close(found, lsh.shared_attention(qk, v, mask))


def test_a_chunk_sees_itself_and_the_one_before(qkv):
    qk, _, v = qkv
    chunk = torch.arange(T) // 16
    mask = (chunk[:, None] == chunk) | ((chunk[:, None] - 1) % 4 == chunk)  # the first: the last
    found = lsh.lsh_attention(qk, v, n_buckets=1, chunk=16)
    torch.testing.assert_close(found, lsh.shared_attention(qk, v, mask))


def test_rounds_add_up_the_pairs_that_meet(qkv):
    """Over several hashes each pair weighs e^score for every round in which it shares a bucket."""
    qk, _, v = qkv
    generator = torch.Generator().manual_seed(2)
    buckets = torch.stack([lsh.lsh_buckets(qk, 4, generator) for _ in range(3)])  # (3, B, H, T)
    meets = (buckets[..., :, None] == buckets[..., None, :]).sum(0)  # (B, H, T, T)
    scores = qk @ nn.functional.normalize(qk, dim=-1).mT / 4 + lsh.own_place_last(T)
    expected = (scores + meets.log()).softmax(-1) @ v
    found = lsh.lsh_attention(qk, v, 4, T // 2, 3, torch.Generator().manual_seed(2))
    torch.testing.assert_close(found, expected)


def test_more_rounds_come_closer(qkv):
    qk, _, v = qkv
    qk = qk * 2  # sharper, as after training
    target = lsh.shared_attention(qk, v)
    errors = [
        (lsh.lsh_attention(qk, v, 8, 16, r, torch.Generator().manual_seed(0)) - target).norm()
        for r in (1, 16)
    ]
    assert errors[1] < 0.8 * errors[0]


# ---- clusters, low rank ------------------------------------------------------------------------


def test_one_cluster_is_full_attention(qkv):
    one = torch.randn(2, 1, 16)
    torch.testing.assert_close(routing.routing_attention(*qkv, one, T), full(*qkv))
    half = routing.routing_attention(*qkv, one, T // 2)
    assert not torch.allclose(half, full(*qkv), atol=1e-2)
    assert ((half == 0).all(-1).sum(-1) == T // 2).all()  # in no cluster: nothing
    several = routing.routing_attention(*qkv, torch.randn(2, 3, 16), T)  # all in each: the mean
    torch.testing.assert_close(several, full(*qkv))


def test_a_cluster_is_attention_among_its_members(qkv):
    """Queries are chosen by queries, keys and values by keys."""
    one = torch.randn(2, 1, 16)
    near_q, near_k = (
        (torch.nn.functional.normalize(x, dim=-1) @ one.mT)[..., 0].topk(10).indices.sort().values
        for x in qkv[:2]
    )  # (B, H, 10) each
    found = routing.routing_attention(*qkv, one, 10)
    for b in range(2):
        for h in range(2):
            rows, columns = near_q[b, h], near_k[b, h]
            q, k, v = (
                x[b : b + 1, h : h + 1, at]
                for x, at in zip(qkv, (rows, columns, columns), strict=True)
            )
            torch.testing.assert_close(found[b, h, rows], full(q, k, v)[0, 0])


def test_centroids_find_the_clusters():
    torch.manual_seed(0)
    ends = torch.eye(4)[None]  # (H = 1, 4, 4)
    x = ends[0, torch.randint(4, (200,))] + 0.05 * torch.randn(200, 4)
    centroids = torch.nn.functional.normalize(ends + 0.5 * torch.randn(1, 4, 4), dim=-1)
    before = (centroids * ends).sum(-1).min()
    for _ in range(50):
        routing.move_centroids(centroids, x[None, None])
    assert (centroids * ends).sum(-1).min() > max(before, 0.99)


def test_full_rank_is_full_attention(qkv):
    identity = torch.eye(T)
    torch.testing.assert_close(low_rank.linformer_attention(*qkv, identity, identity), full(*qkv))
    less = low_rank.linformer_attention(*qkv, identity[: T // 2], identity[: T // 2])
    torch.testing.assert_close(less, full(qkv[0], qkv[1][:, :, : T // 2], qkv[2][:, :, : T // 2]))


def test_keys_and_values_are_mixed_each_in_their_way(qkv):
    q, k, v = qkv
    mix_k, mix_v = torch.randn(2, 10, T)
    mixed_k, mixed_v = (torch.einsum("rt,bhtk->bhrk", *x) for x in ((mix_k, k), (mix_v, v)))
    found = low_rank.linformer_attention(q, k, v, mix_k, mix_v)
    torch.testing.assert_close(found, full(q, mixed_k, mixed_v), atol=1e-4, rtol=1e-4)


# ---- random features ---------------------------------------------------------------------------


def test_random_features_approach_the_kernel():
    torch.manual_seed(0)
    q, k = torch.randn(2, 30, 8) * 0.3
    wanted = {
        linear.positive_features: (q @ k.T).exp(),
        linear.fourier_features: (-(torch.cdist(q, k) ** 2) / 2).exp(),
    }
    for features, target in wanted.items():
        errors = []
        for n in (16, 4096):
            w = linear.orthogonal_directions(n, 8)
            errors.append((features(q, w) @ features(k, w).T - target).abs().mean())
        assert errors[1] < 0.05 and errors[1] < errors[0] / 4


def test_many_features_are_full_attention(qkv):
    q, k, v = (x[:, :, :, :8] * 0.4 for x in qkv)
    w = linear.orthogonal_directions(20_000, 8, torch.Generator().manual_seed(0))
    scaled = [x / 8**0.25 for x in (q, k)]
    found = linear.linear_attention(*(linear.positive_features(x, w) for x in scaled), v)
    torch.testing.assert_close(found, full(q, k, v), atol=0.02, rtol=0)
    unit = [nn.functional.normalize(x, dim=-1) * 8**0.25 for x in (q, k)]
    found = linear.linear_attention(*(linear.fourier_features(x / 8**0.25, w) for x in unit), v)
    torch.testing.assert_close(found, full(*unit, v), atol=0.02, rtol=0)


def test_orthogonal_directions_are_orthogonal_and_normal():
    w = linear.orthogonal_directions(4000, 8, torch.Generator().manual_seed(0))
    assert w.shape == (4000, 8)
    within = w[:8] @ w[:8].T
    torch.testing.assert_close(within, within.diag().diag(), atol=1e-5, rtol=0)
    assert w.mean(0).abs().max() < 0.1  # no side is favoured
    torch.testing.assert_close(w.T @ w / 4000, torch.eye(8), atol=0.1, rtol=0)


def test_linear_attention_is_a_recurrent_network(qkv):
    q, k, v = qkv
    fq, fk = linear.elu_features(q), linear.elu_features(k)
    weights = (fq @ fk.mT).tril()  # (B, H, T, T): the causal table that it never makes
    expected = weights / weights.sum(-1, keepdim=True) @ v
    network = linear.RecurrentAttention()
    steps = [network.step(fq[:, :, t], fk[:, :, t], v[:, :, t]) for t in range(T)]
    torch.testing.assert_close(torch.stack(steps, dim=2), expected)
    # The last token has seen everything, so the form without a mask agrees there.
    torch.testing.assert_close(steps[-1], linear.linear_attention(fq, fk, v)[:, :, -1])
    forgetful = linear.RecurrentAttention(decay=0.5)
    steps = [forgetful.step(fq[:, :, t], fk[:, :, t], v[:, :, t]) for t in range(T)]
    age = (torch.arange(T)[:, None] - torch.arange(T)).clamp(min=0)
    weights = weights * 0.5**age  # a token counts half as much with each step
    expected = weights / weights.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(torch.stack(steps, dim=2), expected)


# ---- FlashAttention, reversible layers ---------------------------------------------------------


@pytest.mark.parametrize("tile", [1, 7, 16, T])
@pytest.mark.parametrize("causal", [False, True])
def test_tiles_give_full_attention(tile, causal, qkv):
    q, k, v = qkv
    mask = masks.causal_mask(T) if causal else None
    found = flash.flash_attention(q, k, v, tile, causal)
    torch.testing.assert_close(found, full(q, k, v, mask), atol=1e-6, rtol=0)


def test_tiles_survive_scores_that_overflow(qkv):
    q, k, v = qkv
    assert (1000 * q @ k.mT).exp().isinf().any()
    found = flash.flash_attention(1000 * q, k, v, 16)
    torch.testing.assert_close(found, full(1000 * q, k, v), atol=1e-4, rtol=1e-4)


def a_stack(n_layers=4):
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.attention = nn.LayerNorm(16), MultiHeadAttention(16, 2)

        def forward(self, x):
            x = self.norm(x)
            return self.attention(x, x, x)[0]

    def feed_forward():
        return nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))

    torch.manual_seed(0)
    return reversible.ReversibleStack(
        reversible.ReversibleLayer(Heads(), feed_forward()) for _ in range(n_layers)
    )


def test_reversible_layers_give_back_their_inputs():
    stack, x = a_stack(), torch.randn(2, 5, 16)
    with torch.no_grad():
        y1, y2 = x, x
        for layer in stack.layers:
            y1, y2 = layer(y1, y2)
        for layer in reversed(stack.layers):
            y1, y2 = layer.inverse(y1, y2)
    torch.testing.assert_close(y1, x, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(y2, x, atol=1e-5, rtol=1e-5)


def test_reversible_gradients_are_those_of_autograd():
    stack, x = a_stack(), torch.randn(2, 5, 16, requires_grad=True)
    stack(x).square().sum().backward()
    ours = [x.grad, *(p.grad for p in stack.parameters())]
    x.grad = None
    stack.zero_grad()
    ours = [g.clone() for g in ours]
    y1, y2 = x, x
    for layer in stack.layers:
        y1, y2 = layer(y1, y2)
    ((y1 + y2) / 2).square().sum().backward()
    for mine, theirs in zip(ours, [x.grad, *(p.grad for p in stack.parameters())], strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_reversible_memory_does_not_grow_with_layers():
    def kept(n_layers):
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: sizes.append(t.numel()) or t, lambda t: t
        )
        with hooks:
            a_stack(n_layers)(torch.randn(2, 5, 16, requires_grad=True))
        return sum(sizes)

    assert kept(2) == kept(8)


# ---- the task with far links -------------------------------------------------------------------


def test_every_question_has_its_answer_in_the_text():
    names, values, answers, distances = far_links.draw(
        20, 128, 24, torch.Generator().manual_seed(0)
    )
    asked = values == far_links.ASKED
    assert torch.equal(asked, answers >= 0) and (asked.sum(1) == 24).all()
    for b, i in asked.nonzero().tolist():
        (fact,) = ((names[b] == names[b, i]) & ~asked[b]).nonzero()[:, 0].tolist()
        assert values[b, fact] == answers[b, i] and distances[b, i] == abs(fact - i)
    assert ((names == far_links.NOISE).sum(1) == 128 - 48).all()


@pytest.mark.parametrize("name", far_links.NAMES)
def test_every_mechanism_learns_in_the_reader(name):
    torch.manual_seed(0)
    model = far_links.reader(name)
    batch = far_links.draw(2, 128, 24, torch.Generator().manual_seed(0))
    before = [p.clone() for p in model.parameters() if p.numel()]
    losses = learn(model, lambda: far_links.answer_loss(model, batch), 8, 0.01)
    assert losses[-1] < losses[0]
    after = [p for p in model.parameters() if p.numel()]
    assert not any(torch.equal(*pair) for pair in zip(before, after, strict=True))
    assert far_links.flops(model) <= far_links.flops(far_links.reader("full"))


def test_direct_links_are_counted_by_distance():
    near, *far = far_links.direct_links("local")  # 16 to each side: all of the first range
    assert near == 1 and 0 < far[0] < 0.1 and not any(far[1:])
    etc = far_links.direct_links("ETC")  # its extra tokens are no links between places
    assert 0.7 < etc[0] < 0.9 and not any(etc[1:])
    assert far_links.direct_links("strided", budget=96, n_bins=4)[0] == 1


@pytest.mark.parametrize("name", ["strided", "blockwise", "BigBird"])
def test_a_direct_link_of_one_head_counts_and_one_to_oneself_does_not(name):
    model, size = far_links.reader(name), 128
    heads = model.links.mask[0]
    first = heads.shape[-1] - size  # extra tokens stand in front
    bins = [[] for _ in range(8)]
    for i, j in itertools.permutations(range(size), 2):
        bins[abs(i - j) * 8 // size].append(heads[:, first + i, first + j].any().item())
    expected = [sum(one) / len(one) for one in bins]
    assert far_links.direct_links(name) == pytest.approx(expected, abs=1e-6)


def test_an_unknown_mechanism_is_refused_by_name():
    with pytest.raises(ValueError, match="there are full, local"):
        far_links.reader("lokal")


def test_longformer_s_questions_see_everything_and_the_others_do_not():
    inner = far_links.QuestionsGlobal(128, window=2, n_asked=1)
    asked = torch.zeros(1, 128, dtype=torch.bool)
    asked[0, 60] = True
    rule = sparse.any_of(sparse.local(2), lambda i, j: (i == 60) | (j == 60))
    assert torch.equal(inner(asked), sparse.as_mask(rule, 128))


def test_the_arithmetic_counted_is_the_arithmetic_done():
    from torch.utils.flop_counter import FlopCounterMode

    model, size = far_links.reader("Linformer"), 128
    names, values, *_ = far_links.draw(1, size, 24, torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        model(names, values)
    guess = 2 * size * 64 * far_links.N_VALUES
    assert counter.get_total_flops() == size * far_links.flops(model) + guess


# ---- the recorded measurements -----------------------------------------------------------------


def recorded(name):
    return json.loads((results_dir() / "beyond" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_recorded_costs_are_whole():
    records = recorded("attention-cost")["records"]
    assert [r["settings"] for r in records] == [settings for settings, _ in attention_cost.grid()]
    timed = [r for r in records if r["settings"]["part"] == "timing"]
    assert len({frozenset(row["mechanism"] for row in r["rows"]) for r in timed}) == 1
    for r in timed:
        (full,) = (row for row in r["rows"] if row["mechanism"] == "full")
        assert full["MB"] * 1e6 >= 4 * r["settings"]["length"] ** 2


def test_operations_are_counted_as_they_were_recorded():
    records = recorded("attention-cost")["records"]
    counted = {r["settings"]["length"]: r["operations"] for r in records if "operations" in r}
    assert attention_cost.count(256)["operations"] == counted[256]
    for size, found in counted.items():  # two products of T x T x K, two operations each
        assert found["full"] == found["PyTorch's fused kernel"] == 4 * size**2 * attention_cost.K


def test_a_round_in_which_others_had_the_core_does_not_count(monkeypatch):
    monkeypatch.setattr(attention_cost, "mechanisms", lambda size: {"idle": lambda q, k, v: q})
    clock = iter(range(10**6))
    monkeypatch.setattr(attention_cost.time, "perf_counter", lambda: float(next(clock)))
    with pytest.raises(RuntimeError, match="other programs had the core in all but 0 of 20 rounds"):
        attention_cost.measure(8, rounds=1, flex=False)


@pytest.mark.weekly  # compiling takes a minute, and needs a C++ compiler
def test_compiled_flex_attention_gives_the_same_numbers():
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler")
    names = [row["mechanism"] for row in attention_cost.measure(256, rounds=1)["rows"]]
    assert "FlexAttention, local" in names


def test_memory_counts_what_is_alive_at_once():
    x = torch.randn(1000)
    with attention_cost.PeakMemory() as memory:
        y = x * 2
        for _ in range(5):
            z = y.view(10, 100) + 1  # the one before goes
    assert memory.peak <= 3 * 4000 and memory.now == 2 * 4000
    assert z.shape == (10, 100)


def far_runs():
    return [r["settings"] | r for r in recorded("far-links")["records"]]


def test_the_recorded_grid_is_of_today_s_mechanisms():
    runs = far_runs()
    assert {run["mechanism"] for run in runs} == set(far_links.NAMES)
    for run in runs:
        model = far_links.reader(run["mechanism"], 128, run["n_facts"], run["budget"])
        assert run["cells"] == pytest.approx(model.cells, rel=1e-3)
        assert len(run["same_updates"]) == len(run["same_flops"]) == 8


def test_what_the_page_says_of_far_links_holds():
    usual = {"rate": 0.003, "n_facts": 24, "budget": 32}

    def right(name, **change):
        """The mean share of right answers, by seed."""
        wanted = usual | change | {"mechanism": name}
        rows = [run for run in far_runs() if wanted.items() <= run.items()]
        return [sum(run["same_updates"]) / 8 for run in sorted(rows, key=lambda run: run["seed"])]

    found = {name: right(name) for name in far_links.NAMES}
    assert all(len(seeds) == 3 for seeds in found.values())

    def percent(name, **change):
        return round(100 * sum(right(name, **change)) / len(right(name, **change)))

    means = {name: percent(name) for name in far_links.NAMES}
    said = {"ETC": 13, "BigBird": 15, "Longformer": 100, "Reformer": 96, "all routed": 97,
            "linear": 79, "Linformer": 7, "full": 100}
    assert said.items() <= means.items(), means
    assert [percent(name, budget=96) for name in ("ETC", "BigBird", "all routed")] == [41, 43, 39]
    assert max(found["RFA"]) < 0.1
    *others, best = sorted(found["Performer"])
    assert max(others) < 0.15 and round(100 * best) == 41
    assert (percent("Routing"), percent("Routing", budget=96)) == (91, 40)
    solved = {n for n in far_links.NAMES if min(right(n, rate=0.001)) > 0.5}
    assert solved == {"full", "Longformer", "Reformer", "Routing", "all routed"}
    assert max(right("linear", rate=0.001)) < 0.1
    fast = ("full", "Longformer", "linear", "Reformer", "all routed", "Routing")
    assert [percent(name, rate=0.01) for name in fast] == [100, 100, 91, 85, 64, 9]
    same = {
        n: [sum(r[key]) / 8 for r in far_runs()
            if (usual | {"mechanism": n}).items() <= r.items()]
        for n in far_links.NAMES for key in ("same_flops",)
    }
    for name, values in same.items():
        assert abs(100 * sum(values) / len(values) - 100 * sum(found[name]) / 3) < 14


def test_causal_hashing_and_routing_are_full_causal_attention_at_their_limit(qkv):
    q, k, v = qkv
    mask = masks.causal_mask(T)
    hashed = lsh.lsh_attention(q, v, 1, T, causal=True)
    torch.testing.assert_close(hashed, lsh.shared_attention(q, v, mask))
    one = torch.nn.functional.normalize(torch.randn(q.size(1), 1, q.size(-1)), dim=-1)
    routed = routing.routing_attention(q, k, v, one, T, causal=True)
    torch.testing.assert_close(routed, full(q, k, v, mask))


def test_later_values_never_reach_earlier_places(qkv):
    q, k, v = qkv
    later = v.clone()
    later[:, :, -1] += 1
    four = torch.nn.functional.normalize(torch.randn(q.size(1), 4, q.size(-1)), dim=-1)

    def hashed(v):
        generator = torch.Generator().manual_seed(0)
        return lsh.lsh_attention(q, v, 4, T // 4, 2, generator, causal=True)

    def routed(v):
        return routing.routing_attention(q, k, v, four, T // 4, causal=True)

    for attend in (hashed, routed):
        assert torch.equal(attend(v)[:, :, :-1], attend(later)[:, :, :-1])


def test_a_network_in_chunks_gives_the_same_numbers_from_a_narrower_hidden_layer():
    network, x, widest = FeedForward(8, 32), torch.randn(2, 20, 8), []
    network.expand.register_forward_hook(lambda *given: widest.append(given[2].size(1)))
    torch.testing.assert_close(reversible.Chunked(network, 6)(x), network(x))
    assert widest == [6, 6, 6, 2, 20]


def test_the_routing_transformer_has_a_local_head_and_a_routed_one(qkv):
    attention = far_links.RoutedAttention(
        16, 2, length=T, n_clusters=1, members=T, n_local=1, window=3
    ).eval()
    q, k, v = (x[:, :2, :, :8] for x in qkv)
    found, _ = attention.attend(q, k, v)
    near = full(q, k, v, sparse.as_mask(sparse.local(3), T))
    torch.testing.assert_close(found[:, 0], near[:, 0])
    torch.testing.assert_close(found[:, 1], full(q, k, v)[:, 1])
