"""What each byte of a cache is worth in BLEU, on the translators that come with the book.

    make record ONLY=cache_bytes

As shipped: the trained weights, with a cache that is rounded, that forgets, or that holds fewer
heads or a latent vector. Whole test set: some of these again, on all captions. Trained on: the
same changes, then a few updates on Multi30k, as Ainslie et al. (2023) turn a trained model into a
grouped one. About six minutes on one core.
"""

import copy
import functools

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib import fast, load_pretrained
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond import caches
from transformer_lib.beyond.exchange import exchange
from transformer_lib.beyond.learning import learn
from transformer_lib.cache import KeyValueCache
from transformer_lib.data import load_parallel
from transformer_lib.evaluation import paired_bootstrap, score
from transformer_lib.runs.translation import translate_ids
from transformer_lib.tokenization import encode_pairs
from transformer_lib.training import translation_batches

OUT = ROOT / "results" / "beyond" / "cache-bytes.json"
PAGE = "26_what_a_cache_costs"
TRANSLATORS = ("multi30k-de-en", "multi30k-en-de")
UPDATES, TOKENS, RATE, SEEDS = 30, 1024, 1e-3, (0, 1)
SENTENCES, ALL = 400, 1000  # the first of the test set
GATE = Gate(
    chance=6.0,  # nats a piece, smoothed: pieces by their frequency
    arms=("kind", "amount"),
    edge={"amount": (2, 64), "rate": (RATE, RATE)},
    measures=("as shipped", "whole test set"),
)
# kind -> amounts, of windows with all that is kept. "window and sink": the first token, <bos>, and
# the newest. "window and first word": the token behind <bos> instead. "local layers": all but the
# last forget; the last layer keeps all. "heads of self", "heads of cross": in one attention only.
# "other pairs": two heads as well, but head 0 with head 2 or 3. "fitted": heads by caches.fitted,
# not by their mean. "window and near sink": as "window and sink", but places are counted in the
# cache, so that <bos> stands right before the newest (Xiao et al. 2023, sec. 3.2).
SHIPPED = {
    "full": (0,), "bits": (8, 4, 3, 2), "heads": (2, 1), "fitted": (4, 2, 1),
    "latent": (128, 64, 48, 32),
    "window": (16, 8, 7, 5, 4, 3), "window and sink": (8, 5, 4),
    "window and first word": (8, 5, 4), "local layers": (8, 4),
    "heads of self": (2,), "heads of cross": (2,), "other pairs": (1, 2),
}
ROTARY = {  # of the second translator, whose positions turn its keys
    "full": (0,), "bits": (4, 2), "window": (8, 7, 4, 3),
    "window and sink": (8, 5, 4), "window and first word": (8, 5, 4), "local layers": (4,),
    "window and near sink": (8, 5, 4),
}
WHOLE = {"bits": (4, 2), "fitted": (2,)}  # on all captions
# Held against the same newest tokens alone:
PLUS_ONE = ("window and sink", "window and first word", "window and near sink")
TRAINED = (("full", 0), ("heads", 2), ("heads", 1), ("latent", 64))
EDGES = (("heads", 1), ("latent", 64))  # at other rates, too


@functools.cache
def bench(translator: str, n: int = SENTENCES):
    """The translator, and n captions of the test set: ids of the sources, and the references."""
    loaded = load_pretrained(translator)
    pairs = load_parallel("multi30k", *translator.split("-")[1:3])
    test = pairs["test"][:n]
    sources, _ = encode_pairs(loaded.tokenizer, test)
    return loaded, sources, [reference for _, reference in test], pairs["train"][:8000]


class OfRule(MultiHeadAttention):
    """Self-attention under a rule, with a cache of everything: forgetting equals masking."""

    def __init__(self, *sizes, rule):
        super().__init__(*sizes)
        self.rule = rule

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        start = 0 if cache is None else cache.length
        places = torch.arange(start + query.size(1))
        links = self.rule(places[start:, None], places)
        mask = links if mask is None else mask & links
        return super().forward(query, key, value, mask, need_weights, cache)


