"""Write book/_static/space-mark.ttf: the one character "▁" (U+2581), drawn as an open box.

The tokenizer writes a space as "▁". The book's fonts lack the character, and what stands in for it
is a black slab as wide as a letter. custom.css adds this glyph to each of the book's fonts.
"""

from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

WIDTH, LEFT, RIGHT, BOTTOM, TOP, STROKE = 600, 60, 540, -140, 90, 60  # 1,000 units an em


def open_box():
    pen = TTGlyphPen(None)
    corners = [
        (LEFT, BOTTOM), (LEFT, TOP), (LEFT + STROKE, TOP), (LEFT + STROKE, BOTTOM + STROKE),
        (RIGHT - STROKE, BOTTOM + STROKE), (RIGHT - STROKE, TOP), (RIGHT, TOP), (RIGHT, BOTTOM),
    ]
    pen.moveTo(corners[0])
    for corner in corners[1:]:
        pen.lineTo(corner)
    pen.closePath()
    return pen.glyph()


def main() -> None:
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "space_mark"])
    builder.setupCharacterMap({0x2581: "space_mark"})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "space_mark": open_box()})
    builder.setupHorizontalMetrics({".notdef": (WIDTH, 0), "space_mark": (WIDTH, LEFT)})
    builder.setupHorizontalHeader(ascent=900, descent=-250)
    builder.setupNameTable({"familyName": "Space mark", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.font["head"].created = builder.font["head"].modified = 0  # the same bytes each time
    builder.font.recalcTimestamp = False
    builder.save(Path(__file__).parents[1] / "book" / "_static" / "space-mark.ttf")


if __name__ == "__main__":
    main()
