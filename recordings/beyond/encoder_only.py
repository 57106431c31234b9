"""The recorded runs of the chapter on encoder-only models, on the captions of the grammar.

    make record ONLY=encoder_only        # about nine minutes on one core; resumable

Checkpoints are kept in runs/beyond/encoder-only/. All parts of seed 0 come first; other rates, as
factors of the page's own, are at the end. `keep` copies two models of seed 0 to
results/beyond/encoder-only/.
"""

import math
import random
import shutil
from functools import cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from recordings.gate import Gate
from transformer_lib.batching import Batches, pad
from transformer_lib.beyond.encoders import (
    LeftOnly,
    ReplacedTokens,
    distillation_loss,
    factorise,
    mask_tokens,
    masked_loss,
    replaced_loss,
    sentence_pairs,
    share_layers,
    start_from,
    two_texts,
)
from transformer_lib.config import BOS, EOS, UNK, ModelConfig, TrainConfig, to_dict
from transformer_lib.corpora import mini
from transformer_lib.data import load_parallel
from transformer_lib.models.classifier import Classifier, MaskedLanguageModel
from transformer_lib.runs.checkpoint import load_state, load_weights
from transformer_lib.runs.files import write_json
from transformer_lib.tokenization import load_tokenizer, train_tokenizer
from transformer_lib.training import fit

ROOT = Path(__file__).resolve().parents[2]


RUNS = ROOT / "runs" / "beyond" / "encoder-only"
OUT = ROOT / "results" / "beyond" / "encoder-only.json"
PAGE = "19_encoder_only"
KEPT = OUT.with_suffix("")
SIZES = {
    "d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 2, "n_decoder_layers": 2,
    "dropout": 0.0, "max_len": 128, "positional": "learned", "activation": "gelu",
}
RATE = 0.3  # BERT hides 15 %; a short run learns more from twice as many
FOUND = partial(replaced_loss, rate=RATE)
LOSS, UPDATES = partial(masked_loss, rate=RATE), 1500
WORDS, WORDS_OF_TWO = 2000, 3000  # sizes of the vocabularies


def learn(data, name, seed, model, columns, loss, steps, rate=3e-3, max_tokens=1024):
    """Train with the book's loop; columns: lists of ids per example, the first gives the length."""
    steps, max_tokens = round(steps * data.short), round(max_tokens * data.tokens)
    lengths = [len(ids) for ids in columns[0]]
    settings = TrainConfig(
        max_steps=steps, max_tokens=max_tokens, schedule="constant", peak_lr=rate, warmup=50,
        cooldown=steps // 2, average=1, checkpoint_every=steps, keep_checkpoints=1,
        validate_every=steps, log_every=50, seed=seed, device="cpu", precision="fp32",
        progress=False,
    )
    batches = Batches(columns, lengths, lengths, max_tokens, seed)
    folder = data.runs / f"{name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # for a resumed run, `run` would hold only the rest
    fit(model, batches, loss, settings, folder)
    model.eval()
    return {"updates": steps}


class Data:
    """Multi30k's captions as ids. English alone has one vocabulary, the two languages another."""

    def __init__(self, source):
        self.source, self.runs = source, RUNS / source
        self.short, self.tokens = (1, 0.75) if source == "mini" else (1, 1)
        self.pairs = load_parallel(source, "de", "en")
        if source == "mini":  # made by rule: more to be judged by, so that shares are less noisy
            known = set(self.pairs["train"])
            self.pairs["validation"] = [
                pair for pair in mini.mini_corpus(seed=1)["train"] if pair not in known
            ][:1000]
        train = self.pairs["train"]
        self.english = self._tokenizer("english", (en for _, en in train), WORDS)
        self.both = self._tokenizer("both", (text for pair in train for text in pair), WORDS_OF_TWO)
        self.train = [self.ids(en) for _, en in train]
        self.held_out = [self.ids(en) for _, en in self.pairs["validation"]]

    def _tokenizer(self, name, texts, size):
        path = self.runs / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            train_tokenizer(texts, size).save(str(path))
        return load_tokenizer(path)

    def ids(self, text):
        return [BOS, *self.english.encode(text).ids, EOS]

    def config(self, tokenizer=None, **changes):
        """One id more than the tokenizer knows: <mask>."""
        size = (tokenizer or self.english).get_vocab_size() + 1
        return ModelConfig(size, **{**SIZES, **changes})


def masked_model(data, seed, tokenizer=None, n_segments=0, make=MaskedLanguageModel, **changes):
    torch.manual_seed(seed)
    return make(data.config(tokenizer, **changes), n_segments)


