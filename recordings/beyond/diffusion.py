"""Captions written from masks by a model that makes no errors, by the number of passes.

    make record ONLY=diffusion          # about ten minutes on one core; resumable

Most of it trains nothing: the model counts in 4,000 captions of the small grammar, and whatever
goes wrong comes from tokens that are drawn in the same pass. A trained model also makes errors of
its own, so one is trained on the same captions.
"""

from collections import Counter

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import caption_grammar as grammar
from transformer_lib.beyond import diffusion
from transformer_lib.beyond.learning import learn
from transformer_lib.config import EOS, ModelConfig
from transformer_lib.models.classifier import MaskedLanguageModel

OUT = ROOT / "results" / "beyond" / "diffusion.json"
PAGE = "diffusion"
SEEDS, N_LOOK, N_TEXTS = (0, 1, 2), 256, 4_000
N_SHARES, N_WRITTEN = 200, 4_000  # captions known and written, to see how often each comes
PASSES = (1, 2, 4, 8, 17)
ENOUGH = (0.5, 0.9, 0.99)
WORDS = len(grammar.vocabulary())  # <mask> is the id after the last word
CONFIG = ModelConfig(WORDS + 1)
TRAINED = ModelConfig(
    WORDS + 1, 64, 4, 128, 2, 0, dropout=0.0, max_len=32, positional="learned", activation="gelu"
)
BATCH, UPDATES, RATE = 64, 1_000, 3e-3
WAYS = [*({"passes": n} for n in PASSES), {"passes": 8, "order": "sure"},
        *({"passes": 17, "sure_enough": enough} for enough in ENOUGH)]


