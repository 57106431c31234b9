"""Neighbours beside a language model: kNN-LM, and SPALM's gate, trained.

    make record ONLY=neighbours

A model reads 2,000 captions. Its stores hold those, 2,000 others, or both; a gate is trained on
captions that neither the model nor its store has seen. Its rival, without a store, is trained on
those captions, and for longer. Twenty minutes on one core.
"""

import math
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib import fast
from transformer_lib.beyond import neighbours
from transformer_lib.beyond.learning import learn
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import PAD, ModelConfig, TrainConfig
from transformer_lib.data import load_parallel
from transformer_lib.decoding import evaluating
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.tokenization import encode_target, train_tokenizer
from transformer_lib.training import fit

OUT = ROOT / "results" / "beyond" / "neighbours.json"
PAGE = "24_longer_memory"
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 0, "n_decoder_layers": 2,
         "dropout": 0.2, "positional": "rotary"}
VOCABULARY, READ, CAPTIONS, NEAREST, RATE = 1000, 2000, 100, 32, 4e-3
UPDATES, SEEDS = (100, 300), (0, 1, 2)
SCALES, SHARES = (2.0, 8.0, 32.0), (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
# Fewer updates than the model, of more rows: the recorder keeps the longest training run it saw.
GATE_UPDATES, GATE_ROWS, GATE_NEAREST = 99, 512, 16
GATE = Gate(
    chance=5.59,  # nats: a token by its frequency
    did_not_learn=(
        ({"rate": RATE / 2}, "at half the learning rate, the model has hardly begun to learn"),
    ),
    arms=("reads",),
    edge={"updates": (None, 300), "rate": (RATE, RATE)},
)


def fast_loss(model, batch):
    """beyond.one_stream.stream_loss, with the logits a block at a time."""
    read, predicted = batch
    counted = predicted != PAD
    hidden = model.decode(read)[counted]
    return fast.projected_cross_entropy(
        model.project, hidden, predicted[counted], list(model.parameters()), 0.0
    )


@torch.no_grad()
def states_of(model, texts):
    """Hidden states (N, D) and the tokens that follow them (N,), in the order of lengths."""
    batches, hidden, tokens = stream_batches([[]] * len(texts), texts, 4096, 0), [], []
    with evaluating(model):
        for batch in batches.sampler.batches():
            read, predicted = batches.tensors(batch, torch.device("cpu"))
            counted = predicted != PAD
            hidden.append(model.decode(read)[counted])
            tokens.append(predicted[counted])
    return torch.cat(hidden), torch.cat(tokens)


def search(store, hidden, n=NEAREST):
    """Distances and following tokens of the nearest places: (Q, n) each."""
    parts = [store.nearest(q, n) for q in hidden.split(512)]
    distances, places = (torch.cat(x) for x in zip(*parts, strict=True))
    return distances, store.tokens[places]


def trained(updates: int, rate: float, seed: int, reads: str = "half"):
    """A model after so many updates on READ captions, or on twice as many (reads: "both").

    Returns (model, the first READ captions, the others, the ids of all splits).
    """
    captions = {s: [b for _, b in p] for s, p in load_parallel("multi30k").items()}
    tokenizer = train_tokenizer(captions["train"], VOCABULARY)
    ids = {s: encode_target(tokenizer, texts) for s, texts in captions.items()}
    order = torch.randperm(len(ids["train"]), generator=torch.Generator().manual_seed(seed))
    parts = order[:READ], order[READ : 2 * READ]
    read, unread = ([ids["train"][i] for i in part] for part in parts)
    texts = read if reads == "half" else read + unread
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(tokenizer.get_vocab_size(), **SIZES))
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            max_steps=updates, max_tokens=1024, peak_lr=rate, warmup=30, cooldown=updates // 4,
            average=1, checkpoint_every=updates, keep_checkpoints=1, device="cpu",
            precision="fp32", fast=True, progress=False, seed=seed,
        )
        fit(model, stream_batches([[]] * len(texts), texts, 1024, seed), fast_loss, config,
            Path(folder) / "run")
    return model.eval(), read, unread, ids


def beside(updates: int, rate: float, seed: int) -> dict:
    """What neighbours add to a model of so many updates on READ captions."""
    model, read, unread, ids = trained(updates, rate, seed)
    with torch.no_grad():
        found = with_neighbours(model, read, unread, ids, seed)
    tenth = len(unread) // 10  # for the gate to learn on; the store holds the rest
    found["gate"] = train_gate(model, unread[:tenth], unread[tenth:], ids, seed)
    return found


def longer(reads: str, updates: int, rate: float, seed: int) -> dict:
    """The rival of a store: a model that is trained on its captions, or for longer."""
    model, read, unread, ids = trained(updates, rate, seed, reads)
    with torch.no_grad():
        return with_neighbours(model, read, unread, ids, seed)


