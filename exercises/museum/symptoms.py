"""How a program looks from outside: trained and used for a few seconds, and written down.

`observe(specimen)` returns numbers, curves and sentences that go into results/museum.json. Every
program is trained on the same pairs with the same seed, so that all that differs is its bug.
"""

import copy
import functools
import math

import torch

from exercises.museum.laws import LAWS, complaint
from transformer_lib import one_file as healthy

STEPS, INTERRUPTED_AT = 200, 120
PAIRS, TEST = 1040, 40
SEEDS = 5
SIZES = {"n_layers": 1}
RECIPE = {"batch_size": 64, "warmup": 60}


def observe(specimen=None, all_laws=True):
    """The record of a specimen, or of the healthy program: only what JSON can hold."""
    runs = "trained" if specimen is None else specimen.runs
    p = healthy if specimen is None else specimen.program()
    record = {}
    try:
        if runs == "used":
            model = model_of(p)
            model.load_state_dict(trained_weights())
        else:
            model, curve = trained(p, interrupted=runs == "resumed")
            record |= of_curve(curve, runs)
        record |= of_use(p, model)
    except (RuntimeError, IndexError, ValueError) as error:
        record["stops"] = str(error)
    if specimen is None:
        record["range"] = ranges(record)
    names = LAWS if all_laws else [specimen.law]
    record["breaks"] = {name: said for name in names if (said := complaint(LAWS[name], p))}
    return record


def observe_wing(wing):
    """What is measured of a wing's healthy program and of each case, and what the law says."""
    found = {"healthy": wing.measure(wing.healthy, False)}
    for name, case in wing.cases.items():
        program = wing.program(name)
        found[name] = {
            "measured": wing.measure(program, case.trains),
            "says": complaint(wing.laws[case.law], program),
        }
    return found


def ranges(record):
    """How far healthy programs differ by luck: {name: [lowest, highest]} over several seeds."""
    found = [record]
    for seed in range(1, SEEDS):
        model, curve = trained(healthy, seed=seed)
        found.append(of_curve(curve, "trained") | of_use(healthy, model))
    return {
        name: [min(one[name] for one in found), max(one[name] for one in found)]
        for name in ("last", "right", "known")
    }


def model_of(p, seed=0):
    torch.manual_seed(seed)
    return p.Transformer(**SIZES)


def trained(p, interrupted=False, seed=0):
    """(the model, its loss by update)"""
    train, test = p.split(p.make_pairs(PAIRS), TEST)
    training = p.Training(model_of(p, seed), train, **RECIPE)
    if interrupted:
        p.train(training, INTERRUPTED_AT, test, validate_every=INTERRUPTED_AT)
        state, curve = training.state(), training.curve
        training = p.Training(model_of(p), train, **RECIPE)
        training.restore(state)
        training.curve = curve
        while len(training.curve) < STEPS:
            training.update()
    else:
        p.train(training, STEPS, test)
    return training.model, training.curve


@functools.cache
def trained_weights():
    """The healthy program's weights after training."""
    return copy.deepcopy(trained(healthy)[0].state_dict())


def number(value, digits=3):
    return round(value, digits) if math.isfinite(value) else str(value)


def mean(values):
    return number(sum(values) / len(values))


def of_curve(curve, runs):
    """The loss, ten updates to a point."""
    record = {
        "curve": [[i + 10, mean(curve[i : i + 10])] for i in range(0, len(curve), 10)],
        "first": number(curve[0]),
        "last": mean(curve[-10:]),
    }
    if runs == "resumed":
        at = INTERRUPTED_AT
        record |= {"before": mean(curve[at - 10 : at]), "after": mean(curve[at : at + 10])}
    return record


def of_use(p, model):
    """What the trained model writes, in a batch and alone."""
    test = healthy.split(healthy.make_pairs(PAIRS), TEST)[1]
    sources, targets = [source for source, _ in test], [target for _, target in test]

    def share(outputs):
        return sum(a == b for a, b in zip(outputs, targets, strict=False)) / len(outputs)

    torch.manual_seed(1)
    outputs = p.translate(model, sources, batch_size=TEST)
    record = {
        "right": share(outputs),
        "reported": p.score(model, test),
        "alone": share([p.translate(model, [source])[0] for source in sources]),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "outputs": [[*map("".join, (test[i][0], test[i][1], outputs[i]))] for i in SHOWN],
        "known": validation(p, model, test),
    }
    return record | of_attention(p, model)


SHOWN = (0, 3, 5, 8)  # of the test sentences


def validation(p, model, test):
    """Cross-entropy of the next letter, the right prefix given, in eval mode; by no code of p's."""
    model.eval()
    src, tgt = healthy.make_batch(test)
    with torch.no_grad():
        logits = model(src, tgt[:, :-1])
    return number(healthy.label_smoothed_cross_entropy(logits, tgt[:, 1:], 0.0).item())


def of_attention(p, model):
    """The map of the decoder's self-attention, the mean of its heads, for one sentence."""
    source, target = "abcde", "EDCBA"
    src, tgt = p.make_batch([([*source], [*target])])
    with torch.no_grad():
        model.eval()(src, tgt[:, :-1])
    weights = model.decoder.layers[0].self_attention.weights[0].mean(0)
    return {"attention": [[number(w, 2) for w in row] for row in weights.tolist()]}
