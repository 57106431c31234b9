"""A trained run as a model of CTranslate2, the engine in C++ that OpenNMT serves its models with.

The folder holds what `ctranslate2.Translator` opens, and the run's tokenizer:

    tokenizer = tokenizers.Tokenizer.from_file("OUT/tokenizer.json")
    tokens = tokenizer.encode("Ein Hund läuft.").tokens
    found = ctranslate2.Translator("OUT").translate_batch([tokens])[0].hypotheses[0]
    text = tokenizer.decode([tokenizer.token_to_id(token) for token in found])

The weights are float32. CTranslate2 rounds them as it opens the folder: compute_type="int8".
"""

from pathlib import Path

import numpy as np
from torch import Tensor, nn

from transformer_lib.runs.export import require_known
from transformer_lib.runs.files import make_folder, replacing, sync
from transformer_lib.runs.pretrained import find_run, load_pretrained
from transformer_lib.tokenization import BOS, EOS, SPECIAL_TOKENS, UNK
from transformer_lib.translator import Translator

# The names of activations there; the other fields of ModelConfig are copied, whatever they are.
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh"}
CHOICES = {
    "norm": ("layer",),
    "eps": (1e-5,),  # CTranslate2 reads no other for a translation model
    "positional": ("sinusoidal", "learned"),
    "activation": tuple(ACTIVATIONS),
    "n_kv_heads": (None,),
}


def export_ctranslate2(run: str | Path, folder: str | Path) -> None:
    """Write a run of results/, or any run folder, as a new folder that CTranslate2 opens.

    Raises ImportError without CTranslate2, and ValueError when the run does not exist or has a
    part that can't be converted, or when `folder` already exists.
    """
    folder = Path(folder)
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} already exists: choose another name, or remove it first.")
    translator = load_pretrained(find_run(run))
    spec = specification(translator)
    make_folder(folder.absolute().parent)
    with replacing(folder) as partial:
        partial.mkdir()
        spec.save(str(partial))
        translator.tokenizer.save(str(partial / "tokenizer.json"))
        for file in partial.iterdir():
            sync(file)


def specification(translator: Translator):
    """The model and its vocabulary as CTranslate2's TransformerSpec.

    It reads tokens without <eos>, which it adds itself. Raises as export_ctranslate2 does.
    """
    model, tokenizer = translator.model, translator.tokenizer
    c = model.config
    require_known(c, CHOICES, "the export to CTranslate2")
    try:
        from ctranslate2.specs import TransformerSpec
        from ctranslate2.specs.common_spec import Activation
    except ImportError:
        raise ImportError(
            "CTranslate2 is not installed: pip install ctranslate2 (or -r "
            "benchmarks/requirements.txt, for the version that the tests know)."
        ) from None
    spec = TransformerSpec.from_config(
        (c.n_encoder_layers, c.n_decoder_layers), c.n_heads, pre_norm=c.norm_first,
        activation=Activation[ACTIVATIONS[c.activation]],
    )
    for theirs, ours in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        theirs.position_encodings.encodings = _array(model.embed.positions.table)
        theirs.scale_embeddings = c.scale_embeddings
        if c.norm_first:
            _copy_norm(theirs.layer_norm, ours.norm)
        for their_layer, layer in zip(theirs.layer, ours.layers, strict=True):
            _copy_layer(their_layer, layer)
    spec.encoder.embeddings[0].weight = _array(model.src_embedding.lookup.weight)
    spec.decoder.embeddings.weight = _array(model.tgt_embedding.lookup.weight)
    _copy_linear(spec.decoder.projection, model.output)
    tokens = [tokenizer.id_to_token(i) for i in range(c.vocab_size)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (
        SPECIAL_TOKENS[i] for i in (BOS, EOS, UNK)
    )
    spec.config.decoder_start_token = SPECIAL_TOKENS[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    return spec


def _copy_layer(theirs, ours: nn.Module) -> None:
    own, feed_forward = ours.self_attention, ours.feed_forward
    _copy_linear(theirs.self_attention.linear[0], own.w_q, own.w_k, own.w_v)
    _copy_linear(theirs.self_attention.linear[1], own.w_o)
    norms = [theirs.self_attention.layer_norm, theirs.ffn.layer_norm]
    if hasattr(ours, "cross_attention"):
        cross = ours.cross_attention
        _copy_linear(theirs.attention.linear[0], cross.w_q)
        _copy_linear(theirs.attention.linear[1], cross.w_k, cross.w_v)
        _copy_linear(theirs.attention.linear[2], cross.w_o)
        norms.insert(1, theirs.attention.layer_norm)
    _copy_linear(theirs.ffn.linear_0, feed_forward.expand)
    _copy_linear(theirs.ffn.linear_1, feed_forward.contract)
    for their_norm, residual in zip(norms, ours.residuals, strict=True):
        _copy_norm(their_norm, residual.norm)


def _copy_linear(theirs, *ours: nn.Linear) -> None:
    """One linear map of theirs holds several of ours, one above the other."""
    theirs.weight = np.concatenate([_array(x.weight) for x in ours])
    if ours[0].bias is not None:
        theirs.bias = np.concatenate([_array(x.bias) for x in ours])


def _copy_norm(theirs, ours: nn.Module) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> np.ndarray:
    """A copy in float32."""
    return tensor.detach().float().cpu().numpy().copy()
