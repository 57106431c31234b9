"""Load weights of GPT-2, Llama and Decision Transformer under our names: the same numbers, so the
same logits. Only safetensors files are read, never pickled ones.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from transformer_lib.config import BlockConfig, ModelConfig
from transformer_lib.models.decision_transformer import DecisionTransformer
from transformer_lib.models.language_model import LanguageModel


def gpt2_config(given: dict) -> ModelConfig:
    """The sizes of a GPT-2, as our configuration. given: the hub's config.json, or the
    config.to_dict() of `transformers`."""
    return ModelConfig(
        given["vocab_size"],
        d_model=given["n_embd"],
        n_heads=given["n_head"],
        d_ff=given.get("n_inner") or 4 * given["n_embd"],
        n_encoder_layers=0,
        n_decoder_layers=given["n_layer"],
        max_len=given["n_positions"],
        dropout=0.0,
        positional="learned",
        activation="gelu_tanh",
        scale_embeddings=False,
    )


def llama_config(given: dict) -> ModelConfig:
    """The sizes of a Llama, as our configuration. given: its config.json, read as a dictionary."""
    return ModelConfig(
        given["vocab_size"],
        d_model=given["hidden_size"],
        n_heads=given["num_attention_heads"],
        n_kv_heads=given["num_key_value_heads"],
        d_ff=given["intermediate_size"],
        n_encoder_layers=0,
        n_decoder_layers=given["num_hidden_layers"],
        max_len=given["max_position_embeddings"],
        dropout=0.0,
        positional="rotary",
        norm="rms",
        eps=given["rms_norm_eps"],
        activation="swiglu",
        bias=False,
        scale_embeddings=False,
        tie_embeddings=given["tie_word_embeddings"],
    )


def _gpt2_layers(theirs: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """The weights of a GPT-2's layers and of the norm after them, named as in our decoder."""
    ours = {}
    for kind in ("weight", "bias"):
        ours[f"decoder.norm.{kind}"] = theirs[f"ln_f.{kind}"]
        for i in range(n_layers):
            here, there = f"decoder.layers.{i}", f"h.{i}"
            parts = theirs[f"{there}.attn.c_attn.{kind}"].chunk(3, -1)
            for name, part in zip(("w_q", "w_k", "w_v"), parts, strict=True):
                ours[f"{here}.self_attention.{name}.{kind}"] = part.T if part.dim() > 1 else part
            for name, other in (
                ("self_attention.w_o", "attn.c_proj"),
                ("feed_forward.expand", "mlp.c_fc"),
                ("feed_forward.contract", "mlp.c_proj"),
            ):
                tensor = theirs[f"{there}.{other}.{kind}"]
                ours[f"{here}.{name}.{kind}"] = tensor.T if tensor.dim() > 1 else tensor
            for j in range(2):
                ours[f"{here}.residuals.{j}.norm.{kind}"] = theirs[f"{there}.ln_{j + 1}.{kind}"]
    return ours


def from_gpt2(state: dict[str, Tensor], config: ModelConfig) -> LanguageModel:
    """A LanguageModel with the weights of a GPT-2.

    GPT-2 keeps its matrices transposed, (in, out), and those of q, k and v in one.
    """
    theirs = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    ours = {
        "embedding.lookup.weight": theirs["wte.weight"],
        "output.weight": theirs["wte.weight"],
        "embed.positions.table": theirs["wpe.weight"],
    }
    return _model(config, ours | _gpt2_layers(theirs, config.n_decoder_layers))


def from_llama(state: dict[str, Tensor], config: ModelConfig) -> LanguageModel:
    """A LanguageModel with the weights of a Llama.

    Llama's rotary positions turn feature i of a head together with i + K / 2; ours turn 2i with
    2i + 1, as the paper does. So the rows of w_q and w_k have to be reordered.
    """
    half = config.d_model // config.n_heads // 2  # K / 2

    def pairwise(weight):
        return weight.unflatten(0, (-1, 2, half)).transpose(1, 2).flatten(0, 2)

    ours = {
        "embedding.lookup.weight": state["model.embed_tokens.weight"],
        "output.weight": state["lm_head.weight"],
        "decoder.norm.weight": state["model.norm.weight"],
    }
    for i in range(config.n_decoder_layers):
        here, there = f"decoder.layers.{i}", f"model.layers.{i}"
        for name, other in (
            ("self_attention.w_q", "self_attn.q_proj"),
            ("self_attention.w_k", "self_attn.k_proj"),
            ("self_attention.w_v", "self_attn.v_proj"),
            ("self_attention.w_o", "self_attn.o_proj"),
            ("feed_forward.expand", "mlp.up_proj"),
            ("feed_forward.gate", "mlp.gate_proj"),
            ("feed_forward.contract", "mlp.down_proj"),
            ("residuals.0.norm", "input_layernorm"),
            ("residuals.1.norm", "post_attention_layernorm"),
        ):
            weight = state[f"{there}.{other}.weight"]
            turned = name.endswith(("w_q", "w_k"))
            ours[f"{here}.{name}.weight"] = pairwise(weight) if turned else weight
    return _model(config, ours)


def from_decision_transformer(
    state: dict[str, Tensor], config: BlockConfig, n_state: int, n_actions: int
) -> DecisionTransformer:
    """A DecisionTransformer with the weights of `transformers.DecisionTransformerModel`.

    Theirs maps actions linearly, while ours looks them up: for actions written as one-hot vectors,
    each row is a column of that map plus its bias. Theirs also adds GPT-2's first position to every
    token, after the norm: here it is part of the norm's bias.
    """
    theirs = {name.removeprefix("encoder."): tensor for name, tensor in state.items()}
    ours = {
        "embed_step.weight": theirs["embed_timestep.weight"],
        "embed_action.weight": theirs["embed_action.weight"].T + theirs["embed_action.bias"],
        "norm.weight": theirs["embed_ln.weight"],
        "norm.bias": theirs["embed_ln.bias"] + theirs["wpe.weight"][0],
    }
    for kind in ("weight", "bias"):
        ours[f"output.{kind}"] = theirs[f"predict_action.0.{kind}"]
        for name in ("embed_return", "embed_state"):
            ours[f"{name}.{kind}"] = theirs[f"{name}.{kind}"]
    model = DecisionTransformer(config, n_state, n_actions)
    model.load_state_dict(ours | _gpt2_layers(theirs, config.n_decoder_layers))
    return model.eval()


def load_gpt2(name: str = "gpt2") -> tuple[LanguageModel, Path]:
    """Load a published GPT-2 from the Hugging Face hub: our model, and the folder of its files.

    Raises OSError if the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download
    from safetensors.torch import load_file

    files = ["config.json", "model.safetensors", "vocab.json", "merges.txt", "tokenizer.json"]
    folder = Path(snapshot_download(name, allow_patterns=files))
    config = gpt2_config(json.loads((folder / "config.json").read_text(encoding="utf8")))
    return from_gpt2(load_file(folder / "model.safetensors"), config), folder


def _model(config: ModelConfig, state: dict[str, Tensor]) -> LanguageModel:
    """Load weights that must match the model's exactly; load_state_dict names those that don't."""
    with torch.device("meta"):
        model = LanguageModel(config)
    model.load_state_dict({k: v.contiguous() for k, v in state.items()}, assign=True)
    if config.tie_embeddings:
        model.output.weight = model.embedding.lookup.weight
    return model.eval()
