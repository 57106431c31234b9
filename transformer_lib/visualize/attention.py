"""Attention weights: what all views of them share, and the heatmap."""

import json
from types import ModuleType

import numpy as np

from transformer_lib.visualize.kinds import Chart, Labels, Numbers, Title
from transformer_lib.visualize.numbers import to_array
from transformer_lib.visualize.theme import ROLE_COLOURS, themed_altair


def stack_layers(weights: Numbers, name: str = "weights") -> np.ndarray:
    """Weights of one head, one layer or all layers as (layers, H, Tq, Tk) float numbers."""
    if isinstance(weights, (list, tuple)) and len(weights) and hasattr(weights[0], "detach"):
        shapes = {tuple(layer.shape) for layer in weights}
        if len(shapes) > 1:
            raise ValueError(f"all layers of {name} must have one shape, got {sorted(shapes)}.")
        array = np.stack([to_array(layer) for layer in weights])  # (layers, ...)
    else:
        array = to_array(weights, name)
    if array.ndim == 5 and array.shape[1] == 1:
        array = array[:, 0]  # a batch of one sentence
    if not 2 <= array.ndim <= 4 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (Tq, Tk), (H, Tq, Tk) or (layers, H, Tq, Tk) for one "
            f"sentence, got {tuple(array.shape)}."
        )
    array = array.reshape((1,) * (4 - array.ndim) + array.shape).astype(float)
    other = array[~np.isnan(array) & ((array < -1e-3) | (array > 1.001))]
    if name == "weights" and other.size:
        raise ValueError(
            f"weights holds {other[0]:.3g}; attention weights lie between 0 and 1: pass what the "
            "softmax gives, not the scores before it."
        )
    return array


def check_tokens(
    weights: np.ndarray, query_tokens: Labels | None, key_tokens: Labels | None,
    name: str = "weights",
) -> None:
    """Raise ValueError unless each query and key has a token. weights: (layers, H, Tq, Tk)."""
    for tokens, size, kind in (
        (query_tokens, weights.shape[2], "query"),
        (key_tokens, weights.shape[3], "key"),
    ):
        if tokens is None or len(tokens) != size:
            given = "no" if tokens is None else len(tokens)
            raise ValueError(
                f"{name} has {size} {kind} positions, but there are {given} {kind} tokens: "
                "pass one token per position, special tokens included."
            )


def _strongest(
    weights: np.ndarray, query_tokens: Labels, key_tokens: Labels, limit: int = 12
) -> str:
    """Where each query of a head looks, in words: the core of every text alternative."""
    first = np.nan_to_num(weights)  # (Tq, Tk)
    pairs = [
        f"‘{query}’ to ‘{key_tokens[row.argmax()]}’ ({row.max():.2f})"
        for query, row in zip(query_tokens[:limit], first, strict=False)
    ]
    more = f", and {len(query_tokens) - limit} more queries" if len(query_tokens) > limit else ""
    return ", ".join(pairs) + more


def describe_attention(
    weights: np.ndarray, query_tokens: Labels, key_tokens: Labels, layer: int = 0, head: int = 0
) -> str:
    """The text alternative: sizes, and where one head looks. weights: (layers, H, Tq, Tk)."""
    layers, heads, n_queries, n_keys = weights.shape
    each = "one layer" if layers == 1 else f"each of {layers} layers"
    which = "" if layers * heads == 1 else f" of {heads} head{'s' * (heads > 1)} in {each}"
    where = "" if layers * heads == 1 else f" in layer {layer}, head {head}"
    return (
        f"Attention weights{which}, from {n_queries} query tokens to {n_keys} key tokens. "
        f"Strongest weight of each query{where}: "
        f"{_strongest(weights[layer, head], query_tokens, key_tokens)}."
    )


