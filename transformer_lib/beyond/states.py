"""A state of fixed size instead of all keys and values: linear attention with a gate.

One recurrence covers the whole family. A token writes one key and one value, and a gate decides how
much is left of everything that was written before:

    state = decay * state + key (write * value)^T,   out = query state

The delta rule writes only the difference between the value and what the state already holds.

`scan` runs it one token at a time, `quadratic` all at once under a causal mask of numbers, and
`by_chunks` combines the two. `StateMixer` uses it instead of self-attention; `GATES` are RetNet,
Mamba-2, GLA, DeltaNet and Gated DeltaNet. `draw` is a task for which a state can be too small.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.far_links import N_NAMES, N_VALUES
from transformer_lib.config import BlockConfig
from transformer_lib.decoder import Decoder
from transformer_lib.masks import causal_mask
from transformer_lib.normalization import RMSNorm


def scan(q, k, v, log_decay, write, replace=False, state=None):
    """Run one token after another: a recurrent network whose state is a table of M x K numbers.

    q, k: (B, H, T, M); v: (B, H, T, K). log_decay: (B, H, T, 1) or (B, H, T, M), at most 0: the
    logarithm of the share of each row of the state that is left. write: (B, H, T, 1), how strongly
    a token writes. replace: write the difference from what the state holds under this key (the
    delta rule).
    Returns the outputs (B, H, T, K) and the last state (B, H, M, K).
    """
    if state is None:
        state = v.new_zeros(*k.shape[:2], k.size(-1), v.size(-1))
    outputs = []
    for t in range(q.size(2)):
        state = log_decay[:, :, t, :, None].exp() * state  # (B, H, M, K)
        new = v[:, :, t]  # (B, H, K)
        if replace:
            new = new - (k[:, :, t, None] @ state)[:, :, 0]
        state = state + k[:, :, t, :, None] * (write[:, :, t] * new)[:, :, None]
        outputs.append((q[:, :, t, None] @ state)[:, :, 0])
    return torch.stack(outputs, dim=2), state


def what_is_left(log_decay: Tensor) -> Tensor:
    """The causal mask as numbers: how much of what j wrote is left at i, 0 for the future.

    log_decay: (B, H, T, M) -> (B, H, T, T, M).
    """
    total = log_decay.cumsum(2)
    between = total[:, :, :, None] - total[:, :, None]  # the sum from j + 1 to i
    future = ~causal_mask(log_decay.size(2), log_decay.device)[..., None]
    # Masked before the exponential: the future's sums are positive, and would overflow.
    return between.masked_fill(future, -math.inf).exp()


def masked_scores(q: Tensor, k: Tensor, log_decay: Tensor) -> Tensor:
    """q k^T, with each product multiplied by the share of the key that is left.

    q, k: (B, H, T, M); log_decay: (B, H, T, 1) or (B, H, T, M). Returns (B, H, T, T).
    """
    left = what_is_left(log_decay)
    if left.size(-1) == 1:  # one number for all M rows of the state
        return (q @ k.mT) * left[..., 0]
    return torch.einsum("bhim,bhjm,bhijm->bhij", q, k, left)


def what_is_written(k, v, log_decay, write, replace=False):
    """The values that tokens add to the state under their keys, (B, H, T, K), as in `scan`.

    With the delta rule they depend on everything written before: a triangular system of equations.
    """
    if not replace:
        return write * v
    earlier = write * masked_scores(k, k, log_decay).tril(-1)  # (B, H, T, T)
    # The solver takes the diagonal as 1, which is every token's own term.
    return torch.linalg.solve_triangular(earlier, write * v, upper=False, unitriangular=True)


def quadratic(q, k, v, log_decay, write, replace=False):
    """As `scan`, but all tokens at once: attention without a softmax, under a mask of decays."""
    return masked_scores(q, k, log_decay) @ what_is_written(k, v, log_decay, write, replace)


def by_chunks(q, k, v, log_decay, write, replace=False, size=16):
    """As `scan`, but quadratic within a chunk and recurrent from chunk to chunk."""
    state, outputs = v.new_zeros(*k.shape[:2], k.size(-1), v.size(-1)), []
    parts = (x.split(size, dim=2) for x in (q, k, v, log_decay, write))
    for q, k, v, log_decay, write in zip(*parts, strict=True):
        left = log_decay.cumsum(2).exp()  # (B, H, t, M or 1): of the state before this chunk
        if replace:
            v = v - (k * left) @ state
        new = what_is_written(k, v, log_decay, write, replace)  # (B, H, t, K)
        outputs.append(masked_scores(q, k, log_decay) @ new + (q * left) @ state)
        kept = what_is_left(log_decay)[:, :, -1]  # (B, H, t, M or 1): at the chunk's end
        state = left[:, :, -1, :, None] * state + (k * kept).mT @ new
    return torch.cat(outputs, dim=2)


GATES = {  # name -> how its decay is made, and whether it replaces
    "linear": ("none", False),
    "RetNet": ("fixed", False),  # a number for each head (Sun et al. 2023)
    "Mamba-2": ("head", False),  # computed from the token, one for each head (Dao and Gu 2024)
    "GLA": ("row", False),  # computed, one for each row of the state (Yang et al. 2024a)
    "DeltaNet": ("none", True),  # the delta rule (Schlag et al. 2021; Yang et al. 2024b)
    "Gated DeltaNet": ("head", True),  # both (Yang et al. 2025)
}


class StateMixer(nn.Module):
    """A replacement for self-attention: n_heads states of n_rows x d_model / n_heads numbers.

    gate: a name from GATES. The members of the family differ in nothing else: keys and queries have
    length 1, and a norm keeps the outputs at a steady size, as the softmax did.
    """

    def __init__(self, d_model: int, n_heads: int, n_rows: int, gate: str):
        super().__init__()
        if gate not in GATES:
            raise ValueError(f"no gate {gate!r}; there are {', '.join(GATES)}.")
        self.decay, self.replace = GATES[gate]
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, n_heads * n_rows, bias=False)
        self.w_k = nn.Linear(d_model, n_heads * n_rows, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.write = nn.Linear(d_model, n_heads)
        n_decays = {"head": n_heads, "row": n_heads * n_rows}.get(self.decay)
        self.to_decay = nn.Linear(d_model, n_decays) if n_decays else None
        if n_decays:
            nn.init.constant_(self.to_decay.bias, 4.0)  # it starts by keeping nearly everything
        self.norm = RMSNorm(d_model // n_heads)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, H * K) -> (B, H, T, K)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def log_decay(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, 1) or (B, H, T, M), at most 0."""
        if self.to_decay is not None:
            return F.logsigmoid(self.split_heads(self.to_decay(x)))
        if self.decay == "none":
            return x.new_zeros(len(x), self.n_heads, x.size(1), 1)
        head = torch.arange(self.n_heads, device=x.device)
        fixed = torch.log1p(-(2.0 ** (-5 - head)))  # 1 - 1/32, 1 - 1/64, ...
        return fixed[None, :, None, None].expand(len(x), -1, x.size(1), 1)

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """x: (B, T, D) -> q, k, v, log_decay and write, as `scan` takes them."""
        q, k, v = (self.split_heads(w(x)) for w in (self.w_q, self.w_k, self.w_v))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        return q, k, v, self.log_decay(x), self.split_heads(self.write(x)).sigmoid()

    def forward(self, query, key=None, value=None, mask=None, need_weights=False, cache=None):
        """(B, T, D) -> (B, T, D) and None. It is always causal, and always self-attention."""
        out = self.norm(quadratic(*self.parts(query), self.replace))  # (B, H, T, K)
        return self.w_o(out.transpose(1, 2).flatten(2)), None

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The next tokens, (B, t, D), and the state before them -> outputs and the state after."""
        out, state = scan(*self.parts(x), self.replace, state)
        return self.w_o(self.norm(out).transpose(1, 2).flatten(2)), state


class SharpMixer(StateMixer):
    """The control: a softmax over all keys, which also have n_rows numbers each.

    gate: "softmax", or "softmax, gated": with Mamba-2's decays added to the scores as logarithms
    (the Forgetting Transformer; Lin et al. 2025).
    """

    def __init__(self, d_model: int, n_heads: int, n_rows: int, gate: str):
        super().__init__(d_model, n_heads, n_rows, "linear" if gate == "softmax" else "Mamba-2")
        self.sharpness = nn.Parameter(torch.full((n_heads, 1, 1), 8.0))  # for vectors of length 1

    def forward(self, query, key=None, value=None, mask=None, need_weights=False, cache=None):
        """As StateMixer's, with a table of T x T scores."""
        q, k, v, log_decay, _ = self.parts(query)
        left = what_is_left(log_decay)[..., 0].log()  # (B, H, T, T): at most 0, -inf for the future
        out = F.scaled_dot_product_attention(self.sharpness * q, k, v, left, scale=1.0)
        return self.w_o(self.norm(out).transpose(1, 2).flatten(2)), None

    def step(self, x: Tensor, state: Tensor | None = None):
        """Raise TypeError, because there is no state to step with."""
        raise TypeError(
            "a softmax has no state of fixed size to step with: it needs all keys and values. "
            "Give `forward` the whole text, or take a StateMixer."
        )


