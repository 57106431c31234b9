"""Language models that arrange the same blocks differently: four kinds of stack.

In one, every second layer is near-sighted (GPT-3, GPT-Neo); in one, the two sublayers run side by
side (GPT-J); in one, positions are added before each layer (Al-Rfou et al.); and one writes a
picture pixel by pixel (Image Transformer).
"""

import torch
from torch import Tensor, nn

from transformer_lib.cache import DecoderCache
from transformer_lib.config import PAD, ModelConfig
from transformer_lib.decoder import DecoderLayer
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.positional import LearnedEncoding, RotaryEmbedding


class NearLayer(DecoderLayer):
    """A decoder layer in which a token reads only the last `window` tokens, itself included."""

    def __init__(self, config: ModelConfig, window: int):
        super().__init__(config, cross_attention=False)
        self.window = window

    def forward(self, x, memory=None, src_mask=None, tgt_mask=None, cache=None):
        """As in DecoderLayer; tgt_mask: bool, (B or 1, 1, T, start + T)."""
        n_queries, n_keys = tgt_mask.shape[-2:]
        key = torch.arange(n_keys, device=x.device)
        query = key[n_keys - n_queries :, None]
        return super().forward(x, tgt_mask=tgt_mask & (query - key < self.window), cache=cache)


class BandedLanguageModel(LanguageModel):
    """Layers alternate: one reads the whole text, and the next only the last `window` tokens.

    GPT-3 (Brown et al. 2020) and GPT-Neo (Black et al. 2021, 256 tokens) do this. every=1: all
    layers are near-sighted, as in the Image Transformer (Parmar et al. 2018).
    """

    def __init__(self, config: ModelConfig, window: int, every: int = 2):
        super().__init__(config)
        for i in range(every - 1, config.n_decoder_layers, every):
            near = NearLayer(config, window)
            near.load_state_dict(self.decoder.layers[i].state_dict())  # initialised like the others
            self.decoder.layers[i] = near


class ParallelLayer(DecoderLayer):
    """Attention and feed-forward network side by side: both read the same normalised vector."""

    def __init__(self, config: ModelConfig):
        super().__init__(config, cross_attention=False)
        self.residuals = self.residuals[:1]

    def forward(self, x, memory=None, src_mask=None, tgt_mask=None, cache=None):
        """As in DecoderLayer, without a memory."""
        own = None if cache is None else cache.own

        def both(y):
            return self.self_attention(y, y, y, tgt_mask, cache=own)[0] + self.feed_forward(y)

        return self.residuals[0](x, both)


