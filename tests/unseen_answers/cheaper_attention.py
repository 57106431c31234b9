"""Answers to the exercises of chapter 23, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
import torch

place = torch.arange(101)
links_of = (place[:, None] - place).abs() <= 10
answer = (int(links_of[50].sum()), int(links_of.sum()), -(-100 // 10))
""",
        right=True,
        mistake="Counted from the mask.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
scores_in_all = sum(min(i, 10) + 1 + min(100 - i, 10) for i in range(101))
answer = (2 * 10 + 1, scores_in_all, 100 / 10)
""",
        right=True,
        mistake="Two sums and true division, so the last number is a float.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (20, 2020 - 110, 10)
""",
        right=False,
        mistake="Forgets the token itself.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (21, 101 * 21, 10)
""",
        right=False,
        mistake="Gives the tokens at the ends a full window.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (21, 2011, 5)
""",
        right=False,
        mistake="Thinks that it is enough if the token in the middle has heard all.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (11, 101 * 11 - 2 * 15, 20)
""",
        right=False,
        mistake="Takes 10 for both sides together, five to each.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (21, 2121 - 55, 10)
""",
        right=False,
        mistake="Leaves the missing keys out at one end only.",
    ),
    Answer(
        exercise="cheaper_attention.1",
        check="by_hand",
        code="""
answer = (21, 2011, 11)
""",
        right=False,
        mistake="Divides the number of tokens, not of steps, and rounds up.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
from transformer_lib.beyond import sparse

def fixed(block, summary):
    def same_block(i, j):
        return i // block == j // block

    def is_summary(i, j):
        return (j % block >= block - summary) | (i < 0)

    return sparse.causal(sparse.any_of(same_block, is_summary))

answer = fixed
""",
        right=True,
        mistake="Composed from the library's own functions.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
import torch

class Fixed:
    def __init__(self, block, summary):
        self.block, self.summary = block, summary

    def __call__(self, i, j):
        own = torch.eq(torch.div(i, self.block, rounding_mode="floor"),
                       torch.div(j, self.block, rounding_mode="floor"))
        told = torch.remainder(-j - 1, self.block) < self.summary
        return torch.logical_and(torch.logical_or(own, told), ~(j > i))

answer = Fixed
""",
        right=True,
        mistake="A class that is called, with logical functions.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    def rule(i, j):
        own = (i // block == j // block) & (j <= i)
        return own | (j % block >= block - summary)

    return rule

answer = fixed
""",
        right=False,
        mistake="The summaries of later blocks can be seen.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    def rule(i, j):
        own = i // block == j // block
        return own | ((j % block >= block - summary) & (j <= i))

    return rule

answer = fixed
""",
        right=False,
        mistake="The own block can be seen to its end.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: ((i // block == j // block) | (j % block < summary)) & (j <= i)

answer = fixed
""",
        right=False,
        mistake="The summary is the first places of each block.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: ((i // block == j // block) | (j % block > block - summary)) & (j <= i)

answer = fixed
""",
        right=False,
        mistake="One summary place is missing.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: ((i // block == j // block) | (i % block >= block - summary)) & (j <= i)

answer = fixed
""",
        right=False,
        mistake="Asks where the query stands in its block, not the key.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: ((i - j < block) | (j % block >= block - summary)) & (j <= i)

answer = fixed
""",
        right=False,
        mistake="The own block is a window that moves along.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: (i // block == j // block) & (j % block >= block - summary) & (j <= i)

answer = fixed
""",
        right=False,
        mistake="Wants both: the own block and a summary place.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    return lambda i, j: (i // block == j // block or j % block >= block - summary) and j <= i

answer = fixed
""",
        right=False,
        mistake="Python's and / or cannot be used with tensors.",
    ),
    Answer(
        exercise="cheaper_attention.2",
        check="fixed",
        code="""
def fixed(block, summary):
    def rule(i, j):
        near = i // block - j // block <= 1
        own = i // block == j // block
        return (own | (near & (j % block >= block - summary))) & (j <= i)

    return rule

answer = fixed
""",
        right=False,
        mistake="Only the summary of the block before is seen, not of every block.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
import torch

def repaired(q, k, v):
    memory = q.new_zeros(*q.shape[:2], q.size(-1), v.size(-1))
    total = q.new_zeros(*q.shape[:2], q.size(-1))
    out = []
    for t in range(q.size(2)):
        memory = memory + k[:, :, t, :, None] * v[:, :, t, None, :]
        total = total + k[:, :, t]
        written = torch.einsum("bhm,bhmk->bhk", q[:, :, t], memory)
        out.append(written / (q[:, :, t] * total).sum(-1, keepdim=True))
    return torch.stack(out, dim=2)

answer = repaired
""",
        right=True,
        mistake="As a recurrent network, token by token.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    weights = (q @ k.mT).tril()
    return weights @ v / weights.sum(dim=-1, keepdim=True)

answer = repaired
""",
        right=True,
        mistake="The table of all weights with its upper half set to zero.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    memory, total = written.cumsum(-3), k.cumsum(-3)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

answer = repaired
""",
        right=False,
        mistake="The total grows along the heads: right only where there is one place to each.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    memory, total = written.cumsum(-3), k.cumsum(-1)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

answer = repaired
""",
        right=False,
        mistake="The total grows along the features.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    memory, total = written.cumsum(-3), k.cumsum(-2) - k
    return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True).clamp(min=1e-6)

answer = repaired
""",
        right=False,
        mistake="Leaves the token itself out of the total.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    return (q[..., None, :] @ written.cumsum(-3))[..., 0, :]

answer = repaired
""",
        right=False,
        mistake="Does not divide at all.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
import torch

def repaired(q, k, v):
    memory = (k[..., None] * v[..., None, :]).cumsum(-3)
    seen = torch.arange(1, q.size(-2) + 1)[:, None]
    return (q[..., None, :] @ memory)[..., 0, :] / seen

answer = repaired
""",
        right=False,
        mistake="Divides by the number of tokens read so far.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    memory, total = written.cumsum(-3), k.flip(-2).cumsum(-2).flip(-2)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

answer = repaired
""",
        right=False,
        mistake="Sums from the back, so only the future is divided by.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    written = k[..., None] * v[..., None, :]
    memory, total = written.cumsum(-3), k.sum(-2, keepdim=True).detach()
    return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

answer = repaired
""",
        right=False,
        mistake="Cures the leak by cutting the gradient; the number still comes from the future.",
    ),
    Answer(
        exercise="cheaper_attention.3",
        check="repaired_causal",
        code="""
def repaired(q, k, v):
    share = k / k.sum((-2, -1), keepdim=True)
    memory = (share[..., None] * v[..., None, :]).cumsum(-3)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * k.cumsum(-2)).sum(-1, keepdim=True)

