"""Live figures: a place in the page where book/_static/live runs the model in the reader's browser.

A notebook has no such script: there the still picture and the finding take its place, and say the
same. A guess asks the reader before the figure answers; in a notebook it is a question with its
answer folded below.
"""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.visualize.diagrams import IMAGES, _inline
from transformer_lib.visualize.stills import Still

LIVE = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"
MOST_CHOICES = 4


def live_figure(
    name: str, finding: str, still: Still | str | None = None, **options: object
) -> None:
    """Display the live figure `name`, from the module book/_static/live/<name>.js.

    finding: one or two sentences that say what the figure shows; they are its title, and in a
    notebook they stand in for it. still: what readers without the script see, a picture that the
    cell has drawn with the functions of visualize.stills, or a diagram `images/<name>.svg` by its
    name.
    options: texts that the module reads, such as text="Zwei Hunde spielen im Schnee.".
    Raises ValueError for an unknown figure or option, or a missing finding; FileNotFoundError
    for a missing picture.
    """
    from IPython.display import HTML, display

    known = sorted(file.stem for file in LIVE.glob("figure_*.js"))
    known += sorted(file.stem for file in LIVE.glob("translator*.js"))
    if known and name not in known:
        raise ValueError(f"there is no live figure {name!r}; there are {', '.join(known)}.")
    if not (isinstance(finding, str) and finding.strip()):
        raise ValueError(f"live_figure({name!r}) needs finding: say what the figure shows.")
    for key in options if known else ():
        read = (LIVE / f"{name}.js").read_text(encoding="utf-8") + "data-first dataset.first"
        if options[key] is None:
            raise ValueError(f"{key} is None; expected a text, or leave it out.")
        if not re.search(rf"\b{re.escape(key)}\b", read):
            raise ValueError(f"{name} reads no option {key!r}; leave it out, or look for its name "
                             f"in book/_static/live/{name}.js.")
    picture = still if isinstance(still, Still) else ""
    if still is not None and not picture:
        path = IMAGES / f"{still}.svg"
        if not path.is_file():
            raise FileNotFoundError(f"no diagram {still!r} in {IMAGES} for live_figure({name!r}).")
        picture = _inline(path.read_text(encoding="utf-8"), finding)
    data = "".join(f' data-{key}="{html.escape(str(value))}"' for key, value in options.items())
    display(
        HTML(
            f'<figure class="live-figure" data-live="{name}"{data}>'
            f'<figcaption class="live-finding">{html.escape(finding)}</figcaption>'
            f'<div class="live-still">{picture}<p><small>On the book\'s website, you can '
            "try out this figure in your browser.</small></p></div></figure>"
        )
    )


def guess(name: str, question: str, choices: Sequence[str], answer: int, told: str) -> None:
    """Ask for a guess before the live figure below answers it.

    In the page the reader clicks a choice, and only then sees the answer and the figure's finding;
    the browser keeps the guess under `name`, until it is erased. Elsewhere the answer is folded.
    choices: 2 to 4 short texts; answer: the index of the right one, computed by the cell;
    told: a sentence or two about it. Raises ValueError when one of them is missing.
    """
    from IPython.display import HTML, display

    display(HTML(guess_html(name, question, choices, answer, told)))


def guess_html(
    name: str, question: str, choices: Sequence[str], answer: int, told: str
) -> str:
    """What `guess` displays."""
    texts = (name, question, told, *choices)
    if not 2 <= len(choices) <= MOST_CHOICES or not all(isinstance(x, str) and x for x in texts):
        raise ValueError(
            f"guess({name!r}) needs a question, 2 to {MOST_CHOICES} choices and what to tell "
            f"afterwards, got {choices!r}."
        )
    if len(set(choices)) < len(choices):
        raise ValueError(f"guess({name!r}) has a choice twice: {choices!r}.")
    if not (isinstance(answer, int) and 0 <= answer < len(choices)):
        raise ValueError(
            f"guess({name!r}) has {len(choices)} choices, so answer is an index from 0 to "
            f"{len(choices) - 1}, not {answer!r}."
        )
    items = "".join(f"<li>{html.escape(choice)}</li>" for choice in choices)
    return (
        f'<section class="live-guess" data-guess="{html.escape(name)}" data-answer="{answer}">'
        f"<p><strong>Guess first.</strong> {html.escape(question)}</p><ol>{items}</ol>"
        f"<details><summary>The answer</summary><p><strong>{html.escape(choices[answer])}."
        f"</strong> {html.escape(told)}</p></details></section>"
    )