class CountingByLength(torch.nn.Module):
    """Counting, but each text's guesses come from the captions of its own length alone.

    The texts have their end already: the first <eos> says which length is theirs.
    """

    def __init__(self, texts: torch.Tensor, config: ModelConfig):
        super().__init__()
        self.config = config
        length = (texts == EOS).int().argmax(-1)
        self.of = {
            n: diffusion.Counting(texts[length == n], config) for n in length.unique().tolist()
        }

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (B, T) -> logits (B, T, V)."""
        length = (ids == EOS).int().argmax(-1)
        logits = torch.empty(*ids.shape, self.config.vocab_size)
        for n in length.unique().tolist():
            logits[length == n] = self.of[n](ids[length == n])
        return logits


@torch.no_grad()
def counted(
    order: str, length: str, passes: int, seed: int, n_texts: int = N_TEXTS, sure_enough=None
) -> dict:
    """What is written in so many passes.

    length: "its own"; "given", where the places behind a caption's end are filled beforehand, and
    the caption may end before; or "told", where it may not.
    """
    known = grammar.captions(n_texts)
    texts = grammar.to_ids(known, EOS)
    torch.manual_seed(seed)
    ids = diffusion.blank(N_LOOK, grammar.LENGTH, WORDS)
    if length != "its own":
        some = texts[torch.randint(len(texts), (N_LOOK,))]
        ids = torch.where(some == EOS, EOS, ids)
    model = (CountingByLength if length == "told" else diffusion.Counting)(texts, CONFIG)
    return filled(model, ids, known, passes, order, sure_enough)


def filled(model, ids, known, passes: int, order: str = "random", sure_enough=None) -> dict:
    """What a model makes of ids, judged; used: passes until a text was full, on average."""
    used, masks = torch.zeros(len(ids)), (ids == WORDS).any(-1)

    def count(now):
        nonlocal masks
        used[masks] += 1
        masks = (now == WORDS).any(-1)

    found = diffusion.fill_in(model, ids, passes, order, sure_enough, count)
    return {"used": used.mean().item()} | judged(grammar.to_texts(found), known)


def judged(written: list[str], known: list[str]) -> dict:
    """Shares of captions that the grammar accepts, that are copies, that differ; their words."""
    return {
        "accepted": sum(map(grammar.accepts, written)) / len(written),
        "copied": sum(t in set(known) for t in written) / len(written),
        "distinct": len(set(written)) / len(written),
        "words": sum(len(t.split()) for t in written) / len(written),
    }


@torch.no_grad()
def shares(passes: int, seed: int, sure_enough=None) -> dict:
    """How often each of N_SHARES captions is written, where all should come equally often.

    apart: half the summed difference of the shares found and due. luck: the same for N_WRITTEN
    captions that are drawn at random.
    """
    known = list(dict.fromkeys(grammar.captions(5 * N_SHARES)))[:N_SHARES]
    torch.manual_seed(seed)
    model = diffusion.Counting(grammar.to_ids(known, EOS), CONFIG)
    blank = diffusion.blank(N_WRITTEN, grammar.LENGTH, WORDS)
    found = diffusion.fill_in(model, blank, passes, sure_enough=sure_enough)
    written = Counter(grammar.to_texts(found))
    drawn = Counter(torch.randint(N_SHARES, (N_WRITTEN,)).tolist())

    def apart(counts, places):
        off = sum(abs(counts[place] / N_WRITTEN - 1 / N_SHARES) for place in places)
        others = sum(n for place, n in counts.items() if place not in places)
        return (off + others / N_WRITTEN) / 2

    return {
        "apart": apart(written, dict.fromkeys(known)), "luck": apart(drawn, range(N_SHARES)),
        "copied": sum(written[text] for text in known) / N_WRITTEN,
        "words": sum(n * len(text.split()) for text, n in written.items()) / N_WRITTEN,
        "due": sum(len(text.split()) for text in known) / N_SHARES,
    }


def trained(updates: int, rate: float, seed: int) -> dict:
    """A masked model trained on the captions with the diffusion loss: its bound, in nats per
    caption that it hasn't read, and what it writes in each of WAYS.
    """
    known = grammar.captions(N_TEXTS)
    unread = grammar.to_ids(sorted(set(grammar.captions(N_TEXTS, seed=1)) - set(known)), EOS)
    texts, generator = grammar.to_ids(known, EOS), torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = MaskedLanguageModel(TRAINED)

    def loss():
        some = torch.randint(N_TEXTS, (BATCH,), generator=generator)
        return diffusion.diffusion_loss(model, texts[some])

    learn(model, loss, updates, rate, warmup=50, cooldown=3)
    model.eval()
    with torch.no_grad():
        nats = sum(diffusion.diffusion_loss(model, unread).item() for _ in range(4)) / 4
    blank = diffusion.blank(N_LOOK, grammar.LENGTH, WORDS)
    ways = [way | filled(model, blank, known, **way) for way in WAYS]
    return {"nats": nats * grammar.LENGTH, "ways": ways}


def grid():
    """(settings, function) of every cell."""

    def one(seed, passes, order="random", length="its own", **others):
        return cell("counted", counted, order=order, length=length, passes=passes, seed=seed,
                    **others)

    for seed in SEEDS:
        yield from (one(seed, passes) for passes in PASSES)
        yield from (one(seed, 8, order="sure", length=length) for length in ("its own", "told"))
        yield from (one(seed, n, length=length) for length in ("given", "told") for n in (4, 8))
        yield from (one(seed, 17, sure_enough=enough) for enough in ENOUGH)
        for sure_enough in (None, 0.9):  # with fewer texts, more is decided by a few words
            yield one(seed, 17 if sure_enough else 8, n_texts=1_000, sure_enough=sure_enough)
    for seed in SEEDS:
        for passes, enough in ((17, None), (8, None), *((17, enough) for enough in ENOUGH)):
            yield cell("shares", shares, passes=passes, sure_enough=enough, seed=seed)
        yield cell("trained", trained, updates=UPDATES, rate=RATE, seed=seed)


GATE = Gate(
    chance=2.85,  # nats: a token by its frequency, wherever it is
    measures=("counted", "shares"),
    edge={"passes": (2, 8), "sure_enough": (0.9, 0.9), "n_texts": {1_000},
          "updates": (None, None)},
    missing={"rate": "All runs have one learning rate",
             "updates above": "we haven't trained beyond 1,000 updates"},
)