def one_place(texts, seed=0, may=lambda ids, place: ids[place] > UNK):
    """One place of each text that may be hidden; texts without any are left out."""
    rng, found = random.Random(seed), []
    for ids in texts:
        places = [place for place in range(len(ids)) if may(ids, place)]
        if places:
            found.append((ids, rng.choice(places)))
    return found


@torch.no_grad()
def said_at(model, places, shown, segments=None):
    """What a masked model says at one place of each text, where the token `shown` stands."""
    ids = pad([ids for ids, _ in places])
    at = torch.arange(len(places)), torch.tensor([place for _, place in places])
    original = ids[at]
    ids[at] = shown if torch.is_tensor(shown) else torch.full_like(original, shown)
    hidden = model.encode(ids, None if segments is None else pad(segments))
    return model.project(hidden[at]).argmax(-1), original


def share(where):
    return float(where.float().mean())


def gap(model, data):
    """How often the masked model finds a hidden token, one a caption."""
    said, original = said_at(model, one_place(data.held_out), model.config.vocab_size - 1)
    return share(said == original)


def base(data, seed, kind="both", times=1):
    model = masked_model(data, seed, make=LeftOnly if kind == "left" else MaskedLanguageModel)
    name = f"base-{kind}" if times == 1 else f"base-{kind}-rate-{times:g}"
    trained = learn(data, name, seed, model, [data.train], LOSS, UPDATES, 3e-3 * times)
    return trained | {"gap": gap(model, data)}


def pretrained(data, seed):
    """The model of `base` that reads both sides, read back."""
    weights = data.runs / f"base-both-{seed}" / "model.safetensors"
    if not weights.exists():
        raise SystemExit(f"{weights} is not there: the part `base` has to be recorded again first.")
    model = masked_model(data, seed)
    load_state(model, load_weights(weights), weights)
    return model.eval()


PARTS = {"100/0/0": (1, 0, 0), "80/20/0": (0.8, 0.2, 0), "80/0/20": (0.8, 0, 0.2),
         "80/10/10": (0.8, 0.1, 0.1)}


def parts(data, seed, name):
    model = pretrained(data, seed)  # and then on, with these shares
    loss = partial(masked_loss, rate=RATE, parts=PARTS[name])
    trained = learn(data, f"parts-{name.replace('/', '-')}", seed, model, [data.train], loss, 250)
    places = one_place(data.held_out)
    original = torch.tensor([ids[place] for ids, place in places])
    mask = model.config.vocab_size - 1
    others = torch.randint(
        UNK + 1, mask, original.shape, generator=torch.Generator().manual_seed(0)
    )
    kept, wrong = (said_at(model, places, shown)[0] for shown in (original, others))
    return trained | {
        "gap": gap(model, data),
        "kept": share(kept == original),
        "wrong_believed": share(wrong == others),
        "wrong_restored": share(wrong == original),
    }


# ---- a sentence's label: were two neighbouring words exchanged? ---------------------------------


def exchanged(texts, seed):
    """(text, label): half of the captions get two neighbouring words exchanged, label 1."""
    rng, rows = random.Random(seed), []
    for text in texts:
        words, label = text.split(), rng.randrange(2)
        places = [i for i in range(1, len(words) - 2) if words[i] != words[i + 1]]
        if label and places:
            i = rng.choice(places)
            words[i : i + 2] = words[i + 1], words[i]
        rows.append((" ".join(words), int(bool(label and places))))
    return rows


def label_loss(model, batch):
    ids, labels, *segments = batch
    return F.cross_entropy(model(ids, *segments), labels[:, 0])


@torch.no_grad()
def right_labels(model, rows):
    texts, labels, *segments = zip(*rows, strict=True)
    said = model(pad(texts), *(pad(numbers) for numbers in segments)).argmax(-1)
    return share(said == torch.tensor(labels)[:, 0])


def classify(name, data, seed, labels, start=None, steps=400, rate=1e-3, **changes):
    """Fine-tune on `labels` captions; right answers on the validation captions."""
    texts = [en for _, en in data.pairs["train"]]
    random.Random(f"labels-{seed}").shuffle(texts)
    rows = [(data.ids(text), [label]) for text, label in exchanged(texts[:labels], seed)]
    held_out = [en for _, en in data.pairs["validation"]]
    test = [(data.ids(text), [label]) for text, label in exchanged(held_out, 0)]
    torch.manual_seed(seed)
    model = Classifier(data.config(**changes), 2)
    if start is not None:
        start_from(model, start)
    columns = [list(column) for column in zip(*rows, strict=True)]
    trained = learn(data, name, seed, model, columns, label_loss, steps, rate)
    return trained | {"labels": labels, "right": right_labels(model, test)}


