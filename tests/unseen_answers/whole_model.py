"""Answers to the exercises of chapter 11, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: shapes
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
answer = {
    "embedded source": (2, 7, 16),
    "memory": (2, 7, 16),
    "hidden": (2, 7, 16),
    "logits": (2, 7, 100),
}
""",
        right=False,
        mistake="hidden states as long as the source",
    ),
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
answer = {
    "embedded source": (2, 7, 16),
    "memory": (2, 7, 16),
    "hidden": (2, 5, 16),
    "logits": (2, 100),
}
""",
        right=False,
        mistake="one vector of logits for each sentence",
    ),
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
answer = {
    "embedded source": (2, 7, 100),
    "memory": (2, 7, 16),
    "hidden": (2, 5, 16),
    "logits": (2, 5, 100),
}
""",
        right=False,
        mistake="embed is taken to give one-hot vectors",
    ),
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
answer = {
    "embedded source": (2, 7, 16),
    "memory": (2, 5, 16),
    "hidden": (2, 5, 16),
    "logits": (2, 5, 100),
}
""",
        right=False,
        mistake="the memory as long as the target that reads it",
    ),
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
answer = {
    "embedded source": (2, 7, 16),
    "memory": (2, 7, 16),
    "hidden": (2, 4, 16),
    "logits": (2, 4, 100),
}
""",
        right=False,
        mistake="one target token less, for the shift",
    ),
    Answer(
        exercise="whole_model.1",
        check="shapes",
        code="""
import torch

from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer

model = Transformer(ModelConfig(100, d_model=16, n_heads=2, d_ff=32))
src, tgt = torch.randint(1, 100, (2, 7)), torch.randint(1, 100, (2, 5))
memory = model.encode(src)
hidden = model.decode(tgt, memory)
answer = {
    "embedded source": model.embed(model.src_embedding(src)).shape,
    "memory": memory.shape,
    "hidden": hidden.shape,
    "logits": model.output(hidden).shape,
}
""",
        right=True,
        mistake="asked of a model, as torch.Size",
    ),
    # Exercise 2: forward
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    hidden = model.decoder(model.tgt_embedding(tgt_ids), memory, src_mask, tgt_mask)
    return model.output(hidden)


answer = my_forward
""",
        right=False,
        mistake="no positions on the target",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    x = model.embed(model.src_embedding(tgt_ids))
    return model.output(model.decoder(x, memory, src_mask, tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="the source's embedding for the target, too",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), padding_mask(src_ids))
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    x = model.embed(model.tgt_embedding(tgt_ids))
    return model.output(model.decoder(x, memory, None, tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="the decoder reads the source's padding",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    memory = model.encoder(model.embed(model.src_embedding(src_ids)))
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    x = model.embed(model.tgt_embedding(tgt_ids))
    return model.output(model.decoder(x, memory, padding_mask(src_ids), tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="the encoder reads the source's padding",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask, tgt_mask = padding_mask(src_ids), padding_mask(tgt_ids)
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    x = model.embed(model.tgt_embedding(tgt_ids))
    return model.output(model.decoder(x, memory, src_mask, tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="no causal mask",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    return model.decoder(model.embed(model.tgt_embedding(tgt_ids)), memory, src_mask, tgt_mask)


answer = my_forward
""",
        right=False,
        mistake="the hidden states, not the logits",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    hidden = model.decoder(model.embed(model.tgt_embedding(tgt_ids)), memory, src_mask, tgt_mask)
    return model.output(hidden).softmax(-1)


answer = my_forward
""",
        right=False,
        mistake="probabilities instead of logits",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding.lookup(src_ids)), src_mask)
    x = model.embed(model.tgt_embedding.lookup(tgt_ids))
    return model.output(model.decoder(x, memory, src_mask, tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="looks rows up itself and leaves the root of d_model out",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    src = model.embed(model.src_embedding(src_ids))
    model.encoder(src, src_mask)
    hidden = model.decoder(model.embed(model.tgt_embedding(tgt_ids)), src, src_mask, tgt_mask)
    return model.output(hidden)


answer = my_forward
""",
        right=False,
        mistake="the decoder reads the embedded source, the memory goes unused",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib.masks import causal_mask, padding_mask


def my_forward(model, src_ids, tgt_ids):
    tgt_ids = tgt_ids[:, :-1]
    src_mask = padding_mask(src_ids)
    tgt_mask = padding_mask(tgt_ids) & causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)
    x = model.embed(model.tgt_embedding(tgt_ids))
    return model.output(model.decoder(x, memory, src_mask, tgt_mask))


answer = my_forward
""",
        right=False,
        mistake="shifts the target, which whoever calls has already done",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
import torch
from torch.nn import functional as F


def my_forward(model, src_ids, tgt_ids):
    def read(embedding, ids):
        return model.embed(embedding(ids))
    T = tgt_ids.shape[1]
    src_mask = src_ids.bool().view(len(src_ids), 1, 1, -1)
    causal = torch.arange(T)[:, None] >= torch.arange(T)
    tgt_mask = causal & tgt_ids.bool().view(len(tgt_ids), 1, 1, -1)
    memory = model.encoder(read(model.src_embedding, src_ids), src_mask)
    hidden = model.decoder(
        x=read(model.tgt_embedding, tgt_ids), memory=memory, src_mask=src_mask, tgt_mask=tgt_mask
    )
    return F.linear(hidden, model.output.weight)


answer = my_forward
""",
        right=True,
        mistake="masks written by hand",
    ),
    Answer(
        exercise="whole_model.2",
        check="forward",
        code="""
from transformer_lib import masks


def my_forward(model, src_ids, tgt_ids):
    hidden_source = masks.padding_mask(src_ids)
    return model.output(
        model.decoder(
            model.embed(model.tgt_embedding(tgt_ids)),
            model.encoder(model.embed(model.src_embedding(src_ids)), mask=hidden_source),
            src_mask=hidden_source,
            tgt_mask=masks.decoder_mask(tgt_ids),
        )
    )


answer = my_forward
""",
        right=True,
        mistake="the library's decoder mask, keys by name",
    ),
    # Exercise 3: tie
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.tgt_embedding.lookup.weight = model.src_embedding.lookup.weight
    return model