# ---- a task in which a state can be too small ---------------------------------------------------


def draw(batch: int, n_facts: int, generator: torch.Generator, n_told: int = 1, names=N_NAMES):
    """Draw texts of facts, then a question for each: names, values, answers, (B, T) integers each.

    Each of n_facts names is stated n_told times, every time with a new value; the last one counts.
    T is (n_told + 1) * n_facts. A question has the value N_VALUES, and answers is -1 elsewhere.
    """

    def shuffled(x):  # (B, n), each row in an order of its own
        return x.gather(1, torch.rand(x.shape, generator=generator).argsort(-1))

    subject = torch.rand(batch, names, generator=generator).argsort(-1)[:, :n_facts]
    told = shuffled(subject.repeat(1, n_told))  # (B, n_told * n)
    values = torch.randint(N_VALUES, told.shape, generator=generator)
    asked = shuffled(subject)  # (B, n)
    same = asked[:, :, None] == told[:, None]  # (B, n, n_told * n)
    last = (same * torch.arange(1, told.size(1) + 1)).argmax(-1)  # where a name was last stated
    right = values.gather(1, last)
    nothing = torch.full_like(told, -1)
    return (
        torch.cat([told, asked], 1),
        torch.cat([values, torch.full_like(asked, N_VALUES)], 1),
        torch.cat([nothing, right], 1),
    )


