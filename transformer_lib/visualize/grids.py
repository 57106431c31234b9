"""A grid of experiments: the result at each setting, with the page's own setting framed."""

import itertools
import math
from collections.abc import Iterable
from numbers import Real

from transformer_lib.visualize.kinds import Chart, Title
from transformer_lib.visualize.theme import ROLE_COLOURS, themed_altair

CELL = (46, 32)  # width and height, pixels


def result_grid(
    rows: Iterable[dict],
    x: str,
    y: str,
    value: str,
    panel: str | None = None,
    menus: dict | None = None,
    framed: Iterable[dict] = (),
    title: Title | None = None,
    description: str | None = None,
    number: str = ".0%",
    domain: tuple[float, float] = (0.0, 1.0),
) -> Chart:
    """Results of many runs as squares: one for each setting, with the mean of its seeds.

    rows: dicts, one for each run, that hold the settings and the result. x, y: the settings along
    the axes; panel: one whose values get a panel each, side by side; all in the order of the rows.
    menus: {setting: the value shown at first}, for the other settings.
    value: the key of the result. Pointing at a square shows its lowest and highest result.
    framed: settings as dicts, such as {"heads": 1, "steps": 250}; squares with them get a frame.
    number: the format of the means. domain: the results that get the palest and the deepest blue.
    Returns an Altair chart. Raises ValueError when there are no rows, or a setting is left over.
    """
    alt, menus = themed_altair(), dict(menus or {})
    if not rows:
        raise ValueError("there are no rows to draw.")
    used = [name for name in (x, y, panel, *menus) if name]
    squares = {}
    for row in rows:
        if missing := [name for name in (*used, value) if name not in row]:
            raise ValueError(
                f"a row has no {missing[0]!r}, only {', '.join(map(str, row))}: name keys that "
                "every row has."
            )
        if not isinstance(row[value], Real) or not math.isfinite(row[value]):
            raise ValueError(
                f"{value} is {row[value]!r} in a row; expected a finite number: leave such rows "
                "out."
            )
        squares.setdefault(tuple(row[name] for name in used), []).append(row[value])
    if unknown := [name for frame in framed for name in frame if name not in used]:
        raise ValueError(f"framed names {unknown[0]!r}; expected only {', '.join(used)}.")
    most = max(map(len, squares.values()))
    if any(len(found) != most for found in squares.values()):
        raise ValueError(
            f"the squares hold {min(map(len, squares.values()))} to {most} rows: name every "
            f"setting in x, y, panel or menus (you named {', '.join(used)})."
        )
    records = []
    for key, found in squares.items():
        settings = dict(zip(used, key, strict=True))
        mine = any(
            all(settings[name] == wanted for name, wanted in frame.items()) for frame in framed
        )
        told = {"mean": sum(found) / most, "lowest": min(found), "highest": max(found)}
        records.append(settings | told | {"seeds": most, "framed": mine})
    low, high = domain
    order = {name: list(dict.fromkeys(record[name] for record in records)) for name in used}

    for name, first in menus.items():
        if first not in order[name]:
            known = ", ".join(map(repr, order[name]))
            raise ValueError(f"the menu {name} begins at {first!r}; expected one of {known}.")

    def squares_of(shown, first):
        base = alt.Chart(alt.InlineData(values=shown))
        for name in menus:
            base = base.transform_filter(f"datum[{name!r}] == chosen_{name}")
        base = base.encode(
            x=alt.X(f"{x}:O", sort=order[x], axis=alt.Axis(labelAngle=0)),
            y=alt.Y(
                f"{y}:O", sort=order[y], title=y if first else None,
                axis=alt.Axis(labelLimit=170) if first else alt.Axis(labels=False, ticks=False),
            ),
            tooltip=[
                *(f"{name}:N" for name in used),
                *(alt.Tooltip(f"{of}:Q", format=number) for of in ("mean", "lowest", "highest")),
                "seeds:Q",
            ],
        )
        tiles = base.mark_rect().encode(
            color=alt.Color("mean:Q", legend=None, scale=alt.Scale(domain=[low, high], clamp=True))
        )
        # On deep blue, white is easier to read than black (on a dark page the other way round).
        ink = alt.condition(
            f"datum.mean > {low + 0.64 * (high - low)}", alt.value("white"), alt.value("black")
        )
        numbers = base.mark_text().encode(text=alt.Text("mean:Q", format=number), color=ink)
        # The tile below already says its numbers; in a panel without frames, this has no name.
        frames = base.transform_filter("datum.framed").mark_rect(
            filled=False, stroke=ROLE_COLOURS["loss"], strokeWidth=3, aria=False
        )
        return alt.layer(tiles, numbers, frames).properties(
            width=CELL[0] * len(order[x]), height=CELL[1] * len(order[y])
        )

    if panel:
        parts = [
            squares_of([r for r in records if r[panel] == name], i == 0).properties(title=str(name))
            for i, name in enumerate(order[panel])
        ]
        figure = alt.hconcat(*parts)
    else:
        figure = squares_of(records, True)
    for name, first in menus.items():
        menu = alt.binding_select(options=order[name], name=f"{name} ")
        figure = figure.add_params(alt.param(name=f"chosen_{name}", value=first, bind=menu))
    return figure.properties(
        title=title or f"{value} by {x} and {y}",
        description=description or _describe(records, value, used, menus, number),
    )


def _describe(
    records: list[dict], value: str, used: Iterable[str], menus: dict, number: str
) -> str:
    """The squares that are shown at first, in words."""
    shown = [r for r in records if all(r[name] == first for name, first in menus.items())]
    where = "".join(f", {name} {first}" for name, first in menus.items())
    told = (
        " ".join(f"{name} {r[name]}" for name in used if name not in menus)
        + f": {format(r['mean'], number)}"
        for r in itertools.islice(shown, 40)
    )
    return f"Mean of {value} at each setting{where}. " + "; ".join(told) + "."
