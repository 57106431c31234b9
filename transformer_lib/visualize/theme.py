"""The one visual language: colours for roles, series, and more and less; and the charts' look."""

from types import ModuleType

# The palette of the book: no chart, diagram or page names a colour of its own.
# One colour per role in every figure (the colour-blind-safe palette of Okabe and Ito, 2008).
# In cross-attention the source has the keys' colour, and the target the queries'.
ROLE_COLOURS = {
    "query": "#0072B2",  # blue
    "key": "#E69F00",  # orange
    "value": "#009E73",  # green
    "memory": "#CC79A7",  # purple
    "target": "#56B4E9",  # sky
    "masked": "#999999",  # grey
    "loss": "#D55E00",  # vermilion
}
# The same roles on a dark page, for what follows the page (tools/palette.py writes both for it).
DARK_COLOURS = {
    "query": "#56A8E0",
    "key": "#F0B13C",
    "value": "#2FBF97",
    "memory": "#D88ABB",
    "target": "#8FD0F5",
    "masked": "#8A929B",
    "loss": "#FF8B4D",
}
# Neighbouring series of a chart differ in lightness as well as in hue.
SERIES_COLOURS = [
    ROLE_COLOURS[role] for role in ("query", "loss", "value", "key", "memory", "target", "masked")
]
SERIES_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3]]
# More and less of one thing, from the tone of the page's paper to a deep query blue. Lightness
# falls evenly, so that the order shows in print, and to everybody.
SEQUENTIAL = ["#f7f3e8", "#e0e8ea", "#b9d3e3", "#7fb3d3", "#3a8cbf", "#0f5c90", "#08304d"]
# Below and above zero.
DIVERGING = [ROLE_COLOURS["loss"], SEQUENTIAL[0], ROLE_COLOURS["query"]]

# The text of a chart takes the colour of the text around it, on a light page and on a dark one.
_TEXT = "currentColor"


def use_theme() -> None:
    """Make Altair and matplotlib draw in the book's visual language. Charts call this themselves.

    Altair draws SVG on a transparent background, in the text colour of the page. A matplotlib
    figure is a fixed picture that cannot follow the page, so it keeps a white background.
    """
    import altair as alt
    import matplotlib
    import matplotlib.colors

    alt.theme.register("transformer_lib", enable=True)(lambda: {"config": _altair_config()})
    # actions=False removes a menu that a keyboard cannot reach.
    alt.renderers.set_embed_options(actions=False, renderer="svg")

    if "transformer_lib" not in matplotlib.colormaps:
        scale = matplotlib.colors.LinearSegmentedColormap.from_list("transformer_lib", SEQUENTIAL)
        matplotlib.colormaps.register(scale)
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
            "image.cmap": "transformer_lib",
        }
    )


def _altair_config() -> dict:
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
        "title": {
            "color": _TEXT,
            "subtitleColor": _TEXT,
            "anchor": "start",
            "fontSize": 16,
            "offset": 12,  # the title of a part is below that of the whole, not in it
        },
        "text": {"color": _TEXT, "fontSize": 12},  # Vega's own default is 11
        "rule": {"color": _TEXT},
        "range": {
            "category": SERIES_COLOURS,
            "heatmap": SEQUENTIAL,
            "ramp": SEQUENTIAL,
            "diverging": DIVERGING,
        },
    }


def themed_altair() -> ModuleType:
    """Altair, with the theme in effect."""
    import altair

    use_theme()
    return altair
