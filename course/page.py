"""'Check yourself': three questions of the bank at the end of a chapter, on its page or in Colab.

The page's extension (book/_ext/check_yourself.py) puts `as_html` into the built page. A notebook
shows the same with

    from course.page import check_yourself
    check_yourself("03_masks")

Without JavaScript the questions can be read, and the answers unfolded. `printed` and `as_markdown`
are for what can't unfold anything: EPUB and PDF, and the page's Markdown twin. There the answers
come after the last question. All HTML here is well-formed XML.
"""

import hashlib
import html

from course import bank
from course.bank import Item

STATIC = bank.ROOT / "book" / "_static"
ASSETS = ("check-yourself.css", "check-yourself.js")
INTRO = "Three situations from this chapter. Decide on an answer first, then unfold all four."
PRINTED = "Three situations from this chapter. Decide first; the answers come after the third."


def words(text: str) -> str:
    """An item's Markdown, emphasis and code, as HTML."""
    from markdown_it import MarkdownIt

    return MarkdownIt().renderInline(text)


def key(text: str) -> str:
    """A short name of an option, made from its words: a saved answer never fits other words."""
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


def printed(chapter: str) -> str:
    """The questions of a chapter as numbered lists, the answers after them; empty without any."""
    items = bank.on_the_page(chapter)
    if not items:
        return ""
    asked = answered = ""
    for item in items:
        options = "".join(f"<li>{words(option.text)}</li>\n" for option in item.options)
        says = "".join(f"<li><strong>{words(option.text)}</strong> {words(option.says)}</li>\n"
                       for option in item.options)
        after = f"<p>{words(item.after)}</p>\n" if item.after else ""
        asked += f'<li><p>{words(item.question)}</p>\n<ol class="options">\n{options}</ol></li>\n'
        answered += f'<li><ol class="options">\n{says}</ol>\n{after}</li>\n'
    return (
        f'<div class="check-yourself">\n<p>{PRINTED}</p>\n<ol class="questions">\n{asked}</ol>\n'
        f'<p class="summary">Answers</p>\n<ol class="questions">\n{answered}</ol>\n</div>'
    )


def as_markdown(chapter: str) -> str:
    """The same as Markdown, with its heading; empty for a page that has no questions."""
    items = bank.on_the_page(chapter)
    if not items:
        return ""
    lines = ["## Check yourself", "", PRINTED, ""]
    for number, item in enumerate(items, 1):
        lines += [f"{number}. {item.question}"]
        lines += [f"    - {letter}. {option.text}"
                  for letter, option in zip(bank.LETTERS, item.options, strict=True)]
    lines += ["", "**Answers**", ""]
    for number, item in enumerate(items, 1):
        right = next(i for i, option in enumerate(item.options) if option.right)
        lines += [f"{number}. {bank.LETTERS[right]}. {item.after}".rstrip()]
        lines += [f"    - {letter}. {option.says}"
                  for letter, option in zip(bank.LETTERS, item.options, strict=True)]
    return "\n".join(lines) + "\n"


def check_yourself(chapter: str):
    """Show a chapter's questions in a notebook, with their style and script inside."""
    from IPython.display import HTML

    style, script = ((STATIC / name).read_text(encoding="utf8") for name in ASSETS)
    return HTML(f"<style>{style}</style>{as_html(chapter)}<script>{script}</script>")
