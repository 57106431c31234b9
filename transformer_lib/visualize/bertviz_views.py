"""Attention as BertViz draws it (Vig 2019), with our tensors and a text alternative."""

import html
import itertools
import json

from transformer_lib.visualize.attention import check_tokens, describe_attention, stack_layers

_figure_ids = itertools.count(1)


def head_view(
    weights=None,
    tokens=None,
    *,
    encoder=None,
    decoder=None,
    cross=None,
    encoder_tokens=None,
    decoder_tokens=None,
    layer=None,
    heads=None,
    description=None,
):
    """BertViz's head view: lines from each query to the keys, all heads of a layer at once.

    Self-attention: weights (layers, H, T, T), (H, T, T) or a list of layers, and T tokens.
    Encoder-decoder: any of encoder (layers, H, S, S), decoder (layers, H, T, T) and cross
    (layers, H, T, S), with encoder_tokens (S) and decoder_tokens (T).
    layer, heads: selected at first. description: the text alternative, made up when left out.
    Returns an IPython HTML object. Source: Vig 2019, arXiv:1906.05714.
    """
    import bertviz

    arguments, description = _bertviz_arguments(
        weights, tokens, encoder, decoder, cross, encoder_tokens, decoder_tokens, description
    )
    figure = bertviz.head_view(**arguments, layer=layer, heads=heads, html_action="return")
    return _accessible(figure.data, f"Head view. {description}")


def model_view(
    weights=None,
    tokens=None,
    *,
    encoder=None,
    decoder=None,
    cross=None,
    encoder_tokens=None,
    decoder_tokens=None,
    description=None,
):
    """BertViz's model view: a small picture of every head in every layer; a click enlarges one.

    Takes what `head_view` takes. The picture is 970 pixels wide and scrolls sideways.
    Returns an IPython HTML object. Source: Vig 2019, arXiv:1906.05714.
    """
    import bertviz

    arguments, description = _bertviz_arguments(
        weights, tokens, encoder, decoder, cross, encoder_tokens, decoder_tokens, description
    )
    figure = bertviz.model_view(**arguments, display_mode="light", html_action="return")
    return _accessible(figure.data, f"Model view. {description}", width=970)


def neuron_view(
    queries,
    keys,
    weights,
    tokens,
    key_tokens=None,
    *,
    layer=0,
    head=0,
    causal=False,
    description=None,
):
    """BertViz's neuron view: how query and key numbers multiply to one attention weight.

    queries: (layers, H, Tq, K) or (H, Tq, K). keys: the same with Tk. weights: (layers, H, Tq, Tk)
    or (H, Tq, Tk). tokens: Tq strings. key_tokens: Tk strings, for cross-attention.
    layer, head: shown at first. causal: hide the keys after a query's own position.
    Returns an IPython HTML object. Source: Vig 2019, arXiv:1906.05714.
    """
    import torch
    from bertviz import neuron_view as bertviz_neuron_view

    names = ("queries", "keys", "weights")
    queries, keys, weights = map(stack_layers, (queries, keys, weights), names)
    tokens = _plain_tokens(tokens)
    key_tokens = tokens if key_tokens is None else _plain_tokens(key_tokens)
    check_tokens(weights, tokens, key_tokens)
    for name, array, expected in (
        ("queries", queries, weights.shape[:3]),
        ("keys", keys, (*weights.shape[:2], weights.shape[3])),
    ):
        if array.shape[:3] != expected:
            raise ValueError(
                f"weights of shape {weights.shape} need {name} of shape {(*expected, 'K')}, "
                f"got {array.shape}."
            )
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"a query has {queries.shape[-1]} numbers and a key {keys.shape[-1]}: both need d_k."
        )

    # BertViz expects a model and a tokenizer; these two hand it the tensors that we have.
    class Model:
        def eval(self):
            return self

        def __call__(self, ids):
            layers = zip(weights, queries, keys, strict=True)
            parts = [[torch.from_numpy(part[None]) for part in layer] for layer in layers]
            return ([dict(zip(("attn", "queries", "keys"), part, strict=True)) for part in parts],)

    class Tokens:
        def tokenize(self, text):
            return tokens

        def convert_tokens_to_ids(self, tokens):
            return list(range(len(tokens)))

    page = bertviz_neuron_view.show(
        Model(), "gpt2", Tokens(), " ", display_mode="light", layer=layer, head=head,
        html_action="return",
    ).data  # fmt: skip
    # "gpt2" adds no special tokens of its own, but assumes a causal model and one set of tokens.
    if not causal:
        page = page.replace('"bidirectional": false', '"bidirectional": true')
    own, other = (f'"right_text": {json.dumps(part)}' for part in (tokens, key_tokens))
    page = page.replace(own, other)
    # Two neuron views on one page would otherwise share their numbers, and the first one's place.
    page = page.replace("window.bertviz_params", f"window.bertviz_params_{next(_figure_ids)}")
    page = page.replace('d3.select("#vis")', "d3.select(`#${config.rootDivId} #vis`)")
    page = page.replace(
        "attentionFilter.right_text.length",
        "Math.max(attentionFilter.left_text.length, attentionFilter.right_text.length)",
    )
    description = description or describe_attention(weights, tokens, key_tokens)
    return _accessible(page, f"Neuron view. {description}", width=1000)


