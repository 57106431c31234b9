"""Record what the chapters on normalisation and on pre-norm and post-norm claim.

    make record ONLY=normalization

Parts, all of them by default: wander, length, captions, sizes, stall. The experiments are those
that the page prints, in its cells tagged `recorded`; only what is done to them is here.
Resumable; about a quarter of an hour on one core. Needs Multi30k.
"""

import copy
import math
import random
from types import SimpleNamespace

import torch
from torch import nn

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import ModelConfig, Transformer, load_pretrained
from transformer_lib.batching import TokenBatchSampler, pad
from transformer_lib.blocks import Residual
from transformer_lib.data import load_parallel
from transformer_lib.normalization import BatchNorm
from transformer_lib.tokenization import encode_pairs, train_tokenizer

UNIGRAM = 6.0  # nats per piece of captions, at 2,000 pieces

OUT = RESULTS / "normalization.json"
PAGES = PAGE, NEXT_PAGE = "07_normalization", "07a_pre_norm_and_warm_up"
SEEDS = (0, 1, 2)
FEW = (0,)  # for what only asks whether a finding holds elsewhere
page, next_page = (SimpleNamespace(**page_code(name)) for name in (PAGE, NEXT_PAGE))


def chance(settings: dict) -> float:
    """What guessing costs: 12 symbols, 10 symbols and <eos>, or pieces of captions by frequency."""
    return {"length": math.log(11), "captions": UNIGRAM}.get(settings["part"], math.log(12))


# The stall is the finding: what is changed in a post-norm stack of six layers -> the page's words.
REFUTED = ("three tiny steps first", "60 steps at rate 0 first", "gradients times 100",
           "gradients of one length", "four times the steps")
STALLED = {
    "nothing": "Without warm-up, post-norm doesn't get beyond guessing",
    **dict.fromkeys(REFUTED, "Only the last explanation survives"),
    "full rate for 30, then a tenth": "The network looks lost for the next 120 updates",
    "warm-up, 10 steps": "two of three seeds do hardly better than guessing",
    "sublayers start at 5": "whereas post-norm with such sublayers doesn't get beyond guessing",
}
POST_NORM = {"part": "stall", "norm_first": False}
TWELVE = "Twelve layers are still stuck after a warm-up of 60"
GATE = Gate(
    chance, arms=("change", "norm", "norm_first"), measures=("wander", "sizes"),
    edge={"rate": (0.003, 0.003), "layers": (6, 6)},
    did_not_learn=(
        *((POST_NORM | {"layers": 6, "rate": 0.01, "change": change}, words)
          for change, words in STALLED.items()),
        *((POST_NORM | {"layers": 12, "change": change}, TWELVE)
          for change in ("nothing", "warm-up, 60 steps")),
        ({"part": "sgd", "norm_first": False, "rate": 0.3},
         "At 0.3 it gets stuck as well, in all three seeds"),
    ),
    differs=dict.fromkeys(("updates", "tokens"), "four times as many updates"),
)


# ---- how far the statistics of a batch vary, in the shipped translation model -------------------

WANDER = {"captions": 2000, "seed": 0}
_captions_read: dict[str, list] = {}


def captions_read() -> dict[str, list]:
    """What each norm of the shipped model reads from captions that it was not trained on."""
    if not _captions_read:
        translator, splits = load_pretrained("multi30k-de-en"), load_parallel("multi30k")
        pairs = [*splits["validation"], *splits["test"]][: WANDER["captions"]]
        for start in range(0, len(pairs), 250):
            for name, read in page.norm_inputs(translator, pairs[start : start + 250]).items():
                _captions_read.setdefault(name, []).extend(read)
    return _captions_read


def wander(tokens: int) -> dict:
    """For each norm of the shipped model: how far the means of batches lie apart."""
    found = {}
    for name, read in captions_read().items():
        torch.manual_seed(WANDER["seed"])
        random.seed(WANDER["seed"])
        orders = page.in_three_orders(read)
        found[name] = {order: page.wander(vectors, tokens) for order, vectors in orders.items()}
    return {"places": found}


# ---- BatchNorm in training and at inference, by the length of the sentences ---------------------

STEPS = (25, 50, 100, 200, 400, 800, 1200)