class NearSink(caches.WindowAttention):
    """One new token a call; a kept token's place is its place in the cache, not in the text."""

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        new = torch.arange(cache.length, cache.length + 1)
        rule = caches.window_with_sinks(self.window, self.sinks)
        seen = rule(new[:, None], torch.cat([cache.places, new]))[0]
        q, k, v = (
            self.split_heads(w(x))
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        k, v = (x[:, :, seen] for x in cache.append(k, v))  # not turned yet
        k = self.positions.turn(k, k, 0)[1]
        q = self.positions.turn(q, q, k.size(2) - 1)[0]
        output, weights = self.attend(q, k, v)
        return self.w_o(self.join_heads(output)), weights


def regrouped(old: MultiHeadAttention, partner: int) -> MultiHeadAttention:
    """`grouped` with two of four heads, after head 0 got this partner: equal but for the pairs."""
    order = [0, partner, *({1, 2, 3} - {partner})]
    old = copy.deepcopy(old)
    with torch.no_grad():
        for part in (old.w_q, old.w_k, old.w_v):
            for p in part.parameters():
                p.copy_(p.unflatten(0, (4, -1))[order].flatten(0, 1))
        weight = old.w_o.weight
        weight.copy_(weight.unflatten(1, (4, -1))[:, order].flatten(1, 2))
    return caches.grouped(old, 2)


def changed(model, kind: str, amount: int):
    """A copy of a translator whose decoder has another cache."""
    model, kept = copy.deepcopy(model), KeyValueCache
    if kind == "heads":
        caches.convert(model, caches.grouped, n_kv_heads=amount)
    if kind == "fitted":
        caches.convert(model, caches.fitted, n_kv_heads=amount)
    if kind == "other pairs":
        caches.convert(model, regrouped, partner=amount + 1)
    if kind.startswith("heads of"):
        name = f"{kind.split()[-1]}_attention"
        for layer in model.decoder.layers:
            setattr(layer, name, caches.grouped(getattr(layer, name), amount))
    if kind == "latent":
        caches.convert(model, caches.latent, size=amount)
    if kind == "window and first word":
        newest = caches.window_with_sinks(amount - 1)
        rule = lambda i, j: newest(i, j) | ((j == 1) & (j <= i))  # noqa: E731
        exchange(model.decoder, OfRule, rule=rule)
    elif kind.startswith("window") or kind == "local layers":
        sinks = int(kind.endswith("sink"))
        stack = torch.nn.Module()
        stack.layers = model.decoder.layers[: -1 if kind == "local layers" else None]
        attention = NearSink if kind == "window and near sink" else caches.WindowAttention
        exchange(stack, attention, window=amount - sinks, sinks=sinks)
    if kind == "bits":
        kept = functools.partial(caches.QuantisedCache, amount)
    model.new_cache = lambda: caches.decoder_cache(model, kept, kept)
    return model


def write(translator: str, model, n: int = SENTENCES) -> list[str]:
    loaded, sources, *_ = bench(translator, n)
    with torch.no_grad():
        return translate_ids(model, loaded.tokenizer, sources)


@functools.cache
def as_it_is(translator: str, n: int = SENTENCES) -> list[str]:
    return write(translator, bench(translator, n)[0].model, n)


def on_all(translator: str, kind: str, amount: int) -> dict:
    return shipped(translator, kind, amount, ALL)


def shipped(translator: str, kind: str, amount: int, n: int = SENTENCES) -> dict:
    loaded, sources, references, _ = bench(translator, n)
    said = write(translator, changed(loaded.model, kind, amount), n)
    scores, before = score(said, references), as_it_is(translator, n)
    against = paired_bootstrap(said, before, references)
    written = [len(encoding.ids) + 1 for encoding in loaded.tokenizer.encode_batch(said)]
    found = {
        "bleu": scores.bleu, "chrf": scores.chrf,
        "against_full": [against.delta, against.low, against.high],
        "same": sum(a == b for a, b in zip(said, before, strict=True)) / len(said),
        "read": sum(map(len, sources)) / len(sources), "written": sum(written) / len(written),
    }
    if kind in PLUS_ONE:
        alone = write(translator, changed(loaded.model, "window", amount - 1))
        against = paired_bootstrap(said, alone, references)
        found["against_window"] = [against.delta, against.low, against.high]
    return found


def trained(translator: str, kind: str, amount: int, rate: float, seed: int) -> dict:
    loaded, _, references, pairs = bench(translator, SENTENCES)
    model = changed(loaded.model, kind, amount)
    for part in model.modules():
        if isinstance(part, caches.LatentAttention):
            part.absorb = False  # training reads whole sentences, so keys and values are cheaper
    torch.manual_seed(seed)
    sources, targets = encode_pairs(loaded.tokenizer, pairs)
    batches = translation_batches(sources, targets, TOKENS, seed)
    order = iter(batches)
    model.train()
    learn(
        model,
        lambda: fast.translation_loss(model, batches.tensors(next(order), "cpu"), smoothing=0.1),
        UPDATES, rate, warmup=5, cooldown=2,
    )
    model.eval()
    scores = score(write(translator, model), references)
    return {"bleu": scores.bleu, "chrf": scores.chrf}


def grid():
    """(settings, function) of every cell."""
    cells = [
        cell("as shipped", shipped, translator=translator, kind=kind, amount=amount)
        for translator, kinds in zip(TRANSLATORS, (SHIPPED, ROTARY), strict=True)
        for kind, amounts in kinds.items() for amount in amounts
    ]
    cells += [
        cell("whole test set", on_all, translator=TRANSLATORS[0], kind=kind, amount=amount)
        for kind, amounts in WHOLE.items() for amount in amounts
    ]
    rates = [(RATE, seed, TRAINED) for seed in SEEDS]
    rates += [(factor * RATE, 0, EDGES) for factor in (0.5, 2)]
    return cells + [
        cell("trained on", trained, translator=TRANSLATORS[0], kind=kind, amount=amount,
             rate=rate, seed=seed)
        for rate, seed, arms in rates for kind, amount in arms
    ]
