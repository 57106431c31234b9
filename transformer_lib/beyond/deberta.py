"""DeBERTa: each attention keeps positions apart from contents; absolute ones come only at the end.

The scores themselves are `encoders.disentangled_scores` (He et al. 2021, eq. 4).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond.encoders import disentangled_scores, from_bert
from transformer_lib.beyond.exchange import masked_softmax
from transformer_lib.config import ModelConfig
from transformer_lib.masks import padding_mask
from transformer_lib.models.classifier import MaskedLanguageModel


class DisentangledAttention(MultiHeadAttention):
    """Self-attention whose scores sum content to content, content to distance, and the reverse.

    distances: (2R, D), one vector for each distance from -R to R - 1, shared by all layers; each
    layer maps them in its own way. released: measure the distance in the third term the other way
    round, as the published code and weights do.
    """

    def __init__(self, config: ModelConfig, distances: nn.Parameter, released: bool = False):
        super().__init__(config.d_model, config.n_heads, config.attention_dropout)
        self.distances, self.released = distances, released
        self.w_q_places = nn.Linear(config.d_model, config.d_model)
        self.w_k_places = nn.Linear(config.d_model, config.d_model, bias=False)

    def attend(self, q, k, v, mask=None, need_weights=False):
        """As in MultiHeadAttention. q, k, v: (B, H, T, K), of one text; mask: bool."""
        q_places, k_places = (
            self.split_heads(w(self.distances)[None])[0]  # (H, 2R, K)
            for w in (self.w_q_places, self.w_k_places)
        )
        scores = disentangled_scores(q, k, q_places, k_places, self.released)  # (B, H, T, T)
        weights = F.dropout(masked_softmax(scores, mask), self.dropout, self.training)
        return weights @ v, weights if need_weights else None


class Deberta(MaskedLanguageModel):
    """A masked language model with disentangled attention (He et al. 2021, DeBERTa).

    reach: R, beyond which all distances are treated as equal. absolute: add a learned vector for
    each position to the last layer's output, before the token is guessed. (The paper's decoder runs
    the last layer again with the positions in its queries; this sum is a simpler form of that.)
    """

    def __init__(self, config: ModelConfig, reach: int = 32, absolute=True, released=False):
        if config.positional != "none":
            raise ValueError(
                f"positional is {config.positional!r}; DeBERTa needs 'none': its places are in "
                "the attention."
            )
        super().__init__(config)
        distances = nn.Parameter(torch.empty(2 * reach, config.d_model).normal_(std=0.02))
        for layer in self.encoder.layers:
            layer.self_attention = DisentangledAttention(config, distances, released)
        shape = config.max_len, config.d_model
        self.places = nn.Parameter(torch.zeros(shape)) if absolute else None

    def encode(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids: (B, T) -> hidden (B, T, D)."""
        hidden = self.encoder(self.embed(self.embedding(ids)), padding_mask(ids))
        return hidden if self.places is None else hidden + self.places[: ids.size(1)]


def from_deberta(state: dict[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights of a DebertaForMaskedLM of `transformers`, under Deberta's names.

    That model keeps the three maps of a head side by side in one matrix, and its keys have no bias.
    """
    width, heads, n_layers = config.d_model, config.n_heads, config.n_encoder_layers
    theirs = {
        name.replace("deberta.", "bert.", 1): tensor for name, tensor in state.items()
    }
    theirs["bert.embeddings.position_embeddings.weight"] = None
    theirs["bert.embeddings.token_type_embeddings.weight"] = None
    ours_only = {}
    for i in range(n_layers):
        there, here = f"bert.encoder.layer.{i}.attention", f"encoder.layers.{i}.self_attention"
        maps = theirs[f"{there}.self.in_proj.weight"].view(heads, 3, width // heads, width)
        biases = {
            "query": theirs[f"{there}.self.q_bias"], "value": theirs[f"{there}.self.v_bias"],
            "key": torch.zeros(width),
        }
        for part, name in enumerate(("query", "key", "value")):
            theirs[f"{there}.self.{name}.weight"] = maps[:, part].flatten(0, 1)
            theirs[f"{there}.self.{name}.bias"] = biases[name].flatten()
        ours_only[f"{here}.distances"] = theirs["bert.encoder.rel_embeddings.weight"]
        ours_only[f"{here}.w_k_places.weight"] = theirs[f"{there}.self.pos_proj.weight"]
        for kind in ("weight", "bias"):
            ours_only[f"{here}.w_q_places.{kind}"] = theirs[f"{there}.self.pos_q_proj.{kind}"]
    ours = from_bert(theirs, n_layers) | ours_only
    return {name: tensor for name, tensor in ours.items() if tensor is not None}