def head(data, seed, start, labels, times=1):
    model = pretrained(data, seed) if start == "pretrained" else None
    name = f"head-{start}-{labels}" if times == 1 else f"head-{start}-{labels}-rate-{times:g}"
    return classify(name, data, seed, labels, model, rate=1e-3 * times)


# ---- two languages in one text ------------------------------------------------------------------


def partner(data, seed):
    encode = data.both.encode

    def together(pairs):
        return [two_texts(encode(de).ids, encode(en).ids) for de, en in pairs]

    def alone(pairs):
        return [([BOS, *encode(de).ids, EOS], [0] * (len(encode(de).ids) + 2)) for de, _ in pairs]

    train = data.pairs["train"]
    rows = together(train) + alone(train[::2])
    model = masked_model(data, seed, data.both, 2)
    columns = [list(column) for column in zip(*rows, strict=True)]
    trained = learn(data, "partner", seed, model, columns, LOSS, 1500, max_tokens=1536)

    held_out = data.pairs["validation"]
    strange = [(de, held_out[(i + 7) % len(held_out)][1]) for i, (de, _) in enumerate(held_out)]
    found, mask = {}, model.config.vocab_size - 1
    tokens = {number: token for token, number in data.both.get_vocab().items()}

    def a_noun(ids, place):  # whole words that begin with a capital, the caption's first left out
        if not 1 < place < ids.index(EOS):
            return False
        token, after = tokens[ids[place]], tokens.get(ids[place + 1], "▁")
        return token[:1] == "▁" and token[1:2].isupper() and (
            after[:1] == "▁" or not after[:1].isalpha() or ids[place + 1] == EOS
        )

    def any_word(ids, place):
        return 1 <= place < ids.index(EOS)

    for kind, may in (("any", any_word), ("noun", a_noun)):
        for name, texts in (("partner", together(held_out)), ("stranger", together(strange)),
                            ("alone", alone(held_out))):
            places = one_place([ids for ids, _ in texts], may=may)
            keep = [numbers for ids, numbers in texts
                    if any(may(ids, place) for place in range(len(ids)))]
            said, original = said_at(model, places, mask, keep)
            found[f"{kind}_{name}"] = share(said == original)
        found[f"{kind}_places"] = len(places)
    return trained | found


# ---- what else to learn from --------------------------------------------------------------------


def flops(model, loss):
    """Floating-point operations of one update's forward and backward pass on a fixed batch."""
    torch.manual_seed(0)
    batch = (torch.randint(UNK + 1, model.config.vocab_size - 1, (64, 16)),)
    with FlopCounterMode(display=False) as counter:
        loss(model, batch).backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def replaced_model(data, seed):
    torch.manual_seed(seed)
    return ReplacedTokens(data.config(), data.config(n_encoder_layers=1, d_ff=64))


def replaced(data, seed, kind, updates=600):
    """Pretrain with one aim for the operations of so many masked updates, then classify."""
    masked, model = masked_model(data, seed), replaced_model(data, seed)
    cost = {"masked": flops(masked, LOSS), "replaced": flops(model, FOUND)}
    steps, name = round(updates * cost["masked"] / cost[kind]), f"aim-{updates}-{kind}"
    if kind == "masked":
        trained = learn(data, name, seed, masked, [data.train], LOSS, steps)
        body = masked
    else:
        trained = learn(data, name, seed, model, [data.train], FOUND, steps)
        body = model.detector
    found = {labels: classify(f"{name}-{labels}", data, seed, labels, body)["right"]
             for labels in (300, 3000)}
    return trained | {"flops_per_update": cost[kind], "right": found}


def student(data, seed, kind):
    """One layer instead of two, taught by the text alone or by the larger model as well."""
    teacher = pretrained(data, seed).requires_grad_(False)
    model = start_from_first_layer(masked_model(data, seed, n_encoder_layers=1), teacher)

    def loss(model, batch):
        (ids,) = batch
        read, chosen = mask_tokens(ids, model.config.vocab_size - 1, RATE)
        said = model.project(model.encode(read)[chosen])
        own = F.cross_entropy(said, ids[chosen])
        if kind == "alone":
            return own
        with torch.no_grad():
            wanted = teacher.project(teacher.encode(read)[chosen])
        return (own + distillation_loss(said, wanted)) / 2

    trained = learn(data, f"student-{kind}", seed, model, [data.train], loss, 300)
    return trained | {"gap": gap(model, data)}


def start_from_first_layer(model, teacher):
    """A student starts with its teacher's first layer, and everything around the layers."""
    model.load_state_dict({k: v for k, v in teacher.state_dict().items() if ".layers.1." not in k})
    return model


