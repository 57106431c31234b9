"""T5's positions: each head learns one number for each distance (Raffel et al. 2020, sec. 2.1).

The module also holds the few other changes that T5 made to the Transformer of 2017.
"""

import math

import torch
from torch import Tensor, nn

from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer
from transformer_lib.positional import PositionalScheme


def distance_bucket(
    distance: Tensor, n_buckets: int = 32, max_distance: int = 128, both_ways: bool = True
) -> Tensor:
    """The bucket of key position - query position, any shape of integers.

    Half of the buckets hold one short distance each. Long distances share the other half, which are
    spaced logarithmically, and all from max_distance on are in the last. both_ways: half of all
    buckets are for keys after the query; otherwise such keys count as distance 0, and a causal mask
    hides them.
    """
    first = torch.zeros_like(distance)
    if both_ways:
        n_buckets //= 2
        first, away = (distance > 0) * n_buckets, distance.abs()
    else:
        away = (-distance).clamp(min=0)
    exact = n_buckets // 2
    growth = (away.clamp(min=1) / exact).log() / math.log(max_distance / exact)
    far = (exact + (growth * (n_buckets - exact)).long()).clamp(max=n_buckets - 1)
    return first + torch.where(away < exact, away, far)


class RelativeBias(PositionalScheme):
    """Adds a learned number to each score, one for each head and bucket of distances."""

    def __init__(self, n_heads: int, both_ways: bool, n_buckets: int = 32, max_distance: int = 128):
        super().__init__()
        self.both_ways, self.n_buckets, self.max_distance = both_ways, n_buckets, max_distance
        self.table = nn.Embedding(n_buckets, n_heads)
        nn.init.zeros_(self.table.weight)  # at first all distances are equal

    def bias(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor:
        """The numbers to add to the scores, (1, H, n_queries, n_keys); query 0 is at `start`."""
        device = self.table.weight.device
        query = torch.arange(start, start + n_queries, device=device)
        distance = torch.arange(n_keys, device=device) - query[:, None]  # (Tq, Tk)
        bucket = distance_bucket(distance, self.n_buckets, self.max_distance, self.both_ways)
        return self.table(bucket).permute(2, 0, 1)[None]  # (Tq, Tk, H) -> (1, H, Tq, Tk)


def add_relative_bias(model: Transformer) -> Transformer:
    """One table for all encoder layers, which look both ways, and one for all decoder layers."""
    for stack, both_ways in ((model.encoder, True), (model.decoder, False)):
        shared = RelativeBias(model.config.n_heads, both_ways)
        for layer in stack.layers:
            layer.self_attention.positions = shared
    return model


def t5_config(given: dict) -> ModelConfig:
    """The sizes of a T5 (`transformers` config.to_dict()), as our configuration.

    Raises ValueError where our heads, d_model / n_heads wide, can't hold its heads (3B and 11B).
    """
    inner = given["d_kv"] * given["num_heads"]
    if inner != given["d_model"]:
        raise ValueError(
            f"this T5 has {given['num_heads']} heads of width {given['d_kv']}, {inner} in all, and "
            f"d_model {given['d_model']}; ours needs the two equal: use T5 small, base or large."
        )
    return ModelConfig(
        given["vocab_size"],
        d_model=given["d_model"],
        n_heads=given["num_heads"],
        d_ff=given["d_ff"],
        n_encoder_layers=given["num_layers"],
        n_decoder_layers=given["num_decoder_layers"],
        dropout=0.0,
        norm="rms",
        eps=given["layer_norm_epsilon"],
        positional="none",  # add_relative_bias brings them
        bias=False,
        scale_embeddings=False,
    )


def from_t5(state: dict[str, Tensor], config: ModelConfig) -> Transformer:
    """A T5's weights in our Transformer, which then computes the same logits.

    T5 does not divide its scores by sqrt(d_k), so w_q takes that factor; it divides the decoder's
    output by sqrt(d_model) before the shared matrix, so the last norm's gain takes that.
    """
    model = add_relative_bias(Transformer(config)).eval()
    ours = {"src_embedding.lookup.weight": state["shared.weight"]}
    for stack, blocks in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        ours[f"{stack}.norm.weight"] = state[f"{stack}.final_layer_norm.weight"]
        for i in range(len(blocks)):
            here, there = f"{stack}.layers.{i}", f"{stack}.block.{i}.layer"
            attentions = {"self_attention": "0.SelfAttention"}
            if stack == "decoder":
                attentions["cross_attention"] = "1.EncDecAttention"
            for name, other in attentions.items():
                for part in "qkvo":
                    weight = state[f"{there}.{other}.{part}.weight"]
                    scale = math.sqrt(config.d_model // config.n_heads) if part == "q" else 1.0
                    ours[f"{here}.{name}.w_{part}.weight"] = weight * scale
            last = len(attentions)
            network = f"{there}.{last}.DenseReluDense"
            ours[f"{here}.feed_forward.expand.weight"] = state[f"{network}.wi.weight"]
            ours[f"{here}.feed_forward.contract.weight"] = state[f"{network}.wo.weight"]
            for j in range(last + 1):
                norm = state[f"{there}.{j}.layer_norm.weight"]
                ours[f"{here}.residuals.{j}.norm.weight"] = norm
            table = state[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
            ours[f"{here}.self_attention.positions.table.weight"] = table
    ours["decoder.norm.weight"] = ours["decoder.norm.weight"] * config.d_model**-0.5
    for name in ("tgt_embedding.lookup.weight", "output.weight"):
        ours[name] = ours["src_embedding.lookup.weight"]
    model.load_state_dict(ours)
    return model
