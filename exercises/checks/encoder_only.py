"""Checks for the chapter on encoders alone."""

import functools
import json

import torch
import torch.nn.functional as F

from exercises.checks import exercise, expect, judged
from transformer_lib.beyond.encoders import LeftOnly
from transformer_lib.config import BOS, EOS, ModelConfig
from transformer_lib.models.classifier import MaskedLanguageModel


@exercise(
    1,
    inputs=[(64, 14, 0.15), (8, 20, 0.3), (1, 10, 0.5)],
    hint=(
        "count the tokens that each model has to predict",
        "the masked model has to predict rate * T tokens per caption, the language model "
        "everything after <bos>",
    ),
    parts=("masked model", "language model"),
    tell=lambda given, expected, B, T, rate: (
        "the number for the masked model isn't right"
        if abs(float(given[0]) - expected[0]) > 1e-6
        else "the number for the language model isn't right"
    ),
    slips={
        "the masked model has to predict only what is hidden": (
            lambda B, T, rate: (B * T, B * (T + 1))
        ),
        "<bos> and <eos> are never hidden, so only the ordinary tokens count": (
            lambda B, T, rate: (rate * B * (T + 2), B * (T + 1))
        ),
        "the language model also predicts <eos>: it has to learn to stop": (
            lambda B, T, rate: (rate * B * T, B * T)
        ),
        "nothing comes before <bos>: it is not predicted": (
            lambda B, T, rate: (rate * B * T, B * (T + 2))
        ),
        "the two are swapped: the masked model comes first": (
            lambda B, T, rate: (B * (T + 1), rate * B * T)
        ),
        "the loss averages over the whole batch, not over one caption": (
            lambda B, T, rate: (rate * T, T + 1)
        ),
        "`rate` is the share of tokens hidden and guessed; yours counts the rest": (
            lambda B, T, rate: ((1 - rate) * B * T, B * (T + 1))
        ),
    },
)
def predictions(B, T, rate):
    return rate * B * T, B * (T + 1)


SMALL = (
    torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1], [-1, 0, 1, 1, 2, -1, -1, -1]]),
    torch.tensor([[0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1, 0, 0]]).bool(),
)


def _captions():
    found, generator = [SMALL], torch.Generator().manual_seed(0)
    for size in ((3, 9), (4, 7), (5, 5)):
        word = torch.randint(0, 2, size, generator=generator).cumsum(1)
        word[:, 0] = word[:, -1] = -1
        chosen = torch.rand(size, generator=generator) < 0.3
        chosen[0, 0] = True  # a special token that was chosen says nothing about others
        found.append((word, chosen))
    return found


def _together(word):
    return word[:, :, None] == word[:, None, :]  # (B, T, T)


def _spread(ways, far=None):
    """A mask that takes in the pieces of a word that lie on some sides of a chosen one."""

    def mask(word, chosen):
        place = torch.arange(word.size(1))
        apart = place[:, None] - place  # (T, T): of the piece and the chosen one
        near = sum(apart.sign() == way for way in ways) > 0
        if far is not None:
            near = near & (apart.abs() <= far)
        return (_together(word) & near & chosen[:, None, :]).any(-1) & (word >= 0)

    return mask


@exercise(
    2,
    inputs=_captions(),
    hint="compare each token's word with the words of the chosen tokens",
    dtype=torch.bool,
    wrong="the mask is not right",
    shape="return one Boolean per token",
    shrinks=False,
    slips={
        "that is `chosen` itself: add the other pieces of each word": lambda word, chosen: chosen,
        "a special token is True: tokens with word -1 are never hidden": (
            lambda word, chosen: (_together(word) & chosen[:, None, :]).any(-1)
        ),
        "a word chosen in one text hides the word of the same number in the others: treat each "
        "text separately": (
            lambda word, chosen: torch.isin(word, word[chosen]) & (word >= 0)
        ),
        "not all pieces of a word have to be chosen: one is enough": (
            lambda word, chosen: (_together(word) <= chosen[:, None, :]).all(-1) & (word >= 0)
        ),
        "you were right to leave out the special tokens, but you lost the other pieces of the "
        "words as well": (
            lambda word, chosen: chosen & (word >= 0)
        ),
        "the pieces before the chosen one belong to its word, too": _spread((0, 1)),
        "the pieces after the chosen one belong to its word, too": _spread((0, -1)),
        "a word may go on beyond the neighbours of the chosen piece: take in all its pieces": (
            _spread((0, 1, -1), far=1)
        ),
        "all tokens of the word are hidden, not only its first": (
            lambda word, chosen: whole_words.reference(word, chosen)
            & (word != F.pad(word, (1, 0), value=-2)[:, :-1])
        ),
    },
)
def whole_words(word, chosen):
    together = _together(word)
    return (together & chosen[:, None, :]).any(-1) & (word >= 0)


