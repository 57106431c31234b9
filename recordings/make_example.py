"""Make the weights of the worked example: python -m recordings.make_example

A Transformer of a few hundred numbers learns four sentences, and every weight is rounded to
one decimal, so that a reader can follow its arithmetic with a pencil. Of several seeds, the
one whose rounded model is surest of the right translations is kept.
"""

import json

import torch

from transformer_lib import ModelConfig, Transformer, example
from transformer_lib.decoding import greedy_decode
from transformer_lib.loss import label_smoothed_cross_entropy

SOURCES = torch.cat([example.ids(source) for source, _ in example.SENTENCES])  # (4, 3)
TARGETS = torch.cat([example.ids(["<bos>", *target]) for _, target in example.SENTENCES])  # (4, 4)


def loss_of(model: Transformer, smoothing: float) -> torch.Tensor:
    return label_smoothed_cross_entropy(model(SOURCES, TARGETS[:, :-1]), TARGETS[:, 1:], smoothing)


def rounded_model(seed: int) -> Transformer:
    """Train on the four sentences, then round every weight to tenths."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(**example.SIZES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=0.02)
    for _ in range(600):
        loss = loss_of(model, smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter * 10).round() / 10)
    return model


def main() -> None:
    torch.set_num_threads(1)  # the same sums in the same order on every machine
    model = min(map(rounded_model, range(12)), key=lambda m: loss_of(m, smoothing=0.0).item())
    written = greedy_decode(model, SOURCES, max_len=4)
    if not torch.equal(written, TARGETS[:, 1:]):
        raise SystemExit(f"the rounded model is wrong: it writes {written.tolist()}")
    rows = [
        f" {json.dumps(name)}: {json.dumps((parameter * 10).round().int().tolist())}"
        for name, parameter in model.named_parameters()
    ]
    example.WEIGHTS.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf8")
    print(f"wrote {example.WEIGHTS} with {model.count_parameters()} weights")


if __name__ == "__main__":
    main()