def _plain_tokens(tokens):
    # The tokens go into a script, which a literal closing tag would end.
    return [str(token).replace("</", "<\u200b/") for token in tokens]


def _bertviz_arguments(
    weights, tokens, encoder, decoder, cross, encoder_tokens, decoder_tokens, description
):
    """Keyword arguments for BertViz, and a text alternative."""
    import torch

    pairs = {}  # BertViz's argument -> (our name, weights, query tokens, key tokens)
    if weights is not None:
        pairs["attention"] = ("weights", weights, tokens, tokens)
    if encoder is not None:
        pairs["encoder_attention"] = ("encoder", encoder, encoder_tokens, encoder_tokens)
    if decoder is not None:
        pairs["decoder_attention"] = ("decoder", decoder, decoder_tokens, decoder_tokens)
    if cross is not None:
        pairs["cross_attention"] = ("cross", cross, decoder_tokens, encoder_tokens)
    if not pairs or (weights is not None and len(pairs) > 1):
        raise ValueError(
            "pass either weights and tokens (self-attention), or any of encoder, decoder and "
            "cross with encoder_tokens and decoder_tokens."
        )
    arguments, sentences = {}, []
    for argument, (name, array, query_tokens, key_tokens) in pairs.items():
        array = stack_layers(array, name)
        check_tokens(array, query_tokens, key_tokens, name)
        arguments[argument] = [torch.from_numpy(layer[None]) for layer in array]  # (1, H, Tq, Tk)
        kind = "" if name == "weights" else f"{name.capitalize()}: "
        sentences.append(kind + describe_attention(array, list(query_tokens), list(key_tokens)))
    for name, given in (
        ("tokens", tokens),
        ("encoder_tokens", encoder_tokens),
        ("decoder_tokens", decoder_tokens),
    ):
        if given is not None and (name == "tokens") == (weights is not None):
            arguments[name] = _plain_tokens(given)
    return arguments, description or " ".join(sentences)


_SELECT_LABELS = {"layer": "Layer", "att_head": "Head", "filter": "Attention"}


def _accessible(page, description, width=None):
    """BertViz's HTML inside a named group, on white (it draws in black), its menus labelled."""
    from IPython.display import HTML

    for name, label in _SELECT_LABELS.items():
        page = page.replace(f'<select id="{name}">', f'<select id="{name}" aria-label="{label}">')
    label = html.escape(" ".join(description.split()))
    inner = f'<div style="min-width:{width}px">{page}</div>' if width else page
    return HTML(
        f'<div role="group" tabindex="0" aria-label="{label}" '
        f'style="background:#fff;color:#000;overflow-x:auto;padding:0.5em">{inner}</div>'
    )