def length(norm: str, by_length: bool, seed: int, size: int, rate: float) -> dict:
    """Test losses during training, with the statistics from four sources."""
    rng = random.Random(99)
    one = [page.reversal_batch(rng, [n] * 20) for n in range(2, 13)]
    mixed = [page.reversal_batch(rng, page.draw_lengths(rng, 20, False)) for _ in one]
    curves = {}

    def judge(model, where, batches, mode):
        loss = page.test_loss(model, batches, mode)
        curves.setdefault(where, {}).setdefault(mode, []).append(loss)

    training = page.reversal_training(norm, by_length, seed, size, rate)
    first = None
    for step, (model, loss) in zip(range(1, STEPS[-1] + 1), training, strict=False):
        first = loss if first is None else first
        if step in STEPS:
            for mode in page.MODES if norm == "batch" else page.MODES[1:2]:
                judge(model, "one length", one, mode)
                if mode in page.MODES[:2]:
                    judge(model, "mixed", mixed, mode)
    if norm == "batch":
        judge(counted_anew(model, by_length), "one length", one, "at inference")
        curves["counted anew"] = curves["one length"]["at inference"].pop()
    return {"steps": STEPS, "first_loss": first, "curves": curves}


@torch.no_grad()
def counted_anew(model, by_length):
    """The model with averages over 300 training batches in place of its running ones."""
    model, rng = copy.deepcopy(model).train(), random.Random(5)
    for i in range(300):
        for norm in model.modules():
            if isinstance(norm, BatchNorm):
                norm.momentum = 1 / (i + 1)
        page.loss_of(model, *page.reversal_batch(rng, page.draw_lengths(rng, 16, by_length)))
    return model


# ---- the same on captions ----------------------------------------------------------------------

CAPTIONS = {"vocabulary": 2000, "steps": 150, "tokens": 512, "rate": 0.003, "warmup": 50}
_captions = {}


def caption_ids():
    """Ids of the captions of Multi30k: (sources, targets) of training and of validation."""
    if not _captions:
        splits = load_parallel("multi30k")
        texts = [text for pair in splits["train"] for text in pair]
        tokenizer = train_tokenizer(texts, CAPTIONS["vocabulary"])
        for name, count in (("train", None), ("validation", 500)):
            _captions[name] = encode_pairs(tokenizer, splits[name][:count])
    return _captions


def caption_batches(split: str, by_length: bool, seed: int) -> list:
    """Batches of about equally many tokens, of sentences of similar length or of any."""
    src, tgt = caption_ids()[split]
    sizes = [(len(s), len(t)) for s, t in zip(src, tgt, strict=True)]
    batches = TokenBatchSampler(sizes, CAPTIONS["tokens"], seed=seed).batches()
    if not by_length:
        order = random.Random(seed).sample(range(len(src)), len(src))
        each = round(len(src) / len(batches))
        batches = [order[i : i + each] for i in range(0, len(order), each)]
    return [(pad([src[i] for i in b]), pad([tgt[i] for i in b])) for b in batches]


def captions(norm: str, by_length: bool, seed: int) -> dict:
    """Train a small translator; its losses, and how far batches lie from the running averages."""
    batches, steps = caption_batches("train", by_length, seed), CAPTIONS["steps"]
    torch.manual_seed(seed)
    model = Transformer(
        ModelConfig(CAPTIONS["vocabulary"], 64, 4, 128, 2, 2, dropout=0.0, norm=norm)
    )
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    norms = [m for m in model.modules() if isinstance(m, BatchNorm)]
    inputs, distances, lengths = {}, [], []
    for m in norms:
        m.register_forward_pre_hook(
            lambda m, args: inputs.update({m: args[0].detach().flatten(0, 1)})
        )
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = CAPTIONS["rate"] * min(1, step / CAPTIONS["warmup"])
        before = [(m.running_mean.clone(), m.running_var.clone()) for m in norms]
        loss = page.loss_of(model, *batches[step])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step > steps - 50:
            for m, (mean, variance) in zip(norms, before, strict=True):
                away = (inputs[m].mean(0) - mean) / (variance + m.eps).sqrt()
                distances.append(away.pow(2).mean().sqrt().item())
                lengths.append(len(inputs[m]))
    found = {"training_loss": loss.item()}
    if norms:
        found["distance"] = sum(distances) / len(distances)  # from the averages, in deviations
        found["tokens"] = sum(lengths) / len(lengths)
    for where in ("similar lengths", "mixed"):
        test = caption_batches("validation", where != "mixed", 7)
        modes = page.MODES[:2] if norms else page.MODES[1:2]
        found[where] = {mode: page.test_loss(model, test, mode) for mode in modes}
    return found


