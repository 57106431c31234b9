"""Attention as BertViz draws it (Vig 2019), with our tensors and a text alternative.

BertViz gets a frame of its own, `bertviz_frame.html`, so that its names, its style and its
libraries clash with nothing else on the page. The numbers are next to the frame as JSON: the pages
draw them with book/_static/live/attention_view.js, which follows the page and fits a phone.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.visualize.attention import check_tokens, describe_attention, stack_layers
from transformer_lib.visualize.kinds import Labels, Numbers, Page

FRAME = Path(__file__).with_name("bertviz_frame.html")
KINDS = ("encoder", "decoder", "cross")
# Fixed sizes in BertViz's script for the model view, and what they become where room is scarce.
NARROWER = {
    "const DIV_WIDTH = 970;": "const DIV_WIDTH = Math.max(320, Math.min(970, innerWidth - 16));",
    "7 * (12 / config.totalHeads)": "7 * (12 / config.totalHeads) * Math.min(1, DIV_WIDTH / 600)",
}


def head_view(
    weights: Numbers,
    query_tokens: Labels,
    key_tokens: Labels | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[object] | None = None,
    description: str | None = None,
) -> Page:
    """BertViz's head view: lines from each query to the keys, all heads of a layer at once.

    weights: (Tq, Tk), (H, Tq, Tk), (layers, H, Tq, Tk) or a list of layers. query_tokens: Tq
    strings. key_tokens: Tk strings, for cross-attention.
    weights may also be a dict of any of "encoder" (layers, H, S, S), "decoder" (layers, H, T, T)
    and "cross" (layers, H, T, S): then query_tokens are T target tokens and key_tokens S source
    tokens, and a menu chooses among the three.
    layer, heads: selected at first. description: the text alternative, written here if left out.
    Returns an IPython HTML object. Source: Vig 2019, arXiv:1906.05714.
    """
    import bertviz

    parts = _parts(weights, query_tokens, key_tokens)
    _require_inside(parts, layer, heads)
    page = bertviz.head_view(
        **_bertviz_arguments(parts), layer=layer, heads=heads, html_action="return"
    ).data
    data = {"view": "head", "layer": layer or 0, "parts": parts}
    if heads is not None and len(heads) == 1:
        data["head"] = heads[0]
    return _figure("Head view", page, data, description)


def _require_inside(
    parts: list[dict], layer: int | None, heads: Sequence[object] | None
) -> None:
    """ValueError for a layer or a head that the weights do not have."""
    shapes = [tuple(part["weights"].shape[:2]) for part in parts]
    n_layers, n_heads = map(min, zip(*shapes, strict=True))
    among = range(n_heads) if heads is None else heads
    known = among and {*among} <= {*range(n_heads)} and len({*among}) == len(among)
    if layer not in (None, *range(n_layers)) or not known:
        raise ValueError(
            f"layer is {layer}, heads is {heads}: weights has {n_layers} layers with "
            f"{n_heads} heads each, counted from 0; name at least one head, each once, or leave "
            "heads out."
        )


def model_view(
    weights: Numbers,
    query_tokens: Labels,
    key_tokens: Labels | None = None,
    *,
    description: str | None = None,
) -> Page:
    """BertViz's model view: a small picture of every head in every layer; a click enlarges one.

    Takes what `head_view` takes. Returns an IPython HTML object.
    Source: Vig 2019, arXiv:1906.05714.
    """
    import bertviz

    parts = _parts(weights, query_tokens, key_tokens)
    page = bertviz.model_view(
        **_bertviz_arguments(parts), display_mode="light", html_action="return"
    ).data
    for given, narrower in NARROWER.items():
        page = page.replace(given, narrower)
    return _figure("Model view", page, {"view": "model", "layer": 0, "parts": parts}, description)


def neuron_view(
    queries: Numbers,
    keys: Numbers,
    weights: Numbers,
    query_tokens: Labels,
    key_tokens: Labels | None = None,
    *,
    layer: int = 0,
    head: int = 0,
    causal: bool = False,
    description: str | None = None,
) -> Page:
    """BertViz's neuron view: how the numbers of query and key make up one attention weight.

    queries: (layers, H, Tq, K) or (H, Tq, K). keys: the same with Tk. weights: (layers, H, Tq, Tk)
    or (H, Tq, Tk). query_tokens: Tq strings. key_tokens: Tk strings, for cross-attention.
    layer, head: shown at first. causal: hide the keys after a query's own position.
    Returns an IPython HTML object. Source: Vig 2019, arXiv:1906.05714.
    """
    import torch
    from bertviz import neuron_view as bertviz_neuron_view

    (part,) = _parts(weights, query_tokens, key_tokens)
    _require_inside([part], layer, [head])
    weights = part["weights"]
    queries, keys = stack_layers(queries, "queries"), stack_layers(keys, "keys")
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
            return _plain_tokens(part["queries"])

        def convert_tokens_to_ids(self, tokens):
            return list(range(len(tokens)))

    page = bertviz_neuron_view.show(
        Model(), "gpt2", Tokens(), " ", display_mode="light", layer=layer, head=head,
        html_action="return",
    ).data
    # "gpt2" adds no special tokens of its own, but assumes a causal model and one set of tokens.
    # BertViz draws once its libraries have loaded, which is after this.
    page += (
        f"<script>window.bertviz_params.bidirectional = {json.dumps(not causal)};\n"
        "window.bertviz_params.attention.all.right_text = "
        f"{_script_json(_plain_tokens(part['keys']))};</script>"
    )
    data = {"view": "neuron", "layer": layer, "head": head, "parts": [part], "causal": causal}
    data["vectors"] = {"queries": queries, "keys": keys}
    return _figure("Neuron view", page, data, description)


def _parts(
    weights: Numbers, query_tokens: Labels, key_tokens: Labels | None
) -> list[dict]:
    """The attentions of a view: [{name, weights (layers, H, Tq, Tk), queries, keys}]."""
    if key_tokens is None and not isinstance(weights, dict):
        key_tokens = query_tokens
    if not isinstance(weights, dict):
        weights = {"weights": weights}
    elif not weights or set(weights) - set(KINDS):
        raise ValueError(
            "weights as a dict takes any of encoder, decoder and cross, "
            f"got {', '.join(map(str, weights)) or 'none of them'}."
        )
    parts = []
    for name, array in weights.items():
        array = stack_layers(array, name)
        queries = key_tokens if name == "encoder" else query_tokens
        keys = query_tokens if name == "decoder" else key_tokens
        check_tokens(array, queries, keys, name)
        part = {"name": name, "weights": array}
        parts.append(part | {"queries": list(map(str, queries)), "keys": list(map(str, keys))})
    return parts


def _bertviz_arguments(parts: list[dict]) -> dict:
    """The same as keyword arguments of BertViz."""
    import torch

    arguments = {}
    for part in parts:
        layers = [torch.from_numpy(layer[None]) for layer in part["weights"]]  # (1, H, Tq, Tk)
        queries, keys = _plain_tokens(part["queries"]), _plain_tokens(part["keys"])
        if part["name"] == "weights" and queries == keys:
            return {"attention": layers, "tokens": queries}
        kind = "cross" if part["name"] == "weights" else part["name"]
        arguments[f"{kind}_attention"] = layers
        if kind != "encoder":
            arguments["decoder_tokens"] = queries
        if kind != "decoder":
            arguments["encoder_tokens"] = keys
    return arguments


def _plain_tokens(tokens: Labels) -> list[str]:
    # The tokens go into a script, which a literal closing tag would end.
    return [str(token).replace("</", "<\u200b/") for token in tokens]


def _script_json(data: object) -> str:
    """JSON that is safe in a script; arrays are rounded to four digits, as in the heatmap."""
    numbers = json.dumps(data, default=lambda array: array.round(4).tolist(), ensure_ascii=False)
    return numbers.replace("<", "\\u003c")


def _figure(view: str, page: str, data: dict, description: str | None) -> Page:
    """BertViz's page in its frame, and the numbers that it shows."""
    from IPython.display import HTML

    if description is None:
        names = [part["name"] for part in data["parts"]]
        description = " ".join(
            ("" if name == "weights" else f"{name.capitalize()}: ")
            + describe_attention(part["weights"], part["queries"], part["keys"])
            for name, part in zip(names, data["parts"], strict=True)
        )
    description = " ".join(description.split())
    data["description"] = description
    document = FRAME.read_text(encoding="utf-8") + page
    return HTML(
        '<figure class="attention-figure" style="margin:0">\n'
        f'<script type="application/json">{_script_json(data)}</script>\n'
        f'<iframe title="{html.escape(f"{view}. {description}")}" loading="lazy" '
        'style="width:100%;height:26em;border:0;background:white" '
        f'srcdoc="{html.escape(document)}"></iframe>\n</figure>'
    )