answer = repaired_tie
""",
        right=False,
        mistake="the output map is left out",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.output.weight = model.tgt_embedding.lookup.weight
    return model


answer = repaired_tie
""",
        right=False,
        mistake="the two embeddings stay apart",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.tgt_embedding.lookup.weight.data = model.src_embedding.lookup.weight.data
    model.output.weight.data = model.src_embedding.lookup.weight.data
    return model


answer = repaired_tie
""",
        right=False,
        mistake="one storage under three parameters, each with a gradient of its own",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
from torch import nn


def repaired_tie(model):
    shared = model.src_embedding.lookup.weight
    model.tgt_embedding.lookup.weight = nn.Parameter(shared.clone())
    model.output.weight = nn.Parameter(shared.clone())
    return model


answer = repaired_tie
""",
        right=False,
        mistake="a new parameter each, equal only now",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.tgt_embedding.lookup.weight = model.src_embedding.lookup.weight
    model.output.weight = model.src_embedding.lookup.weight


answer = repaired_tie
""",
        right=False,
        mistake="ties and does not return the model",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.tgt_embedding.lookup = model.src_embedding.lookup
    model.output = model.src_embedding.lookup
    return model


answer = repaired_tie
""",
        right=False,
        mistake="puts the embedding where the output map was",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
from torch import nn


def repaired_tie(model):
    shared = nn.Parameter(model.src_embedding.lookup.weight.detach(), requires_grad=False)
    for part in (model.src_embedding.lookup, model.tgt_embedding.lookup, model.output):
        part.weight = shared
    return model


answer = repaired_tie
""",
        right=False,
        mistake="ties, and stops the shared matrix from learning",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
from torch import nn


def repaired_tie(model):
    shared = model.src_embedding.lookup.weight
    model.tgt_embedding.lookup.weight = shared
    model.output.weight = nn.Parameter(shared.T)
    return model


answer = repaired_tie
""",
        right=False,
        mistake="transposes for the output map, whose weight already is (V, D)",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    model.tgt_embedding = model.src_embedding
    model.output.weight = model.src_embedding.lookup.weight
    return model


answer = repaired_tie
""",
        right=True,
        mistake="shares the whole embedding layer",
    ),
    Answer(
        exercise="whole_model.3",
        check="tie",
        code="""
def repaired_tie(model):
    weight = model.get_parameter("src_embedding.lookup.weight")
    for name in ("tgt_embedding.lookup", "output"):
        setattr(model.get_submodule(name), "weight", weight)  # noqa: B010
    return model


answer = repaired_tie
""",
        right=True,
        mistake="a loop with setattr",
    ),
    # Exercise 5: bound
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return math.sqrt(2 / (n_in + n_out))


answer = xavier_bound
""",
        right=False,
        mistake="the standard deviation and not the bound",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return math.sqrt(12 * 2 / (n_in + n_out))


answer = xavier_bound
""",
        right=False,
        mistake="the variance of an even law on [0, a]",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
def xavier_bound(n_in, n_out):
    return 6 / (n_in + n_out)


answer = xavier_bound
""",
        right=False,
        mistake="forgets the root",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return math.sqrt(6 / n_in)


answer = xavier_bound
""",
        right=False,
        mistake="only the inputs count, the rule of He",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
def xavier_bound(n_in, n_out):
    return (3 / (n_in + n_out)) ** 0.5


answer = xavier_bound
""",
        right=False,
        mistake="the variance is 1 / (inputs + outputs)",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return math.sqrt(3 / n_in)


answer = xavier_bound
""",
        right=False,
        mistake="right for square maps alone",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return math.sqrt(3 / math.sqrt(n_in * n_out))


answer = xavier_bound
""",
        right=False,
        mistake="the geometric mean of inputs and outputs",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import math


def xavier_bound(n_in, n_out):
    return 2 * math.sqrt(6 / (n_in + n_out))


answer = xavier_bound
""",
        right=False,
        mistake="the whole width, from -a to a",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
import torch


def xavier_bound(n_in, n_out):
    variance = torch.tensor(1 / ((n_in + n_out) / 2), dtype=torch.float64)
    return (3 * variance).sqrt()


answer = xavier_bound
""",
        right=True,
        mistake="the root of three standard deviations, as a tensor",
    ),
    Answer(
        exercise="whole_model.5",
        check="bound",
        code="""
def xavier_bound(n_in, n_out):
    wanted, low, high = 2 / (n_in + n_out), 0.0, 4.0
    for _ in range(200):
        a = (low + high) / 2
        low, high = (a, high) if a * a / 3 < wanted else (low, a)
    return a


answer = xavier_bound
""",
        right=True,
        mistake="solves for the variance by halving",
    ),
]
