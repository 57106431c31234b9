"""Checks for chapter 11, the whole model."""

import functools
import math

import torch

from exercises.checks import Part, exercise, expect, expect_shape, judged, values
from transformer_lib import masks
from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer

SMALL = ModelConfig(
    vocab_size=30, d_model=8, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1,
    dropout=0.0, max_len=16, tie_embeddings=False,
)


def _shape(name, right, slips):
    return Part(
        right,
        f"{name} should have a different shape",
        {
            f"{name}: a batch of sentences has three axes": lambda given: len(given) != 3,
            **slips,
        },
    )


shapes = values(
    1,
    "shapes",
    hint=(
        "give four shapes",
        "(B, S) becomes (B, S, D) in the encoder; (B, T) becomes (B, T, D) in the decoder",
        "only the output layer knows the vocabulary",
    ),
    packed="names",
    embedded_source=_shape(
        "embedded source",
        (2, 7, 16),
        {
            "embedded source: an id becomes a row of D numbers; V numbers come at the very end": (
                (2, 7, 100)
            )
        },
    ),
    memory=_shape("memory", (2, 7, 16), {"memory: one row for each source token": (2, 5, 16)}),
    hidden=_shape("hidden", (2, 5, 16), {
            "hidden: one row for each target token": [(2, 7, 16), (2, 4, 16)]
        }),
    logits=_shape(
        "logits",
        (2, 5, 100),
        {
            "logits: one row for each target token": (2, 7, 100),
            "logits: one number for each word of the vocabulary": (2, 5, 16),
        },
    ),
)


def _model_and_batch(B=3, S=6, T=4):
    model = Transformer(SMALL).eval()
    with torch.no_grad():  # larger embeddings, so that every slip shows
        model.src_embedding.lookup.weight.mul_(2)
        model.tgt_embedding.lookup.weight.mul_(2)
    src, tgt = torch.randint(4, 30, (B, S)), torch.randint(4, 30, (B, T))
    tgt[:, 0] = 1
    for i in range(1, B):
        src[i, S - i :], tgt[i, T - i :] = 0, 0
    return model, src, tgt


def _real_rows(logits, model, src, tgt):
    expect(
        isinstance(logits, torch.Tensor) and logits.shape[:2] == tgt.shape,
        "logits have one row for each target token",
    )
    return logits[tgt != 0]  # rows of padding are never used


def _forward(read=True, cross=True, own="causal", embedding="tgt", positions=True, end=None):
    """A forward pass with one thing done in another way."""

    def run(model, src, tgt):
        src_mask = masks.padding_mask(src, 0)
        tgt_mask = {"causal": masks.causal_mask(tgt.size(1)), "none": None,
                    "padding": masks.padding_mask(tgt, 0)}[own]
        embed = model.embed if positions else lambda x: x
        memory = model.encoder(embed(model.src_embedding(src)), src_mask if read else None)
        x = embed(getattr(model, f"{embedding}_embedding")(tgt))
        hidden = model.decoder(x, memory, src_mask if cross else None, tgt_mask)
        return hidden if end == "hidden" else end(model.output(hidden)) if end else (
            model.output(hidden)
        )

    return run


