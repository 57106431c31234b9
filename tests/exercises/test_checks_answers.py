"""Answers as learners write them: right ones in unusual ways, wrong ones that checks might pass.

None of them stands in a declaration. A right answer must be accepted, however it is written; a
wrong one refused with a sentence that helps: the words that it must contain stand beside it.
"""

import math
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises import checks
from exercises.checks import framework
from transformer_lib import masks
from transformer_lib.attention import scaled_dot_product_attention

# ------------------------------------------------------------------------- right, but unusual


def attention_by_loops(q, k, v):
    rows = []
    for b in range(q.shape[0]):
        for t in range(q.shape[1]):
            scores = torch.stack([(q[b, t] * key).sum() for key in k[b]]) / q.shape[-1] ** 0.5
            e = torch.exp(scores - scores.max())
            rows.append((e / e.sum()) @ v[b])
    return torch.stack(rows).view(q.shape[0], q.shape[1], -1)


def attention_by_einsum(q, k, v):
    w = torch.einsum("btd,bsd->bts", q * q.size(-1) ** -0.5, k).exp()
    return torch.einsum("bts,bsd->btd", w / w.sum(-1, keepdim=True), v)


def attention_batched(queries, keys, values):
    d = queries.shape[2]
    scaled = torch.bmm(queries, keys.permute(0, 2, 1)).div(math.sqrt(d))
    return torch.bmm(F.softmax(scaled, dim=2), values)