def with_neighbours(model, read, unread, ids, seed) -> dict:
    """Perplexities of the model alone, with each store, and with random places of a store."""
    tune, test = (states_of(model, ids[s][:CAPTIONS]) for s in ("validation", "test"))
    seen, new = states_of(model, read), states_of(model, unread)
    both = tuple(torch.cat(pair) for pair in zip(seen, new, strict=True))
    chosen = torch.randperm(len(both[1]), generator=torch.Generator().manual_seed(seed))
    stores = {"seen": seen, "unseen": new, "both": both,
              "tenth": tuple(x[chosen[: len(chosen) // 10]] for x in both)}
    alone = {"tune": logp_of(model, *tune), "test": logp_of(model, *test)}
    found = {name: math.exp(-alone[which].mean())
             for name, which in (("alone", "test"), ("alone_validation", "tune"))}
    found["stores"] = {}
    for name, (keys, tokens) in stores.items():
        store = neighbours.Datastore(keys, tokens)
        near = {"tune": search(store, tune[0]), "test": search(store, test[0])}
        found["stores"][name] = best_share(alone, near, tune[1], test[1])
        if name == "both":
            wild = {which: (d, tokens[torch.randint(len(tokens), d.shape)])
                    for which, (d, _) in near.items()}
            found["stores"]["random places"] = best_share(alone, wild, tune[1], test[1])
    return found


def logp_of(model, hidden, tokens):
    """log-probability of each token, (N,), from the state before it."""
    parts = zip(hidden.split(1024), tokens.split(1024), strict=True)
    return torch.cat(
        [model.project(h).log_softmax(-1).gather(1, t[:, None])[:, 0] for h, t in parts]
    )


def best_share(alone, near, tune_tokens, test_tokens) -> dict:
    """Scale and share with the lowest perplexity on the tuning captions, and what they give."""

    def perplexity(which, wanted, scale, share):
        logp = neighbours.neighbour_logp(*near[which], wanted, scale)
        return math.exp(-neighbours.interpolate(alone[which], logp, share).mean())

    grid = [(perplexity("tune", tune_tokens, scale, share), scale, share)
            for scale in SCALES for share in SHARES]
    _, scale, share = min(grid)
    curve = [perplexity("test", test_tokens, scale, s) for s in (0.0, *SHARES)]
    named = torch.isfinite(neighbours.neighbour_logp(*near["test"], test_tokens, scale))
    return {"scale": scale, "share": share, "test": perplexity("test", test_tokens, scale, share),
            "curve": curve, "named": named.float().mean().item()}


def train_gate(model, lesson, texts, ids, seed) -> dict:
    """SPALM's gate over a store of `texts`, learned on a lesson that nobody has read: its test
    perplexity with the nearest places, and of another gate with random ones.
    """
    store = neighbours.Datastore(*states_of(model, texts))
    queries, wanted = states_of(model, lesson)
    test, test_tokens = states_of(model, ids["test"][:CAPTIONS])
    table, found = model.output.weight.detach(), {}
    near = {"lesson": search(store, queries, GATE_NEAREST)[1],
            "test": search(store, test, GATE_NEAREST)[1]}
    for name in ("nearest", "random"):
        torch.manual_seed(seed)
        if name == "random":
            near = {k: store.tokens[torch.randint(len(store.tokens), x.shape)]
                    for k, x in near.items()}
        gate, generator = neighbours.Gate(table.size(1)), torch.Generator().manual_seed(seed)

        def loss(gate=gate, generator=generator, near=near):
            rows = torch.randint(len(wanted), (GATE_ROWS,), generator=generator)
            state = gate(queries[rows], table[near["lesson"][rows]])
            return F.cross_entropy(state @ table.T, wanted[rows])

        learn(gate, loss, GATE_UPDATES, 4e-3, warmup=10, cooldown=2)
        with torch.no_grad():
            states = torch.cat([gate(h, table[f]) for h, f in
                                zip(test.split(512), near["test"].split(512), strict=True)])
            found[name] = math.exp(-logp_of(model, states, test_tokens).mean())
            found[f"{name} open"] = gate.open(test).sigmoid().mean().item()
    return found


def grid():
    """(settings, function) of every cell."""
    cells = [cell("captions", beside, updates=n, rate=RATE, seed=seed)
             for seed in SEEDS for n in UPDATES[::-1]]
    cells += [cell("captions", beside, updates=UPDATES[0], rate=rate, seed=0)
              for rate in (RATE / 2, RATE * 2)]
    runs = [("both", 300, RATE), ("half", 600, RATE), ("both", 600, RATE)]
    runs += [("half", 600, 2 * RATE), ("both", 600, 2 * RATE)]
    return cells + [cell("longer", longer, reads=reads, updates=n, rate=rate, seed=seed)
                    for seed in SEEDS for reads, n, rate in runs if rate == RATE or seed == 0]