@exercise(
    2,
    inputs=_model_and_batch,
    vary=(dict(B=2, S=5, T=5), dict(B=3, S=4, T=6)),
    hint="embed and encode the source, embed and decode the target, then project",
    wrong="those aren't the model's logits",
    shape="logits have one row for each target token",
    view=_real_rows,
    tolerance=1e-4,
    forbid=("Transformer.encode", "Transformer.decode", "Transformer.forward"),
    slips={
        "both masks are missing: the padding is read and the future leaks": (
            _forward(False, False, "none")
        ),
        "the source's padding mask is missing, in the encoder and in the decoder": (
            _forward(False, False)
        ),
        "the encoder gets no mask: it reads the source's padding": _forward(read=False),
        "the decoder gets no src_mask: it reads the memory of the padding": _forward(cross=False),
        "the decoder needs a causal mask: each row reads the future": _forward(own="none"),
        "the decoder gets only the target's padding mask: join it with the causal mask, using &": (
            _forward(own="padding")
        ),
        "the target is embedded with the source's embedding": _forward(embedding="src"),
        "the positions are missing: model.embed adds them, but the embedding on its own doesn't": (
            _forward(positions=False)
        ),
        "you return probabilities; the model gives logits: the softmax belongs to the loss": [
            _forward(end=lambda logits: logits.softmax(-1)),
            _forward(end=lambda logits: logits.log_softmax(-1)),
        ],
        "these are the hidden states: model.output turns them into logits": _forward(end="hidden"),
    },
)
def forward(model, src_ids, tgt_ids):
    src_mask = masks.padding_mask(src_ids, 0)  # (B, 1, 1, S)
    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    memory = model.encoder(model.embed(model.src_embedding(src_ids)), src_mask)  # (B, S, D)
    embedded = model.embed(model.tgt_embedding(tgt_ids))  # (B, T, D)
    hidden = model.decoder(embedded, memory, src_mask, tgt_mask)
    return model.output(hidden)


def _tie(model):
    model.tgt_embedding.lookup.weight = model.src_embedding.lookup.weight
    model.output.weight = model.src_embedding.lookup.weight
    return model


