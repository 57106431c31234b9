"""Every check of chapter 11 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import whole_model as ch
from transformer_lib import masks
from transformer_lib.decoding import greedy_decode

SHAPES = {
    "embedded source": (2, 7, 16),
    "memory": (2, 7, 16),
    "hidden": (2, 5, 16),
    "logits": (2, 5, 100),
}


def forward(model, src, tgt, read=True, cross=True, causal=True, embedding="tgt_embedding"):
    padding = masks.padding_mask(src, 0)
    own = masks.causal_mask(tgt.size(1)) & masks.padding_mask(tgt, 0) if causal else None
    memory = model.encoder(model.embed(model.src_embedding(src)), padding if read else None)
    x = model.embed(getattr(model, embedding)(tgt))
    return model.output(model.decoder(x, memory, padding if cross else None, own))


def without_positions(model, src, tgt):
    padding = masks.padding_mask(src, 0)
    memory = model.encoder(model.src_embedding(src), padding)
    x = model.tgt_embedding(tgt)
    return model.output(model.decoder(x, memory, padding, masks.causal_mask(tgt.size(1))))


def tie(model):
    model.tgt_embedding.lookup.weight = model.src_embedding.lookup.weight
    model.output.weight = model.src_embedding.lookup.weight
    return model


def tie_by_copying(model):
    model.tgt_embedding.lookup.weight.data.copy_(model.src_embedding.lookup.weight.data)
    model.output.weight.data.copy_(model.src_embedding.lookup.weight.data)
    return model


def tie_two(model):
    model.tgt_embedding.lookup.weight = model.src_embedding.lookup.weight
    return model


def tie_output_by_copying(model):
    tie_two(model).output.weight.data.copy_(model.src_embedding.lookup.weight.data)
    return model


def xavier(n_in, n_out):
    return math.sqrt(6 / (n_in + n_out))


def write_batch(model, src_ids, max_len, mask=True):
    memory, src_mask = model.encode(src_ids), masks.padding_mask(src_ids, 0) if mask else None
    ids = torch.full((len(src_ids), 1), 1)
    while ids.size(1) <= max_len:
        logits = model.project(model.decode(ids, memory, src_mask))[:, -1]
        ids = torch.cat([ids, logits.max(-1, keepdim=True).indices], 1)
    behind = (ids == 2).cumsum(1) - (ids == 2).int() > 0
    return ids.masked_fill(behind, 0)[:, 1:]


def encodes_each_time(model, src_ids, max_len):
    ids = torch.ones(len(src_ids), 1, dtype=torch.long)
    for _ in range(max_len):
        last = model(src_ids, ids)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, last.masked_fill((ids == 2).any(1, keepdim=True), 0)], 1)
    return ids[:, 1:]


CASES = [
    (ch.shapes, (SHAPES,), True, "Right"),
    (ch.shapes, (dict.fromkeys(SHAPES, ...),), None, "Not attempted"),
    (ch.shapes, (SHAPES | {"logits": (2, 5, 16)},), False, "each word of the vocabulary"),
    (ch.forward, (forward,), True, "Right"),
    (ch.forward, (lambda model, src, tgt: ...,), None, "Not attempted"),
    (ch.forward, (lambda *a: forward(*a, False, False, False),), False, "both masks are missing"),
    (ch.forward, (lambda *a: forward(*a, False, False),), False, "in the encoder and in the"),
    (ch.forward, (lambda *a: forward(*a, causal=False),), False, "needs a causal mask"),
    (ch.forward, (without_positions,), False, "positions are missing"),
    (ch.tie, (tie,), True, "Right"),
    (ch.tie, (lambda model: ...,), None, "Not attempted"),
    (ch.tie, (tie_by_copying,), False, "copies"),
    (ch.tie, (tie_two,), False, "src_embedding and output do not even start equal"),
    (ch.tie, (tie_output_by_copying,), False, "src_embedding and output are equal at first"),
    (ch.bound, (xavier,), True, "Right"),
    (ch.bound, (lambda n_in, n_out: ...,), None, "Not attempted"),
    (ch.bound, (lambda i, o: 2 / (i + o),), False, "variance"),
    (ch.bound, (lambda i, o: math.sqrt(3 / o),), False, "only at n_out"),
    (ch.write_batch, (write_batch,), True, "Right"),
    (ch.write_batch, (lambda *a: ...,), None, "Not attempted"),
    (ch.write_batch, (encodes_each_time,), False, "was encoded 4 times"),
    (ch.write_batch, (lambda *a: write_batch(*a, mask=False),), False, "source's padding"),
    (ch.write_batch, (lambda *a: write_batch(*a)[:, :-1],), False, "(B, max_len)"),
    (ch.write_batch, (lambda m, s, n: greedy_decode(m, s, n),), False, "rules out"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_bound_is_that_of_torch():
    torch.manual_seed(0)
    drawn = torch.nn.init.xavier_uniform_(torch.empty(300, 200)).abs().max().item()
    assert 0.999 * xavier(200, 300) < drawn <= xavier(200, 300) + 1e-6