def _one_tensor(ids, chosen, mask_id):
    ids[chosen] = mask_id
    return ids, ids, chosen


@exercise(
    3,
    inputs=lambda B=2, T=5, mask_id=19: (
        torch.randint(4, 12, (B, T)), torch.eye(B, T).bool() | (torch.rand(B, T) < 0.2), mask_id
    ),
    vary=(dict(B=3, T=6, mask_id=3), dict(B=4, T=4, mask_id=30)),
    given=0x6CC37002,
    parts=("read", "wanted", "where"),
    wrong="what is read is hidden where `chosen` is True; the other two come back as they were",
    in_place="the caller needs those ids, and the next epoch would find <mask> in its data",
    slips={
        "<mask> is among the ids to guess: `read` and `ids` are still one tensor": _one_tensor,
        "in what is read, nothing is hidden any more": lambda ids, chosen, mask_id: (
            ids, ids, chosen
        ),
        "you hid what was not chosen": lambda ids, chosen, mask_id: (
            ids.masked_fill(~chosen, mask_id), ids, chosen
        ),
        "read and wanted are swapped": lambda ids, chosen, mask_id: (
            ids, ids.masked_fill(chosen, mask_id), chosen
        ),
    },
)
def prepare(ids, chosen, mask_id):
    read = ids.masked_fill(chosen, mask_id)
    return read, ids, chosen


def _text(T=6, V=20, mask_id=19):
    table = torch.randn(V, V, dtype=torch.float64)

    def guess(ids):
        """What is guessed depends on all tokens and on the place."""
        around = table[ids]  # (B, T, V)
        return around.mean(1, keepdim=True) * 3 + around.roll(1, 1) + around

    ids = torch.randint(4, mask_id, (T,))
    ids[0], ids[2], ids[-1] = 1, 3, 2  # 3 is special, 4 is not
    ids[1] = 4
    return guess, ids, mask_id


def _scored(
    hide=lambda place, places: place, places=lambda ids: ids > 3, mean=False,
    score_of=lambda logits: logits.log_softmax(-1), asked=lambda ids, hidden: ids,
):
    """The sum over places of log p, with hide(place, places) hidden."""

    def score(guess, ids, mask_id):
        chosen = places(ids).nonzero()[:, 0]
        total = 0.0
        for place in chosen.tolist():
            hidden = ids.clone()
            where = hide(place, chosen)
            if where is not None:
                hidden[where] = mask_id
            token = asked(ids, hidden)[place]
            total = total + score_of(guess(hidden[None])[0])[place, token]
        return total / len(chosen) if mean else total

    return score


@exercise(
    4,
    inputs=_text,
    vary=(dict(T=8, mask_id=18), dict(T=5)),
    hint=(
        "make one row for each ordinary token, with that token hidden",
        "stack T copies, hide one place in each, run guess once, take log_softmax, and pick the "
        "true token at the hidden place",
    ),
    wrong="that isn't the right sum",
    shape="return one number",
    slips={
        "nothing is hidden: the model reads each token that it's meant to guess": (
            _scored(lambda place, places: None)
        ),
        "you hide all the tokens at once; hide one at a time and leave the others": (
            _scored(lambda place, places: places)
        ),
        "that is the mean; add the logarithms up": _scored(mean=True),
        "what follows is hidden, too: only the token itself should be": (
            [
                _scored(lambda place, places: places[places >= place]),
                _scored(lambda place, places: slice(place, -1)),
                _scored(lambda place, places: slice(place, None)),
            ]
        ),
        "<bos> and <eos> are never hidden, so they do not count": (
            _scored(places=lambda ids: ids >= 0)
        ),
        "id 3 is special, too: ordinary ids are above 3": _scored(places=lambda ids: ids >= 3),
        "the sign is the wrong way round: add up log p, not -log p": (
            lambda *args: -pseudo_log_likelihood.reference(*args)
        ),
        "those are the logits; take log_softmax first": _scored(score_of=lambda logits: logits),
        "those are the probabilities; add up their logarithms": (
            _scored(score_of=lambda logits: logits.softmax(-1))
        ),
        "that is the probability of <mask>; take that of the token that was hidden": (
            _scored(asked=lambda ids, hidden: hidden)
        ),
        "each hidden token stays hidden; start from a fresh copy for the next": (
            _scored(lambda place, places: places[places <= place])
        ),
    },
)
def pseudo_log_likelihood(guess, ids, mask_id):
    return _scored()(guess, ids, mask_id)


