"""Check for the page Inside an update: what an update costs, predicted and measured."""

import functools
import math
import time

import torch

from exercises.checks import expect, judged
from transformer_lib import ModelConfig, Transformer
from transformer_lib.runs.speed import PeakMemory, update_flops
from transformer_lib.training import translation_loss

CONFIG = ModelConfig(
    8000, d_model=128, n_heads=4, d_ff=256, n_encoder_layers=4, n_decoder_layers=4
)
SENTENCES, TOKENS = 32, 16
# What is predicted: by what factor it may be off, its unit, and what usual mistakes are off by.
ACCOUNT = {
    "parameters": (1.02, "", {}),
    "flops": (1.05, " FLOP", {
        1 / 3: "that is the forward pass; the backward pass costs twice as much again, since each "
        "product has a gradient for both of its factors",
        2 / 3: "that is only the backward pass; the forward pass comes on top",
        1 / 2: "a multiplication and an addition are two operations",
        1 / 6: "that is the forward pass, with a multiplication and an addition as one",
        1 / TOKENS: "that is for one token of each sentence",
        1 / SENTENCES: "that is for one sentence; the batch has 32",
        1 / (SENTENCES * TOKENS): "that is for one target token",
    }),
    "state": (1.02, " bytes", {
        1 / 4: "that is one number for each parameter, or four numbers without counting the four "
               "bytes that each takes",
        1 / 2: "that is two numbers for each parameter: there are the weight, its gradient, and "
        "Adam's two moments",
        3 / 4: "that is three numbers for each parameter: there are the weight, its gradient, and "
        "Adam's two moments",
        1 / 16: "that is the number of parameters; how many numbers belong to each, of how many "
        "bytes?",
    }),
    "kept": (1.5, " bytes", {
        1 / 4: "are those numbers? Each takes four bytes",
    }),
    "seconds": (5.0, " s", {
        1000: "are those milliseconds? Seconds are expected",
    }),
}


@functools.cache
def measured():
    """{name: what it really is}, for one update of the model on this machine's processor."""
    model = Transformer(CONFIG)
    ids = torch.randint(4, CONFIG.vocab_size, (2, SENTENCES, TOKENS + 1))
    batch = ids[0, :, :TOKENS], ids[1]
    flops = update_flops(model, translation_loss, batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    took = []
    for _ in range(5):
        start = time.perf_counter()
        optimizer.zero_grad()
        translation_loss(model, batch, 0.1).backward()
        optimizer.step()
        took.append(time.perf_counter() - start)
    held = [*model.parameters(), *(p.grad for p in model.parameters())]
    held += [x for state in optimizer.state.values() for x in state.values() if x.ndim]
    with PeakMemory() as memory:
        loss = translation_loss(model, batch, 0.1)
        kept = memory.now  # while the loss is alive, so is what its gradient needs
    del loss
    return {
        "parameters": model.count_parameters(),
        "flops": flops,
        "state": sum(x.numel() * x.element_size() for x in held),
        "kept": kept,
        "seconds": min(took),
    }


def _wrong(account, found):
    for name, (within, unit, slips) in ACCOUNT.items():
        ratio = account[name] / found[name]
        if abs(math.log(ratio)) <= math.log(within):
            continue
        named = [said for off, said in slips.items() if abs(math.log(ratio / off)) < 0.03]
        off = max(ratio, 1 / ratio)
        off = f"{off:.3g}" if off < 100 else f"{off:,.0f}"
        by = f"too {'high' if ratio > 1 else 'low'} by a factor of {off}"
        yield f"{name}: {by}, measured {_short(found[name])}{unit}" + "".join(
            f". {said[0].upper()}{said[1:]}" for said in named[:1]
        )


def _short(number):
    return f"{number:,}" if isinstance(number, int) and number < 10**8 else f"{number:.3g}"


@judged(
    1,
    hint=(
        "a linear map has n_in · n_out parameters and costs 2 · n_in · n_out operations per token; "
        "an encoder layer uses attention once, a decoder layer twice, and the backward pass costs "
        "twice as much as the forward pass",
        "each parameter has a weight, a gradient and two moments, of four bytes each; a matrix "
        "product keeps its factors for the backward pass, a ReLU its output, dropout its mask",
        "the logits are the largest thing that is kept, 32 · 16 · 8,000 numbers; an encoder layer "
        "keeps about ten vectors for each token, a decoder layer about seventeen. The seconds are "
        "the operations over the speed of one product, times two to four",
    ),
    example={
        "parameters": 2_349_568, "flops": 7.32e9, "state": 16 * 2_349_568, "kept": 46e6,
        "seconds": 0.25,
    },
)
def account(answer):
    expect(
        isinstance(answer, dict) and answer.keys() == ACCOUNT.keys(),
        f"give a dictionary with {', '.join(ACCOUNT)}",
    )
    for name, value in answer.items():
        expect(
            isinstance(value, (int, float)) and value > 0,
            f"`{name}` must be a number above 0; yours is {value!r}",
        )
    found = measured()
    if any(abs(math.log(answer[name] / found[name])) > math.log(within)
           for name, (within, *_) in ACCOUNT.items()):
        return _wrong(answer, found)
    return "Here's what was measured, and by what factor you were off: " + "; ".join(
        f"{name} {_short(found[name])}{ACCOUNT[name][1]} ({answer[name] / found[name]:.2f})"
        for name in ACCOUNT
    ) + "."