# ---- sizes by layer during training ------------------------------------------------------------

SIZES = {"layers": 12, "size": 16, "rate": 0.001}
UPDATES = (1, 2, 3, 5, 8, 12, 18, 25, 32, 40)


def sizes(norm: str, norm_first: bool, seed: int) -> dict:
    """Activation, gradient and update of each layer, encoder first, at some of the updates."""
    training = next_page.deep_training(norm, norm_first, seed, **SIZES)
    kept, losses = {}, []
    for update, (loss, found) in zip(range(1, UPDATES[-1] + 1), training, strict=False):
        losses.append(loss)
        if update in UPDATES:
            for name, values in found.items():
                kept.setdefault(name, []).append(values)
    return {"updates": UPDATES, "losses": losses[::5], "sizes": kept}


# ---- what lets post-norm learn without warm-up --------------------------------------------------

N = 120  # steps at full rate


def ramp(rate, warmup):
    return [rate * min(1, step / warmup) for step in range(1, N + 1)]


def equal_gradients(net):
    """Every weight gets a gradient of length 1, whatever its own was."""
    for p in net.parameters():
        if p.grad is not None:
            p.grad.div_(p.grad.norm() + 1e-12)


def hundredfold(net):
    for p in net.parameters():
        p.grad.mul_(100)


class Held(nn.Module):
    """A residual whose sublayer may add at most `most` times the size of what it is added to."""

    def __init__(self, inner: Residual, most: float):
        super().__init__()
        self.inner, self.most = inner, most

    def forward(self, x, sublayer):
        def held(y):
            added = sublayer(y)
            ratio = added.norm(dim=-1, keepdim=True) / x.norm(dim=-1, keepdim=True)
            return added * (self.most / (ratio + 1e-9)).clamp(max=1).detach()

        return self.inner(x, held)


def hold(net, most):
    for layer in net.encoder.layers:
        layer.residuals = nn.ModuleList([Held(r, most) for r in layer.residuals])


def start_at(net, factor):
    with torch.no_grad():
        for layer in net.encoder.layers:
            layer.self_attention.w_o.weight *= factor
            layer.feed_forward.contract.weight *= factor


def plain(rate):
    return [rate] * N


CHANGES = {  # name -> (the rates, from the full one; what is done to the network; to gradients)
    "nothing": (plain, None, None),
    "three tiny steps first": (lambda r: [1e-5] * 3 + plain(r), None, None),
    "60 steps at rate 0 first": (lambda r: [0.0] * 60 + plain(r), None, None),
    "gradients times 100": (plain, None, hundredfold),
    "gradients of one length": (plain, None, equal_gradients),
    "four times the steps": (lambda r: 4 * plain(r), None, None),
    "a tenth of the rate": (lambda r: plain(r / 10), None, None),
    "full rate for 30, then a tenth": (lambda r: [r] * 30 + plain(r / 10), None, None),
    "a tenth of the rate for 480": (lambda r: 4 * plain(r / 10), None, None),
    "full rate for 30, then a tenth for 2,000": (
        lambda r: [r] * 30 + [r / 10] * 2000, None, None
    ),
    "warm-up, 10 steps": (lambda r: ramp(r, 10), None, None),
    "warm-up, 30 steps": (lambda r: ramp(r, 30), None, None),
    "warm-up, 60 steps": (lambda r: ramp(r, 60), None, None),
    "sublayers start at 0.1": (plain, lambda net: start_at(net, 0.1), None),
    "sublayers start at 5": (plain, lambda net: start_at(net, 5), None),
    "sublayers add at most 0.3": (plain, lambda net: hold(net, 0.3), None),
    "sublayers add at most 0.1": (plain, lambda net: hold(net, 0.1), None),
}
LONG = ("a tenth of the rate for 480", "full rate for 30, then a tenth for 2,000")  # post-norm
BOTH = ("nothing", "warm-up, 60 steps", "sublayers start at 5")  # pre-norm with all seeds, too
LOOKS = (0, 3, 10, 30, 60, 119)  # steps at which the sizes of the sublayers are looked at


@torch.no_grad()
def depends(net):
    """Share of the output that changes with the input: 0 if every input gives the same."""
    ids = torch.randint(next_page.SYMBOLS, (256, next_page.LENGTH), generator=torch.manual_seed(0))
    y = net.encoder(net.embed(ids) + net.position)  # (256, T, D)
    return (y.var(0).mean() / y.pow(2).mean()).item()


