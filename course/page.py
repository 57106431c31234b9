"""'Check yourself': three questions of the bank at the end of a chapter, on its page or in Colab.

The page's extension (book/_ext/check_yourself.py) puts `as_html` into the built page. A notebook
shows the same with

    from course.page import check_yourself
    check_yourself("03_masks")

Without JavaScript the questions can be read, and the answers unfolded. The HTML is well-formed XML,
since an EPUB holds it too.
"""

import hashlib
import html

from course import bank
from course.bank import Item

STATIC = bank.ROOT / "book" / "_static"
ASSETS = ("check-yourself.css", "check-yourself.js")
INTRO = "Three situations from this chapter. Decide on an answer first, then unfold all four."


def words(text: str) -> str:
    """An item's Markdown, emphasis and code, as HTML."""
    from markdown_it import MarkdownIt

    return MarkdownIt().renderInline(text)


def key(text: str) -> str:
    """A short name of an option. It changes with the words, so that a kept answer stays its own."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def item_html(item: Item) -> str:
    """One question: a group of radio buttons, and the four explanations, folded."""
    options = explained = ""
    for letter, option in zip(bank.LETTERS, item.options, strict=True):
        name = key(option.text)
        options += (
            f'<label class="check-option">'
            f'<input type="radio" name="check-{item.id}" value="{name}" />'
            f'<span class="check-letter" aria-hidden="true">{letter}</span> '
            f"<span>{words(option.text)}</span></label>\n"
        )
        right = ' data-right="yes"' if option.right else ""
        explained += (f'<li data-option="{name}"{right}><strong>{words(option.text)}</strong> '
                      f"<span>{words(option.says)}</span></li>\n")
    after = f'<p class="check-after">{words(item.after)}</p>\n' if item.after else ""
    return (
        f'<fieldset class="check-item" data-id="{html.escape(item.id)}">\n'
        f"<legend>{words(item.question)}</legend>\n{options}"
        f'<p class="check-says" role="status"></p>\n'
        f'<details class="check-answers"><summary>All four answers, explained</summary>\n'
        f"<ol>{explained}</ol>\n{after}</details>\n</fieldset>\n"
    )


def as_html(chapter: str) -> str:
    """The questions of a chapter ("03_masks"), without the heading; empty where it has none."""
    items = bank.on_the_page(chapter)
    if not items:
        return ""
    return (
        f'<div class="check-yourself" data-page="{html.escape(chapter)}">\n'
        f'<p class="check-intro">{INTRO}</p>\n'
        + "".join(map(item_html, items))
        + '<p class="check-foot"><span class="check-count" role="status"></span> '
        '<button type="button" class="check-forget" hidden="hidden">Forget my answers</button>'
        "</p>\n</div>"
    )


def check_yourself(chapter: str):
    """Show a chapter's questions in a notebook, with their style and script inside."""
    from IPython.display import HTML

    style, script = ((STATIC / name).read_text(encoding="utf8") for name in ASSETS)
    return HTML(f"<style>{style}</style>{as_html(chapter)}<script>{script}</script>")