answer = repaired
""",
        right=False,
        mistake="Makes the keys sum to 1 over all places first, which lets the future in again.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    return torch.lerp(b, a, torch.sigmoid(log_a - log_b).expand_as(a))

answer = merge
""",
        right=True,
        mistake="The sigmoid of the difference is the share of the first.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    share = torch.cat([log_a, log_b], dim=-1).softmax(-1)
    return torch.einsum("btm,mbtk->btk", share, torch.stack([a, b]))

answer = merge
""",
        right=True,
        mistake="A softmax over the two machines and one einsum.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
def merge(a, log_a, b, log_b):
    return (a + b) / 2

answer = merge
""",
        right=False,
        mistake="Takes the plain mean of the two.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
def merge(a, log_a, b, log_b):
    return (a * log_a + b * log_b) / (log_a + log_b)

answer = merge
""",
        right=False,
        mistake="Weighs with the logarithms themselves.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    share = torch.sigmoid(log_b - log_a)
    return share * a + (1 - share) * b

answer = merge
""",
        right=False,
        mistake="Each output gets the weight of the other.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
def merge(a, log_a, b, log_b):
    return a * log_a.exp() + b * log_b.exp()

answer = merge
""",
        right=False,
        mistake="Adds up the weighted outputs without dividing.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
def merge(a, log_a, b, log_b):
    e, f = log_a.exp(), log_b.exp()
    return (a * e + b * f) / (e + f)

answer = merge
""",
        right=False,
        mistake="Large sums overflow, and the result is not a number.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    share = torch.stack([log_a.mean(1, keepdim=True), log_b.mean(1, keepdim=True)]).softmax(0)
    return share[0] * a + share[1] * b

answer = merge
""",
        right=False,
        mistake="Takes one pair of weights for all places: the softmax runs over the text.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    parts = []
    for log in (log_a, log_b):
        parts.append(torch.exp(log - log.amax(-1, keepdim=True)))
    return (a * parts[0] + b * parts[1]) / (parts[0] + parts[1])

answer = merge
""",
        right=False,
        mistake=(
            "Subtracts the maximum of each machine from its own logarithm, so both weights "
            "become 1."
        ),
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
import torch

def merge(a, log_a, b, log_b):
    return torch.where(log_a > log_b, a, b)

answer = merge
""",
        right=False,
        mistake="Takes the output of the machine with the larger sum.",
    ),
    Answer(
        exercise="cheaper_attention.4",
        check="merge",
        code="""
def merge(a, log_a, b, log_b):
    return log_a.softmax(1) * a + log_b.softmax(1) * b

answer = merge
""",
        right=False,
        mistake="Normalises over the places instead of between the machines.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (j == 0) | (i == j)

answer = overturned
""",
        right=True,
        mistake="Place 0 is seen by all, and beyond it everybody sees only itself.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
answer = lambda query, key: (key <= query) & ((key == 0) | (query - key < 4))
""",
        right=True,
        mistake="A causal text with a sink: nobody hears the future.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
import torch

def overturned(i, j):
    return torch.logical_or(j < 1, torch.abs(i - j) < 3)

answer = overturned
""",
        right=True,
        mistake="A short window beside a place that is seen by all and sees only its neighbours.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (i == 0) | (j == 0)

answer = overturned
""",
        right=False,
        mistake="A true global token: two layers are enough.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (i == 0) | (i == j)

answer = overturned
""",
        right=False,
        mistake="Place 0 sees all, but is not seen.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (j == 0) | ((i - j).abs() <= 16)

answer = overturned
""",
        right=False,
        mistake="The window is so wide that two layers reach everything by themselves.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (i - j).abs() <= 3

answer = overturned
""",
        right=False,
        mistake="There is no global token at all, only a window.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return j == 0 | i == j

answer = overturned
""",
        right=False,
        mistake="Without brackets the comparison binds last, and the rule raises an error.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return (j >= 0) & (i >= 0)

answer = overturned
""",
        right=False,
        mistake="Everybody sees everybody.",
    ),
    Answer(
        exercise="cheaper_attention.5",
        check="overturned",
        code="""
def overturned(i, j):
    return ((j == 0) & (i < 31)) | (i == j)

answer = overturned
""",
        right=False,
        mistake="The last place does not see place 0.",
    ),
]
