"""Checks for chapter 11, the whole model."""

import math

import torch

from transformer_lib import masks
from transformer_lib.checks import NotAttempted, exercise, expect, expect_close, expect_shape, same
from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer

SMALL = ModelConfig(
    vocab_size=30, d_model=8, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1,
    dropout=0.0, max_len=16, tie_embeddings=False,
)  # fmt: skip


@exercise("11.1", hint="give four shapes")
def shapes(answer):
    right = {
        "embedded source": (2, 7, 16),
        "memory": (2, 7, 16),
        "hidden": (2, 5, 16),
        "logits": (2, 5, 100),
    }
    if any(answer.get(key, ...) is ... for key in right):
        raise NotAttempted
    given = {key: tuple(answer[key]) for key in right}
    for key, shape in given.items():
        axes = len(shape)
        expect(axes == 3, f"{key}: a batch of sentences has three axes, yours has {axes}")
    expect(
        given["embedded source"] != (2, 7, 100),
        "embedded source: an id becomes a row of D numbers; V numbers come at the very end",
    )
    expect(given["memory"] != (2, 5, 16), "memory: one row for each source token")
    expect(given["hidden"] != (2, 7, 16), "hidden: one row for each target token")
    expect(given["logits"] != (2, 7, 100), "logits: one row for each target token")
    expect(given["logits"] != (2, 5, 16), "logits: one number for each word of the vocabulary")
    for key, shape in right.items():
        expect(given[key] == shape, f"{key}: {given[key]} is not right")


@exercise("11.2", hint="embed and encode the source, embed and decode the target, project")
def forward(answer):
    model = Transformer(SMALL).eval()
    with torch.no_grad():  # larger embeddings, so that every slip shows
        model.src_embedding.lookup.weight.mul_(2)
        model.tgt_embedding.lookup.weight.mul_(2)
    src = torch.tensor([[5, 6, 7, 8, 9, 2], [9, 8, 2, 0, 0, 0], [4, 2, 0, 0, 0, 0]])
    tgt = torch.tensor([[1, 11, 12, 13], [1, 14, 15, 0], [1, 16, 0, 0]])
    src_mask, causal = masks.padding_mask(src, 0), masks.causal_mask(4)
    real = tgt != 0  # (B, T): rows of padding are never used

    def run(read=src_mask, cross=src_mask, own=causal, embedding=None, positions=True):
        embedding = embedding or model.tgt_embedding
        embed = model.embed if positions else lambda x: x
        memory = model.encoder(embed(model.src_embedding(src)), read)
        return model.output(model.decoder(embed(embedding(tgt)), memory, cross, own))

    with torch.no_grad():
        given = answer(model, src, tgt)
        slips = {
            "neither mask is there: the padding is read and the future leaks": (
                run(None, None, None)
            ),
            "the source's padding mask is missing, in the encoder and in the decoder": (
                run(None, None)
            ),
            "the encoder gets no mask: it reads the source's padding": run(read=None),
            "the decoder gets no src_mask: it reads the memory of the padding": run(cross=None),
            "the decoder needs a causal mask: each row reads the future": run(own=None),
            "the decoder sees only the target's padding mask: join it with the causal mask, &": (
                run(own=masks.padding_mask(tgt, 0))
            ),
            "the target is embedded with the source's embedding": run(
                embedding=model.src_embedding
            ),
            "the positions are missing: model.embed adds them, the embedding alone does not": (
                run(positions=False)
            ),
            "you return probabilities; the model gives logits, the softmax belongs to the loss": (
                run().softmax(-1)
            ),
        }
        if isinstance(given, torch.Tensor) and given.shape == (3, 4, 8):
            expect(False, "these are the hidden states: model.output makes logits of them")
        expect_shape(given, (3, 4, 30), "logits have one row for each target token")
        for message, wrong in slips.items():
            expect(not same(given[real], wrong[real]), message)
        expect_close(given[real], run()[real], "the logits are not those of the model")


@exercise("11.3", given=0x065BFAD0)
def tie(answer):
    model = answer(Transformer(SMALL))
    expect(isinstance(model, Transformer), "return the model")
    names = {
        "src_embedding": model.src_embedding.lookup.weight,
        "tgt_embedding": model.tgt_embedding.lookup.weight,
        "output": model.output.weight,
    }
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
            f"{one} and {other} are equal at first, but one step of training tears them apart: "
            "they are copies. Make both names point to one parameter",
        )
    expect(
        model.count_parameters() == Transformer(SMALL).count_parameters() - 2 * 30 * 8,
        "the three are equal, but the model still counts them as different parameters",
    )


@exercise("11.4", hint="attention 4 D^2 + 4 D, feed-forward 2 D d_ff + d_ff + D, norm 2 D")
def parameters(answer):
    for V, D, d_ff, n, tied in ((50, 8, 16, 3, True), (50, 8, 16, 3, False), (70, 16, 24, 4, True)):
        given = answer(V, D, d_ff, n, tied)
        attention, wide, norm = 4 * (D * D + D), 2 * D * d_ff + d_ff + D, 2 * D
        words = V * D if tied else 3 * V * D
        right = words + n * (3 * attention + 2 * wide + 5 * norm) + 2 * norm
        case = f"(V = {V}, D = {D}, d_ff = {d_ff}, n = {n}, tied = {tied})"
        slips = {
            "the two final norms are missing": right - 2 * norm,
            "one of the two final norms is missing": right - norm,
            "the cross-attentions are missing": right - n * attention,
            "the norm before each cross-attention is missing": right - n * norm,
            "the norms are missing": right - 5 * n * norm - 2 * norm,
            "the biases of the attentions are missing": right - n * 12 * D,
            "the biases of the feed-forward networks are missing": right - n * 2 * (d_ff + D),
            "all biases of the linear maps are missing": right - n * (12 * D + 2 * (d_ff + D)),
            "the output has no bias": right + V,
            "a tied matrix counts once": right + 2 * V * D if tied else ...,
            "not tied, there are three word matrices, not one": right - 2 * V * D,
            "not tied, there are three word matrices, not two": right - V * D,
        }
        for message, wrong in slips.items():
            expect(given != wrong, f"{message} {case}")
        expect(given == right, f"yours is {given}, expected {right} {case}")


@exercise("11.5", hint="a uniform distribution on [-a, a] has the variance a^2 / 3")
def bound(answer):
    for n_in, n_out in ((128, 128), (512, 2048), (3, 5)):
        given = float(answer(n_in, n_out))
        slips = {
            "that is the standard deviation; a uniform distribution reaches sqrt(3) times as far": (
                math.sqrt(2 / (n_in + n_out))
            ),
            "that is the variance, not the bound": 2 / (n_in + n_out),
            "that is the square of the bound": 6 / (n_in + n_out),
            "that looks at n_in alone, so it keeps the signal and not the gradient": (
                math.sqrt(3 / n_in)
            ),
            "that looks at n_out alone, so it keeps the gradient and not the signal": (
                math.sqrt(3 / n_out)
            ),
        }
        for message, wrong in slips.items():
            unlike = abs(wrong - math.sqrt(6 / (n_in + n_out))) > 1e-9
            expect(not (unlike and abs(given - wrong) < 1e-9), message)
        expect_close(
            given, math.sqrt(6 / (n_in + n_out)), f"the bound for {n_in} in and {n_out} out is off"
        )
