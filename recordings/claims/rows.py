"""Record what a row of the memory holds in the trained translators: `make record ONLY=rows`.

In a caption one German word is replaced by another of one piece, so that both sentences have their
pieces at the same places. Then rows of the one memory are exchanged for rows of the other: the row
of the word itself, all rows but that one, that of <eos>, those of its two neighbours, or all of
them. Recorded is how many translations then have the other English word, and not the first one.
Two translators, so that it isn't a quirk of a single training run. And the same for models of four
sentences, made like the book's worked example, by width and seed: which row holds the animal?
Four minutes on one core. Needs Multi30k.
"""

import functools
import math
from contextlib import contextmanager

import torch

from recordings.gate import Gate
from recordings.make_example import SOURCES, TARGETS, loss_of
from recordings.record import RESULTS, cell
from transformer_lib import ModelConfig, Transformer, example, load_pretrained
from transformer_lib.batching import pad
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.tokenization import encode_source

OUT = RESULTS / "rows.json"
PAGE = "10_decoder"
GATE = Gate(
    chance=math.log(len(example.VOCABULARY)), measures=("rows",), arms=("seed",),
    edge={"translator": {"multi30k-de-en-short"}, "kind": {"verb", "preposition"},
          "d_model": (None, 4)},
    missing={"rate": "We tried one learning rate for each width",
             "d_model below": "no rows shorter than four numbers"},
)
TRANSLATORS = ("multi30k-de-en", "multi30k-de-en-short")
# Kind of word -> (German word, its replacement): English words for both.
WORDS = {
    "noun": {
        ("Mann", "Junge"): ("man", "boy"),
        ("Hunde", "Kinder"): ("dogs", "children"),
        ("Hund", "Mann"): ("dog", "man"),
        ("Frauen", "Männer"): ("women", "men"),
        ("Schnee", "Sand"): ("snow", "sand"),
        ("Wasser", "Gras"): ("water", "grass"),
    },
    "adjective": {
        ("roten", "blauen"): ("red", "blue"),
        ("weißen", "grünen"): ("white", "green"),
    },
    "verb": {
        ("steht", "sitzt"): ("stands standing", "sits sitting seated"),
        ("läuft", "springt"): ("walks walking runs running", "jumps jumping leaps leaping"),
        ("spielen", "sitzen"): ("play playing", "sit sitting seated"),
    },
    "number": {("Zwei", "Drei"): ("two", "three")},
    "preposition": {
        ("auf", "neben"): ("on", "next beside"),
        ("vor", "hinter"): ("front before outside", "behind"),
        ("mit", "ohne"): ("with", "without"),
    },
}
CAPTIONS = 40  # of each pair of words, at most, from the validation and the test captions


@contextmanager
def exchanged(model, rows, other):
    """Inside, these rows of the memory are those of other sentences. rows: (B, S) bool."""
    theirs = model.encode(other)  # (B, S, D)
    hook = model.encoder.register_forward_hook(
        lambda module, args, mine: torch.where(rows[..., None], theirs, mine)
    )
    try:
        yield
    finally:
        hook.remove()


def exchanges(place: int, length: int) -> dict[str, list[int]]:
    """Name -> the rows to exchange. length: of the sentence, <eos> included."""
    return {
        "its own row": [place],
        "all other rows": [i for i in range(length) if i != place],
        "the row of <eos>": [length - 1],
        "its neighbours' rows": [i for i in (place - 1, place + 1) if 0 <= i < length - 1],
        "all rows": list(range(length)),
    }


@functools.cache
def sentences(translator: str, words: tuple):
    """Captions with the word once, as ids before and after the replacement, and its place."""
    tokenizer = load_pretrained(translator).tokenizer
    data = load_parallel("multi30k")
    found = []
    for german, _ in [*data["validation"], *data["test"]]:
        old, new = words
        if german.split().count(old) != 1 or new in german.split():
            continue
        changed = " ".join(new if word == old else word for word in german.split())
        a, b = encode_source(tokenizer, [german, changed])
        places = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
        if len(a) == len(b) and len(places) == 1:
            found.append((a, b, places[0]))
        if len(found) == CAPTIONS:
            break
    return found


@torch.no_grad()
def swapped(translator: str, kind: str, german: str, replaced: str) -> dict:
    """Of the captions whose two translations have the words: how often each exchange flips them."""
    loaded = load_pretrained(translator)
    old, new = (set(words.split()) for words in WORDS[kind][german, replaced])
    rows = sentences(translator, (german, replaced))
    src, other = pad([a for a, *_ in rows]), pad([b for _, b, _ in rows])

    def says(rows) -> list[str]:
        """Which of the two words each translation has: "old", "new", or neither or both."""
        with exchanged(loaded.model, rows, other):
            texts = loaded.tokenizer.decode_batch(greedy_decode(loaded.model, src).tolist())
        words = [set(text.lower().replace(".", " ").replace(",", " ").split()) for text in texts]
        return ["new" if w & new and not w & old else "old" if w & old and not w & new else ""
                for w in words]

    chosen = {name: torch.zeros_like(src, dtype=torch.bool) for name in exchanges(0, 2)}
    for i, (a, _, place) in enumerate(rows):
        for name, at in exchanges(place, len(a)).items():
            chosen[name][i, at] = True
    none = torch.zeros_like(src, dtype=torch.bool)
    found = {name: says(at) for name, at in chosen.items()}
    plain = says(none)
    fit = [i for i in range(len(rows)) if plain[i] == "old" and found["all rows"][i] == "new"]
    return {
        "sentences": len(fit),
        "flipped": {name: sum(said[i] == "new" for i in fit) for name, said in found.items()},
    }


def toy(d_model: int, seed: int) -> dict:
    """Train on the example's four sentences; how many of the four first words each row flips."""
    torch.manual_seed(seed)
    sizes = example.SIZES | {"d_model": d_model, "d_ff": 2 * d_model}
    model = Transformer(ModelConfig(**sizes))
    rate = 2e-2 if d_model == example.SIZES["d_model"] else 5e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.02)
    for _ in range(600):
        loss = loss_of(model, smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.no_grad()
    def first_words(memory):
        return model.project(model.decode(TARGETS[:, :1], memory))[:, 0].argmax(-1)

    memory = model.encode(SOURCES).detach()  # (4, 3, D)
    other, plain = memory[[2, 3, 0, 1]], first_words(memory)  # the other animal, the same verb
    flips = []
    for row in range(3):
        mixed = memory.clone()
        mixed[:, row] = other[:, row]
        flips.append((first_words(mixed) != plain).sum().item())
    right = torch.equal(plain, TARGETS[:, 1])
    return {"right": right, "flipped": dict(zip(("animal", "verb", "<eos>"), flips, strict=True))}


def grid():
    """(settings, function) of every cell."""
    return [
        *(cell("toy", toy, d_model=d, seed=seed) for d in (4, 16) for seed in range(12)),
        *(
            cell("rows", swapped, translator=translator, kind=kind, german=german,
                 replaced=replaced)
            for translator in TRANSLATORS for kind, pairs in WORDS.items()
            for german, replaced in pairs
        ),
    ]
