"""How far a letter looks back: learned spans, fixed windows, distance as a factor and as a term.

    make record ONLY=spans

The letters of captions, and one small model whose attention is replaced. Spans are learned at a
price and without. Ten minutes on one core.
"""

import math

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import distance, sparse
from transformer_lib.beyond.exchange import exchange
from transformer_lib.beyond.learning import learn
from transformer_lib.config import ModelConfig
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel

OUT = ROOT / "results" / "beyond" / "spans.json"
PAGE = "spans"
SIZE, BATCH, LOOKS = 64, 8, (150, 450)
PRICES = {"learned": 0.001, "free": 0.0}  # of a place of the mean span
SEEDS, RATE = (0, 1, 2), 0.003
LONGER = (150, 450, 900, 1800)  # do the leads of short spans last?
ARMS = [  # positions, what is in the place of full attention
    ("rotary", "full"), ("rotary", "learned"), ("rotary", "window 16"),
    ("none", "factor"), ("none", "full"), ("alibi", "full"), ("rotary", "free"),
]
GATE = Gate(
    chance=3.0,  # nats: a letter by its frequency, wherever it stands
    arms=("positions", "attention"),
    edge={"rate": (RATE, RATE)},
)


class Window(LanguageModel):
    """A language model that looks back no farther than its window."""

    def mask(self, ids, start=0):
        rule = sparse.causal(sparse.local(self.window))
        return sparse.as_mask(rule, start + ids.size(1))[:, :, start:]


def letters() -> tuple[torch.Tensor, int]:
    """The letters of 12,000 captions, (N,) integers below 128, and where the held-out tenth is."""
    text = "\n".join(b for _, b in load_parallel("multi30k")["train"][:12000]).encode()
    data = torch.tensor(list(text)).clamp(max=127)
    return data, len(data) * 9 // 10


def reads(positions: str, attention: str, rate: float, seed: int, looks=LOOKS) -> dict:
    """Bits per letter of held-out captions after each of `looks`, and the spans at the end."""
    data, cut = letters()
    torch.manual_seed(seed)
    config = ModelConfig(128, 64, 4, 128, 0, 2, 0.0, max_len=256, positional=positions)
    kind, _, window = attention.partition(" ")
    model = Window(config) if window else LanguageModel(config)
    model.window = int(window or SIZE)
    if kind in PRICES:
        exchange(model.decoder, distance.SpanAttention, longest=SIZE)
    if kind == "factor":
        exchange(model.decoder, distance.DistanceAttention)
    attentions = [layer.self_attention for layer in model.decoder.layers]
    generator, bits = torch.Generator().manual_seed(seed), {}

    def loss_of(low, high, rows, generator):
        start = torch.randint(low, high - SIZE - 1, (rows, 1), generator=generator)
        ids = data[start + torch.arange(SIZE + 1)]  # (B, T + 1)
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def loss():
        found = loss_of(0, cut, BATCH, generator)
        if price := PRICES.get(kind):
            found = found + price * torch.stack([a.spans().mean() for a in attentions]).mean()
        return found

    @torch.no_grad()
    def look(update):
        if update in looks:
            test = torch.Generator().manual_seed(99)
            bits[update] = sum(loss_of(cut, len(data), 16, test) for _ in range(8)).item() / 8

    faster = {"share": 3.0} if kind in PRICES else None
    learn(model, loss, looks[-1], rate, warmup=50, faster=faster, after=look)
    found = {"bits": [bits[n] / math.log(2) for n in looks]}
    if kind in PRICES:
        found["spans"] = [a.spans().flatten().tolist() for a in attentions]
    if kind == "factor":
        found["weights"] = [a.weight.flatten().tolist() for a in attentions]
    return found


def reads_longer(positions: str, attention: str, rate: float, seed: int) -> dict:
    """As `reads`, with four times the updates."""
    return reads(positions, attention, rate, seed, LONGER)


def grid():
    """(settings, function) of every cell."""

    def arms(which, seeds, rate, part="letters", of=reads):
        return [cell(part, of, positions=p, attention=a, rate=rate, seed=seed)
                for seed in seeds for p, a in which]

    few = [ARMS[0], ARMS[2]]
    return [*arms(ARMS, SEEDS, RATE), *arms(few, (0,), 0.001), *arms(few, (0,), 0.006),
            *arms(ARMS[:3], SEEDS, RATE, "letters, longer", reads_longer)]