def smaller(data, seed, kind):
    """ALBERT's two savings, one at a time and together."""
    model = masked_model(data, seed)
    if "shared" in kind:
        share_layers(model)
    if "factorised" in kind:
        factorise(model, 16)
    trained = learn(data, f"smaller-{kind}", seed, model, [data.train], LOSS, 300)
    numbers = sum(p.numel() for p in model.parameters())
    return trained | {"gap": gap(model, data), "parameters": numbers}


def pair_rows(data, task: str, split: str, number: int) -> list[tuple]:
    """(ids, [label], segments) of each pair of halves; task as in `sentence_pairs`."""
    ids = [data.english.encode(en.lower().rstrip(" .")).ids for _, en in data.pairs[split]]
    halves = [(one[: len(one) // 2], one[len(one) // 2 :]) for one in ids if len(one) > 7]
    return [(ids, [label], segments)
            for first, second, label in sentence_pairs(halves, task, number)
            for ids, segments in [two_texts(first, second)]]


def pairs(data, seed, task, order):
    """Which of two pair tasks can be solved without the order of the words?"""
    torch.manual_seed(seed)
    model = Classifier(data.config(positional="learned" if order else "none"), 2, n_segments=2)
    columns = [list(column) for column in zip(*pair_rows(data, task, "train", seed), strict=True)]
    name = f"pairs-{task}-{'order' if order else 'bag'}"
    trained = learn(data, name, seed, model, columns, label_loss, 300, 2e-3)
    return trained | {"right": right_labels(model, pair_rows(data, task, "validation", 0))}


# The experiment: its function, its arms, its seeds.
EXPERIMENTS = {
    "base": (base, [("both",), ("left",)], (0, 1, 2)),
    "head": (head, [(s, n) for n in (300, 3000) for s in ("scratch", "pretrained")], (0, 1, 2)),
    "parts": (parts, [(name,) for name in PARTS], (0, 1)),
    "partner": (partner, [()], (0, 1, 2)),
    "replaced": (replaced, [("masked",), ("replaced",)], (0, 1)),
    "student": (student, [("alone",), ("taught",)], (0, 1)),
    "smaller": (smaller, [("plain",), ("shared",), ("factorised",)], (0, 1)),
    "pairs": (pairs, [(task, order) for task in ("next", "order") for order in (True, False)],
              (0, 1)),
}
OTHER_RATES = (0.3, 3)  # times the page's own


@cache
def corpus(part: str) -> Data:
    """Pairs of halves are cut from Multi30k, all else reads the grammar."""
    return Data("multi30k" if part == "pairs" else "mini")


def measure(part: str, arm: list, seed: int, **changes) -> dict:
    return EXPERIMENTS[part][0](corpus(part), seed, *arm, **changes)


def grid():
    """(settings, function) of every cell."""
    def made(part, arm, seed, **changes):
        settings = {"part": part, "arm": list(arm), "seed": seed} | changes
        return settings, partial(measure, **settings)

    return [
        *(made(part, arm, seed) for seed in (0, 1, 2)
          for part, (_, arms, seeds) in EXPERIMENTS.items() if seed in seeds for arm in arms),
        *(made("head", (start, 3000), seed, times=times) for seed in (0, 1, 2)
          for times in OTHER_RATES for start in ("scratch", "pretrained")),
        *(made("base", (side,), 0, times=times) for times in OTHER_RATES
          for side in ("both", "left")),
    ]


def guessing(settings: dict) -> float:
    """Even odds for labels, else the vocabulary; and ELECTRA's detector is weighted 50 times."""
    if settings["part"] in ("head", "pairs"):
        return math.log(2)
    return math.log(513) + 50 * math.log(2) * (settings["arm"] == ["replaced"])


GATE = Gate(
    chance=guessing, arms=("arm",), edge={"times": (1, 1)},
    did_not_learn=(
        ({"part": "head", "arm": ["scratch", 3000], "times": 0.3},
         "the runs from random weights had hardly learned even their own labels"),
        ({"part": "pairs", "arm": ["next", False]},
         "where the model without positions hadn't started to learn"),
        ({"part": "pairs", "arm": ["next", True]},
         "In these longer runs neither model learns anything at a rate of 0.002"),
    ),
    differs={
        "parameters": "With one layer shared it has 79,490",
        "updates": "600 updates of the masked model against 454 of ELECTRA",
        "tokens": "we compared them at equal compute",
    },
)


def keep(data):
    """The weights of the two models that the chapter asks to fill gaps."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in ("both", "left"):
        weights = data.runs / f"base-{name}-0" / "model.safetensors"
        shutil.copy(weights, KEPT / f"{name}.safetensors")
    shutil.copy(data.runs / "english.json", KEPT / "tokenizer.json")
    write_json(KEPT / "config.json", {"model": to_dict(data.config()), "data": data.source})
