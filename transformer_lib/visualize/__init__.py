"""Figures: the last step of the flow, where what the model computed becomes something to look at.

Everything visual is decided here, once: the colour of each role, the chart theme, and how a figure
describes itself to somebody who cannot see it. The chapters only call these functions.

- `matrix` shows a small tensor as a table of numbers, `table` shows findings in words,
  `show_image` a diagram of `images/`.
- `attention_heatmap`, `line_chart` and `result_grid` are Altair charts that respond to mouse and
  keyboard.
- `head_view`, `model_view` and `neuron_view` show attention with BertViz.
- `LiveCurve` draws metrics while a model trains.
- `live_figure` is the place where the model runs in the reader's page, `guess` the question before
  it.
- `attention_squares`, `bars`, `curve` and `sentences` draw the still picture that takes its place
  in a notebook and in print.

Altair, matplotlib, BertViz and IPython are imported when a figure is drawn, so that importing
`transformer_lib` stays fast and works where none of them is installed.
"""

from transformer_lib.visualize.attention import attention_heatmap
from transformer_lib.visualize.bertviz_views import head_view, model_view, neuron_view
from transformer_lib.visualize.curves import LiveCurve, line_chart
from transformer_lib.visualize.diagrams import show_image
from transformer_lib.visualize.grids import result_grid
from transformer_lib.visualize.live import LIVE, guess, live_figure
from transformer_lib.visualize.numbers import matrix, table
from transformer_lib.visualize.stills import attention_squares, bars, curve, sentences
from transformer_lib.visualize.theme import (
    DARK_COLOURS,
    DIVERGING,
    ROLE_COLOURS,
    SEQUENTIAL,
    SERIES_COLOURS,
    SERIES_DASHES,
    use_theme,
)

__all__ = [
    "DARK_COLOURS",
    "DIVERGING",
    "LIVE",
    "ROLE_COLOURS",
    "SEQUENTIAL",
    "SERIES_COLOURS",
    "SERIES_DASHES",
    "LiveCurve",
    "attention_heatmap",
    "attention_squares",
    "bars",
    "curve",
    "guess",
    "head_view",
    "line_chart",
    "live_figure",
    "matrix",
    "model_view",
    "neuron_view",
    "result_grid",
    "sentences",
    "show_image",
    "table",
    "use_theme",
]
