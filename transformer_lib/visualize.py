"""Figures: the last step of the flow, where what the model computed becomes something to look at.

Everything visual is decided here, once: the colour of each role, the chart theme, and how a figure
describes itself to somebody who cannot see it. The chapters only call these functions.

- `matrix` shows a small tensor as a table of numbers, `show_image` a diagram of `images/`.
- `attention_heatmap` and `line_chart` are Altair charts that answer to mouse and keyboard.
- `head_view`, `model_view` and `neuron_view` show attention with BertViz.
- `LiveCurve` draws metrics while a model trains.

Altair, matplotlib, BertViz and IPython are imported when a figure is drawn, so that importing
`transformer_lib` stays fast and works where none of them is installed.
"""

import html
import itertools
import json
import math
import re
import time
from pathlib import Path

import numpy as np

# One colour per role in every figure (the colour-blind-safe palette of Okabe and Ito, 2008).
ROLE_COLOURS = {
    "query": "#0072B2",  # blue
    "key": "#E69F00",  # orange
    "value": "#009E73",  # green
    "memory": "#CC79A7",  # purple
    "target": "#56B4E9",  # sky
    "masked": "#999999",  # grey
    "loss": "#D55E00",  # vermilion
}
# Neighbouring series of a chart differ in lightness as well as in hue.
SERIES_COLOURS = [
    ROLE_COLOURS[role] for role in ("query", "loss", "value", "key", "memory", "target", "masked")
]
SERIES_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3]]

IMAGES = Path(__file__).parents[1] / "images"
MAX_MATRIX_CELLS = 2_000

# The text of a chart takes the colour of the text around it, on a light page and on a dark one.
_TEXT = "currentColor"
_figure_ids = itertools.count(1)


# ------------------------------------------------------------------------------------------ theme


def use_theme():
    """Make Altair and matplotlib draw in the book's visual language. Charts call this themselves.

    Altair draws SVG on a transparent background, in the text colour of the page. A matplotlib
    figure is a fixed picture that cannot follow the page, so it keeps a white background.
    """
    import altair as alt
    import matplotlib

    alt.theme.register("transformer_lib", enable=True)(lambda: {"config": _altair_config()})
    # actions=False removes a menu that a keyboard cannot reach.
    alt.renderers.set_embed_options(actions=False, renderer="svg")

    matplotlib.rcParams.update(
        {
            "figure.facecolor": "white",
            "figure.figsize": (6.4, 3.6),
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.titlelocation": "left",
            "grid.alpha": 0.3,
            "axes.prop_cycle": matplotlib.cycler(color=SERIES_COLOURS),
            "image.cmap": "viridis",
        }
    )


def _altair_config():
    axis = {
        "labelColor": _TEXT,
        "titleColor": _TEXT,
        "domainColor": _TEXT,
        "tickColor": _TEXT,
        "gridColor": _TEXT,
        "gridOpacity": 0.15,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelLimit": 120,
    }
    labels = {"labelColor": _TEXT, "titleColor": _TEXT, "labelFontSize": 12, "titleFontSize": 13}
    return {
        "background": "transparent",
        "view": {"stroke": None, "continuousWidth": 480, "continuousHeight": 260},
        "axis": axis,
        "legend": labels,
        "header": labels,
        "title": {"color": _TEXT, "subtitleColor": _TEXT, "anchor": "start", "fontSize": 15},
        "text": {"color": _TEXT},
        "rule": {"color": _TEXT},
        "range": {"category": SERIES_COLOURS, "heatmap": {"scheme": "viridis"}},
    }


def _altair():
    import altair

    use_theme()
    return altair


# ----------------------------------------------------------------------------- tensors as numbers


