"""Draw the picture of the cover, images/hero.svg, from the weights of the shipped model.

    python -m tools.make_hero

A German sentence, its translation, and the cross-attention between them: one decoder layer, the
mean of its heads. Run it again when other weights are shipped; a test compares the two.
"""

from html import escape
from pathlib import Path

from transformer_lib import load_pretrained
from transformer_lib.visualize import ROLE_COLOURS

ROOT = Path(__file__).resolve().parents[1]


SENTENCE = "Zwei Hunde spielen im Schnee."
LAYER = 1  # of the decoder, counted from 0; the caption on the cover names it
QUERY, KEY = ROLE_COLOURS["query"], ROLE_COLOURS["key"]
FAINTEST = 0.05  # weights below are not drawn
HEIGHT, GAP, TOP, BOTTOM = 50, 24, 40, 290  # pixels

STYLE = """\
    .hero { width: 100%; height: auto; font: 500 23px Inter, system-ui, sans-serif; }
    .hero text { text-anchor: middle; fill: currentColor; }
    .hero path { fill: none; stroke-linecap: round; transition: stroke-opacity .2s; }
    .hero rect { stroke-width: 2; fill-opacity: .1; transition: fill-opacity .2s; }
    .hero .word { outline: none; cursor: pointer; }
    .hero:has(.word:is(:hover, :focus)) .word:not(:hover, :focus) path { stroke-opacity: .05; }
    .hero .word:is(:hover, :focus) rect { fill-opacity: .35; }
    @media (prefers-reduced-motion: no-preference) {
      .hero path { stroke-dasharray: 1; animation: hero .9s ease-out backwards; }
    }
    @keyframes hero { from { stroke-dashoffset: 1; } to { stroke-dashoffset: 0; } }"""


def attention() -> tuple[list[str], list[str], list[list[float]]]:
    """Source tokens, target tokens, and weights (target, source), without <eos>."""
    result = load_pretrained().translate([SENTENCE])[0]
    weights = result.cross_attention[LAYER].mean(0)[:-1, :-1]
    clean = [[token.strip("▁") for token in tokens[:-1]]
             for tokens in (result.source_tokens, result.tokens)]
    return *clean, weights.tolist()


def row(tokens: list[str], centre: float) -> list[tuple[float, float]]:
    """(left, width) of each token's box, the whole row around `centre`."""
    widths = [22 + 13 * max(len(token), 1.5) for token in tokens]
    left = centre - (sum(widths) + GAP * (len(tokens) - 1)) / 2
    boxes = []
    for width in widths:
        boxes.append((left, width))
        left += width + GAP
    return boxes


def draw() -> str:
    source, target, weights = attention()
    above, below = row(source, 520), row(target, 520)
    lefts = [left for left, _ in above + below]
    rights = [left + width for left, width in above + below]
    x0, width = min(lefts) - 8, max(rights) - min(lefts) + 16

    def box(left, wide, top, colour):
        return (f'<rect x="{left:.0f}" y="{top}" width="{wide:.0f}" height="{HEIGHT}" rx="14"'
                f' fill="{colour}" stroke="{colour}"/>')

    def text(left, wide, top, token):
        return f'<text x="{left + wide / 2:.0f}" y="{top + 33}">{escape(token)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x0:.0f} 30 {width:.0f} 322"'
        ' class="hero" role="group" aria-labelledby="hero-title">',
        f'  <title id="hero-title">{" ".join(source)}: above in German, below as the model '
        "translates it. Each English word is joined to the German words it looks at: the more "
        "it looks, the thicker the line.</title>",
        f"  <style>\n{STYLE}\n  </style>",
        # From the key that is looked at, orange, to the query that looks, blue.
        '  <linearGradient id="hero-look" gradientUnits="userSpaceOnUse" x1="0" x2="0" y1="92" '
        f'y2="288"><stop stop-color="{KEY}"/><stop offset="1" stop-color="{QUERY}"/>'
        "</linearGradient>",
    ]
    for (left, wide), token in zip(above, source, strict=True):
        lines += ["  " + box(left, wide, TOP, KEY), "  " + text(left, wide, TOP, token)]
    for i, ((left, wide), token) in enumerate(zip(below, target, strict=True)):
        looks = sorted(zip(weights[i], source, above, strict=True), key=lambda look: look[0])
        told = ", ".join(f"{word} {w:.0%}" for w, word, _ in reversed(looks) if w >= FAINTEST)
        lines += [f'  <g class="word" tabindex="0" role="img" aria-label="{escape(token)}: '
                  f'{escape(told)}"><title>{escape(told)}</title>']
        for weight, _, (its_left, its_width) in looks:
            if weight < FAINTEST:
                continue
            a, b = its_left + its_width / 2, left + wide / 2
            lines.append(
                f'    <path pathLength="1" d="M{a:.0f} 92C{a:.0f} 200 {b:.0f} 180 {b:.0f} 288"'
                f' stroke="url(#hero-look)" stroke-width="{1 + 9 * weight:.1f}"'
                f' stroke-opacity="{0.45 + 0.5 * weight:.2f}" data-weight="{weight:.3f}"'
                f' style="animation-delay:{0.3 * i:.1f}s"/>'
            )
        lines += ["    " + box(left, wide, BOTTOM, QUERY),
                  "    " + text(left, wide, BOTTOM, token), "  </g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "images" / "hero.svg").write_text(draw(), encoding="utf8")
    print("Wrote images/hero.svg")
