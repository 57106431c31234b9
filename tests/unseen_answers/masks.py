"""Answers to the exercises of chapter 03, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: combined
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((2, 1, 6, 6), 10)
""",
        right=False,
        mistake="hides the padded queries as well as the padded keys",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((2, 1, 6, 6), 21)
""",
        right=False,
        mistake="forgets the padding",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((2, 6, 6), 18)
""",
        right=False,
        mistake="forgets the axis of the heads",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((2, 1, 6, 6), 39)
""",
        right=False,
        mistake="counts both targets together",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((2, 1, 6, 6), 24)
""",
        right=False,
        mistake="forgets the causal mask",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
answer = ((1, 1, 6, 6), 18)
""",
        right=False,
        mistake="gives the shape of the causal mask alone",
    ),
    Answer(
        exercise="masks.1",
        check="combined",
        code="""
import torch

from transformer_lib.masks import causal_mask, padding_mask

ids = torch.ones(2, 6, dtype=torch.long)
ids[0, 4:] = 0
both = padding_mask(ids) & causal_mask(6)
answer = (both.shape, int(both[0].sum()))
""",
        right=True,
        mistake="counted by the library's own masks, the shape a torch.Size",
    ),
    # Exercise 2: decoder_mask
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    causal = torch.tril(torch.ones(ids.size(1), ids.size(1), dtype=torch.bool))
    return (ids != pad_id)[:, None, :, None] & causal


answer = decoder_mask
""",
        right=False,
        mistake="hides the rows of padding and not its columns",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    real = ids != pad_id
    causal = torch.ones(ids.size(1), ids.size(1)).tril().bool()
    return real[:, None, None, :] & real[:, None, :, None] & causal


answer = decoder_mask
""",
        right=False,
        mistake="hides padding as keys and as queries, so whole rows are empty",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    causal = torch.ones(size, size, dtype=torch.bool).tril()
    return ids.bool()[:, None, None, :] & causal[None, None]


answer = decoder_mask
""",
        right=False,
        mistake="takes 0 for padding, whatever pad_id says",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    causal = torch.ones(1, 1, size, size, dtype=torch.bool).tril(diagonal=-1)
    return causal & (ids != pad_id)[:, None, None, :]


answer = decoder_mask
""",
        right=False,
        mistake="a token may not see itself",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    causal = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
    return causal | (ids != pad_id)[:, None, None, :]


answer = decoder_mask
""",
        right=False,
        mistake="joins the two masks with or",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    causal = torch.tril(torch.ones(1, 1, size, size))
    return causal * (ids != pad_id)[:, None, None, :].float()


answer = decoder_mask
""",
        right=False,
        mistake="the product of two masks as floats stays a float",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    return torch.ones(size, size, dtype=torch.bool).triu() & (ids != pad_id)[:, None, None]


answer = decoder_mask
""",
        right=False,
        mistake="sees the future and not the past",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    size = ids.size(1)
    future = torch.triu(torch.ones(1, 1, size, size), diagonal=1).bool()
    return future | (ids == pad_id)[:, None, None, :]


answer = decoder_mask
""",
        right=False,
        mistake="True means hidden",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    B, T = ids.shape
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    return (causal & (ids[0] != pad_id)).expand(B, 1, T, T)


answer = decoder_mask
""",
        right=False,
        mistake="the padding mask of the first sentence serves all",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    place = torch.arange(ids.shape[1], device=ids.device)
    past = place.view(-1, 1) >= place.view(1, -1)
    return torch.logical_and(past, ids.ne(pad_id).unsqueeze(1).unsqueeze(1))


answer = decoder_mask
""",
        right=True,
        mistake="compares two ranges",
    ),
    Answer(
        exercise="masks.2",
        check="decoder_mask",
        code="""
import torch


