"""Still pictures of what a live figure shows, for readers without the script: plain HTML and SVG.

They take the colour of the text around them, so they can be read on a light page and on a dark one,
in a notebook and in print. Each describes in words what it draws.
"""

import html
import itertools
from collections.abc import Iterable, Sequence

from transformer_lib.visualize.kinds import Labels, Numbers
from transformer_lib.visualize.numbers import to_array
from transformer_lib.visualize.theme import ROLE_COLOURS, SEQUENTIAL

# The page's, if it has one; else a tone that stands out against both white and black.
_INK = f"var(--live-blue, {SEQUENTIAL[4]})"
_LOSS = f"var(--live-loss, {ROLE_COLOURS['loss']})"
_FONT = 'font-family="Inter, system-ui, sans-serif" fill="currentColor"'


class Still(str):
    """Markup that a notebook shows as a picture; two of them can be put together with +."""

    def __add__(self, other: str) -> "Still":
        return Still(str(self) + str(other))

    def _repr_html_(self) -> str:
        return str(self)


def _svg(width: float, height: float, label: str, parts: Iterable[str]) -> Still:
    return Still(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(label)}" style="max-width:100%;height:auto" {_FONT}>'
        f"{''.join(parts)}</svg>"
    )


def _text(
    words: object, x: float, y: float, anchor: str = "start", size: int = 13, more: str = ""
) -> str:
    words = html.escape(str(words))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}"{more}>{words}</text>'


def attention_squares(weights: Numbers, rows: Labels, columns: Labels, label: str) -> Still:
    """A map of attention as squares: the larger and darker, the larger the weight.

    weights: (len(rows), len(columns)), each row sums to at most 1. label: what the map shows, in
    words. Raises ValueError when weights and labels do not fit.
    """
    weights = to_array(weights)
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(
            f"weights have shape {weights.shape}; expected {(len(rows), len(columns))}, for as "
            "many labels."
        )
    cell, left, top = 26, 90, 74
    parts = []
    for j, word in enumerate(columns):
        x = left + cell * (j + 0.5)
        parts.append(_text(word, x, top - 6, more=f' transform="rotate(-50 {x} {top - 6})"'))
    for i, word in enumerate(rows):
        parts.append(_text(word, left - 8, top + cell * i + 17, "end"))
        for j, weight in enumerate(weights[i].tolist()):
            side = (cell - 3) * weight**0.5
            x, y = left + cell * (j + 0.5) - side / 2, top + cell * (i + 0.5) - side / 2
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" rx="3" '
                f'style="fill:{_INK}" fill-opacity="{0.25 + 0.75 * weight:.2f}"/>'
            )
    return _svg(left + cell * len(columns) + 40, top + cell * len(rows) + 6, label, parts)


def bars(shares: Sequence[tuple[str, float]], label: str) -> Still:
    """Shares as bars with their percentage: [(name, number from 0 to 1), ...]."""
    row, left, wide = 24, 96, 240
    parts = []
    for i, (name, share) in enumerate(shares):
        y = row * i
        parts.append(_text(name, left - 8, y + 16, "end"))
        parts.append(
            f'<rect x="{left}" y="{y + 4}" width="{max(1, wide * share):.1f}" height="15" rx="3" '
            f'style="fill:{_INK}"/>'
        )
        parts.append(_text(f"{share:.0%}", left + wide * share + 6, y + 16))
    return _svg(left + wide + 50, row * len(shares) + 4, label, parts)


def curve(
    points: Sequence[tuple[float, float]], x_title: str, y_title: str, label: str,
    beside: tuple[str, Sequence[tuple[float, float]]] | None = None,
) -> Still:
    """One line through [(x, y), ...], from 0 on both axes. beside: (name, points) of a second line,
    dashed, to compare with."""
    wide, high, left, top = 300, 150, 34, 24
    every = points + (beside[1] if beside else [])
    last, most = max(x for x, _ in every), max(y for _, y in every)

    def line(points, style):
        at = [(left + wide * x / last, top + high * (1 - y / most)) for x, y in points]
        shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        return f'<polyline points="{shown}" fill="none" stroke-width="2" {style}/>'

    axis = f"M{left} {top}V{top + high}H{left + wide}"
    parts = [
        _text(y_title, 2, 13, size=12),
        _text(f"{most:.1f}", left - 6, top + 5, "end", 12),
        _text("0", left - 6, top + high + 4, "end", 12),
        _text(f"{last:,} {x_title}", left + wide, top + high + 17, "end", 12),
        f'<path d="{axis}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>',
    ]
    if beside:
        parts.append(line(beside[1], 'stroke="currentColor" stroke-dasharray="5 4"'))
        parts.append(_text(f"dashed: {beside[0]}", left + wide, 13, "end", 12))
    parts.append(line(points, f'style="stroke:{_LOSS}"'))
    return _svg(left + wide + 10, top + high + 22, label, parts)


def sentences(named: Iterable[tuple[str, str]]) -> Still:
    """Sentences, one below the other, each after its name: [(name, text), ...]."""
    rows = itertools.chain.from_iterable(
        (f"<dt><small>{html.escape(name)}</small></dt>", f"<dd>{html.escape(text)}</dd>")
        for name, text in named
    )
    return Still(f"<dl>{''.join(rows)}</dl>")


def moments(sources: Sequence[str], told: Sequence[tuple[str, Sequence[str]]]) -> Still:
    """Sentences, each with its translations at several moments: [(moment, [text, ...]), ...].

    Only the beginning of a long text is shown.
    """
    cards = []
    for i, source in enumerate(sources):
        rows = "".join(
            f'<div style="display:flex;gap:0.6em;margin:0.1em 0"><small style="flex:0 0 3.4em;'
            f'text-align:right">{html.escape(moment)}</small><span lang="en" style="min-width:0;'
            f'overflow-wrap:anywhere">{html.escape(_beginning(texts[i]))}</span></div>'
            for moment, texts in told
        )
        cards.append(f'<div><strong lang="de">{html.escape(source)}</strong>{rows}</div>')
    style = "display:grid;gap:0.9em 1.6em;grid-template-columns:repeat(auto-fit,minmax(16em,1fr))"
    return Still(f'<div style="{style}">{"".join(cards)}</div>')


def _beginning(text: str, most: int = 90) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"