@torch.no_grad()
def added(net):
    """Size of what the sublayers add, as a share of what it is added to: the mean of all."""
    shares, hooks = [], []
    for residual in (m for m in net.modules() if isinstance(m, Residual)):
        stream = {}
        hooks += [
            residual.register_forward_pre_hook(lambda _, a, kept=stream: kept.update(x=a[0])),
            residual.dropout.register_forward_hook(
                lambda _, __, y, kept=stream: shares.append(
                    next_page.rms(y) / next_page.rms(kept["x"])
                )
            ),
        ]
    ids = torch.randint(next_page.SYMBOLS, (64, next_page.LENGTH), generator=torch.manual_seed(0))
    net.encoder(net.embed(ids) + net.position)
    for hook in hooks:
        hook.remove()
    return sum(shares) / len(shares)


def stall(norm_first: bool, layers: int, rate: float, change: str, seed: int) -> dict:
    """One training run of the reverser, with one thing changed."""
    schedule, touch, on_gradients = CHANGES[change]
    torch.manual_seed(seed)
    net, rates = next_page.Reverser(norm_first, layers), schedule(rate)
    if touch:
        touch(net)
    shares, step = [], iter(range(-rates.count(0.0) - rates.count(1e-5), len(rates)))

    def before_step(net):
        if next(step) in LOOKS:
            shares.append(added(net))
        if on_gradients:
            on_gradients(net)

    curve = next_page.train_reverser(net, rates, seed, change=before_step)
    first = curve[0]
    curve = [loss for loss, r in zip(curve, rates, strict=True) if r > 1e-5]  # what moved
    return {
        "first_loss": first,
        "curve": [sum(curve[i : i + 10]) / 10 for i in range(0, len(curve), 10)],
        "last": sum(curve[-10:]) / 10,
        "depends": depends(net),
        "added": shares,
    }


def sgd(norm_first: bool, layers: int, rate: float, seed: int) -> dict:
    """Plain gradients with momentum in place of Adam, for twice as long."""
    torch.manual_seed(seed)
    net = next_page.Reverser(norm_first, layers)
    optimizer = torch.optim.SGD(net.parameters(), momentum=0.9)
    curve = next_page.train_reverser(net, 2 * plain(rate), seed, optimizer)
    return {"first_loss": curve[0], "last": sum(curve[-10:]) / 10}


# ---- the grid ------------------------------------------------------------------------------------


def grid():
    """(settings, function) of every cell."""
    cells = [cell("wander", wander, tokens=n) for n in (64, 256, 1024)]
    task = {"size": 16, "rate": 0.003}
    cells += [cell("length", length, norm=norm, by_length=True, seed=seed, **task)
              for seed in SEEDS for norm in ("batch", "layer")]
    cells += [
        cell("stall", stall, norm_first=norm_first, layers=6, rate=0.01, change=change, seed=seed)
        for seed in SEEDS for change in CHANGES for norm_first in (False, True)
        if (seed == 0 or not norm_first or change in BOTH) and not (norm_first and change in LONG)
    ]
    cells += [cell("sizes", sizes, norm="layer", norm_first=norm_first, seed=seed)
              for seed in SEEDS for norm_first in (False, True)]
    cells += [cell("sizes", sizes, norm=norm, norm_first=norm_first, seed=seed)
              for seed in FEW for norm in ("rms", "batch") for norm_first in (False, True)]
    cells += [cell("length", length, norm=norm, by_length=False, seed=seed, **task)
              for seed in FEW for norm in ("batch", "layer")]
    cells += [cell("captions", captions, norm=norm, by_length=True, seed=seed)
              for seed in FEW for norm in ("batch", "layer")]
    cells += [
        cell("stall", stall, norm_first=norm_first, layers=layers, rate=rate, change=change,
             seed=seed)
        for seed in SEEDS
        for layers, rate in ((2, 0.003), (2, 0.01), (6, 0.003), (12, 0.003), (12, 0.01))
        for change, norm_first in (("nothing", False), ("warm-up, 60 steps", False),
                                   ("sublayers add at most 0.1", False), ("nothing", True))
    ]
    cells += [cell("sgd", sgd, norm_first=norm_first, layers=6, rate=rate, seed=seed)
              for seed in SEEDS for rate in (0.03, 0.1, 0.3) for norm_first in (False, True)]
    cells += [cell("length", length, norm="batch", by_length=True, seed=0, size=16, rate=0.001)]
    return cells