def _array(tensor, name="tensor"):
    """A torch tensor, numpy array or nested list as a numpy array on the CPU."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if tensor.is_floating_point():
            tensor = tensor.float()  # numpy has no bfloat16
        return tensor.numpy()
    array = np.asarray(tensor)
    if array.dtype == object:
        raise TypeError(
            f"{name} must hold numbers in rows of equal length, got {type(tensor).__name__}: "
            "pass a tensor, an array or a nested list."
        )
    return array


def _cell(value):
    if isinstance(value, (bool, np.bool_)):
        return "✓" if value else "·"
    if isinstance(value, (int, np.integer)):
        return str(value)
    if math.isfinite(value):
        return f"{value:.2f}".replace("-0.00", "0.00")
    return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")


def matrix(tensor, row_labels=None, column_labels=None, title=None, role="query"):
    """A small tensor as a table of numbers, shaded by size, with its shape written below.

    tensor: any shape up to `MAX_MATRIX_CELLS` numbers, floats, integers or booleans. A vector is
    shown as one row; leading dimensions give one table per slice.
    row_labels, column_labels: one per row and column of a slice.
    role: a key of `ROLE_COLOURS` for positive numbers; negative ones are shaded in vermilion.
    Returns an IPython HTML object. Raises ValueError when a label is missing, the role is unknown
    or the tensor is too large to read.
    """
    from IPython.display import HTML

    array = _array(tensor)
    if role not in ROLE_COLOURS:
        raise ValueError(f"role must be one of {', '.join(ROLE_COLOURS)}, got {role!r}.")
    if array.size > MAX_MATRIX_CELLS:
        raise ValueError(
            f"the tensor of shape {array.shape} has {array.size} numbers; a table stays readable "
            f"up to {MAX_MATRIX_CELLS}. Slice it first."
        )
    leading, last = array.shape[:-2], array.shape[-2:] if array.ndim > 1 else (1, array.size)
    slices = array.reshape(math.prod(leading), *last)  # (slices, rows, columns)
    for labels, size, kind in (
        (row_labels, slices.shape[1], "row"),
        (column_labels, slices.shape[2], "column"),
    ):
        if labels is not None and len(labels) != size:
            raise ValueError(
                f"got {len(labels)} {kind}_labels for a tensor of shape {tuple(array.shape)}, "
                f"which has {size} {kind}s."
            )

    finite = np.abs(array[np.isfinite(array)].astype(float)) if array.size else np.zeros(0)
    largest = finite.max() if finite.size and finite.max() > 0 else 1.0
    names = [str(list(index)) if index else "" for index in np.ndindex(leading)]
    tables = [
        _table(part, name, row_labels, column_labels, largest, ROLE_COLOURS[role])
        for part, name in zip(slices, names, strict=True)
    ]
    shape = f"shape {tuple(array.shape)}"
    caption = f"<strong>{html.escape(title)}</strong>, {shape}" if title else shape
    return HTML(
        '<figure style="margin:0.5em 0">'
        '<div style="display:flex;flex-wrap:wrap;gap:1em;overflow-x:auto" tabindex="0">'
        f"{''.join(tables)}</div><figcaption>{caption}</figcaption></figure>"
    )


def _table(part, name, row_labels, column_labels, largest, colour):
    border = "padding:0.2em 0.5em;border:1px solid #8888;text-align:right;"
    head = ""
    if column_labels is not None:
        corner = "<td></td>" if row_labels is not None else ""
        cells = (f'<th scope="col">{html.escape(str(label))}</th>' for label in column_labels)
        head = f"<thead><tr>{corner}{''.join(cells)}</tr></thead>"
    body = []
    for i, row in enumerate(part):
        label = ""
        if row_labels is not None:
            label = f'<th scope="row">{html.escape(str(row_labels[i]))}</th>'
        cells = []
        for value in row:
            number = float(value)
            # At 40 % the shade never hides the number, whatever the colour of the page.
            share = min(abs(number) / largest, 1.0) if math.isfinite(number) else 0.0
            hue = colour if number >= 0 else ROLE_COLOURS["loss"]
            style = f"{border}background:{hue}{round(102 * share):02x}"
            cells.append(f'<td style="{style}">{_cell(value)}</td>')
        body.append(f"<tr>{label}{''.join(cells)}</tr>")
    caption = f"<caption>{name}</caption>" if name else ""
    return (
        '<table style="border-collapse:collapse;width:auto;margin:0;color:inherit;'
        f'font-variant-numeric:tabular-nums">{caption}{head}<tbody>{"".join(body)}</tbody></table>'
    )


# --------------------------------------------------------------------------------------- diagrams


def show_image(name, alt):
    """Display the diagram `images/<name>.svg` with a text alternative.

    The SVG becomes part of the page, so a drawing that uses `currentColor` follows light and dark
    mode. Its ids get a prefix of their own, so two diagrams on a page never share an arrowhead.
    alt: one or two sentences that say what the diagram shows.
    Raises FileNotFoundError that lists the diagrams there are, and ValueError without alt.
    """
    from IPython.display import HTML, display

    if not (isinstance(alt, str) and alt.strip()):
        raise ValueError(f"show_image({name!r}) needs alt: say in words what the diagram shows.")
    path = IMAGES / (name if name.endswith(".svg") else f"{name}.svg")
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in IMAGES.glob("*.svg"))) or "none"
        raise FileNotFoundError(f"no diagram {name!r} in {IMAGES}. Diagrams there: {known}.")
    svg = path.read_text(encoding="utf-8")
    display(HTML(f'<figure style="margin:1em 0;overflow-x:auto">{_inline(svg, alt)}</figure>'))


def _inline(svg, alt):
    svg = svg[svg.index("<svg") :]  # without the XML declaration and comments before it
    prefix = f"figure-{next(_figure_ids)}-"
    for name in set(re.findall(r'\bid="([^"]+)"', svg)):
        exact = re.escape(name)
        svg = re.sub(rf'\bid="{exact}"', f'id="{prefix}{name}"', svg)
        svg = re.sub(rf"url\((['\"]?)#{exact}\1\)", f"url(#{prefix}{name})", svg)
        svg = re.sub(rf'href="#{exact}"', f'href="#{prefix}{name}"', svg)
    opening, rest = svg.split(">", 1)
    # The caller's words replace whatever name the file gives itself.
    opening = re.sub(r'\s(?:role|aria-[a-z]+|style)="[^"]*"', "", opening)
    label = html.escape(" ".join(alt.split()))
    style = "max-width:100%;height:auto"
    return f'{opening} role="img" aria-label="{label}" style="{style}">{rest}'


# -------------------------------------------------------------------------------------- attention


def _stack_layers(weights, name="weights"):
    """Weights of one head, one layer or all layers as (layers, H, Tq, Tk) float numbers."""
    if isinstance(weights, (list, tuple)) and len(weights) and hasattr(weights[0], "detach"):
        shapes = {tuple(layer.shape) for layer in weights}
        if len(shapes) > 1:
            raise ValueError(f"every layer of {name} must have one shape, got {sorted(shapes)}.")
        array = np.stack([_array(layer) for layer in weights])  # (layers, ...)
    else:
        array = _array(weights, name)
    if array.ndim == 5 and array.shape[1] == 1:
        array = array[:, 0]  # a batch of one sentence
    if not 2 <= array.ndim <= 4 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (Tq, Tk), (H, Tq, Tk) or (layers, H, Tq, Tk) for one "
            f"sentence, got {tuple(array.shape)}."
        )
    return array.reshape((1,) * (4 - array.ndim) + array.shape).astype(float)


def _check_tokens(weights, query_tokens, key_tokens, name="weights"):
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


def _strongest(weights, query_tokens, key_tokens, limit=12):
    """Where each query of the first head looks, in words: the core of every text alternative."""
    first = np.nan_to_num(weights[0, 0])  # (Tq, Tk)
    pairs = [
        f"‘{query}’ to ‘{key_tokens[row.argmax()]}’ ({row.max():.2f})"
        for query, row in zip(query_tokens[:limit], first, strict=False)
    ]
    more = f", and {len(query_tokens) - limit} more queries" if len(query_tokens) > limit else ""
    return ", ".join(pairs) + more


def _describe_attention(weights, query_tokens, key_tokens):
    layers, heads, n_queries, n_keys = weights.shape
    which = "" if layers * heads == 1 else f" of {layers} layers with {heads} heads each"
    where = "" if layers * heads == 1 else " in layer 0, head 0"
    return (
        f"Attention weights{which}, from {n_queries} query tokens to {n_keys} key tokens. "
        f"Strongest weight of each query{where}: {_strongest(weights, query_tokens, key_tokens)}."
    )


def attention_heatmap(
    weights, query_tokens, key_tokens, title=None, description=None, mask=None, show_numbers=None
):
    """Attention weights as an interactive heatmap: one row per query, one column per key.

    Pointing at a cell shows its number and lights up the query's row. Menus, which a keyboard
    reaches too, choose the query, and the layer and head where there are several.

    weights: (Tq, Tk), (H, Tq, Tk) or (layers, H, Tq, Tk), or a list of layers; rows sum to one.
    query_tokens, key_tokens: Tq and Tk strings; a token may occur more than once.
    mask: optional (Tq, Tk) booleans, True = may attend; masked cells are drawn grey.
    title: what the figure shows, best a finding. description: the text alternative; without it,
    the strongest weight of each query is told. show_numbers: write the weights into the cells
    (by default where there are at most 10 keys).
    Returns an Altair chart. Raises ValueError for a shape that fits no case above.
    """
    alt = _altair()
    weights = _stack_layers(weights)
    query_tokens, key_tokens = [list(map(str, tokens)) for tokens in (query_tokens, key_tokens)]
    _check_tokens(weights, query_tokens, key_tokens)
    layers, heads, n_queries, n_keys = weights.shape
    allowed = np.ones((n_queries, n_keys), dtype=bool)
    if mask is not None:
        mask = _array(mask, "mask").astype(bool)
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
            "layer": int(layer),
            "head": int(head),
            "q": int(q),
            "k": int(k),
            "weight": round(float(weights[layer, head, q, k]), 4) if allowed[q, k] else None,
        }
        for layer, head, q, k in np.ndindex(weights.shape)
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
        alt.Color("weight:Q", scale=alt.Scale(domain=[0, 1], scheme="viridis"), title="weight"),
    )
    chart_layers = [chart.mark_rect(invalid="show").encode(color=colour).add_params(row)]
    if show_numbers if show_numbers is not None else n_keys <= 10:
        ink = alt.condition("datum.weight > 0.5", alt.value("black"), alt.value("white"))
        text = alt.Text("weight:Q", format=".2f")
        numbers = chart.transform_filter("datum.weight !== null").mark_text(fontSize=10)
        chart_layers.append(numbers.encode(text=text, color=ink))

    if title is None:
        q, k = np.unravel_index(np.nan_to_num(weights[0, 0]).argmax(), (n_queries, n_keys))
        title = f"‘{query_tokens[q]}’ attends most to ‘{key_tokens[k]}’"
        title += "" if layers * heads == 1 else " in layer 0, head 0"
    step = max(16, min(36, 480 // n_keys))
    figure = alt.layer(*chart_layers).properties(
        title=title,
        description=description or _describe_attention(weights, query_tokens, key_tokens),
        width=step * n_keys,
        height=step * n_queries,
    )
    for name, size in (("layer", layers), ("head", heads)):
        if size > 1:
            menu = alt.binding_select(options=list(range(size)), name=f"{name.capitalize()} ")
            choice = alt.param(name=f"chosen_{name}", value=0, bind=menu)
            figure = figure.add_params(choice).transform_filter(f"datum.{name} === {choice.name}")
    return figure


def _token_axis(alt, **options):
    token = "slice(datum.label, indexof(datum.label, ' ') + 1)"
    return alt.Axis(labelExpr=token, labelOverlap=False, grid=False, **options)


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
    queries, keys, weights = map(_stack_layers, (queries, keys, weights), names)
    tokens = _plain_tokens(tokens)
    key_tokens = tokens if key_tokens is None else _plain_tokens(key_tokens)
    _check_tokens(weights, tokens, key_tokens)
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
    description = description or _describe_attention(weights, tokens, key_tokens)
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
        array = _stack_layers(array, name)
        _check_tokens(array, query_tokens, key_tokens, name)
        arguments[argument] = [torch.from_numpy(layer[None]) for layer in array]  # (1, H, Tq, Tk)
        kind = "" if name == "weights" else f"{name.capitalize()}: "
        sentences.append(kind + _describe_attention(array, list(query_tokens), list(key_tokens)))
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


# ----------------------------------------------------------------------------------------- curves


def line_chart(
    rows,
    x,
    y,
    series=None,
    title=None,
    description=None,
    x_title=None,
    y_title=None,
    band=False,
    log_x=False,
    log_y=False,
    zero=False,
):
    """Lines of a metric, with the numbers under the pointer and a menu to look at one series.

    rows: dicts (as in `metrics.jsonl`) or a DataFrame. x, y, series: the keys to plot; rows
    without a finite x and y are left out. A click in the legend shows a series alone, too.
    x_title, y_title: axis titles with units. zero: make the y axis start at zero.
    band: several rows per x (say, seeds) give their mean as the line and min to max as a band.
    description: the text alternative; without it, first and last value of each series are told.
    Returns an Altair chart. Raises ValueError when no row can be drawn.
    """
    alt = _altair()
    if hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    rows = list(rows)
    fields = [field for field in (x, y, series) if field]
    data = [
        {field: _plain(row[field]) for field in fields}
        for row in rows
        if all(row.get(field) is not None for field in fields) and _finite(row[x], row[y])
    ]
    if not data:
        raise ValueError(
            f"none of {len(rows)} rows has finite {x!r} and {y!r}"
            + (f" and a {series!r}." if series else ".")
            + (f" Keys of the first row: {', '.join(map(str, rows[0]))}." if rows else "")
        )
    names = list(dict.fromkeys(row[series] for row in data)) if series else []

    x_scale = alt.Scale(type="log", nice=False) if log_x else alt.Scale(zero=False, nice=False)
    y_scale = alt.Scale(type="log", nice=False) if log_y else alt.Scale(zero=zero)
    y_field = f"mean({y}):Q" if band else f"{y}:Q"
    y_title = y_title or y
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X(f"{x}:Q", title=x_title or x, scale=x_scale)
    )
    line = {"y": alt.Y(y_field, title=y_title, scale=y_scale)}
    tooltip = [alt.Tooltip(f"{x}:Q", title=x_title or x)]
    tooltip.append(alt.Tooltip(y_field, title=y_title, format=".4~g"))
    params = []
    if series:
        colours = alt.Scale(domain=names, range=SERIES_COLOURS)
        dashes = alt.Scale(domain=names, range=SERIES_DASHES)
        legend = alt.Legend(symbolType="stroke", symbolOpacity=1, symbolSize=300)
        colour = alt.Color(f"{series}:N", scale=colours, title=series, legend=legend)
        base = base.encode(color=colour)
        # Never by colour alone: each series has a dash pattern of its own.
        line["strokeDash"] = alt.StrokeDash(
            f"{series}:N", scale=dashes, title=series, legend=legend
        )
        tooltip.insert(0, alt.Tooltip(f"{series}:N"))
        menu = alt.binding_select(options=[None, *names], labels=["all", *names], name="Show ")
        clicked = alt.selection_point(name="legend_choice", fields=[series], bind="legend")
        chosen = alt.selection_point(name="menu_choice", fields=[series], bind=menu)
        params = [clicked, chosen] if len(names) > 1 else []

    near = alt.selection_point(
        name="near", fields=[x], nearest=True, on="pointerover", clear="pointerout", empty=False
    )

    def visible(opacity):
        if not params:
            return alt.value(opacity)
        return alt.condition(clicked & chosen, alt.value(opacity), alt.value(opacity / 8))

    curves = base.mark_line(strokeWidth=2).encode(**line, opacity=visible(1))
    dots = base.mark_point(size=50, filled=True).encode(
        y=line["y"], tooltip=tooltip, opacity=alt.condition(near, alt.value(1), alt.value(0))
    )
    if params:
        dots = dots.transform_filter(clicked & chosen)  # no tooltip for a series put aside
    chart_layers = [curves.add_params(*params), dots.add_params(near)]
    if band:
        low, high = alt.Y(f"min({y}):Q", title=y_title, scale=y_scale), alt.Y2(f"max({y}):Q")
        chart_layers.insert(0, base.mark_area().encode(y=low, y2=high, opacity=visible(0.25)))
    return alt.layer(*chart_layers).properties(
        title=title or f"{y_title} by {x_title or x}",
        description=description or _describe_curves(data, x, y, series),
        width="container",
        height=260,
    )


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def _finite(*values):
    return all(math.isfinite(value) for value in values)


def _describe_curves(data, x, y, series):
    parts = []
    for name in dict.fromkeys(row.get(series) for row in data):
        rows = sorted((row for row in data if row.get(series) == name), key=lambda row: row[x])
        first, last = rows[0], rows[-1]
        parts.append(
            (f"{name}: " if series else "")
            + f"{first[y]:.4g} at {first[x]:.6g} to {last[y]:.4g} at {last[x]:.6g}"
        )
    return f"Line chart of {y} by {x}. " + "; ".join(parts) + "."


class LiveCurve:
    """A small chart that grows while a model trains: pass it the metrics, as often as you like.

        curve = LiveCurve("step", ["train_loss", "valid_loss"])
        for metrics in train(...):
            curve(metrics)
        curve.draw()

    It redraws at most once every `seconds`; rows may hold only some of the metrics. It works in
    Colab and Jupyter, and leaves the last picture in the notebook; elsewhere it prints a line.
    """

    def __init__(self, x="step", y=("loss",), title="Training", seconds=1.0):
        self.x, self.y = x, [y] if isinstance(y, str) else list(y)
        self.title, self.seconds = title, seconds
        self.points = {name: [] for name in self.y}
        self.drawn_at = -math.inf
        self.handle = None

    def __call__(self, metrics):
        for name, points in self.points.items():
            value = metrics.get(name)
            if value is not None and _finite(value):
                points.append((float(metrics[self.x]), float(value)))
        if time.monotonic() - self.drawn_at >= self.seconds:
            self.draw()

    def draw(self):
        """Draw now. Call it once after training, so that the last numbers are in the picture."""
        from IPython import get_ipython
        from IPython.display import HTML, display

        if not any(self.points.values()):
            return
        self.drawn_at = time.monotonic()
        if get_ipython() is None:
            print(self._summary())
        elif self.handle is None:
            self.handle = display(HTML(self._svg()), display_id=True)
        else:
            self.handle.update(HTML(self._svg()))

    def _summary(self):
        latest = [f"{name} {points[-1][1]:.4g}" for name, points in self.points.items() if points]
        step = max(points[-1][0] for points in self.points.values() if points)
        return f"{self.title}: {self.x} {step:g}, " + ", ".join(latest)

    def _svg(self, width=480, height=180, margin=52, most_points=400):
        points = [point for line in self.points.values() for point in line]
        xs, ys = zip(*points, strict=True)
        (x0, x1), (y0, y1) = (min(xs), max(xs)), (min(ys), max(ys))

        def place(x, y):
            across = (x - x0) / (x1 - x0 or 1)
            up = (y - y0) / (y1 - y0 or 1)
            right, bottom = width - 10, height - 24
            return f"{margin + across * (right - margin):.1f},{bottom - up * (bottom - 10):.1f}"

        lines, legend = [], []
        styles = zip(self.points.items(), itertools.cycle(SERIES_COLOURS), strict=False)
        for (name, line), colour in styles:
            if not line:
                continue
            thin = line[:: math.ceil(len(line) / most_points)] + line[-1:]
            dash = " ".join(map(str, SERIES_DASHES[len(lines) % len(SERIES_DASHES)]))
            lines.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{dash if lines else "none"}" '
                f'points="{" ".join(place(*point) for point in thin)}"/>'
            )
            legend.append(
                f'<span><span aria-hidden="true" style="color:{colour}">■</span> '
                f"{html.escape(name)} {line[-1][1]:.4g}</span>"
            )
        ticks = (
            f'<text x="{margin - 4}" y="14" text-anchor="end">{y1:.3g}</text>'
            f'<text x="{margin - 4}" y="{height - 24}" text-anchor="end">{y0:.3g}</text>'
            f'<text x="{margin}" y="{height - 8}">{x0:g}</text>'
            f'<text x="{width - 10}" y="{height - 8}" text-anchor="end">'
            f"{html.escape(self.x)} {x1:g}</text>"
        )
        return (
            f'<figure style="margin:0.5em 0;max-width:{width}px">'
            f'<svg viewBox="0 0 {width} {height}" role="img" font-size="11" fill="currentColor" '
            f'aria-label="{html.escape(self._summary())}">{ticks}{"".join(lines)}</svg>'
            '<figcaption style="display:flex;flex-wrap:wrap;gap:1em">'
            f"<strong>{html.escape(self.title)}</strong>{''.join(legend)}</figcaption></figure>"
        )
