"""Curves: metrics by step, when they are known and while they come in."""

import contextlib
import html
import itertools
import json
import math
import re
import time
from collections.abc import Callable, Iterable
from numbers import Real

from transformer_lib.visualize.kinds import Chart, Title
from transformer_lib.visualize.theme import (
    ROLE_COLOURS,
    SERIES_COLOURS,
    SERIES_DASHES,
    themed_altair,
)

MOST_POINTS = 600  # of one line of a live curve


def line_chart(
    rows: Iterable[object],
    x: str,
    y: str,
    series: str | None = None,
    title: Title | None = None,
    description: str | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    band: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
) -> Chart:
    """Lines of a metric, with the numbers under the pointer; a click in the legend picks one out.

    rows: dicts (as in `metrics.jsonl`) or a DataFrame. x, y, series: the keys to plot; rows
    without a finite x and y are left out.
    x_title, y_title: axis titles with units. zero: make the y axis start at zero.
    band: several rows per x (say, seeds) give their mean as the line and min to max as a band.
    description: the text alternative; without it, the first and last value of each series.
    Returns an Altair chart. Raises ValueError when no row can be drawn.
    """
    alt = themed_altair()
    if hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    rows = list(rows)
    if wrong := [row for row in rows if not hasattr(row, "keys")]:
        raise TypeError(
            f"rows holds {wrong[0]!r:.60}; expected dictionaries, as runs.files.read_json_lines "
            "reads them from metrics.jsonl, or a DataFrame."
        )
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
    for axis, field in [("log_x", x)] * log_x + [("log_y", y)] * log_y:
        _require_positive(axis, field, [row[field] for row in data])
    names = list(dict.fromkeys(row[series] for row in data)) if series else []

    x_scale = alt.Scale(type="log", nice=False) if log_x else alt.Scale(zero=False, nice=False)
    x_axis = alt.Undefined
    if all(isinstance(row[x], int) for row in data):  # no step 4.5, and no 1.7 heads
        places = sorted({row[x] for row in data})
        few = log_x and len(places) <= 8
        x_axis = alt.Axis(values=places, labelOverlap=True) if few else alt.Axis(tickMinStep=1)
    y_scale = alt.Scale(type="log", nice=False) if log_y else alt.Scale(zero=zero)
    y_field = f"mean({y}):Q" if band else f"{y}:Q"
    y_title = y_title or y
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X(f"{x}:Q", title=x_title or x, scale=x_scale, axis=x_axis)
    )
    line = {"y": alt.Y(y_field, title=y_title, scale=y_scale)}
    tooltip = [alt.Tooltip(f"{x}:Q", title=x_title or x)]
    tooltip.append(alt.Tooltip(y_field, title=y_title, format=".4~g"))
    near = alt.selection_point(
        name="near", fields=[x], nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    dots = {"opacity": alt.condition(near, alt.value(1), alt.value(0))}
    shown = None  # the series that a click in the legend has chosen
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
        # Under `nearest`, Vega-Lite 6 looks for a name in the mark instead of in the row it draws
        # (numbers it finds). `description` is the field that a mark can have too.
        base = base.transform_calculate(description=f"datum[{json.dumps(series)}]")
        dots["description"] = alt.Description("description:N")
        tooltip.insert(0, alt.Tooltip("description:N", title=series))
        if len(names) > 1:
            shown = alt.selection_point(name="shown", fields=[series], bind="legend")

    def visible(opacity):
        if shown is None:
            return alt.value(opacity)
        return alt.condition(shown, alt.value(opacity), alt.value(opacity / 8))

    curves = base.mark_line(strokeWidth=2).encode(**line, opacity=visible(1))
    points = base.mark_point(size=50, filled=True).encode(y=line["y"], tooltip=tooltip, **dots)
    if shown is not None:
        curves = curves.add_params(shown)
        points = points.transform_filter(shown)  # no tooltip for a series put aside
    chart_layers = [curves, points.add_params(near)]
    if band:
        low, high = alt.Y(f"min({y}):Q", title=y_title, scale=y_scale), alt.Y2(f"max({y}):Q")
        chart_layers.insert(0, base.mark_area().encode(y=low, y2=high, opacity=visible(0.25)))
    return alt.layer(*chart_layers).properties(
        title=title or f"{y_title} by {x_title or x}",
        description=description or _describe_curves(data, x, y, series),
        width="container",
        height=260,
    )


def _plain(value: object) -> object:
    with contextlib.suppress(AttributeError, ValueError, RuntimeError):  # of one number
        return value.item()
    return value


def _finite(*values: float) -> bool:
    for value in map(_plain, values):
        if not isinstance(value, Real):
            what = "a text" if isinstance(value, str) else f"a {type(value).__name__}"
            raise ValueError(f"{value!r:.60} is {what}; expected a number to draw.")
    return all(map(math.isfinite, values))


def _require_positive(axis: str, field: str, values: Iterable[float]) -> None:
    if wrong := [value for value in values if value <= 0]:
        raise ValueError(
            f"{field} is {wrong[0]!r} in a row, and a logarithmic axis only shows what is above 0: "
            f"leave such rows out, or take {axis}=False."
        )


def _describe_curves(data: list[dict], x: str, y: str, series: str | None) -> str:
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
    ghost: the metrics of an earlier run, drawn pale behind, to show whether this one keeps up.
    log_x: a logarithmic axis, which gives the beginning more room. below: HTML under
    the picture, which may change between two drawings.
    """

    def __init__(
        self, x: str = "step", y: str | Iterable[str] = ("loss",),
        title: Title | None = "Training", seconds: float = 1.0,
        ghost: Iterable[object] = (), log_x: bool = False, below: str = "",
    ):
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds is {seconds!r}; expected the time between two drawings.")
        self.x, self.y = x, [y] if isinstance(y, str) else list(y)
        if not self.y:
            raise ValueError("y names no metric; expected the ones to draw, such as ('loss',).")
        self.title, self.seconds, self.log_x, self.below = title, seconds, log_x, below
        self.points = {name: [] for name in self.y}
        self.ghost = {name: [] for name in self.y}
        for metrics in ghost:
            self._add(metrics, self.ghost)
        self.drawn_at = -math.inf
        self.handle = None

    def _add(self, metrics: dict, to: dict[str, list]) -> None:
        for name, points in to.items():
            value = metrics.get(name)
            if value is not None and _finite(value, metrics[self.x]):
                if self.log_x:
                    _require_positive("log_x", self.x, [metrics[self.x]])
                points.append((float(metrics[self.x]), float(value)))

    def __call__(self, metrics: dict) -> None:
        self._add(metrics, self.points)
        if time.monotonic() - self.drawn_at >= self.seconds:
            self.draw()

    def draw(self) -> None:
        """Draw now. Call it once after training, so that the last numbers are in the picture."""
        from IPython import get_ipython
        from IPython.display import HTML, display

        if not any(self.points.values()):
            return
        self.drawn_at = time.monotonic()
        if get_ipython() is None:
            print(self._summary())
        elif self.handle is None:
            self.handle = display(HTML(self._picture()), display_id=True)
        else:
            self.handle.update(HTML(self._picture()))

    def _summary(self) -> str:
        latest = [f"{name} {points[-1][1]:.4g}" for name, points in self.points.items() if points]
        step = max(points[-1][0] for points in self.points.values() if points)
        return f"{self.title}: {self.x} {step:g}, " + ", ".join(latest)

    def _line(self, points: list[tuple], place: Callable, style: str) -> str:
        """The points as a line of the picture, thinned if they are many, with dots if few."""
        thinned = [*points[:: max(1, len(points) // MOST_POINTS)], points[-1]]
        places = " ".join(f"{x:.2f},{y:.2f}" for x, y in dict.fromkeys(map(place, thinned)))
        joined = f'<polyline points="{places}" vector-effect="non-scaling-stroke" {style}/>'
        if len(points) > 3:
            return joined
        colour = re.match(r'stroke="[^"]+"( stroke-opacity="[^"]+")?', style)[0]
        return joined + "".join(
            f'<path d="M{x:.2f} {y:.2f}h0" vector-effect="non-scaling-stroke" {colour} '
            'stroke-width="7" stroke-linecap="round"/>'
            for x, y in map(place, points)
        )

    def _picture(self) -> str:
        """The curves as HTML, as wide as the page and in its colours, with a text alternative.

        Not an Altair chart: that would load its library again at each update. The lines are
        stretched to the width available; words and strokes are not.
        """
        drawn = [p for kind in (self.points, self.ghost) for line in kind.values() for p in line]
        along = math.log10 if self.log_x else float
        xs, ys = [along(x) for x, _ in drawn], [y for _, y in drawn]
        left, low = min(xs), min(ys)
        wide, tall = (max(xs) - left) or 1.0, (max(ys) - low) or 1.0

        def place(point):  # in hundredths of the picture, from its top left
            return 100 * (along(point[0]) - left) / wide, 96 - 92 * (point[1] - low) / tall

        marks, lines, names = [], [], []
        for value in _ticks(low, low + tall):
            y = place((drawn[0][0], value))[1]
            lines.append(
                f'<path d="M0 {y:.2f}H100" stroke="currentColor" stroke-opacity="0.15" '
                'vector-effect="non-scaling-stroke"/>'
            )
            marks.append(
                f'<span style="position:absolute;right:100%;top:{y:.2f}%;'
                f'transform:translate(-6px,-50%)">{value:g}</span>'
            )
        for value in _ticks(left, left + wide, log=along is math.log10):
            x = place((value, low))[0]
            side = -100 if x > 92 else -50 if x > 4 else 0
            marks.append(
                f'<span style="position:absolute;left:{x:.2f}%;top:100%;white-space:nowrap;'
                f'transform:translate({side}%,2px)">{value:,g}</span>'
            )
        styles = itertools.cycle(zip(SERIES_COLOURS, SERIES_DASHES, strict=True))
        live = []
        for (name, points), (colour, dashes) in zip(self.points.items(), styles, strict=False):
            dash = f'stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes[1] else ""
            if ghost := self.ghost[name]:
                pale = f'stroke="{ROLE_COLOURS["masked"]}" stroke-opacity="0.5" stroke-width="4"'
                lines.append(self._line(ghost, place, f"{pale} {dash}"))
            if points:
                style = f'stroke="{colour}" stroke-width="2" stroke-linecap="round" {dash}'
                live.append(self._line(points, place, style))
                sample = f'<path d="M0 3H26" {style}/>'
                names.append(
                    '<span style="white-space:nowrap"><svg width="26" height="6">'
                    f"{sample}</svg> {html.escape(name)} {points[-1][1]:.4g}</span>"
                )
        if any(self.ghost.values()):
            names.append("<span>pale: recorded</span>")
        title = self.title or ""
        title = title if isinstance(title, str) else " ".join(title)
        return (
            f'<div role="img" aria-label="{html.escape(self._summary())}" '
            'style="font:12px/1.4 Inter,system-ui,sans-serif;font-variant-numeric:tabular-nums;'
            'margin-bottom:26px">'
            f'<strong style="display:block;font-size:16px">{html.escape(title)}, by '
            f"{html.escape(self.x)}</strong>"
            f'<div style="display:flex;flex-wrap:wrap;gap:0 14px">{"".join(names)}</div>'
            '<div style="position:relative;height:clamp(100px,12vw,140px);margin:4px 4px 0 44px">'
            '<svg viewBox="0 0 100 100" preserveAspectRatio="none" fill="none" aria-hidden="true" '
            'style="position:absolute;inset:0;width:100%;height:100%;overflow:visible">'
            f'{"".join(lines + live)}</svg>{"".join(marks)}</div></div>{self.below}'
        )


def _ticks(low: float, high: float, log: bool = False) -> list[float]:
    """About four to seven round numbers between the ends; with `log`, the ends are logarithms."""
    if log:
        found = [d * 10**e for e in range(math.floor(low), math.ceil(high) + 1) for d in (1, 2, 5)]
        inside = [value for value in found if low <= math.log10(value) <= high]
        return inside if len(inside) < 7 else [v for v in inside if math.log10(v).is_integer()]
    step = 10 ** math.floor(math.log10((high - low) / 2))
    step *= next(f for f in (2, 1, 0.5, 0.2) if (high - low) / (step * f) >= 3)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
