"""The diagrams of `images/` as a part of the page."""

import html
import itertools
import re
from pathlib import Path

IMAGES = Path(__file__).parents[2] / "images"
_figure_ids = itertools.count(1)
# One of the two drawings is shown, by the width of the column and not of the screen: the same in a
# page, in Colab's narrow pane and in a split window. Without this rule, the wide one is shown.
BY_WIDTH = (
    "<style>figure.drawing{container-type:inline-size}@container (max-width:600px){"
    "figure.drawing>svg.wide{display:none!important}"
    "figure.drawing>svg.narrow{display:block!important}}</style>"
)


def show_image(name: str, alt: str) -> None:
    """Display the diagram `images/<name>.svg` with a text alternative.

    The SVG becomes part of the page, so a drawing that uses `currentColor` follows light and dark
    mode. Its ids get a prefix of their own, so two diagrams on a page never share an arrowhead.
    Where `images/phone/<name>.svg` exists, a column too narrow for the wide drawing shows that one,
    with the same text alternative.
    alt: one or two sentences that say what the diagram shows.
    Raises FileNotFoundError, with a list of the existing diagrams, and ValueError without alt.
    """
    from IPython.display import HTML, display

    if not (isinstance(alt, str) and alt.strip()):
        raise ValueError(f"show_image({name!r}) needs alt: say in words what the diagram shows.")
    path = IMAGES / (name if name.endswith(".svg") else f"{name}.svg")
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in IMAGES.glob("*.svg"))) or "none"
        raise FileNotFoundError(f"no diagram {name!r} in {IMAGES}. Diagrams there: {known}.")
    svg = path.read_text(encoding="utf-8")
    narrow = IMAGES / "phone" / path.name
    if narrow.is_file():
        drawings = BY_WIDTH + _inline(svg, alt, "wide")
        drawings += _inline(narrow.read_text(encoding="utf-8"), alt, "narrow")
    else:
        drawings = _inline(svg, alt)
    display(HTML(f'<figure class="drawing" style="margin:1em 0">{drawings}</figure>'))


def _inline(svg: str, alt: str, width: str = "") -> str:
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
    if width == "narrow":  # drawn for 358 px; larger, its letters would shout
        style = "display:none;max-width:min(100%,26rem);height:auto;margin:0 auto"
    named = f' class="{width}"' if width else ""
    return f'{opening}{named} role="img" aria-label="{label}" style="{style}">{rest}'