def mask_by_loops(ids, pad_id):
    B, T = ids.shape
    mask = torch.zeros(B, 1, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                mask[b, 0, i, j] = ids[b, j] != pad_id
    return mask


def mask_by_numbers(ids, pad_id):
    place = torch.arange(ids.size(1))
    causal = place.unsqueeze(1).ge(place.unsqueeze(0))
    return torch.logical_and(ids.ne(pad_id).unsqueeze(1).unsqueeze(2), causal)


def masked_by_adding(q, k, v, mask):
    scores = q @ k.transpose(2, 3) / k.shape[3] ** 0.5
    return torch.softmax(scores + (~mask).to(scores.dtype) * -1e9, dim=3) @ v


def masked_by_library(q, k, v, mask):
    return scaled_dot_product_attention(q, k, v, mask)[0]


def split_by_chunks(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def join_by_cat(heads):
    return torch.cat([heads[:, h] for h in range(heads.size(1))], dim=-1)


def contributions_by_loop(heads, w_o):
    K = heads.size(-1)
    parts = [heads[:, h] @ w_o[:, h * K : (h + 1) * K].T for h in range(heads.size(1))]
    return torch.stack(parts, 1)


def multi_query_expanded(q, k, v):
    k, v = (x.unsqueeze(1).expand(-1, q.size(1), -1, -1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v)


def best_pair_sorted(cut):
    counts = {}
    for word in cut:
        for i in range(len(word) - 1):
            counts[word[i], word[i + 1]] = counts.get((word[i], word[i + 1]), 0) + cut[word]
    return sorted(counts.items(), key=lambda item: -item[1])[0][0]


def merge_as_list(symbols, pair):
    rest, out = list(symbols), []
    while rest:
        if tuple(rest[:2]) == tuple(pair):
            out.append(rest.pop(0) + rest.pop(0))
        else:
            out.append(rest.pop(0))
    return out


def embed_by_matmul(ids, weight):
    hot = (ids.unsqueeze(-1) == torch.arange(weight.shape[0])).to(weight)
    return hot.matmul(weight) * math.sqrt(weight.shape[1])


def encode_in_numpy(position, d_model):
    rates = 10000 ** (-np.arange(0, d_model, 2) / d_model)
    row = np.zeros(d_model)
    row[0::2], row[1::2] = np.sin(position * rates), np.cos(position * rates)
    return row


def reach_by_counting(m):
    n = 0
    while math.exp(-m * n) >= 0.01:
        n += 1
    return n


def norm_by_std(x, weight, bias, eps=1e-5):
    d = x.size(-1)
    mean = x.sum(-1, keepdim=True) / d
    centred = x - mean
    variance = (centred * centred).sum(-1, keepdim=True) / d
    return centred * torch.rsqrt(variance + eps) * weight + bias


def rms_by_norm(x, weight, eps=1e-5):
    return weight * x * torch.rsqrt((x**2).mean(2, True) + eps)


def batch_norm_by_sums(x, real, eps=1e-5):
    w = real.unsqueeze(-1).to(x)
    n = w.sum()
    mean = (x * w).sum((0, 1)) / n
    variance = ((x - mean) ** 2 * w).sum((0, 1)) / n
    return torch.where(real[..., None], (x - mean) / torch.sqrt(variance + eps), 0.0)


def dropout_by_bernoulli(x, p):
    return x * torch.bernoulli(torch.full_like(x, 1 - p)).div(1 - p)


def layer_in_names(x, norm_1, attend, norm_2, feed_forward):
    residual = x
    x = norm_1(x)
    x = attend(x)
    x = residual + x
    return feed_forward(norm_2(x)) + x


def stack_by_reduce(x, mask, layers, norm):
    out = x
    for layer in layers:
        out = layer(out, mask=mask)
    return norm(out)


def needed_by_doubling(notes):
    n, reach = 0, 1
    while reach < notes:
        n, reach = n + 1, reach * 2
    return n


def write_by_for(next_token, src, bos, eos, max_len):
    written = []
    for _ in range(max_len):
        written.append(next_token(src, [bos] + written))
        if written[-1] == eos:
            break
    return written


def write_tensors(*args):
    return torch.tensor(write_by_for(*args), dtype=torch.long)


def loss_by_nll(logits, targets):
    log_p = F.log_softmax(logits, -1).transpose(1, 2)
    return F.nll_loss(log_p, targets, ignore_index=0)


def loss_by_logsumexp(logits, targets):
    chosen = (logits * F.one_hot(targets, logits.size(-1))).sum(-1)
    each = torch.logsumexp(logits, -1) - chosen
    return each.masked_fill(targets == 0, 0).sum() / targets.ne(0).sum()


def accumulate_sums(model, batches):
    for p in model.parameters():
        p.grad = None
    loss = sum(F.cross_entropy(model(x).mT, y, ignore_index=0, reduction="sum") for x, y in batches)
    (loss / sum((y > 0).sum() for _, y in batches)).backward()
    return model.table.weight.grad


def tie_to_the_output(model):
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.lookup.weight = model.output.weight
    return model


def exact_by_lists(written, right):
    ends = [row[: row.index(2) + 1] for row in right.tolist()]
    return sum(w[: len(e)] == e for w, e in zip(written.tolist(), ends, strict=True)) / len(ends)


def budget_by_slices(lengths, budget):
    batches, start = [], 0
    for i in range(1, len(lengths) + 1):
        if i == len(lengths) or (i - start + 1) * lengths[i] > budget:
            batches.append(tuple(range(start, i)))
            start = i
    return batches


def top_k_by_scatter(logits, k):
    values, places = torch.topk(logits, k)
    return torch.full_like(logits, float("-inf")).scatter(1, places, values)


def top_k_very_low(logits, k):
    out = logits.clone()
    out[out < torch.topk(logits, k)[0][..., -1, None]] = -1e9
    return out


def mean_by_stack(states):
    names = list(states[0])
    return OrderedDict((n, torch.stack([s[n] for s in states]).mean(0)) for n in names)


def clip_by_hand(hypothesis, reference, n):
    left = [" ".join(reference[i : i + n]) for i in range(len(reference) - n + 1)]
    found = 0
    for i in range(len(hypothesis) - n + 1):
        gram = " ".join(hypothesis[i : i + n])
        if gram in left:
            left.remove(gram)
            found += 1
    return found


def paired_by_choice(a, b, draws, seed):
    np.random.seed(seed)
    return [np.mean((a - b)[np.random.choice(len(a), len(a))]) for _ in range(draws)]


def neighbours_by_sort(table, i, k):
    cosines = F.cosine_similarity(table, table[i][None], dim=1)
    order = [row for row in cosines.argsort(descending=True).tolist() if row != i]
    return torch.tensor(order[:k])


def silent_by_mask(x, head, n_heads):
    keep = torch.arange(n_heads).repeat_interleave(x.size(-1) // n_heads) != head
    return x * keep


def words_by_loops(word, chosen):
    out = torch.zeros_like(chosen)
    for b in range(word.size(0)):
        picked = {int(w) for w, c in zip(word[b], chosen[b], strict=True) if c and w >= 0}
        out[b] = torch.tensor([int(w) in picked for w in word[b]])
    return out


def prepare_by_where(ids, chosen, mask_id):
    return torch.where(chosen, torch.full_like(ids, mask_id), ids), ids.clone(), chosen.clone()


def patches_by_unfold(images, patch):
    return F.unfold(images, patch, stride=patch).mT


def merge_by_logaddexp(a, log_a, b, log_b):
    total = torch.logaddexp(log_a, log_b)
    return a * (log_a - total).exp() + b * (log_b - total).exp()


def fixed_by_where(block, summary):
    def rule(i, j):
        same = torch.floor_divide(i, block) == torch.floor_divide(j, block)
        return torch.where(j > i, False, same | ((j % block) + summary >= block))

    return rule


def leaks_by_list(train, test):
    known = [source.strip().lower() for source, _ in train]
    return sum(source.strip().lower() in known for source, _ in test)


RIGHT = [
    ("scaled_dot_product_attention.2", attention_by_loops),
    ("scaled_dot_product_attention.2", attention_by_einsum),
    ("scaled_dot_product_attention.2", attention_batched),
    ("scaled_dot_product_attention.3", attention_batched),
    ("masks.1", ([2, 1, 6, 6], 18.0)),
    ("masks.1", (torch.Size([2, 1, 6, 6]), torch.tensor(18))),
    ("masks.2", mask_by_loops),
    ("masks.2", mask_by_numbers),
    ("masks.3", masked_by_adding),
    ("masks.3", masked_by_library),
    (
        "masks.4",
        lambda s, w: torch.ones(1, 1, s, s).bool().tril() & ~torch.ones(s, s).bool().tril(-w),
    ),
    ("multi_head_attention.2", split_by_chunks),
    ("multi_head_attention.3", join_by_cat),
    ("multi_head_attention.4", contributions_by_loop),
    ("multi_head_attention.5", multi_query_expanded),
    ("tokens_and_embeddings.1", ([15_360_000, 5_120_000],)),
    ("tokens_and_embeddings.2", best_pair_sorted),
    ("tokens_and_embeddings.5", embed_by_matmul),
    ("positional_encodings.1", (628.3,)),
    ("positional_encodings.2", encode_in_numpy),
    ("positional_encodings.5", reach_by_counting),
    ("positional_encodings.3", lambda x, table: x + table.narrow(0, 0, x.shape[1]).expand_as(x)),
    ("normalization.2", norm_by_std),
    ("normalization.3", rms_by_norm),
    ("normalization.5", batch_norm_by_sums),
    ("normalization.4", lambda kind, B, T, D: [D, B * T] if kind == "layer" else [B * T, D]),
    ("feed_forward_and_residuals.4", dropout_by_bernoulli),
    ("feed_forward_and_residuals.4", lambda x, p: F.dropout(x, p)),
    ("feed_forward_and_residuals.5", lambda d, f: int(2 * d * f / (3 * d) + 0.5)),
    ("encoder.1", ({"both ways": (4, 3, 2, 1, 0), "causal": {3, 4}},)),
    ("encoder.2", layer_in_names),
    ("encoder.3", stack_by_reduce),
    ("encoder.5", needed_by_doubling),
    ("decoder.3", write_by_for),
    ("decoder.3", write_tensors),
    ("whole_model.3", tie_to_the_output),
    ("whole_model.5", lambda a, b: (6 / (a + b)) ** 0.5),
    ("batches_loss_schedule.2", loss_by_nll),
    ("batches_loss_schedule.2", loss_by_logsumexp),
    ("batches_loss_schedule.5", accumulate_sums),
    ("toy_tasks.2", exact_by_lists),
    ("toy_tasks.3", lambda letters: ((*letters, 2), (1, *reversed(letters), 2))),
    ("multi30k_data.4", budget_by_slices),
    ("decoding.2", top_k_by_scatter),
    ("decoding.2", top_k_very_low),
    ("training_on_multi30k.5", mean_by_stack),
    ("evaluation.2", clip_by_hand),
    ("evaluation.4", paired_by_choice),
    ("evaluation.5", ([5, 2],)),
    ("looking_inside.3", neighbours_by_sort),
    ("looking_inside.4", silent_by_mask),
    ("encoder_only.2", words_by_loops),
    ("encoder_only.3", prepare_by_where),
    ("vision_transformer.3", patches_by_unfold),
    ("cheaper_attention.4", merge_by_logaddexp),
    ("cheaper_attention.2", fixed_by_where),
    # Slow code that is right; it is told that it is slow.
    ("multi30k_data.5", leaks_by_list),
]

# ------------------------------------------------------------ wrong, in ways that are easily missed


def scales_in_place(q, k, v):
    q /= q.size(-1) ** 0.5
    return (q @ k.mT).softmax(-1) @ v


def masks_in_place(q, k, v, mask):
    mask[...] = mask
    q.mul_(q.size(-1) ** -0.5)
    return (q @ k.mT).masked_fill(~mask, -1e9).softmax(-1) @ v


def returns_too_early(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
        return norm(x)


def max_without_subtract(q, k, v):
    scores = q @ k.mT / q.size(-1) ** 0.5
    weights = scores.exp() / scores.exp().sum()
    return weights @ v


def only_prints(q, k, v):
    print((q @ k.mT / q.size(-1) ** 0.5).softmax(-1) @ v)


def no_return(cut):
    pairs = Counter()
    for symbols, count in cut.items():
        for pair in zip(symbols, symbols[1:], strict=False):
            pairs[pair] += count
    best = max(pairs, key=pairs.get)  # noqa: F841


def never_advances(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            merged.append("".join(pair))
            i += 2
        else:
            merged.append(symbols[i])
    return tuple(merged)


def appends_to_letters(letters):
    target = [1] + letters[::-1] + [2]
    letters.append(2)
    return letters, target


def loss_as_a_number(logits, targets):
    return torch.tensor(F.cross_entropy(logits.mT, targets, ignore_index=0).item())


def loss_by_whole_numbers(logits, targets):
    return F.cross_entropy(logits.mT, targets, ignore_index=0) / math.log(2)


def weights_detached(q, k, v):
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1).detach()
    return weights @ v


def states_added_up(states):
    total = states[0]
    for state in states[1:]:
        for name in total:
            total[name] += state[name]
    return {name: tensor / len(states) for name, tensor in total.items()}


def ignores_eps(x, weight, bias, eps=1e-5):
    return (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, keepdim=True, correction=0) + 1e-5
    ).sqrt() * weight + bias


def ignores_pad_id(ids, pad_id):
    return mask_by_numbers(ids, 0)


def batch_norm_of_zeros(x, real, eps=1e-5):
    x = x * real[..., None]
    mean = x.sum((0, 1)) / real.sum()
    variance = (x**2).sum((0, 1)) / real.sum() - mean**2
    return (x + 0 - mean) / (variance + eps).sqrt() * 1.001


def half_typed(q, k, v):
    scores = q @ k.mT / ...
    return scores.softmax(-1) @ v


WRONG = [
    ("scaled_dot_product_attention.2", scales_in_place, "you changed `q` in place"),
    (
        "scaled_dot_product_attention.2",
        max_without_subtract,
        "you divide by one sum for all of them",
    ),
    ("scaled_dot_product_attention.2", only_prints, "end it with `return`, not with `print`"),
    (
        "scaled_dot_product_attention.2",
        F.scaled_dot_product_attention,
        "calls `scaled_dot_product_attention`",
    ),
    (
        "scaled_dot_product_attention.2",
        lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
        "which this exercise rules",
    ),
    ("scaled_dot_product_attention.2", weights_detached, "no gradient reaches `q`"),
    (
        "scaled_dot_product_attention.2",
        lambda q, k, v: attention_by_einsum(q, k, v) * 0.5,
        "0.5 times what is expected",
    ),
    (
        "scaled_dot_product_attention.2",
        lambda q, k, v: attention_by_einsum(q, k, v).mT,
        "transpose",
    ),
    ("scaled_dot_product_attention.2", lambda q, k: q, "TypeError"),
    (
        "masks.2",
        lambda ids, pad: masks.padding_mask(ids, pad) & masks.causal_mask(ids.size(1)),
        "which this exercise rules out",
    ),
    ("masks.2", ignores_pad_id, "use pad_id"),
    ("masks.2", lambda ids, pad: mask_by_numbers(ids, pad).int(), "must be boolean"),
    ("masks.3", masks_in_place, "in place"),
    ("masks.5", lambda s: mask_by_numbers(s, 0), "sentences before it"),
    (
        "multi_head_attention.2",
        lambda x, n: x.reshape(x.size(0), n, x.size(1), -1),
        "cuts through the tokens",
    ),
    ("multi_head_attention.3", lambda heads: heads.sum(1), "the shape should be (B, T, D)"),
    ("tokens_and_embeddings.2", no_return, "gives nothing back"),
    (
        "tokens_and_embeddings.2",
        lambda cut: min(w[:2] for w in cut),
        "isn't the most frequent",
    ),
    ("tokens_and_embeddings.3", never_advances, "still running after"),
    ("tokens_and_embeddings.3", merge_as_list, "a list cannot be a key of `cut`"),
    (
        "tokens_and_embeddings.5",
        lambda ids, weight: weight[ids] * weight.size(1) ** 0.5,
        "don't look rows up with `weight[...]`",
    ),
    (
        "tokens_and_embeddings.5",
        lambda ids, weight: F.embedding(ids, weight) * weight.size(1) ** 0.5,
        "`embedding`",
    ),
    ("positional_encodings.1", (628.3 / 2,), "a full turn is 2 pi, not pi"),
    ("positional_encodings.3", lambda x, table: x + table[: x.size(1)] * 2, "aren't rows 0 to T - "
                                                                            "1"),
    ("positional_encodings.4", lambda k, w: [[1, 0], [0, 1]], "doesn't go back by k"),
    ("normalization.2", ignores_eps, "whatever `eps` you're given"),
    ("normalization.2", lambda x, w, b: F.layer_norm(x, w.shape, w, b), "calls `layer_norm`"),
    ("normalization.5", batch_norm_of_zeros, "the real tokens aren't normalised correctly"),
    (
        "feed_forward_and_residuals.4",
        lambda x, p: x * (torch.rand(x.shape[-1:]) >= p) / (1 - p),
        "you drop whole rows",
    ),
    ("encoder.3", returns_too_early, "only the first layer runs"),
    ("decoder.3", lambda nt, src, bos, eos, n: [nt(src, src[:i]) for i in range(n)], "bos first"),
    ("whole_model.2", lambda model, src, tgt: model(src, tgt), "calls `forward`"),
    ("batches_loss_schedule.2", loss_as_a_number, "no gradient flows back"),
    ("batches_loss_schedule.2", loss_by_whole_numbers, "bits for nats"),
    ("toy_tasks.3", appends_to_letters, "in place"),
    (
        "decoding.2",
        lambda logits, k: logits.masked_fill_(logits < logits.topk(k)[0][:, -1:], -1e9),
        "work on a copy",
    ),
    ("decoding.4", lambda p, top: p * (p >= top), "the kept probabilities must sum to 1"),
    ("training_on_multi30k.5", states_added_up, "in place"),
    ("looking_inside.3", lambda table, i, k: list(range(k)), "leave it out"),
    ("looking_inside.5", lambda found, true: found.update(true) or 0.5, "in place"),
]

NOT_YET = [
    ("scaled_dot_product_attention.2", half_typed),
    ("scaled_dot_product_attention.2", lambda q, k, v: ...),
    ("batches_loss_schedule.1", (9.21, ...)),
]


def handed_in(number, answer):
    getattr(checks, number.partition(".")[0])
    return checks.EXERCISES[number], answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize(("number", "answer"), RIGHT)
def test_a_right_answer_is_accepted_however_it_is_written(number, answer, capsys):
    check, answers = handed_in(number, answer)
    assert check(*answers) is True, capsys.readouterr().out


@pytest.mark.parametrize(("number", "answer", "said"), WRONG)
def test_a_wrong_answer_is_refused_with_a_sentence_that_helps(
    number, answer, said, capsys, monkeypatch
):
    check, answers = handed_in(number, answer)
    if said == "still running after":  # seconds that nobody here has to wait
        monkeypatch.setattr(framework, "LIMIT", 0.5)
    assert check(*answers) is False
    assert said.lower() in capsys.readouterr().out.lower()


@pytest.mark.parametrize(("number", "answer"), NOT_YET)
def test_an_answer_with_a_gap_is_no_attempt(number, answer):
    check, answers = handed_in(number, answer)
    assert check(*answers) is None