class PartlyRotary(RotaryEmbedding):
    """Turns the first d_turned numbers of a head and leaves the others without a position."""

    def __init__(self, d_turned: int, base: float = 10000.0):
        super().__init__(d_turned, base)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, H, T, K) -> (B, H, T, K)."""
        turned = super().forward(x[..., : self.d_head], start)
        return torch.cat([turned, x[..., self.d_head :]], dim=-1)


class SideBySideLanguageModel(LanguageModel):
    """GPT-J (Wang and Komatsuzaki 2021): parallel layers, rotary positions on a part of each head.

    config.positional is "none": the attention layers have their own. The output has a bias.
    """

    def __init__(self, config: ModelConfig, d_turned: int):
        super().__init__(config)
        self.output.bias = nn.Parameter(torch.zeros(config.vocab_size))
        for i in range(config.n_decoder_layers):
            layer = ParallelLayer(config)
            layer.load_state_dict(self.decoder.layers[i].state_dict(), strict=False)
            layer.self_attention.positions = PartlyRotary(d_turned)
            self.decoder.layers[i] = layer


class DeepLanguageModel(LanguageModel):
    """Positions before every layer, and a guess after every layer (Al-Rfou et al. 2019).

    config.positional is "none": each layer has a learned table of its own.
    """

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        tables = [LearnedEncoding(config.d_model, config.max_len) for _ in self.decoder.layers]
        self.places = nn.ModuleList(tables)

    def decode(self, ids: Tensor, cache: DecoderCache | None = None) -> Tensor:
        """ids: (B, T) -> hidden (B, T, D)."""
        return self.decode_all(ids, cache)[-1]

    def decode_all(self, ids: Tensor, cache: DecoderCache | None = None) -> list[Tensor]:
        """The output of each layer, after the final norm: n_layers times (B, T, D)."""
        start = 0 if cache is None else cache.length
        x, mask, hidden = self.embed(self.embedding(ids), start), self.mask(ids, start), []
        for i, (places, layer) in enumerate(zip(self.places, self.decoder.layers, strict=True)):
            own = None if cache is None else cache.layers[i]
            x = layer(places(x, start), tgt_mask=mask, cache=own)
            hidden.append(self.decoder.norm(x))
        return hidden


def losses_of_layers(
    model: DeepLanguageModel, batch: tuple[Tensor, Tensor], progress: float
) -> Tensor:
    """The mean of the last layer's loss and, early in training, the losses of those below it.

    Layer l of n counts until l / 2n of the training run is over, so in the second half only the
    last layer does. progress: from 0 to 1. batch: as in stream_loss.
    """
    read, predicted = batch
    counted, hidden = predicted != PAD, model.decode_all(read)
    n = len(hidden)
    taking_part = [h for level, h in enumerate(hidden, 1) if level == n or progress < level / n / 2]
    losses = [
        label_smoothed_cross_entropy(model.project(h[counted]), predicted[counted], 0.0, PAD)
        for h in taking_part
    ]
    return torch.stack(losses).mean()


def pixels_as_text(images: Tensor, labels: Tensor, levels: int = 17) -> Tensor:
    """Pictures (N, 1, height, width) with values from 0 to 1, and labels (N,), as ids (N, 1 + P).

    Raster order: row by row, each row from left to right. A pixel is one of `levels` shades, with
    ids 1 to levels (0 is padding); the label comes first, with an id above those.
    """
    shades = (images.flatten(1) * (levels - 1)).round().long() + 1  # (N, P)
    return torch.cat([labels[:, None] + levels + 1, shades], dim=1)


def text_as_pixels(ids: Tensor, levels: int = 17) -> Tensor:
    """ids: (N, P), as pixels_as_text makes them, without the label -> (N, P) from 0 to 1.

    A model may write an id that isn't a shade; it becomes the nearest shade.
    """
    return (ids - 1).clamp(0, levels - 1) / (levels - 1)


def from_gpt_neo(
    state: dict[str, Tensor], config: ModelConfig, window: int
) -> BandedLanguageModel:
    """A BandedLanguageModel with the weights of a GPTNeoForCausalLM from `transformers`.

    GPT-Neo does not divide its scores by sqrt(K), so w_q takes that factor; q, k and v have no
    biases.
    """
    ours = {
        "embedding.lookup.weight": state["transformer.wte.weight"],
        "output.weight": state["transformer.wte.weight"],
        "embed.positions.table": state["transformer.wpe.weight"],
    }
    scale = (config.d_model // config.n_heads) ** 0.5
    for kind in ("weight", "bias"):
        ours[f"decoder.norm.{kind}"] = state[f"transformer.ln_f.{kind}"]
    for i in range(config.n_decoder_layers):
        here, there = f"decoder.layers.{i}", f"transformer.h.{i}"
        for part in "qkv":
            weight = state[f"{there}.attn.attention.{part}_proj.weight"]
            ours[f"{here}.self_attention.w_{part}.weight"] = weight * (scale if part == "q" else 1)
            ours[f"{here}.self_attention.w_{part}.bias"] = torch.zeros(config.d_model)
        for name, other in (
            ("self_attention.w_o", "attn.attention.out_proj"), ("feed_forward.expand", "mlp.c_fc"),
            ("feed_forward.contract", "mlp.c_proj"), ("residuals.0.norm", "ln_1"),
            ("residuals.1.norm", "ln_2"),
        ):
            for kind in ("weight", "bias"):
                ours[f"{here}.{name}.{kind}"] = state[f"{there}.{other}.{kind}"]
    model = BandedLanguageModel(config, window)
    model.load_state_dict(ours)
    return model.eval()


def from_gpt_j(
    state: dict[str, Tensor], config: ModelConfig, d_turned: int
) -> SideBySideLanguageModel:
    """A SideBySideLanguageModel with the weights of a GPTJForCausalLM from `transformers`."""
    ours = {
        "embedding.lookup.weight": state["transformer.wte.weight"],
        "output.weight": state["lm_head.weight"], "output.bias": state["lm_head.bias"],
    }
    for kind in ("weight", "bias"):
        ours[f"decoder.norm.{kind}"] = state[f"transformer.ln_f.{kind}"]
    for i in range(config.n_decoder_layers):
        here, there = f"decoder.layers.{i}", f"transformer.h.{i}"
        for part, other in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
            ours[f"{here}.self_attention.w_{part}.weight"] = state[f"{there}.attn.{other}.weight"]
            ours[f"{here}.self_attention.w_{part}.bias"] = torch.zeros(config.d_model)
        for name, other in (("feed_forward.expand", "mlp.fc_in"),
                            ("feed_forward.contract", "mlp.fc_out"), ("residuals.0.norm", "ln_1")):
            for kind in ("weight", "bias"):
                ours[f"{here}.{name}.{kind}"] = state[f"{there}.{other}.{kind}"]
    model = SideBySideLanguageModel(config, d_turned)
    model.load_state_dict(ours)
    return model.eval()
