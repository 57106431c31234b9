"""The worked example of the book: one sentence pair and a model small enough for a pencil.

"Hunde spielen" becomes "Dogs play" from chapter to chapter. The model has d_model 4, two heads, one
encoder and one decoder layer, and weights rounded to one decimal (recordings/make_example.py
trained them on SENTENCES). A number computed by hand for scaled dot-product attention is the number
inside the whole model.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer

WEIGHTS = Path(__file__).with_name("example.json")  # in tenths
VOCABULARY = [
    "<pad>", "<bos>", "<eos>", "<unk>",
    "Hunde", "Katzen", "spielen", "schlafen", "Dogs", "Cats", "play", "sleep",
]
SENTENCES = [
    ([noun[0], verb[0], "<eos>"], [noun[1], verb[1], "<eos>"])
    for noun in (("Hunde", "Dogs"), ("Katzen", "Cats"))
    for verb in (("spielen", "play"), ("schlafen", "sleep"))
]
SOURCE, TARGET = SENTENCES[0]  # Hunde spielen <eos> -> Dogs play <eos>
SIZES = {
    "vocab_size": len(VOCABULARY),
    "d_model": 4,
    "n_heads": 2,
    "d_ff": 8,
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
    "dropout": 0.0,
    "max_len": 16,
}


def ids(tokens: list[str]) -> Tensor:
    """Tokens of the example's vocabulary -> (1, T) ids, a batch of one sentence."""
    if unknown := [token for token in tokens if token not in VOCABULARY]:
        raise ValueError(f"{unknown[0]!r} is not a token; the example has {', '.join(VOCABULARY)}.")
    return torch.tensor([[VOCABULARY.index(token) for token in tokens]])


def tokens(ids: Tensor) -> list[str]:
    """(T,) or (1, T) ids -> their tokens."""
    return [VOCABULARY[i] for i in ids.flatten().tolist()]


def tiny_model() -> Transformer:
    """The trained model of the example, ready to use."""
    model = Transformer(ModelConfig(**SIZES)).eval()
    tenths = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(tenths[name]) / 10)
    return model


@torch.no_grad()
def encoder_input(model: Transformer) -> Tensor:
    """What the first self-attention of the encoder reads for SOURCE: (1, 3, 4)."""
    x = model.embed(model.src_embedding(ids(SOURCE)))  # (1, 3, 4): embedding plus position
    return model.encoder.layers[0].residuals[0].norm(x)


@torch.no_grad()
def queries_keys_values(model: Transformer, head: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of one head of that attention: (3, 2) each."""
    if not 0 <= head < SIZES["n_heads"]:
        raise ValueError(f"there is no head {head}; the example's are 0 to {SIZES['n_heads'] - 1}.")
    attention, x = model.encoder.layers[0].self_attention, encoder_input(model)
    return tuple(
        attention.split_heads(w(x))[0, head] for w in (attention.w_q, attention.w_k, attention.w_v)
    )
