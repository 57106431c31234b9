"""Answers to the exercises of chapter 20, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    causal = prefix = 0
    for i in range(n):
        for j in range(n):
            causal += j <= i
            prefix += j <= i or j < s
    return causal, prefix

answer = links_of
""",
        right=True,
        mistake="Counts pairs in a double loop.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
import math

answer = lambda s, t: (math.comb(s + t + 1, 2), s * s + s * t + math.comb(t + 1, 2))
""",
        right=True,
        mistake="Adds up the three attentions of an encoder and a decoder.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    causal = (s + t) * (s + t + 1) / 2
    return causal, causal + s * (s - 1) / 2

answer = links_of
""",
        right=True,
        mistake="True division, so both numbers are floats.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    return n * (n - 1) // 2, n * (n - 1) // 2 + s * (s - 1) // 2

answer = links_of
""",
        right=False,
        mistake="Leaves out that a token reads itself.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    causal = n * (n + 1) // 2
    return causal, causal + s * s

answer = links_of
""",
        right=False,
        mistake="Adds the source's whole square, so half of it is counted twice.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    return n * (n + 1) // 2, s * s + t * (t + 1) // 2

answer = links_of
""",
        right=False,
        mistake="Forgets the links from the target to the source.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    causal = n * (n + 1) // 2
    return causal, causal + s * (s + 1) // 2

answer = links_of
""",
        right=False,
        mistake="The corner that is added includes the diagonal once more.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    return n * (n + 1) // 2, n * n