def decoder_mask(ids, pad_id):
    B, T = ids.shape
    mask = torch.zeros(B, 1, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                mask[b, 0, i, j] = bool(ids[b, j] != pad_id)
    return mask


answer = decoder_mask
""",
        right=True,
        mistake="fills the table entry by entry",
    ),
    # Exercise 3: repaired_mask
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask, -math.inf)
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="hides what is allowed",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores + mask.float() * 1e9
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="adds 1e9 to what is allowed, where float32 loses the scores",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1).masked_fill(~mask, 0.0)
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="sets weights to zero after the softmax, so rows no longer sum to 1",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores * mask.float()
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="multiplies scores by the mask, and a score of 0 still gets weight",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math

import torch


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = torch.where(mask, scores, scores - 10)
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="subtracts ten, which is not enough",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="does not keep what masked_fill returns",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores + (1 - mask) * -1e9
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="1 - mask is no operation on booleans and raises",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask == 0, 1e-9)
    return scores.softmax(-1) @ v


answer = repaired
""",
        right=False,
        mistake="1e-9 is written for -1e9",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import math


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return (scores + mask.float().log()).softmax(-1) @ v


answer = repaired
""",
        right=True,
        mistake="adds the logarithm of the mask",
    ),
    Answer(
        exercise="masks.3",
        check="repaired_mask",
        code="""
import torch


def repaired(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    shares = torch.exp(scores - scores.max(-1, keepdim=True).values) * mask
    return (shares / shares.sum(-1, keepdim=True)) @ v


answer = repaired
""",
        right=True,
        mistake="masks the exponentials and normalises afterwards",
    ),
    # Exercise 4: window_mask
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    return torch.ones(1, 1, size, size, dtype=torch.bool).tril().triu(-window)


answer = window_mask
""",
        right=False,
        mistake="window tokens before it, and itself: one too many",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    place = torch.arange(size)
    return ((place[:, None] - place).abs() < window)[None, None]


answer = window_mask
""",
        right=False,
        mistake="looks to both sides",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    i, j = torch.arange(size)[:, None], torch.arange(size)[None]
    return ((i // window == j // window) & (j <= i))[None, None]


answer = window_mask
""",
        right=False,
        mistake="cuts the row into blocks that do not slide",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    return torch.ones(size, size, dtype=torch.bool).tril().triu(1 - window)


answer = window_mask
""",
        right=False,
        mistake="the axes of batch and heads are missing",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    mask = torch.zeros(1, 1, size, size, dtype=torch.bool)
    for i in range(size):
        mask[0, 0, i, max(0, i - window) : i] = True
    return mask


answer = window_mask
""",
        right=False,
        mistake="the window lies before the token, which cannot see itself",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    mask = torch.zeros(size, size, dtype=torch.bool)
    for i in range(size):
        mask[i, i - window + 1 : i + 1] = True
    return mask[None, None]


answer = window_mask
""",
        right=False,
        mistake="a negative start of the slice empties or shortens the first rows",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    query = torch.arange(size)
    key = torch.arange(size).unsqueeze(1)
    distance = query - key
    return ((distance >= 0) & (distance < window)).view(1, 1, size, size)


answer = window_mask
""",
        right=False,
        mistake="query and key exchanged, so it looks ahead",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    total = torch.zeros(size, size, dtype=torch.bool)
    for back in range(min(window, size)):
        total |= torch.diag(torch.ones(size - back, dtype=torch.bool), -back)
    return total.reshape(1, 1, size, size)


answer = window_mask
""",
        right=True,
        mistake="a sum of shifted identities",
    ),
    Answer(
        exercise="masks.4",
        check="window_mask",
        code="""
import torch


def window_mask(size, window):
    causal = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
    too_old = causal.tril(-window)
    return causal ^ too_old


answer = window_mask
""",
        right=True,
        mistake="one causal mask without another",
    ),
    # Exercise 5: packed_mask
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    T = segments.size(1)
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return same & torch.ones(T, T, dtype=torch.bool).tril()


answer = packed_mask
""",
        right=False,
        mistake="padding sees padding, as 0 equals 0",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
def packed_mask(segments):
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return same & (segments != 0)[:, None, None, :]


answer = packed_mask
""",
        right=False,
        mistake="forgets to be causal",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    T = segments.size(1)
    real = (segments != 0)[:, None, None, :]
    return real & torch.ones(1, 1, T, T, dtype=torch.bool).tril()


answer = packed_mask
""",
        right=False,
        mistake="a token sees earlier sentences, too",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    T = segments.size(1)
    causal = torch.ones(1, 1, T, T, dtype=torch.bool).tril()
    mask = torch.zeros(len(segments), 1, T, T, dtype=torch.bool)
    for s in (1, 2):
        own = segments == s
        mask |= own[:, None, :, None] & own[:, None, None, :]
    return mask & causal


answer = packed_mask
""",
        right=False,
        mistake="knows sentences 1 and 2 alone",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    T = segments.size(1)
    i, j = segments[:, None, :, None], segments[:, None, None, :]
    return (i * j == i**2) & torch.ones(T, T, dtype=torch.bool).tril()


answer = packed_mask
""",
        right=False,
        mistake="i * j equals i squared for a padded query i, so it sees everything before",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    row = segments[0]
    T = len(row)
    same = (row[:, None] == row[None, :]) & (row != 0)
    return (same & torch.ones(T, T, dtype=torch.bool).tril()).expand(len(segments), 1, T, T)


answer = packed_mask
""",
        right=False,
        mistake="reads the first row of the batch alone",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    T = segments.size(1)
    same = segments.unsqueeze(2) == segments.unsqueeze(1)
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    return same & causal & (segments != 0).unsqueeze(1)


answer = packed_mask
""",
        right=False,
        mistake="shape (B, T, T), no axis for the heads",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
from torch.nn import functional as F


def packed_mask(segments):
    member = F.one_hot(segments)[..., 1:].float()  # (B, T, sentences)
    return (member @ member.mT).tril().bool().unsqueeze(1)


answer = packed_mask
""",
        right=True,
        mistake="a product of one-hot vectors, the column of padding left out",
    ),
    Answer(
        exercise="masks.5",
        check="packed_mask",
        code="""
import torch


def packed_mask(segments):
    rows = segments.tolist()
    table = [
        [
            [[j <= i and a == b and b != 0 for j, b in enumerate(row)] for i, a in enumerate(row)]
        ]
        for row in rows
    ]
    return torch.tensor(table)


answer = packed_mask
""",
        right=True,
        mistake="loops over pairs of places",
    ),
]
