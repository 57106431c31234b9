"""Less depth: repeat one layer as often as a place needs it, or use fewer layers for easy words.

`AdaptiveSteps` is the Universal Transformer's adaptive computation time. `EarlyLeaving` lets each
token of a trained translator leave after any decoder layer (Depth-Adaptive Transformer, CALM);
`random_exit_loss` trains its exits, and `calibrate` chooses how sure it has to be to leave.
"""

import math
from collections import Counter

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from transformer_lib.beyond.memory import write_down
from transformer_lib.cache import DecodingState
from transformer_lib.config import PAD
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.pretrained import load_pretrained, results_dir
from transformer_lib.translator import Translator


class AdaptiveSteps(nn.Module):
    """Applies one layer again and again until every place has halted (Dehghani et al. 2019).

    layer: (x (B, T, D), mask) -> (B, T, D). A place halts when its halting probabilities sum to
    `threshold`; its result is the mean of its states, weighted by them (Graves 2016).
    """

    def __init__(self, layer: nn.Module, d_model: int, max_steps: int, threshold: float = 0.99):
        super().__init__()
        self.layer, self.max_steps, self.threshold = layer, max_steps, threshold
        self.halt = nn.Linear(d_model, 1)
        self.time = nn.Parameter(0.1 * torch.randn(max_steps, d_model))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """x: (B, T, D) -> result (B, T, D), steps taken (B, T), ponder cost (B, T)."""
        result, total = torch.zeros_like(x), x.new_zeros(x.shape[:2])  # (B, T, D), (B, T)
        steps, remainder = total.clone(), total.clone()
        for step in range(self.max_steps):
            running = total < self.threshold  # (B, T)
            p = self.halt(x)[..., 0].sigmoid()
            last = running & ((total + p >= self.threshold) | (step == self.max_steps - 1))
            share = torch.where(last, 1 - total, p * running)  # what is left, so that all sum to 1
            # A place that has halted keeps its state, and the others go on reading it.
            x = torch.where(running[..., None], self.layer(x + self.time[step], mask), x)
            result = result + share[..., None] * x
            remainder = remainder + torch.where(last, share, 0)
            steps, total = steps + running, total + share
        # Steps have no gradient; the remainder has one, which rewards halting earlier.
        return result, steps, steps + remainder


def decoder_states(model: Transformer, src_ids: Tensor, tgt_ids: Tensor) -> list[Tensor]:
    """The output of each decoder layer: n_decoder_layers of (B, T, D)."""
    src_mask, tgt_mask = model.default_masks(src_ids, tgt_ids)
    memory, states = model.encode(src_ids, src_mask), []
    x = model.embed(model.tgt_embedding(tgt_ids))
    for layer in model.decoder.layers:
        x = layer(x, memory, src_mask, tgt_mask)
        states.append(x)
    return states


class Exits(nn.Module):
    """For every decoder layer but the last: a linear map that guesses the last layer's output, and
    a guess at whether both layers would choose the same word.
    """

    def __init__(self, d_model: int, n_layers: int):
        super().__init__()
        self.maps = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(n_layers - 1)])
        self.agree = nn.ModuleList([nn.Linear(d_model, 1) for _ in range(n_layers - 1)])
        for linear in self.maps:
            nn.init.eye_(linear.weight)
            nn.init.zeros_(linear.bias)

    def logits(self, model: Transformer, x: Tensor, depth: int) -> Tensor:
        """x: (..., D), the state after `depth` layers (at least 1) -> (..., V)."""
        if depth <= len(self.maps):
            x = self.maps[depth - 1](x)
        return model.project(model.decoder.norm(x))


def random_exit_loss(
    model: Transformer, exits: Exits, batch: tuple[Tensor, Tensor], smoothing: float = 0.1
) -> Tensor:
    """The loss at one exit, drawn anew for each batch, so that all layers learn to predict.

    On average it is the mean over the exits, as in Elbayad et al. (2020), but it takes only one
    projection.
    """
    src_ids, tgt_ids = batch  # (B, S), (B, T + 1)
    states = decoder_states(model, src_ids, tgt_ids[:, :-1])
    depth = int(torch.randint(1, len(states) + 1, ()))
    predicted = tgt_ids[:, 1:]
    real = predicted != PAD
    logits = exits.logits(model, states[depth - 1][real], depth)  # (N, V)
    return label_smoothed_cross_entropy(logits, predicted[real], smoothing, PAD)


@torch.no_grad()
def solve_maps(exits: Exits, states: list[Tensor]) -> None:
    """Set each map to the linear one that comes closest to the last states, by least squares.

    states: for each layer (N, D), from any texts, with N > D and some spread in every direction.
    """
    for linear, x in zip(exits.maps, states[:-1], strict=True):
        with_one = torch.cat([x, x.new_ones(len(x), 1)], dim=1)  # (N, D + 1), for the bias
        # torch's default driver, "gelsy", treats directions in which x varies little as noise.
        solution = torch.linalg.lstsq(with_one, states[-1], driver="gels").solution
        linear.weight.copy_(solution[:-1].T)
        linear.bias.copy_(solution[-1])