answer = links_of
""",
        right=False,
        mistake="Gives the full square for the prefix stream.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t
    causal = n * (n + 1) // 2
    return causal + s * (s - 1) // 2, causal

answer = links_of
""",
        right=False,
        mistake="The two numbers are exchanged.",
    ),
    Answer(
        exercise="decoder_only.1",
        check="links_of",
        code="""
def links_of(s, t):
    n = s + t + 1
    causal = n * (n + 1) // 2
    return causal, causal + s * (s - 1) // 2

answer = links_of
""",
        right=False,
        mistake="Adds one more token for the begin mark, which is counted already.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    place = torch.arange(size)
    border = place.add(1).clamp(min=n_source)
    return place < border[:, None]

answer = prefix_mask
""",
        right=True,
        mistake="A reader may read up to the larger of two borders.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    return torch.tensor([[j <= i or j < n_source for j in range(size)] for i in range(size)])

answer = prefix_mask
""",
        right=True,
        mistake="Lists of lists, then a tensor.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    mask = torch.ones(size, size).tril().bool()
    mask[:n_source] = True
    return mask

answer = prefix_mask
""",
        right=False,
        mistake="Opens the rows of the source, so the source reads the target.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    place = torch.arange(size)
    return (place[None] > place[:, None]) & (place[None] >= n_source)

answer = prefix_mask
""",
        right=False,
        mistake="True means hidden here.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    place = torch.arange(size)
    return (place[None] <= place[:, None]) | (place[None] <= n_source)

answer = prefix_mask
""",
        right=False,
        mistake="The first target token is counted as source.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    place = torch.arange(size)
    return (place[:, None] <= place[None]) | (place[:, None] < n_source)

answer = prefix_mask
""",
        right=False,
        mistake="Rows and columns are exchanged: everybody reads the future.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    mask = torch.tril(torch.ones(size, size))
    mask[:, :n_source] = 1
    return mask

answer = prefix_mask
""",
        right=False,
        mistake="Gives numbers instead of True and False.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    mask = torch.ones(size, size, dtype=torch.bool).tril()
    mask[:n_source, :n_source] = True
    mask[n_source:, :n_source] = False
    return mask

answer = prefix_mask
""",
        right=False,
        mistake="The source and the target are two blocks that do not see each other.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    place = torch.arange(size)
    return (place[None] < place[:, None]) | (place[None] < n_source)

answer = prefix_mask
""",
        right=False,
        mistake="A target token may not read itself.",
    ),
    Answer(
        exercise="decoder_only.2",
        check="prefix_mask",
        code="""
import torch

def prefix_mask(n_source, size):
    return torch.ones(size, size, dtype=torch.bool).tril()

answer = prefix_mask
""",
        right=False,
        mistake="A plain causal mask: the source reads only what came before.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    stream = [*source, *target]
    predicted = [
        token if place > len(source) else 0 for place, token in enumerate(stream) if place > 0
    ]
    return stream[:-1], predicted

answer = stream_of
""",
        right=True,
        mistake="Shifts the whole stream and blanks what is no translation.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    predicted = list(target[1:])
    while len(predicted) < len(source) + len(target) - 1:
        predicted.insert(0, 0)
    return list(source) + list(target[:-1]), predicted

answer = stream_of
""",
        right=True,
        mistake="Built from behind, with insert.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[:-1]
    predicted = [0] * (len(source) - 1) + target
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake="The begin mark is to be predicted, too.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[:-1]
    predicted = [0] * (len(source) + 1) + target[1:]
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake="The first word counts, but what is predicted is longer than what is read.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[:-1]
    predicted = source[1:] + target
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake="The source is to be predicted as well.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[:-1]
    predicted = [0] * (len(source) + 1) + target[1:-1]
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake="Predicts the token that is read: the shift is lost.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[:-1]
    predicted = [0] * len(source) + target[1:-1] + [0]
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake="The end mark is not predicted, so translations never end.",
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    read = source + target[1:-1]
    predicted = [0] * (len(source) - 1) + target[1:]
    return read, predicted

answer = stream_of
""",
        right=False,
        mistake=(
            "Leaves the begin mark out of the stream, and the source's end predicts the first word."
        ),
    ),
    Answer(
        exercise="decoder_only.3",
        check="stream_of",
        code="""
def stream_of(source, target):
    n = len(source)
    source += target[:-1]
    return source, [0] * n + target[1:]

answer = stream_of
""",
        right=False,
        mistake="Appends to the caller's source.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

answer = lambda loss, n_tokens, n_bytes: math.log2(math.e) * loss * (n_tokens / n_bytes)
""",
        right=True,
        mistake="The logarithm to base 2 of e as the exchange rate.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import numpy as np

def bits_per_byte(loss, n_tokens, n_bytes):
    total_nats = np.float64(loss) * n_tokens
    return np.log2(np.exp(total_nats / n_bytes))

answer = bits_per_byte
""",
        right=True,
        mistake="By numpy, from the total in nats.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
def bits_per_byte(loss, n_tokens, n_bytes):
    return loss * n_tokens / n_bytes

answer = bits_per_byte
""",
        right=False,
        mistake="Stays in nats.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return loss * n_tokens / n_bytes * math.log(2)

answer = bits_per_byte
""",
        right=False,
        mistake="Multiplies by the logarithm of 2 instead of dividing.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return loss / math.log(2) * n_bytes / n_tokens

answer = bits_per_byte
""",
        right=False,
        mistake="Takes the bytes per token upside down.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return loss / math.log(2) / n_bytes

answer = bits_per_byte
""",
        right=False,
        mistake="Takes the loss for the total and forgets the tokens.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return loss / math.log(2)

answer = bits_per_byte
""",
        right=False,
        mistake="Gives the bits per token.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
def bits_per_byte(loss, n_tokens, n_bytes):
    return 2 ** (loss * n_tokens / n_bytes)

answer = bits_per_byte
""",
        right=False,
        mistake="Gives the perplexity per byte.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return math.log2(loss) * n_tokens / n_bytes

answer = bits_per_byte
""",
        right=False,
        mistake="Takes the logarithm of the loss.",
    ),
    Answer(
        exercise="decoder_only.4",
        check="bits_per_byte",
        code="""
import math

def bits_per_byte(loss, n_tokens, n_bytes):
    return loss * n_tokens / math.log(2) / (8 * n_bytes)

answer = bits_per_byte
""",
        right=False,
        mistake="Divides by 8, as if bytes had to become bits.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = norm(x)
    return sum((branch(h) for branch in (attention, network)), x)

answer = parallel_layer
""",
        right=True,
        mistake="Sums over a list of branches.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
from torch import nn

class Parallel(nn.Module):
    def forward(self, x, norm, attention, network):
        return x.add(attention(norm(x))).add(network(norm(x)))

answer = Parallel()
""",
        right=True,
        mistake="A small class of modules with a call.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    x = x + attention(norm(x))
    return x + network(norm(x))

answer = parallel_layer
""",
        right=False,
        mistake="One after the other, as in the other models.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = attention(norm(x))
    return x + h + network(h)

answer = parallel_layer
""",
        right=False,
        mistake="The network reads what the attention has written.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = norm(x)
    return h + attention(h) + network(h)

answer = parallel_layer
""",
        right=False,
        mistake="The residual adds the normalised vector.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    return x + attention(norm(x)) + network(x)

answer = parallel_layer
""",
        right=False,
        mistake="The network reads the vector that is not normalised.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = norm(x)
    return attention(h) + network(h)

answer = parallel_layer
""",
        right=False,
        mistake="There is no residual.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    return norm(x + attention(x) + network(x))

answer = parallel_layer
""",
        right=False,
        mistake="Normalises behind the sum.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = norm(x)
    x += attention(h)
    x += network(h)
    return x

answer = parallel_layer
""",
        right=False,
        mistake="Adds to the input in place.",
    ),
    Answer(
        exercise="decoder_only.5",
        check="parallel_layer",
        code="""
def parallel_layer(x, norm, attention, network):
    h = norm(x)
    return (x + attention(h)) + (x + network(h))

answer = parallel_layer
""",
        right=False,
        mistake="Adds the residual once for each branch.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
answer = lambda: (0.5, 1000, 40.0, 10)
""",
        right=True,
        mistake="Very unlike numbers of tokens, as a lambda.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
import math

def overturn():
    first_loss, first_tokens = math.log(4), 1000
    second_loss, second_tokens = math.log(30), 200
    return first_loss, first_tokens, second_loss, second_tokens

answer = overturn
""",
        right=True,
        mistake="Numbers of letters against numbers of words.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 2.0, 200, 3.0, 300

answer = overturn
""",
        right=False,
        mistake="The first model is better by both measures.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 4.0, 200, 1.5, 1000

answer = overturn
""",
        right=False,
        mistake="The two models are exchanged.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 2.0, 2000, 3.0, 1000

answer = overturn
""",
        right=False,
        mistake="The first needs two tokens for each byte.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 2.0, 600, 4.0, 300

answer = overturn
""",
        right=False,
        mistake="The two are equally good per byte.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 3.0, 800, 3.0, 400

answer = overturn
""",
        right=False,
        mistake="Equal losses per token: neither has the lower perplexity.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return 2.0, 4.0, 900, 300

answer = overturn
""",
        right=False,
        mistake="Returns the losses first and the tokens after them.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
import math

def overturn():
    return math.exp(2.0), 700, math.exp(4.0), 300

answer = overturn
""",
        right=False,
        mistake="Gives perplexities, with which the totals come out the other way round.",
    ),
    Answer(
        exercise="decoder_only.6",
        check="overturn",
        code="""
def overturn():
    return -3.0, 100, -2.0, 1000

answer = overturn
""",
        right=False,
        mistake="Losses are negative, which no mean loss can be.",
    ),
]
