"""Tensors as numbers: a small table, shaded by size; and findings as a table of words."""

import html
import math
from collections.abc import Iterable, Sequence

import numpy as np

from transformer_lib.visualize.kinds import Labels, Numbers, Page
from transformer_lib.visualize.theme import ROLE_COLOURS

MAX_MATRIX_CELLS = 2_000


def to_array(tensor: Numbers, name: str = "tensor") -> np.ndarray:
    """A torch tensor, numpy array or nested list as a numpy array on the CPU."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if tensor.is_floating_point():
            tensor = tensor.float()  # numpy has no bfloat16
        return tensor.numpy()
    try:
        array = np.asarray(tensor)
    except ValueError:  # rows of unequal lengths
        array = np.asarray(None)
    if array.dtype.kind in "OUS":
        raise TypeError(
            f"{name} must hold numbers in rows of equal length, got {type(tensor).__name__}: "
            "pass a tensor, an array or a nested list."
        )
    return array


def _counts(column: np.ndarray) -> bool:
    """Whether a column of floats holds counts, such as sizes: whole numbers, not all 1 or less."""
    if len(column) < 2:  # one number says nothing about its column
        return False
    finite = column[np.isfinite(column)] if column.dtype.kind == "f" else np.zeros(0)
    return finite.size > 0 and np.abs(finite).max() > 1 and bool((finite == finite.round()).all())


def _cell(value: float, whole: bool = False) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "✓" if value else "·"
    if whole and math.isfinite(value):
        return f"{value:.0f}"
    if isinstance(value, (int, np.integer)):
        return str(value)
    if math.isfinite(value):
        return f"{value:.2f}".replace("-0.00", "0.00")
    return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")


def matrix(
    tensor: Numbers,
    row_labels: Labels | None = None,
    column_labels: Labels | None = None,
    title: str | None = None,
    role: str = "query",
    by_column: bool = False,
) -> Page:
    """A small tensor as a table of numbers, shaded by size, with its shape written below.

    tensor: any shape up to `MAX_MATRIX_CELLS` numbers, floats, integers or booleans. A vector is
    shown as one row; leading dimensions give one table per slice.
    row_labels, column_labels: one per row and column of a slice.
    role: a key of `ROLE_COLOURS` for positive numbers; negative ones are shaded in vermilion.
    by_column: the columns have different units, so each is shaded by its own largest number.
    Returns an IPython HTML object. Raises ValueError when a label is missing, the role is unknown
    or the tensor is too large to read.
    """
    from IPython.display import HTML

    array = to_array(tensor)
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

    sizes = np.abs(slices.astype(float))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0).max(
        axis=(0, 1) if by_column else None, initial=0.0, keepdims=True
    )
    largest = np.broadcast_to(np.where(sizes > 0, sizes, 1.0).ravel(), slices.shape[2:])
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


def table(
    columns: Iterable[object] | dict,
    rows: Iterable[Sequence[object]],
    caption: str | None = None,
    folded: str | None = None,
) -> Page:
    """What was found, as a table: a row for each thing compared.

    columns: the headings; an empty one becomes a plain cell. rows: for each, its name and then its
    cells, as text or as formatted numbers. folded: a line that hides the table until
    the reader opens it. Returns an IPython HTML object. Raises ValueError for a row of the
    wrong length.
    """
    from IPython.display import HTML

    rows = [[str(cell) for cell in row] for row in rows]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"got {len(row)} cells for {len(columns)} columns: {row}.")
    head = "".join(
        f'<th scope="col">{html.escape(str(column))}</th>' if str(column).strip() else "<td></td>"
        for column in columns
    )
    body = "".join(
        f'<tr><th scope="row" style="border-bottom-width:1px;border-bottom-color:inherit">'
        f"{html.escape(row[0])}</th>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    figure = (
        '<figure style="margin:0.5em 0"><div style="overflow-x:auto" tabindex="0">'
        f'<table class="table table-sm" style="width:auto"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{below}</figure>"
    )
    if folded:
        figure = f"<details><summary>{html.escape(folded)}</summary>{figure}</details>"
    return HTML(figure)


def _table(
    part: np.ndarray, name: str, row_labels: Labels | None, column_labels: Labels | None,
    largest: np.ndarray, colour: str,
) -> str:
    border = "padding:0.2em 0.5em;border:1px solid rgb(136 136 136 / 53%);text-align:right;"
    head = ""
    if column_labels is not None:
        corner = "<td></td>" if row_labels is not None else ""
        cells = (f'<th scope="col">{html.escape(str(label))}</th>' for label in column_labels)
        head = f"<thead><tr>{corner}{''.join(cells)}</tr></thead>"
    body, whole = [], [_counts(column) for column in part.T]
    for i, row in enumerate(part):
        label = ""
        if row_labels is not None:
            label = f'<th scope="row">{html.escape(str(row_labels[i]))}</th>'
        cells = []
        for value, count, most in zip(row, whole, largest, strict=True):
            number = float(value)
            # At 40 % the shade never hides the number, whatever the colour of the page.
            share = min(abs(number) / most, 1.0) if math.isfinite(number) else 0.0
            hue = colour if number >= 0 else ROLE_COLOURS["loss"]
            style = f"{border}background:{hue}{round(102 * share):02x}"
            cells.append(f'<td style="{style}">{_cell(value, count)}</td>')
        body.append(f"<tr>{label}{''.join(cells)}</tr>")
    caption = f"<caption>{name}</caption>" if name else ""
    return (
        '<table style="border-collapse:collapse;width:auto;margin:0;color:inherit;'
        f'font-variant-numeric:tabular-nums">{caption}{head}<tbody>{"".join(body)}</tbody></table>'
    )
