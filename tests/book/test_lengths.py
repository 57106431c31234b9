"""A chapter is read in one sitting (tools/lengths.py; its height: tests/browser/test_site.py)."""

from pathlib import Path

import pytest

from tools import lengths

ROOT = Path(__file__).resolve().parents[2]


# Cells before the first figure to move, the setup cell apart: what the chapter is about, its
# imports, a puzzle with one cell, and the question that the figure answers.
LATEST_FIGURE = 6

each_chapter = pytest.mark.parametrize("path", lengths.chapters(), ids=lambda path: path.stem)


@each_chapter
def test_a_chapter_shows_no_more_code_than_is_read_in_one_sitting(path):
    found, most = lengths.visible_lines(lengths.read_cells(path)), lengths.MOST_LINES
    assert found <= most, (
        f"{path.stem} shows {found} lines of code beside the library's, and {most} are enough. "
        "Fold what only feeds a chart or a table (tag hide-input), or link what another page says."
    )


@each_chapter
def test_a_chapter_begins_with_a_figure_to_move(path):
    number = lengths.first_figure(lengths.read_cells(path))
    assert number is not None and number <= LATEST_FIGURE, (
        f"{path.stem}: the first figure to move stands in cell {number}, expected one up to "
        f"{LATEST_FIGURE}: let the reader act before reading on"
    )


def a_cell(source, *tags, kind="code"):
    return {"type": kind, "tags": list(tags), "source": source}


def test_only_code_that_stands_open_counts():
    page = [
        a_cell("setup()", "setup", "remove-cell"),
        a_cell("# Title\n\n## A puzzle", kind="markdown"),
        a_cell("a = 1\n\nb = 2\n"),
        a_cell("class A:\n    pass", "lib:a.A"),
        a_cell("draw()", "hide-input"),
        a_cell("## Exercises\n\n**Exercise 1. Add**", kind="markdown"),
        a_cell("answer = ..."),
        a_cell("## More", kind="markdown"),
        a_cell("c = 3", "paper:eq1"),
    ]
    assert lengths.visible_lines(page) == 3
    page[4]["tags"].clear()
    assert lengths.visible_lines(page) == 4


def test_the_first_figure_is_one_to_move():
    page = [
        a_cell("# Title", kind="markdown"),
        a_cell("setup()", "setup"),
        a_cell('visualize.show_image("masks", alt="Three grids")'),
        a_cell("visualize.matrix(x)\nvisualize.line_chart(rows)"),
    ]
    assert lengths.first_figure(page) == 2
    assert lengths.first_figure(page[:3]) is None


def test_the_report_names_what_is_too_long(capsys):
    lengths.main([])
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1 + len(lengths.chapters())


def test_minutes_are_counted_before_the_exercises():
    text = "one two three four five six seven " * 100  # 700 words
    page = [
        a_cell("# Title\n\n" + text, kind="markdown"),
        a_cell("x = 1\n" * 75),
        a_cell("## Exercises\n\n" + text, kind="markdown"),
    ]
    assert lengths.words(page) == 700
    assert lengths.reading_minutes(page) == 15  # 10 for the words, 5 for the code
    assert lengths.reading_minutes(page[2:]) == 5


@each_chapter
def test_a_chapter_states_the_minutes_that_were_counted(path):
    cells = lengths.read_cells(path)
    stated = [n for cell in cells for n in lengths.STATED.findall(cell["source"])]
    assert stated == [str(lengths.reading_minutes(cells))], "run `make sync`"
