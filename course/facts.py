"""What the expressions of the questions' facts may use: mathematics, torch, and these functions.

`value("parameters(nn.MultiheadAttention(512, 16))")` is what a test compares with the number that
an item prints. Expressions come from this repository's own YAML, never from a reader.
"""

import json
import math
from pathlib import Path

import torch
from torch import nn

from transformer_lib import ModelConfig, Transformer

ROOT = Path(__file__).resolve().parents[1]


def parameters(module: nn.Module) -> int:
    """How many numbers a module learns."""
    return sum(p.numel() for p in module.parameters())


def largest_weight(d_k: int, divisor: float, keys: int, rows: int = 4000) -> float:
    """Mean over random rows of the largest of the attention weights, before any training."""
    draw = torch.Generator().manual_seed(0)
    q = torch.randn(rows, 1, d_k, generator=draw)
    k = torch.randn(rows, keys, d_k, generator=draw)
    return ((q * k).sum(-1) / divisor).softmax(-1).amax(-1).mean().item()


def word_matrix_share() -> float:
    """The share of a small translator's parameters that is its one matrix of words."""
    config = ModelConfig(vocab_size=10_000, d_model=128, d_ff=256, n_heads=4,
                         n_encoder_layers=4, n_decoder_layers=4)
    return 10_000 * 128 / parameters(Transformer(config))


def layer_work(n: int, d_model: int, d_ff: int) -> int:
    """Multiplications of one encoder layer on n tokens: maps of tokens, then tokens by tokens."""
    return n * (4 * d_model**2 + 2 * d_model * d_ff) + 2 * n * n * d_model


def adam_first_step(gradient: float, rate: float) -> float:
    """How far Adam moves a parameter at its first update."""
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    weight.grad = torch.full((1,), gradient, dtype=torch.float64)
    torch.optim.Adam([weight], lr=rate, eps=1e-9).step()
    return abs(weight.item())


def bleu_from_layer(layer: int) -> float:
    """The shipped translator's recorded BLEU, its decoder handed one encoder layer's output."""
    path = ROOT / "results" / "beyond" / "encoder-decoders-layers.json"
    records = json.loads(path.read_text(encoding="utf8"))["records"]
    (handed,) = [r for r in records if r["settings"]["part"] == "handed"]
    return handed["bleu_by_layer"][str(layer)]


def value(expression: str) -> float:
    """The number that an expression gives."""
    names = {k: v for k, v in vars(math).items() if not k.startswith("_")}
    names |= {f.__name__: f for f in (parameters, largest_weight, word_matrix_share, layer_work,
                                      adam_first_step, bleu_from_layer, round, sum, range)}
    return float(eval(expression, {"__builtins__": {}, "torch": torch, "nn": nn} | names))
