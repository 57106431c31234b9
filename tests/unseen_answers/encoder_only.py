"""Answers to the exercises of chapter 19, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    per_caption = {"masked": rate * T, "causal": 1 + T}
    return tuple(B * n for n in per_caption.values())

answer = predictions
""",
        right=True,
        mistake="Builds the two numbers from the tokens of one caption.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * T * rate, B * T

answer = predictions
""",
        right=False,
        mistake="Forgets that the language model predicts the end mark.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * (T + 2) * rate, B * (T + 1)

answer = predictions
""",
        right=False,
        mistake="Hides special tokens as well.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * T * rate * 0.8, B * (T + 1)

answer = predictions
""",
        right=False,
        mistake="Counts only those eight of ten that become a mask.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * T * rate, B * (T + 2)

answer = predictions
""",
        right=False,
        mistake="Lets the language model predict the begin mark, too.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return T * rate, T + 1

answer = predictions
""",
        right=False,
        mistake="Counts for one caption, not for the batch.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * int(T * rate), B * (T + 1)

answer = predictions
""",
        right=False,
        mistake="Cuts the mean number off to a whole one.",
    ),
    Answer(
        exercise="encoder_only.1",
        check="predictions",
        code="""
def predictions(B, T, rate):
    return B * T * (1 - rate), B * (T + 1)

answer = predictions
""",
        right=False,
        mistake="Counts the visible tokens instead of the hidden ones.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    together = word.unsqueeze(2) == word.unsqueeze(1)
    hit = (together & chosen.unsqueeze(1)).any(dim=2)
    return hit & word.ge(0)

answer = whole_words
""",
        right=True,
        mistake="Compares every token with every other of its row.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
import torch

def whole_words(word, chosen):
    rows = []
    for numbers, picks in zip(word.tolist(), chosen.tolist()):
        hit = {w for w, c in zip(numbers, picks) if c and w != -1}
        rows.append([w in hit for w in numbers])
    return torch.tensor(rows, dtype=torch.bool)

answer = whole_words
""",
        right=True,
        mistake="Python sets, one per row.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
import torch

def whole_words(word, chosen):
    return torch.isin(word, word[chosen]) & (word >= 0)

answer = whole_words
""",
        right=False,
        mistake="Mixes the rows: a word number chosen in one caption is hidden in all.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    together = word[:, :, None] == word[:, None, :]
    return (together & chosen[:, None, :]).any(-1)

answer = whole_words
""",
        right=False,
        mistake="Special tokens count as one word, so all are hidden when one is chosen.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    out = chosen & (word >= 0)
    out[:, 1:] |= chosen[:, :-1] & (word[:, 1:] == word[:, :-1]) & (word[:, 1:] >= 0)
    return out

answer = whole_words
""",
        right=False,
        mistake="Spreads to the next token only, not over longer words or backwards.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    together = word[:, :, None] == word[:, None, :]
    return (~together | chosen[:, None, :]).all(-1) & (word >= 0)

answer = whole_words
""",
        right=False,
        mistake="Asks that every token of the word be chosen.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    together = word[:, :, None] == word[:, None, :]
    return (together & chosen[:, None, :]).any(-1) & (word > 0)

answer = whole_words
""",
        right=False,
        mistake="Takes the number 0 for a special token.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    for b in range(word.size(0)):
        for w in word[b][chosen[b]].unique():
            chosen[b] |= word[b] == w
        chosen[b] &= word[b] >= 0
    return chosen

answer = whole_words
""",
        right=False,
        mistake="Writes into the mask that it was given.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    together = word[:, :, None] == word[:, None, :]
    hit = (together & chosen[:, None, :]).any(-1) & (word >= 0)
    first = hit.clone()
    first[:, 1:] &= word[:, 1:] != word[:, :-1]
    return first

answer = whole_words
""",
        right=False,
        mistake="Finds the chosen words and returns only their first tokens.",
    ),
    Answer(
        exercise="encoder_only.2",
        check="whole_words",
        code="""
def whole_words(word, chosen):
    return chosen.gather(1, word.clamp(min=0)) & (word >= 0)

answer = whole_words
""",
        right=False,
        mistake="Uses word numbers as places: right only if every word has one token.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
import torch

def prepare(ids, chosen, mask_id):
    return torch.where(chosen, mask_id, ids), ids, chosen

answer = prepare
""",
        right=True,
        mistake="Chooses between two values with where.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
answer = lambda ids, chosen, mask_id: (ids.masked_fill(chosen, mask_id), ids, chosen)
""",
        right=True,
        mistake="A lambda with a masked_fill that does not write in place.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids[:]
    read[chosen] = mask_id
    return read, ids, chosen

answer = prepare
""",
        right=False,
        mistake="A slice is no copy, so the wanted ids are still hidden.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    wanted = ids.clone()
    ids[chosen] = mask_id
    return ids, wanted, chosen

answer = prepare
""",
        right=False,
        mistake="The wanted ids are saved, but the caller's batch is overwritten.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids
    read[chosen] = mask_id
    return read.clone(), ids.clone(), chosen

answer = prepare
""",
        right=False,
        mistake="Copies too late, after the ids have been overwritten.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids.clone()
    read[chosen] = mask_id
    return ids, read, chosen

answer = prepare
""",
        right=False,
        mistake="What is read and what is wanted are exchanged.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids.clone()
    read[~chosen] = mask_id
    return read, ids, chosen

answer = prepare
""",
        right=False,
        mistake="Hides the tokens that were not chosen.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids.masked_fill(chosen, mask_id)
    return read, ids.masked_fill(chosen, 0), chosen

answer = prepare
""",
        right=False,
        mistake="Blanks the wanted ids at the chosen places instead of at the others.",
    ),
    Answer(
        exercise="encoder_only.3",
        check="prepare",
        code="""
def prepare(ids, chosen, mask_id):
    read = ids.clone()
    read[chosen] = mask_id
    return read, ids, read == ids

answer = prepare
""",
        right=False,
        mistake=(
            "Looks for the masks in what is read, so the kept places and other masks count wrongly."
        ),
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
import torch

def pseudo_log_likelihood(guess, ids, mask_id):
    places = torch.nonzero(ids > 3).squeeze(1)
    rows = ids.repeat(len(places), 1)
    each = torch.arange(len(places))
    rows[each, places] = mask_id
    logp = torch.log_softmax(guess(rows), dim=-1)
    return logp[each, places, ids[places]].sum()

answer = pseudo_log_likelihood
""",
        right=True,
        mistake="One batch with a hidden token in each row.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
import torch
import torch.nn.functional as F

def pseudo_log_likelihood(guess, ids, mask_id):
    def score(place):
        hidden = ids.clone()
        hidden[place] = mask_id
        with torch.no_grad():
            return -F.cross_entropy(guess(hidden[None])[0, place], ids[place]).item()

    return sum(score(place) for place, token in enumerate(ids.tolist()) if token > 3)

answer = pseudo_log_likelihood
""",
        right=True,
        mistake="A sum over a generator, with cross_entropy for one token at a time.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    logp = guess(ids[None]).log_softmax(-1)[0]
    own = logp.gather(1, ids[:, None])[:, 0]
    return own[ids > 3].sum()

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Does not hide anything: each token can be read.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    hidden = ids.masked_fill(ids > 3, mask_id)
    logp = guess(hidden[None]).log_softmax(-1)[0]
    return logp.gather(1, ids[:, None])[ids > 3].sum()

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Hides all tokens at once.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    hidden, total = ids.clone(), 0.0
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t].log_softmax(-1)[ids[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Never uncovers a token, so later ones see less and less.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    scores = []
    for t in (ids > 3).nonzero()[:, 0].tolist():
        hidden = ids.clone()
        hidden[t] = mask_id
        scores.append(guess(hidden[None])[0, t].log_softmax(-1)[ids[t]])
    return sum(scores) / len(scores)

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Takes the mean over the tokens.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        hidden = ids.clone()
        hidden[t] = mask_id
        total = total + guess(hidden[None])[0, t].log_softmax(-1)[ids[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Hides the special tokens as well.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        if ids[t] >= 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t].log_softmax(-1)[ids[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Takes the unknown token, id 3, for an ordinary one.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
import torch

def pseudo_log_likelihood(guess, ids, mask_id):
    total = torch.tensor(0.0)
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t].softmax(-1)[ids[t]]
    return total.log()

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Adds the probabilities and takes the logarithm of the sum.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None]).log_softmax(1)[0, t, ids[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Normalises over the places instead of the vocabulary.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t, ids[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Adds up raw logits.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t].log_softmax(-1)[hidden[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Reads off the probability of the mask, since it indexes with what is read.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
def pseudo_log_likelihood(guess, ids, mask_id):
    places = (ids > 3).nonzero()[:, 0].tolist()
    wanted, total = ids.tolist(), 0.0
    for number, t in enumerate(places):
        if number > 0:
            ids[places[number - 1]] = wanted[places[number - 1]]
        ids[t] = mask_id
        total = total + guess(ids[None])[0, t].log_softmax(-1)[wanted[t]]
    return total

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Masks the text that it was given and leaves the last mask in it.",
    ),
    Answer(
        exercise="encoder_only.4",
        check="pseudo_log_likelihood",
        code="""
import math

def pseudo_log_likelihood(guess, ids, mask_id):
    total = 0.0
    for t in range(len(ids)):
        if ids[t] > 3:
            hidden = ids.clone()
            hidden[t] = mask_id
            total = total + guess(hidden[None])[0, t].log_softmax(-1)[ids[t]]
    return total / math.log(2)

answer = pseudo_log_likelihood
""",
        right=False,
        mistake="Gives bits, not natural logarithms.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
from math import prod

def albert_numbers(V, E, D, F, L):
    shapes = [(V, E), (E, D), *[(D, D)] * 4, (D, F), (F, D)]
    return sum(map(prod, shapes))

answer = albert_numbers
""",
        right=True,
        mistake="Lists the shapes of the matrices and multiplies them out.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
import torch

def albert_numbers(V, E, D, F, L):
    maps = {"table": (V, E), "widen": (E, D), "up": (D, F), "down": (F, D)}
    maps |= {name: (D, D) for name in ("query", "key", "value", "output")}
    return sum(torch.empty(shape, device="meta").numel() for shape in maps.values())

answer = albert_numbers
""",
        right=True,
        mistake="Makes the matrices on the meta device and asks them for their sizes.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * E + E * D + L * (4 * D * D + 2 * D * F)

answer = albert_numbers
""",
        right=False,
        mistake="Counts the layers L times, though they share their weights.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * D + 4 * D * D + 2 * D * F

answer = albert_numbers
""",
        right=False,
        mistake="Gives the embeddings the full width.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * E + 4 * D * D + 2 * D * F

answer = albert_numbers
""",
        right=False,
        mistake="Forgets the map from E to D.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * E + E * D + 4 * D * D + D * F

answer = albert_numbers
""",
        right=False,
        mistake="Forgets the map back from F to D.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * E + E * D + 3 * D * D + 2 * D * F

answer = albert_numbers
""",
        right=False,
        mistake="Has queries, keys and values, but no output map.",
    ),
    Answer(
        exercise="encoder_only.5",
        check="albert_numbers",
        code="""
def albert_numbers(V, E, D, F, L):
    return V * E + E * D + 4 * L * D * D + 2 * D * F

answer = albert_numbers
""",
        right=False,
        mistake="Shares nothing of the attention, only the feed-forward network.",
    ),
]