def attention_heatmap(
    weights: Numbers,
    query_tokens: Labels,
    key_tokens: Labels,
    title: Title | None = None,
    description: str | None = None,
    mask: Numbers | None = None,
    show_numbers: bool | None = None,
    layer: int = 0,
    head: int = 0,
) -> Chart:
    """Attention weights as an interactive heatmap: one row per query, one column per key.

    Pointing at a cell shows its number and lights up the query's row. Menus, which a keyboard
    reaches too, choose the query, and the layer and head where there are several.

    weights: (Tq, Tk), (H, Tq, Tk) or (layers, H, Tq, Tk), or a list of layers; rows sum to one.
    query_tokens, key_tokens: Tq and Tk strings; a token may occur more than once.
    mask: optional (..., Tq, Tk) booleans, True = may attend; masked cells are drawn grey.
    title: what the figure shows, ideally a finding. description: the text alternative; without it,
    the strongest weight of each query is named. layer, head: shown at first.
    show_numbers: write the weights into the cells (by default where there are at most 10 keys).
    Returns an Altair chart. Raises ValueError for any other shape.
    """
    alt = themed_altair()
    weights = stack_layers(weights)
    query_tokens, key_tokens = [list(map(str, tokens)) for tokens in (query_tokens, key_tokens)]
    check_tokens(weights, query_tokens, key_tokens)
    layers, heads, n_queries, n_keys = weights.shape
    if not (layer in range(layers) and head in range(heads)):
        raise ValueError(
            f"there is no layer {layer}, head {head}: weights has {layers} layers with {heads} "
            "heads each, counted from 0."
        )
    allowed = np.ones((n_queries, n_keys), dtype=bool)
    if mask is not None:
        mask = to_array(mask, "mask").astype(bool)
        try:
            allowed = np.broadcast_to(mask.reshape(mask.shape[-2:]), allowed.shape)
        except ValueError:
            raise ValueError(
                f"mask of shape {tuple(mask.shape)} does not fit weights of shape "
                f"{(n_queries, n_keys)}: pass (Tq, Tk) booleans, True = may attend."
            ) from None

    # One small record per cell; names are looked up in the chart, so that they are sent once.
    records = [
        {
            "layer": int(n),
            "head": int(h),
            "q": int(q),
            "k": int(k),
            "weight": round(float(weights[n, h, q, k]), 4) if allowed[q, k] else None,
        }
        for n, h, q, k in np.ndindex(weights.shape)
    ]
    # The position in front keeps repeated tokens apart; the axes hide it again.
    queries = [f"{i} {token}" for i, token in enumerate(query_tokens)]
    keys = [f"{i} {token}" for i, token in enumerate(key_tokens)]

    row = alt.selection_point(
        name="query_row",
        fields=["q"],
        on="pointerover",
        clear="pointerout",
        bind=alt.binding_select(
            options=[None, *range(n_queries)], labels=["all", *queries], name="Query "
        ),
    )
    chart = (
        alt.Chart(alt.InlineData(values=records))
        .transform_calculate(
            query=f"{json.dumps(queries)}[datum.q]", key=f"{json.dumps(keys)}[datum.k]"
        )
        .encode(
            x=alt.X("key:O", sort=keys, title="key", axis=_token_axis(alt, labelAngle=-45)),
            y=alt.Y("query:O", sort=queries, title="query", axis=_token_axis(alt)),
            opacity=alt.condition(row, alt.value(1), alt.value(0.3)),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("key:N"),
                alt.Tooltip("weight:Q", format=".4f"),
            ],
        )
    )
    colour = alt.condition(
        "datum.weight === null",
        alt.value(ROLE_COLOURS["masked"]),
        alt.Color("weight:Q", scale=alt.Scale(domain=[0, 1]), title="weight"),
    )
    chart_layers = [chart.mark_rect(invalid="show").encode(color=colour).add_params(row)]
    if show_numbers if show_numbers is not None else n_keys <= 10:
        ink = alt.condition("datum.weight > 0.72", alt.value("white"), alt.value("black"))
        text = alt.Text("weight:Q", format=".2f")
        numbers = chart.transform_filter("datum.weight !== null").mark_text()
        chart_layers.append(numbers.encode(text=text, color=ink))

    if title is None:
        opened = np.nan_to_num(weights[layer, head])
        q, k = np.unravel_index(opened.argmax(), (n_queries, n_keys))
        title = f"‘{query_tokens[q]}’ attends most to ‘{key_tokens[k]}’"
        title += "" if layers * heads == 1 else f" in layer {layer}, head {head}"
    step = max(16, min(36, 480 // n_keys))
    figure = alt.layer(*chart_layers).properties(
        title=title,
        description=description
        or describe_attention(weights, query_tokens, key_tokens, layer, head),
        width=step * n_keys,
        height=step * n_queries,
    )
    for name, size, first in (("layer", layers, layer), ("head", heads, head)):
        if size > 1:
            menu = alt.binding_select(options=list(range(size)), name=f"{name.capitalize()} ")
            choice = alt.param(name=f"chosen_{name}", value=first, bind=menu)
            figure = figure.add_params(choice).transform_filter(f"datum.{name} === {choice.name}")
    return figure


def _token_axis(alt: ModuleType, **options: object) -> object:
    token = "slice(datum.label, indexof(datum.label, ' ') + 1)"
    return alt.Axis(labelExpr=token, labelOverlap=False, grid=False, **options)
