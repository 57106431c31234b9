"""Neighbours from a memory that holds everything: next to a language model, or inside one layer.

kNN-LM: a `Datastore` of hidden states and the tokens that followed them, and `neighbour_logp`.
SPALM: a `Gate` decides at each place how much of the neighbours to let in. Memorizing Transformer:
`nearest_attention` in one layer of a recurrent model.
"""

import math

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond.exchange import exchange
from transformer_lib.beyond.memory import RecurrentLanguageModel
from transformer_lib.config import ModelConfig
from transformer_lib.decoder import DecoderLayer


class Datastore:
    """Hidden states and, for each, the token that came next. Search is exact.

    keys: (N, D); tokens: (N,).
    """

    def __init__(self, keys: Tensor, tokens: Tensor):
        self.keys, self.tokens = keys, tokens
        self.lengths = keys.square().sum(-1)  # (N,)

    def nearest(self, queries: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """queries: (Q, D) -> squared distances (Q, n), nearest first, and their indices (Q, n)."""
        # |q - k|^2 = |q|^2 - 2 q k + |k|^2, and |q|^2 doesn't change the order.
        rest = torch.addmm(self.lengths, queries, self.keys.T, alpha=-2)  # (Q, N)
        found = rest.topk(n, largest=False)
        squared = found.values + queries.square().sum(-1, keepdim=True)
        return squared.clamp(min=0), found.indices


def neighbour_logp(distances: Tensor, tokens: Tensor, target: Tensor, scale: float) -> Tensor:
    """The log-probability that the neighbours give to each target -> (Q,).

    distances, tokens: (Q, n); target: (Q,). A neighbour's share falls with its squared distance
    over `scale`, and shares of the same token are added (Khandelwal et al. 2020, eq. 2). A target
    that no neighbour has gets -inf.
    """
    shares = (-distances / scale).log_softmax(-1)  # (Q, n)
    return shares.masked_fill(tokens != target[:, None], -math.inf).logsumexp(-1)


def interpolate(model_logp: Tensor, found_logp: Tensor, share: float) -> Tensor:
    """log((1 - share) p_model + share p_neighbours). share 0: only the model.

    model_logp, found_logp: (Q,) each, log-probabilities, at most 0.
    """
    log = [math.log(x) if x > 0 else -math.inf for x in (1 - share, share)]
    return torch.logaddexp(model_logp + log[0], found_logp + log[1])


class Gate(nn.Module):
    """How much of the neighbours enters the hidden state, by feature (after Yogatama et al. 2021).

    The neighbours are represented by the embeddings of the tokens that followed them. The gate
    starts almost closed; at 0 the hidden state is unchanged.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.open, self.read = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model, bias=False)
        nn.init.zeros_(self.open.weight)
        nn.init.constant_(self.open.bias, -3.0)
        with torch.no_grad():  # embeddings are small, hidden states are of size sqrt(D)
            self.read.weight.copy_(math.sqrt(d_model) * torch.eye(d_model))

    def forward(self, hidden: Tensor, followed: Tensor) -> Tensor:
        """hidden: (Q, D); followed: (Q, n, D), embeddings of the neighbours' tokens -> (Q, D)."""
        shares = (followed @ hidden[:, :, None]).softmax(1)  # (Q, n, 1)
        found = self.read((shares * followed).sum(1))  # (Q, D)
        gate = self.open(hidden).sigmoid()
        return (1 - gate) * hidden + gate * found


def nearest_attention(q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
    """Attention to the n keys with the largest scores.

    q: (B, H, T, K); k: (B, H, M, K); v: (B, H, M, K_v).

    With n = M it is full attention.
    """
    scores, place = (q @ k.mT / q.size(-1) ** 0.5).topk(min(n, k.size(2)), dim=-1)  # (B, H, T, n)
    index = place.flatten(2)[..., None].expand(-1, -1, -1, v.size(-1))
    found = v.gather(2, index).unflatten(2, place.shape[2:])  # (B, H, T, n, K)
    return (scores.softmax(-1)[..., None] * found).sum(-2)


class MemorizingAttention(MultiHeadAttention):
    """Self-attention that also searches a memory of older tokens (Wu et al. 2022, sec. 3).

    n: how many neighbours. Each head has a gate between nearby tokens and those it found. The
    memory, `far` (B, M, D), has no positions, and may be None or empty.
    """

    def __init__(self, *sizes, n: int):
        super().__init__(*sizes)
        self.n, self.far, self.found = n, None, None
        self.gate = nn.Parameter(torch.zeros(self.n_heads, 1, 1))  # sigmoid(0): half and half

    def forward(self, query, *inputs, **options):
        """As in MultiHeadAttention, but first search `far`, with queries that have no positions.
        """
        self.found = None
        if self.far is not None and self.far.size(1):
            q, k, v = (self.split_heads(w(x)) for w, x in (
                (self.w_q, query), (self.w_k, self.far), (self.w_v, self.far)))
            self.found = nearest_attention(q, self.share_heads(k), self.share_heads(v), self.n)
        return super().forward(query, *inputs, **options)

    def attend(self, q, k, v, mask=None, need_weights=False):
        """As in MultiHeadAttention, mixed with the values that were found."""
        near, weights = super().attend(q, k, v, mask, need_weights)
        if self.found is None:
            return near, weights
        gate = self.gate.sigmoid()
        return (1 - gate) * near + gate * self.found, weights  # (B, H, T, K)


class MemorizingLanguageModel(RecurrentLanguageModel):
    """A recurrent language model whose last layer also searches everything that it has ever read.

    reach: as in RecurrentLanguageModel; n: how many neighbours. Unlike in the paper, keys are not
    normalised, and they are computed again from the stored states.
    """

    def __init__(self, config: ModelConfig, reach: int, n: int):
        super().__init__(config, reach)
        last = nn.Module()
        last.layers = self.decoder.layers[-1:]
        exchange(last, MemorizingAttention, n=n)

    def keep(self, i: int, memory: Tensor, x: Tensor) -> Tensor:
        """The last layer keeps everything."""
        if i < self.config.n_decoder_layers - 1:
            return super().keep(i, memory, x)
        return torch.cat([memory, x], dim=1)

    def run_layer(self, layer: DecoderLayer, x: Tensor, memory: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D)."""
        if layer is self.decoder.layers[-1]:
            far, memory = memory.tensor_split([max(0, memory.size(1) - self.reach)], dim=1)
            layer.self_attention.far = layer.residuals[0].norm(far)
        return super().run_layer(layer, x, memory)