class Recaller(nn.Module):
    """Decoder layers with a StateMixer instead of attention, which guess a value at each place.

    gate: a name from GATES, or one of SharpMixer's for the control. n_rows: M, the size of a key.
    """

    def __init__(self, gate, n_rows, n_layers=1, n_heads=1, d_model=64, names=N_NAMES):
        super().__init__()
        config = BlockConfig(d_model, n_heads, 2 * d_model, 0, n_layers, 0.0, positional="none")
        self.name, self.value = nn.Embedding(names, d_model), nn.Embedding(N_VALUES + 1, d_model)
        self.decoder = Decoder(config, cross_attention=False)
        for layer in self.decoder.layers:
            sizes = d_model, n_heads, n_rows
            layer.self_attention = (SharpMixer if gate.startswith("softmax") else StateMixer)(
                *sizes, gate
            )
        self.guess = nn.Linear(d_model, N_VALUES)

    def forward(self, names: Tensor, values: Tensor) -> Tensor:
        """names, values: (B, T) -> logits (B, T, N_VALUES)."""
        return self.guess(self.decoder(self.name(names) + self.value(values)))


def answer_loss(model: Recaller, batch) -> Tensor:
    """Nats per question, over a batch from `draw`."""
    names, values, answers = batch
    asked = answers >= 0
    return F.cross_entropy(model(names, values)[asked], answers[asked])


@torch.no_grad()
def share_right(model: Recaller, batch) -> float:
    """The share of questions answered correctly."""
    names, values, answers = batch
    asked = answers >= 0
    return (model(names, values).argmax(-1)[asked] == answers[asked]).float().mean().item()