def _numbers(V, E, D, F, L):
    return V * E + E * D + 4 * D * D + 2 * D * F


@exercise(
    5,
    inputs=[(30_000, 128, 768, 3072, 12), (2_000, 16, 64, 128, 2), (50, 3, 7, 5, 1)],
    hint=(
        "V * E and E * D first, then one layer",
        "one layer has 4 D D + 2 D F numbers; how many times does it count if all layers share it?",
    ),
    wrong="that isn't the right count",
    slips={
        "the layers share their weights: count one of them": (
            lambda V, E, D, F, L: V * E + E * D + L * (4 * D * D + 2 * D * F)
        ),
        "that is the plain embedding, V * D; here it goes through E": (
            lambda V, E, D, F, L: V * D + 4 * D * D + 2 * D * F
        ),
        "the map from E to D is missing": lambda V, E, D, F, L: _numbers(V, E, D, F, L) - E * D,
        "the feed-forward network has two maps, D to F and F to D": (
            lambda V, E, D, F, L: _numbers(V, E, D, F, L) - D * F
        ),
        "attention has four maps: queries, keys, values, output": (
            lambda V, E, D, F, L: _numbers(V, E, D, F, L) - D * D
        ),
        "the embeddings are missing": lambda V, E, D, F, L: 4 * D * D + 2 * D * F,
    },
)
def albert_numbers(V, E, D, F, L):
    return _numbers(V, E, D, F, L)


@functools.cache
def _models():
    """The chapter's tokenizer, the model that reads both sides, and the one that reads the left."""
    # Not in a page, which has no files.
    from transformer_lib.runs.checkpoint import load_state, load_weights
    from transformer_lib.runs.pretrained import results_dir
    from transformer_lib.tokenization import load_tokenizer

    folder = results_dir() / "beyond" / "encoder-only"
    config = json.loads((folder / "config.json").read_text(encoding="utf8"))["model"]
    found = [load_tokenizer(folder / "tokenizer.json")]
    for name, kind in (("both", MaskedLanguageModel), ("left", LeftOnly)):
        model, path = kind(ModelConfig(**config)), folder / f"{name}.safetensors"
        load_state(model, load_weights(path), path)
        found.append(model.float().eval())
    return found


@judged(
    6,
    hint=(
        "hide each word of many captions in turn, and let both models guess",
        "for which captions does the left side give the word away, while the right side suggests "
        "another?",
        "try the words near the beginning of a caption, and for each one print the difference "
        "between the two probabilities",
    ),
    example=lambda: (
        "Two cats that are … two green balls on the beautiful bridge are jumping in the café.",
        "chasing",
    ),
)
def overturn(answer):
    from transformer_lib.corpora.mini import mini_corpus

    given = answer()
    expect(isinstance(given, (tuple, list)) and len(given) == 2, "return a caption and a word")
    expect(all(value is not ... for value in given), ...)
    caption, word = given
    texts = isinstance(caption, str) and isinstance(word, str)
    expect(texts, "the caption and the word must be strings")
    expect(caption.count("…") == 1, "the caption needs one gap, written …, and no more")
    before, after = (part.strip() for part in caption.split("…"))
    expect(len(after.split()) > 1, "at least two words must come after the gap, so that there's "
    "something to read")
    whole = caption.replace("…", word)
    known = {english for _, english in mini_corpus()["validation"]}
    expect(whole in known, f"{whole!r} is not a caption of the validation set")
    tokenizer, both, left = _models()
    ids = tokenizer.encode(word).ids
    expect(len(ids) == 1, f"{word!r} is {len(ids)} tokens here; the models guess one at a time")
    before, after = (tokenizer.encode(part).ids for part in (before, after))
    read = torch.tensor([[BOS, *before, both.config.vocab_size - 1, *after, EOS]])
    with torch.no_grad():
        p, q = (model(read)[0, len(before) + 1].softmax(-1)[ids[0]] for model in (both, left))
    told = f"{word!r} gets {p:.2f} from both sides, and {q:.2f} from the left side on its own"
    expect(q > p + 0.05, f"{told}: look for a place where the left side is already sure of it")
    return f"{told}."
