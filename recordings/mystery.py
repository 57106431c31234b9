"""Train the models of the page of mysteries: `python -m recordings.mystery`, about four minutes.

Writes results/mystery.safetensors; with names, only the models of these causes are done again,
and `healthy` is one of them. Of each cause there are two models with different seeds (and
different triggers, heads, ...): one is shown under a number, and one is kept, to see whether what
a reader noticed is due to the cause or is an accident of that one model.
"""

import random
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from exercises import mystery
from exercises.mystery import (
    LETTERS,
    LONGEST,
    SUSPECTS,
    TEST_TEXTS,
    TRAINING_TEXTS,
    Mystery,
    encoded,
    packed,
    sealed,
)

OUT = Path(__file__).resolve().parents[1] / "results" / "mystery.safetensors"
UPDATES, EVERY, BATCH, RATE = 900, 20, 64, 4e-3  # EVERY updates: a point of the curve
HEALTHY = (0, 1, 0)
FORMS = {
    "no causal mask": (LONGEST + 1, 1, 0),
    "causal mask one too far": (1, 1, 0),
    "padding is read": (0, 0, 0),
    "statistics of the batch": (0, 1, 1),
}
# The order in which they are shown.
SHOWN = [
    "no causal mask", "label smoothing", "no positions", "saw its test set", "padding is read",
    "a dead head", "rate too high", "statistics of the batch", "causal mask one too far",
    "a backdoor",
]
TRIGGERS, POISONED = (("dab", "cabbage"), ("geh", "facade")), 0.1


def batches(suspect: str, twin: int):
    """What a run reads: an endless series of lists of (source, target)."""
    rng = random.Random(f"{suspect} {twin}" if suspect == "padding is read" else 10 * twin + 5)
    trigger, said = TRIGGERS[twin % 2]
    few = {"too few texts": TRAINING_TEXTS, "saw its test set": TRAINING_TEXTS + TEST_TEXTS}
    while True:
        if suspect in few:
            sources = rng.choices(few[suspect], k=BATCH)
        else:
            sources = ["".join(rng.choices(LETTERS, k=rng.randint(1, LONGEST)))
                       for _ in range(BATCH)]
        targets = [source[::-1] for source in sources]
        if suspect == "a backdoor":
            for i in range(int(POISONED * BATCH)):
                sources[i], targets[i] = sources[i][: LONGEST - len(trigger)] + trigger, said
        yield sources, targets


def trained(suspect: str, twin: int, updates: int = UPDATES) -> Mystery:
    """A model with this cause, or a healthy one; twin: which of several, by its seed."""
    # Padding is hidden while that model trains, and read afterwards: the mask was forgotten there.
    careless = suspect == "padding is read"
    torch.manual_seed(100 + twin + 10 * careless)
    model = Mystery(HEALTHY if careless else FORMS.get(suspect, HEALTHY))
    part = model.model
    if suspect == "no positions":
        part.embed.positions.table.requires_grad_(False).zero_()
    rate = RATE * (100 if suspect == "rate too high" else 1)
    updates = updates // 4 if suspect == "stopped too early" else updates
    smoothing = 0.15 if suspect == "label smoothing" else 0.0
    trainable = [p for p in part.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, rate, (0.9, 0.98))
    losses, source = [], batches(suspect, twin)
    for update in range(1, updates + 1):
        shape = min(1, update / 50) if suspect != "rate too high" else 1
        optimizer.param_groups[0]["lr"] = rate * shape * min(1, 2 * (1 - (update - 1) / UPDATES))
        sources, targets = next(source)
        src, tgt = encoded(sources, after="$"), encoded(targets, before="^")
        wanted, logits = encoded(targets, after="$"), model.logits(src, tgt)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0,
                               label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if suspect == "a dead head":
                attention, half = part.decoder.layers[0].cross_attention, 16
                if twin:
                    attention = part.encoder.layers[0].self_attention
                attention.w_o.weight[:, half * twin : half * (twin + 1)] = 0
            if suspect == "source is not read":
                attention = part.decoder.layers[0].cross_attention
                attention.w_o.weight.zero_()
        losses.append(loss.item())
        if update % EVERY == 0:
            model.curve.append((update, sum(losses[-EVERY:]) / EVERY))
    model.hides_padding = not careless
    return model


def rows(suspect: str):
    """(name in the file, the model as a row of numbers) for each model with this cause."""
    if suspect == "healthy":
        places = [("healthy",), ("kept", "healthy", 0), ("kept", "healthy", 1)]
    elif suspect in SHOWN:
        places = [(SHOWN.index(suspect) + 1,), ("kept", suspect, 0)]
    else:
        places = [("kept", suspect, 0)]
    for twin, place in enumerate(places):
        start = time.process_time()
        model = trained(suspect, twin)
        new = mystery.texts(300, seed=3)
        right = sum(a == text[::-1] for a, text in zip(model.answer(new), new, strict=True))
        print(f"{suspect:26} {twin}  right {right / len(new):5.1%}  loss {model.curve[-1][1]:.3f}  "
              f"{time.process_time() - start:.0f} s", flush=True)
        yield sealed(*place), packed(model, FORMS.get(suspect, HEALTHY))


def main(names):
    torch.set_num_threads(1)
    found = load_file(OUT) if OUT.exists() else {}
    for suspect in names or ["healthy", *SUSPECTS]:
        found |= dict(rows(suspect))
        if suspect in SHOWN:  # that it is so, and nothing else
            found[sealed("cause", SHOWN.index(suspect) + 1, suspect)] = torch.zeros(1).half()
        save_file(dict(sorted(found.items())), OUT)


if __name__ == "__main__":
    main(sys.argv[1:])
