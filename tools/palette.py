"""Write the colours of the roles as CSS, book/_static/palette.css.

    python -m tools.palette

The palette is transformer_lib/visualize/theme.py, which charts use. What the page itself draws
takes the same colours from here, as var(--role-query). A test compares the two.
"""

from pathlib import Path

from transformer_lib.visualize import DARK_COLOURS, ROLE_COLOURS

ROOT = Path(__file__).resolve().parents[1]


CSS = ROOT / "book" / "_static" / "palette.css"


def css() -> str:
    """The style sheet: one variable a role, on a light page and on a dark one."""
    rules = ["/* Written by tools/palette.py from transformer_lib/visualize/theme.py. */"]
    for page, colours in (("html", ROLE_COLOURS), ('html[data-theme="dark"]', DARK_COLOURS)):
        lines = "".join(f"  --role-{role}: {colour};\n" for role, colour in colours.items())
        rules.append(f"{page} {{\n{lines}}}")
    return "\n".join(rules) + "\n"


if __name__ == "__main__":
    CSS.write_text(css(), encoding="utf-8")
