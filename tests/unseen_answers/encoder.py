"""Answers to the exercises of chapter 09, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: reach
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [3], "causal": [3]}
""",
        right=False,
        mistake="only the changed token itself",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [0, 1, 2, 3, 4], "causal": [0, 1, 2, 3]}
""",
        right=False,
        mistake="the causal mask read backwards: rows before the token",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [0, 1, 2, 3, 4], "causal": [4]}
""",
        right=False,
        mistake="leaves the token itself out of what a causal mask lets through",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [1, 2, 3, 4, 5], "causal": [4, 5]}
""",
        right=False,
        mistake="counts rows from 1",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [0, 1, 2, 4], "causal": [3, 4]}
""",
        right=False,
        mistake="all the others and not the token itself",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": [2, 3, 4], "causal": [3, 4]}
""",
        right=False,
        mistake="the neighbours, as a convolution would",
    ),
    Answer(
        exercise="encoder.1",
        check="reach",
        code="""
answer = {"both ways": list(range(5)), "causal": list(range(3, 5))}
""",
        right=True,
        mistake="built from ranges",
    ),
    # Exercise 2: layer
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x = norm_1(x + attend(x))
    return norm_2(x + feed_forward(x))


answer = encoder_layer
""",
        right=False,
        mistake="norms at the end: post-norm",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x = x + attend(norm_1(x))
    return feed_forward(norm_2(x))


answer = encoder_layer
""",
        right=False,
        mistake="forgets to add in the second half",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x = x + attend(norm_1(x))
    return x + feed_forward(norm_1(x))


answer = encoder_layer
""",
        right=False,
        mistake="uses the first norm twice",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    return x + attend(norm_1(x)) + feed_forward(norm_2(x))


answer = encoder_layer
""",
        right=False,
        mistake="side by side: the network does not read what attention brought",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x = norm_1(x)
    x = x + attend(x)
    x = norm_2(x)
    return x + feed_forward(x)


answer = encoder_layer
""",
        right=False,
        mistake="adds to the normalised x",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x += attend(norm_1(x))
    x += feed_forward(norm_2(x))
    return x


answer = encoder_layer
""",
        right=False,
        mistake="changes the caller's x",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    h = x + attend(norm_1(x))
    return x + feed_forward(norm_2(h))


answer = encoder_layer
""",
        right=False,
        mistake="adds the network's output to the layer's input and loses attention's share",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    x = x + feed_forward(norm_2(x))
    return x + attend(norm_1(x))


answer = encoder_layer
""",
        right=False,
        mistake="the network first",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
import torch


def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    for norm, sublayer in ((norm_1, attend), (norm_2, feed_forward)):
        x = torch.add(x, sublayer(norm(x)))
    return x


answer = encoder_layer
""",
        right=True,
        mistake="a loop over the two halves",
    ),
    Answer(
        exercise="encoder.2",
        check="layer",
        code="""
def around(norm, sublayer):
    return lambda y: sublayer(norm(y)) + y
def encoder_layer(x, norm_1, attend, norm_2, feed_forward):
    return around(norm_2, feed_forward)(around(norm_1, attend)(x))


answer = encoder_layer
""",
        right=True,
        mistake="higher-order functions",
    ),
    # Exercise 3: stack
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
    return x


answer = run_stack
""",
        right=False,
        mistake="the stack is chained, the final norm is still missing",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        output = layer(x, mask)
    return norm(output)


answer = run_stack
""",
        right=False,
        mistake="the norm is there, each layer still reads the same x",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = norm(layer(x, mask))
    return x


answer = run_stack
""",
        right=False,
        mistake="the norm after every layer",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x)
    return norm(x)


answer = run_stack
""",
        right=False,
        mistake="the mask is lost",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    x = norm(x)
    for layer in layers:
        x = layer(x, mask)
    return x


answer = run_stack
""",
        right=False,
        mistake="the norm at the beginning",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
        return norm(x)


answer = run_stack
""",
        right=False,
        mistake="returns after the first layer",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = x + layer(x, mask)
    return norm(x)


answer = run_stack
""",
        right=False,
        mistake="adds a residual around each layer, which has its own",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    for layer in layers[::-1]:
        x = layer(x, mask)
    return norm(x)


answer = run_stack
""",
        right=False,
        mistake="from the last layer to the first",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
import functools


def run_stack(x, mask, layers, norm):
    return norm(functools.reduce(lambda rows, layer: layer(rows, mask), layers, x))


answer = run_stack
""",
        right=True,
        mistake="a fold",
    ),
    Answer(
        exercise="encoder.3",
        check="stack",
        code="""
def run_stack(x, mask, layers, norm):
    if len(layers) == 0:
        return norm(x)
    first, *others = layers
    return run_stack(first(x, mask), mask, others, norm)


answer = run_stack
""",
        right=True,
        mistake="recursive",
    ),
    # Exercise 5: layers_needed
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return int(math.log2(notes))


answer = layers_needed
""",
        right=False,
        mistake="rounds down",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return math.floor(math.log2(notes)) + 1


answer = layers_needed
""",
        right=False,
        mistake="one too many at powers of two",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return round(math.log2(notes))


answer = layers_needed
""",
        right=False,
        mistake="rounds to the nearest",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
def layers_needed(notes):
    return notes - 1


answer = layers_needed
""",
        right=False,
        mistake="one layer for each note after the first",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return math.ceil((notes - 1) / 2)


answer = layers_needed
""",
        right=False,
        mistake="each layer adds two",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return max(1, math.ceil(math.log2(notes)))


answer = layers_needed
""",
        right=False,
        mistake="asks for at least one layer",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
import math


def layers_needed(notes):
    return math.ceil(math.log(notes))


answer = layers_needed
""",
        right=False,
        mistake="a natural logarithm",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
def layers_needed(notes):
    return (notes - 1).bit_length()


answer = layers_needed
""",
        right=True,
        mistake="counts binary digits",
    ),
    Answer(
        exercise="encoder.5",
        check="layers_needed",
        code="""
def layers_needed(notes):
    return 0 if notes <= 1 else 1 + layers_needed((notes + 1) // 2)


answer = layers_needed
""",
        right=True,
        mistake="recursive",
    ),
]