@judged(3, given=0x065BFAD0, example=_tie, mutates=True,
    hint=(
        "copied numbers start out equal; what happens after one update?",
        "make the three names point to one Parameter",
    ),
)
def tie(answer):
    model = answer(Transformer(SMALL))
    expect(isinstance(model, Transformer), "return the model")
    expect(
        isinstance(model.output, torch.nn.Linear),
        f"output must stay the map from D to V; yours is a {type(model.output).__name__}: share "
        "its weight, not the module",
    )
    names = {
        "src_embedding": model.src_embedding.lookup.weight,
        "tgt_embedding": model.tgt_embedding.lookup.weight,
        "output": model.output.weight,
    }
    for name, weight in names.items():
        expect_shape(weight, (30, 8), f"the matrix of {name} has lost its shape")
        expect(weight.requires_grad, f"the matrix of {name} can no longer learn")
    ids = torch.randint(4, 30, (3, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(ids, ids).logsumexp(-1).sum().backward()
    before = {name: weight.detach().clone() for name, weight in names.items()}
    optimizer.step()
    for one, other in (("src_embedding", "tgt_embedding"), ("src_embedding", "output")):
        expect(
            torch.equal(before[one], before[other]), f"{one} and {other} do not even start equal"
        )
        expect(
            torch.equal(names[one], names[other]),
            f"{one} and {other} are equal at first, but one step of training makes them differ: "
            "they are copies. Make both names point to one parameter",
        )
    expect(
        model.count_parameters() == Transformer(SMALL).count_parameters() - 2 * 30 * 8,
        "the three are equal, but the model still counts them as different parameters",
    )


@functools.cache
def _writer(seed):
    """A model with random weights whose sentences end after a few words."""
    torch.manual_seed(seed)
    model = Transformer(SMALL).eval().requires_grad_(False)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.6)
    model.output.weight[2] *= 6  # <eos>
    model.output.weight[0] = 0.0  # <pad> is never the most probable
    return model


def _sources(B=5, S=5, max_len=6, seed=15):
    src = torch.randint(4, 30, (B, S))
    for i in range(1, B):
        src[i, S - i % S :] = 0
    return _writer(seed), src, max_len


def _written(src_mask=True, stop=True, first_end=False, bos=False, eos=True):
    """Greedy writing of a batch with one thing done in another way."""

    def write(model, src_ids, max_len):
        memory, mask = model.encode(src_ids), masks.padding_mask(src_ids, 0)
        ids = torch.ones(len(src_ids), 1, dtype=torch.long)
        ended = torch.zeros(len(src_ids), dtype=torch.bool)
        for _ in range(max_len):
            hidden = model.decode(ids, memory, mask if src_mask else None)
            token = model.project(hidden[:, -1]).argmax(-1)
            if stop:
                token = token.masked_fill(ended, 0)
            ids = torch.cat([ids, token[:, None]], 1)
            ended |= token == 2
            if first_end and ended.any():
                break
        if not eos:
            ids = ids.masked_fill(ids == 2, 0)
        ids = ids if bos else ids[:, 1:]
        return torch.nn.functional.pad(ids, (0, max_len + bos - ids.size(1)))

    return write


def _encodes_once(answer):
    model, calls = Transformer(SMALL).eval(), []
    model.encoder.register_forward_pre_hook(lambda *_: calls.append(1))
    answer.args[0](model, _sources()[1], 4)
    expect(len(calls) == 1, f"right, but the source was encoded {len(calls)} times")


@exercise(
    4,
    inputs=_sources,
    vary=(dict(B=3, max_len=3, seed=39), dict(B=5, S=4, max_len=5, seed=39)),
    hint=(
        "encode once; then, in a loop, decode, project the last row, take the argmax, and append "
        "it",
        "when a row has written <eos>, write 0 into it from then on, whatever the model says",
    ),
    wrong="these aren't the most probable ids",
    shape="the shape should be (B, max_len), without <bos> and with padding after <eos>",
    laws=_encodes_once,
    shrinks=False,
    forbid=("greedy_decode", "_generate", "beam_search"),
    slips={
        "after <eos> a sentence is over: write padding there": _written(stop=False),
        "you stop when the first sentence ends, but the others aren't finished": (
            _written(first_end=True)
        ),
        "the decoder reads the source's padding: give model.decode the source's padding mask": (
            _written(src_mask=False)
        ),
        "<eos> was written, so it belongs in the result": _written(eos=False),
        "the result still contains <bos>": _written(bos=True),
    },
)
def write_batch(model, src_ids, max_len):
    return _written()(model, src_ids, max_len)


@exercise(
    5,
    inputs=[(128, 128), (512, 2048), (3, 5), (2048, 512)],
    hint=(
        "a uniform distribution on [-a, a] has the variance a^2 / 3",
        "Xavier's rule prescribes the variance 2 / (n_in + n_out)",
    ),
    wrong="that isn't the right bound",
    tolerance=1e-7,
    slips={
        "that is the standard deviation; a uniform distribution reaches sqrt(3) times as far": (
            lambda n_in, n_out: math.sqrt(2 / (n_in + n_out))
        ),
        "that is the variance, not the bound": lambda n_in, n_out: 2 / (n_in + n_out),
        "that is the square of the bound": lambda n_in, n_out: 6 / (n_in + n_out),
        "that looks only at n_in, so it keeps the signal's size but not the gradient's": [
            lambda n_in, n_out: math.sqrt(3 / n_in), lambda n_in, n_out: math.sqrt(6 / n_in)
        ],
        "that is twice the bound: a distribution on [-a, a] has the variance a^2 / 3": (
            lambda n_in, n_out: 2 * math.sqrt(6 / (n_in + n_out))
        ),
        "your variance is 1 / (n_in + n_out); Glorot's is 2 / (n_in + n_out)": (
            lambda n_in, n_out: math.sqrt(3 / (n_in + n_out))
        ),
        "you multiply n_in and n_out; the variance contains their sum": (
            lambda n_in, n_out: math.sqrt(3 / math.sqrt(n_in * n_out))
        ),
        "that looks only at n_out, so it keeps the gradient's size but not the signal's": (
            lambda n_in, n_out: math.sqrt(3 / n_out)
        ),
    },
)
def bound(n_in, n_out):
    return math.sqrt(6 / (n_in + n_out))
