"""Live figures: a place in the page where book/_static/live runs the model in the reader's browser.

A notebook has no such script. There the still picture and the finding stand, and say the same.
"""

import html
from pathlib import Path

from transformer_lib.visualize.diagrams import IMAGES, _inline

FIGURES = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"


def live_figure(name, finding, still=None, **options):
    """Display the live figure `name`, of the module book/_static/live/<name>.js.

    finding: one or two sentences that say what the figure shows; they stand below it, and in a
    notebook in its place. still: a diagram `images/<name>.svg` for readers without the script.
    options: texts that the module reads, such as text="Zwei Hunde spielen im Schnee.".
    Raises ValueError for an unknown figure or no finding, FileNotFoundError for a missing picture.
    """
    from IPython.display import HTML, display

    known = sorted(file.stem for file in FIGURES.glob("figure_*.js"))
    known += sorted(file.stem for file in FIGURES.glob("translator*.js"))
    if known and name not in known:
        raise ValueError(f"there is no live figure {name!r}; there are {', '.join(known)}.")
    if not (isinstance(finding, str) and finding.strip()):
        raise ValueError(f"live_figure({name!r}) needs finding: say what the figure shows.")
    picture = ""
    if still is not None:
        path = IMAGES / f"{still}.svg"
        if not path.is_file():
            raise FileNotFoundError(f"no diagram {still!r} in {IMAGES} for live_figure({name!r}).")
        picture = _inline(path.read_text(encoding="utf-8"), finding)
    data = "".join(f' data-{key}="{html.escape(str(value))}"' for key, value in options.items())
    display(
        HTML(
            f'<figure class="live-figure" data-live="{name}"{data}>'
            f'<div class="live-still">{picture}<p><small>On the page of the book, this figure runs '
            "the model: type, switch, and see.</small></p></div>"
            f'<figcaption class="live-finding">{html.escape(finding)}</figcaption></figure>'
        )
    )
