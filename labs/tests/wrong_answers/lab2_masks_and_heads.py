"""Planned wrong answers for Lab 2, and the points that each deserves: check, hidden, edge cases."""

_LAYER = '''# Task 4: multi-head attention
class MyMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask):
'''

WRONG = {
    "task1_answer": [
        (
            "True means hidden",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    hidden = (ids == pad_id)[:, None, None, :]
    if not causal:
        return hidden
    return hidden | torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
""",
            (0, 0, 0),
        ),
        (
            "hides the rows of the padding",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    real = (ids != pad_id)[:, None, :, None]
    if not causal:
        return real
    return real & torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
""",
            (0, 0, 0),
        ),
        (
            "leaves the padding visible if causal",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    B, T = ids.shape
    if not causal:
        return (ids != pad_id)[:, None, None, :]
    return torch.ones(B, 1, T, T, dtype=torch.bool).tril()
""",
            (0, 0, 0),
        ),
        (
            "triu for tril",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    real = (ids != pad_id)[:, None, None, :]
    if not causal:
        return real
    return real & torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu()
""",
            (0, 0, 0),
        ),
        (
            "numbers instead of booleans",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    real = (ids != pad_id)[:, None, None, :].float()
    if not causal:
        return real
    return real * torch.ones(ids.size(1), ids.size(1)).tril()
""",
            (0, 0, 0),
        ),
        (
            "two axes only",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    real = ids != pad_id
    if not causal:
        return real
    return real & torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
""",
            (0, 0, 0),
        ),
        (
            "counts the real tokens, which is right for padding at the end only",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    T = ids.size(1)
    lengths = (ids != pad_id).sum(-1)
    real = (torch.arange(T) < lengths[:, None])[:, None, None, :]
    if not causal:
        return real
    return real & torch.ones(T, T, dtype=torch.bool).tril()
""",
            (1, 0, 0),
        ),
        (
            "assumes that pad_id is 0",
            """# Task 1: one function for the masks
def make_mask(ids, pad_id, causal):
    real = (ids > 0)[:, None, None, :]
    if not causal:
        return real
    return real & torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
""",
            (1, 1, 0),
        ),
        (
            "calls the library's functions",
            """# Task 1: one function for the masks
from transformer_lib.masks import causal_mask, padding_mask


def make_mask(ids, pad_id, causal):
    real = padding_mask(ids, pad_id)
    return real & causal_mask(ids.size(1)) if causal else real
""",
            (1, 0, 0),
        ),
    ],
    "task2_answer": [
        (
            "throws away the result of masked_fill",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "True means hidden",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(mask, -math.inf).softmax(-1)
    weights = weights.nan_to_num(0.0)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "score 0 for hidden keys",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = (scores * mask).softmax(-1)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "deletes weights after the softmax",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1) * mask
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "nan for a query with nothing to look at",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "minus a billion",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    return weights @ v, weights
""",
            (0, 0, 0),
        ),
        (
            "zeros in the output, but not in the weights",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return (weights @ v).nan_to_num(0.0), weights
""",
            (0, 0, 0),
        ),
        (
            "minus a billion, with zeros in empty rows",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    weights = weights * mask.any(-1, keepdim=True)
    return weights @ v, weights
""",
            (1, 1, 0),
        ),
        (
            "deletes weights after the softmax and divides again",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1) * mask
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ v, weights
""",
            (1, 1, 0),
        ),
        (
            "looks for empty rows by an index, which needs a mask of full size",
            """# Task 2: masked attention
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    weights[~mask.any(-1)] = 0.0
    return weights @ v, weights
""",
            (1, 0, 0),
        ),
        (
            "calls the library's attention",
            """# Task 2: masked attention
from transformer_lib.attention import scaled_dot_product_attention as finished


def masked_attention(q, k, v, mask):
    return finished(q, k, v, mask)
""",
            (1, 0, 0),
        ),
    ],
    "task3_answer": [
        (
            "reshapes straight to the final shape, both ways",
            """# Task 3: split and join heads
def split_heads(x, n_heads):
    B, T, D = x.shape
    return x.reshape(B, n_heads, T, D // n_heads)


def join_heads(heads):
    B, H, T, K = heads.shape
    return heads.reshape(B, T, H * K)
""",
            (0, 0),
        ),
        (
            "splits well, joins without moving the heads back",
            """# Task 3: split and join heads
def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(heads):
    B, H, T, K = heads.shape
    return heads.reshape(B, T, H * K)
""",
            (0, 0),
        ),
        (
            "cuts the features as (K, H)",
            """# Task 3: split and join heads
def split_heads(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, D // n_heads, n_heads).permute(0, 3, 1, 2)


def join_heads(heads):
    return heads.permute(0, 2, 3, 1).flatten(2)
""",
            (0, 0),
        ),
        (
            "leaves the heads' axis after the tokens'",
            """# Task 3: split and join heads
def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1))


def join_heads(heads):
    return heads.flatten(2)
""",
            (0, 0),
        ),
        (
            "cuts slices of two features, right for the example only",
            """# Task 3: split and join heads
def split_heads(x, n_heads):
    return x.unflatten(-1, (-1, 2)).transpose(1, 2)


def join_heads(heads):
    return heads.transpose(1, 2).flatten(2)
""",
            (1, 0),
        ),
    ],
    "task4_answer": [
        (
            "w_o is missing",
            _LAYER
            + """        q = split_heads(self.w_q(query), self.n_heads)
        k = split_heads(self.w_k(key), self.n_heads)
        v = split_heads(self.w_v(value), self.n_heads)
        return join_heads(masked_attention(q, k, v, mask)[0])
""",
            (0, 0, 0),
        ),
        (
            "the mask is not used",
            _LAYER
            + """        q = split_heads(self.w_q(query), self.n_heads)
        k = split_heads(self.w_k(key), self.n_heads)
        v = split_heads(self.w_v(value), self.n_heads)
        return self.w_o(join_heads(F.scaled_dot_product_attention(q, k, v)))
""",
            (0, 0, 0),
        ),
        (
            "a single head",
            _LAYER
            + """        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        return self.w_o(masked_attention(q, k, v, mask[:, 0])[0])
""",
            (0, 0, 0),
        ),
        (
            "joins by a reshape",
            _LAYER
            + """        q = split_heads(self.w_q(query), self.n_heads)
        k = split_heads(self.w_k(key), self.n_heads)
        v = split_heads(self.w_v(value), self.n_heads)
        return self.w_o(masked_attention(q, k, v, mask)[0].reshape(query.shape))
""",
            (0, 0, 0),
        ),
        (
            "projects the key where the value belongs",
            _LAYER
            + """        q = split_heads(self.w_q(query), self.n_heads)
        k = split_heads(self.w_k(key), self.n_heads)
        v = split_heads(self.w_v(key), self.n_heads)
        return self.w_o(join_heads(masked_attention(q, k, v, mask)[0]))
""",
            (1, 0, 0),
        ),
        (
            "cuts the keys by the length of the query",
            _LAYER
            + """        B, T, D = query.shape
        q, k, v = (
            w(x).reshape(B, T, self.n_heads, -1).transpose(1, 2)
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        return self.w_o(join_heads(masked_attention(q, k, v, mask)[0]))
""",
            (1, 0, 0),
        ),
        (
            "leaves the work to the library's layer",
            _LAYER
            + """        from transformer_lib.attention import MultiHeadAttention

        finished = MultiHeadAttention(query.size(-1), self.n_heads).to(query.dtype)
        finished.load_state_dict(self.state_dict())
        return finished(query, key, value, mask)[0]
""",
            (1, 0, 0),
        ),
    ],
    "task5_answer": [
        (
            "unchanged",
            """# Task 5: the fixed function
def mended_attention(q, k, v, ids, pad_id):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    real = ids != pad_id
    scores.masked_fill(~real[:, None, :, None], -math.inf)
    return scores.softmax(-1) @ v
""",
            (0, 0),
        ),
        (
            "keeps the result, but still hides the queries",
            """# Task 5: the fixed function
def mended_attention(q, k, v, ids, pad_id):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    real = ids != pad_id
    scores = scores.masked_fill(~real[:, None, :, None], -math.inf)
    return scores.softmax(-1) @ v
""",
            (0, 0),
        ),
        (
            "hides the keys, but still throws the result away",
            """# Task 5: the fixed function
def mended_attention(q, k, v, ids, pad_id):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    real = ids != pad_id
    scores.masked_fill(~real[:, None, None, :], -math.inf)
    return scores.softmax(-1) @ v
""",
            (0, 0),
        ),
        (
            "loses the inversion",
            """# Task 5: the fixed function
def mended_attention(q, k, v, ids, pad_id):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    real = ids != pad_id
    scores = scores.masked_fill(real[:, None, None, :], -math.inf)
    return scores.softmax(-1) @ v
""",
            (0, 0),
        ),
        (
            "one axis too few: sentences line up with heads",
            """# Task 5: the fixed function
def mended_attention(q, k, v, ids, pad_id):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    real = ids != pad_id
    scores = scores.masked_fill(~real[:, None, :], -math.inf)
    return scores.softmax(-1) @ v
""",
            (1, 0),
        ),
    ],
    "task6_answer": [
        (
            "changes the token itself as well",
            """# Task 6: a leak test
def leaks(function, x):
    before, found = function(x), []
    for i in range(len(x)):
        other = x.clone()
        other[i:] = torch.randn_like(other[i:])
        found.append(bool((function(other)[i] - before[i]).abs().max() > 1e-5))
    return torch.tensor(found)
""",
            (0, 0, 0),
        ),
        (
            "writes into x",
            """# Task 6: a leak test
def leaks(function, x):
    before, found = function(x), []
    for i in reversed(range(len(x))):
        x[i + 1 :] = torch.randn_like(x[i + 1 :])
        found.insert(0, bool((function(x)[i] - before[i]).abs().max() > 1e-5))
    return torch.tensor(found)
""",
            (0, 1, 0),
        ),
        (
            "one verdict for the whole layer",
            """# Task 6: a leak test
def leaks(function, x):
    other = x.clone()
    other[-1] = torch.randn_like(other[-1])
    return not torch.allclose(function(x)[:-1], function(other)[:-1], atol=1e-5)
""",
            (0, 0, 0),
        ),
        (
            "never finds anything",
            """# Task 6: a leak test
def leaks(function, x):
    return torch.zeros(len(x), dtype=torch.bool)
""",
            (0, 0, 0),
        ),
        (
            "changes only the last token",
            """# Task 6: a leak test
def leaks(function, x):
    other = x.clone()
    other[-1] = torch.randn_like(other[-1])
    found = (function(other) - function(x)).abs().max(-1).values > 1e-5
    found[-1] = False
    return found
""",
            (1, 0, 0),
        ),
        (
            "changes only the next token",
            """# Task 6: a leak test
def leaks(function, x):
    before, found = function(x), []
    for i in range(len(x)):
        other = x.clone()
        other[i + 1 : i + 2] = torch.randn_like(other[i + 1 : i + 2])
        found.append(bool((function(other)[i] - before[i]).abs().max() > 1e-5))
    return torch.tensor(found)
""",
            (1, 0, 0),
        ),
        (
            "adds a constant, which a LayerNorm removes",
            """# Task 6: a leak test
def leaks(function, x):
    before, found = function(x), []
    for i in range(len(x)):
        other = x.clone()
        other[i + 1 :] += 1.0
        found.append(bool((function(other)[i] - before[i]).abs().max() > 1e-5))
    return torch.tensor(found)
""",
            (1, 1, 0),
        ),
        (
            "takes rounding for a leak",
            """# Task 6: a leak test
def leaks(function, x):
    before, found = function(x), []
    for i in range(len(x)):
        other = x.clone()
        other[i + 1 :] = torch.randn_like(other[i + 1 :])
        found.append(not torch.equal(function(other)[i], before[i]))
    return torch.tensor(found)
""",
            (1, 1, 0),
        ),
    ],
}

PARTIAL = (
    "Pass the visible check and fail the hidden tests: in task 1 padding at the end only, "
    "pad_id 0 only and the library's functions, in task 2 minus a billion, weights deleted "
    "after the softmax, an index that needs a full mask and a finished attention, in task 3 a "
    "fixed slice, in task 4 the key for the value, one length for both and the library's layer, "
    "in task 5 an axis too few, in task 6 one changed token, a constant and rounding."
)
