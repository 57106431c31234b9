"""Planned wrong answers for Lab 1, and the points that each deserves: check, hidden, edge cases."""

WRONG = {
    "task1_answer": [
        (
            "takes only the best key's value",
            """# Task 1: a soft look-up
def soft_lookup(query, keys, values):
    return values[(keys @ query).argmax()]
""",
            (0, 0),
        ),
        (
            "forgets to divide the exponentials by their sum",
            """# Task 1: a soft look-up
def soft_lookup(query, keys, values):
    return (keys @ query).exp() @ values
""",
            (0, 0),
        ),
        (
            "weights by the scores, without a softmax",
            """# Task 1: a soft look-up
def soft_lookup(query, keys, values):
    return (keys @ query) @ values
""",
            (0, 0),
        ),
        (
            "divides by sqrt(d_k) already",
            """# Task 1: a soft look-up
def soft_lookup(query, keys, values):
    return torch.softmax(keys @ query / math.sqrt(len(query)), -1) @ values
""",
            (0, 0),
        ),
        (
            "builds the scores from Python numbers, which cuts autograd off",
            """# Task 1: a soft look-up
def soft_lookup(query, keys, values):
    scores = torch.tensor([float(query @ key) for key in keys], dtype=values.dtype)
    return torch.softmax(scores, -1) @ values
""",
            (1, 0),
        ),
    ],
    "task2_answer": [
        (
            "no division",
            """# Task 2: scaled scores
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1)
""",
            (0, 0),
        ),
        (
            "divides by d_k",
            """# Task 2: scaled scores
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / q.size(-1)
""",
            (0, 0),
        ),
        (
            "divides by the square root of the number of keys",
            """# Task 2: scaled scores
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.size(-2))
""",
            (0, 0),
        ),
        (
            "one row for each key",
            """# Task 2: scaled scores
def scaled_scores(q, k):
    return k @ q.transpose(-2, -1) / math.sqrt(q.size(-1))
""",
            (0, 0),
        ),
        (
            "transposes axes 0 and 1, right for one sentence only",
            """# Task 2: scaled scores
def scaled_scores(q, k):
    return q @ k.transpose(0, 1) / math.sqrt(q.size(-1))
""",
            (1, 0),
        ),
    ],
    "task3_answer": [
        (
            "the textbook formula, which overflows",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)
""",
            (0, 1, 0),
        ),
        (
            "sum over all scores",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum()
""",
            (0, 0, 0),
        ),
        (
            "sum over the rows instead of the keys",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    powers = (scores - scores.max(0, keepdim=True).values).exp()
    return powers / powers.sum(0, keepdim=True)
""",
            (0, 0, 0),
        ),
        (
            "clamps the scores, which loses their differences",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    powers = scores.clamp(max=80).exp()
    return powers / powers.sum(-1, keepdim=True)
""",
            (0, 1, 0),
        ),
        (
            "subtracts the largest score of the whole tensor",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(-1, keepdim=True)
""",
            (1, 1, 0),
        ),
        (
            "changes the scores in place",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    with torch.no_grad():
        scores -= scores.max(-1, keepdim=True).values
    return scores.exp() / scores.exp().sum(-1, keepdim=True)
""",
            (1, 1, 0),
        ),
        (
            "calls PyTorch's softmax",
            """# Task 3: a softmax that survives large scores
def softmax(scores):
    return scores.softmax(-1)
""",
            (1, 0, 0),
        ),
    ],
    "task4_answer": [
        (
            "softmax over the queries",
            """# Task 4: attention
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, -2)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "no division",
            """# Task 4: attention
def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1), -1)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "returns the output only",
            """# Task 4: attention
def attention(q, k, v):
    return softmax(scaled_scores(q, k)) @ v
""",
            (0, 0, 0),
        ),
        (
            "returns the weights first",
            """# Task 4: attention
def attention(q, k, v):
    weights = softmax(scaled_scores(q, k))
    return weights, weights @ v
""",
            (0, 0, 0),
        ),
        (
            "takes d_k from the values",
            """# Task 4: attention
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))
    weights = torch.softmax(scores, -1)
    return weights @ v, weights
""",
            (1, 0, 0),
        ),
        (
            "calls the library's attention, under another name",
            """# Task 4: attention
from transformer_lib.attention import scaled_dot_product_attention as finished


def attention(q, k, v):
    return finished(q, k, v)
""",
            (1, 0, 0),
        ),
        (
            "gets output and weights from PyTorch's attention",
            """# Task 4: attention
def attention(q, k, v):
    fused = torch.nn.functional.scaled_dot_product_attention
    keys = torch.eye(k.size(-2), dtype=v.dtype).expand(*k.shape[:-1], -1)
    return fused(q, k, v), fused(q, k, keys)
""",
            (1, 0, 0),
        ),
    ],
    "task5_answer": [
        (
            "unchanged",
            """# Task 5: the fixed function
def mended_attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / math.sqrt(k.size(1)), dim=1)
    return weights @ v
""",
            (0, 0, 0),
        ),
        (
            "fixes only the softmax",
            """# Task 5: the fixed function
def mended_attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / math.sqrt(k.size(1)), dim=-1)
    return weights @ v
""",
            (0, 0, 0),
        ),
        (
            "fixes only the divisor",
            """# Task 5: the fixed function
def mended_attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / math.sqrt(k.size(-1)), dim=1)
    return weights @ v
""",
            (0, 0, 0),
        ),
        (
            "counts from the front again, right for a batch without heads only",
            """# Task 5: the fixed function
def mended_attention(q, k, v):
    scores = q @ k.transpose(1, 2)
    weights = torch.softmax(scores / math.sqrt(k.size(2)), dim=2)
    return weights @ v
""",
            (1, 0, 0),
        ),
        (
            "calls PyTorch's attention",
            """# Task 5: the fixed function
def mended_attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
""",
            (1, 0, 0),
        ),
    ],
    "task6_answer": [
        (
            "the entropy itself",
            """# Task 6: measure the spread
def spread_and_slope(scores):
    weights = softmax(scores)
    entropy = torch.special.entr(weights).sum(-1)
    return entropy, (weights * (1 - weights)).sum(-1)
""",
            (0, 0, 0),
        ),
        (
            "mixes bits and e",
            """# Task 6: measure the spread
def spread_and_slope(scores):
    weights = softmax(scores)
    entropy = -(weights * weights.log2()).sum(-1)
    return entropy.exp(), (weights * (1 - weights)).sum(-1)
""",
            (0, 0, 0),
        ),
        (
            "the slope averaged over the keys",
            """# Task 6: measure the spread
def spread_and_slope(scores):
    weights = softmax(scores)
    entropy = torch.special.entr(weights).sum(-1)
    return entropy.exp(), (weights * (1 - weights)).mean(-1)
""",
            (0, 0, 0),
        ),
        (
            "one number for all rows",
            """# Task 6: measure the spread
def spread_and_slope(scores):
    weights = softmax(scores)
    entropy = torch.special.entr(weights).sum(-1)
    return entropy.exp().mean(), (weights * (1 - weights)).sum(-1).mean()
""",
            (0, 0, 0),
        ),
        (
            "0 times minus infinity where a weight is 0",
            """# Task 6: measure the spread
def spread_and_slope(scores):
    weights = softmax(scores)
    entropy = -(weights * weights.log()).sum(-1)
    return entropy.exp(), (weights * (1 - weights)).sum(-1)
""",
            (1, 1, 0),
        ),
    ],
}

PARTIAL = (
    "Pass the visible check and fail the hidden tests: in task 1 a lost gradient, in task 2 "
    "an axis counted from the front, in task 3 the largest score of the whole tensor, a change "
    "in place and PyTorch's softmax, in task 4 d_k taken from the values and two finished "
    "attentions, in task 5 axes counted from the front and a finished attention, in task 6 a "
    "weight of exactly 0."
)