def agreement_loss(exits: Exits, states: list[Tensor], words: Tensor) -> Tensor:
    """The loss of `exits.agree`, which predicts whether an exit agrees with the last layer.

    states: for each layer (N, D); words: (n_layers, N), the word that each exit chooses.
    """
    agrees = (words[:-1] == words[-1]).float()  # (n_layers - 1, N)
    guess = torch.stack([f(x)[:, 0] for f, x in zip(exits.agree, states[:-1], strict=True)])
    return F.binary_cross_entropy_with_logits(guess, agrees)


class EarlyLeaving(nn.Module):
    """A translator whose tokens leave the decoder as soon as the model is sure enough of them.

    Use it with greedy_decode, like the translator itself. measure: what shows how sure the model
    is. "gap": the lead of the most probable word over the second; "stillness": the cosine between
    the states before and after a layer; "agree": the exit's trained guess; "depth": the number of
    layers, so all tokens leave together. threshold: above 1, or above the number of layers for
    "depth", no token leaves early.
    """

    MEASURES = ("gap", "stillness", "agree", "depth")

    def __init__(self, model: Transformer, exits: Exits, measure: str, threshold: float):
        super().__init__()
        if measure not in self.MEASURES:
            raise ValueError(f"measure is {measure!r}; it must be one of {self.MEASURES}.")
        self.model, self.exits, self.config = model, exits, model.config
        self.measure, self.threshold = measure, threshold
        self.depths: list[Tensor] = []  # for each step, the layers that each row took
        self.train(model.training)  # otherwise decoding would put the translator into training mode

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """As Transformer.start."""
        return self.model.start(src_ids, bos_id, True)

    def step(self, ids: Tensor, state: DecodingState) -> Tensor:
        """ids: (B, 1), the newest token -> logits (B, V) of the next."""
        layers = self.model.decoder.layers
        x = self.model.embed(self.model.tgt_embedding(ids), state.length)  # (B, 1, D)
        depths = torch.full((len(ids),), len(layers), device=ids.device)
        for depth, (layer, cache) in enumerate(zip(layers, state.cache.layers, strict=True), 1):
            left = depths < depth  # (B,)
            if left.all():
                write_down(layer, x, cache.own)  # later tokens read it there
                continue
            before, after = x, layer(x, state.memory, state.src_mask, None, cache)
            # The layer makes keys and values from the state of a token that has left, too.
            x = torch.where(left[:, None, None], before, after)
            if depth < len(layers):
                sure = self.sureness(before[:, 0], x[:, 0], depth)
                depths = torch.where(~left & (sure >= self.threshold), depth, depths)
        self.depths.append(depths)
        logits = x.new_empty(len(ids), self.config.vocab_size)
        for depth in depths.unique().tolist():
            rows = depths == depth
            logits[rows] = self.exits.logits(self.model, x[rows, 0], depth)
        return logits

    def sureness(self, before: Tensor, after: Tensor, depth: int) -> Tensor:
        """before, after: (B, D), the states around layer `depth` -> how sure, (B,)."""
        if self.measure == "depth":
            return after.new_full((len(after),), depth)
        if self.measure == "stillness":
            return F.cosine_similarity(before, after, dim=-1)
        if self.measure == "agree":
            return self.exits.agree[depth - 1](after)[:, 0].sigmoid()
        first, second = self.exits.logits(self.model, after, depth).softmax(-1).topk(2).values.T
        return first - second


def words_changed(text: str, full: str) -> float:
    """How far a translation is from the full model's: 1 - F1 of their words, from 0 to 1."""
    a, b = Counter(text.split()), Counter(full.split())
    both = sum((a & b).values())
    return 1 - 2 * both / max(1, a.total() + b.total()) if a != b else 0.0


def calibrate(losses: Tensor, allowed: float, risk: float = 0.05) -> int | None:
    """The boldest setting whose mean loss is at most `allowed`, wrong with probability <= risk.

    losses: (settings, texts), each in [0, 1], from the most careful setting to the boldest. Each
    is tested (Hoeffding's bound) until one fails, so no price is paid for trying many
    (Angelopoulos et al. 2021). Returns the index of the boldest that passes, or None if not even
    the first one does.
    """
    chosen = None
    for i, found in enumerate(losses.mean(1).tolist()):
        # How probable is such a low mean if the true one is above what is allowed?
        if math.exp(-2 * losses.size(1) * max(0.0, allowed - found) ** 2) > risk:
            break
        chosen = i
    return chosen


def load_exits() -> tuple[Translator, Exits]:
    """The shipped translator, unchanged, with recorded exits: maps fitted by least squares."""
    translator = load_pretrained("multi30k-de-en")
    config = translator.model.config
    exits = Exits(config.d_model, config.n_decoder_layers)
    state = load_file(results_dir() / "beyond" / "early-leaving" / "solved.safetensors")
    exits.load_state_dict({k.removeprefix("exits."): v.float() for k, v in state.items()})
    return translator, exits.eval()
