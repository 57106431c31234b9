"""Formulas as MathML, which browsers draw by themselves: the pages may load and run nothing."""

import html
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup
from nbconvert.filters import markdown2html

FORMULA = re.compile(r"(\$\$.+?\$\$|(?<![\\$\w])\$(?! )[^$\n]+?(?<! )\$(?!\w))", re.DOTALL)
TAGS = set("math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover "
           "munderover mtable mtr mtd mstyle mpadded mphantom menclose mmultiscripts".split())
ATTRIBUTES = set("display mathvariant displaystyle scriptlevel stretchy fence form width height "
                 "lspace rspace accent linethickness columnalign minsize maxsize".split())


def mathml(formula: str) -> str:
    """One formula, with its dollar signs; as it was typed where it can't be read.

    A student may have typed it, so nothing but the elements of MathML gets through.
    """
    block = formula.startswith("$$")
    try:
        tree = ElementTree.fromstring(convert(formula.strip("$").strip(),
                                              display="block" if block else "inline"))
    except Exception:  # whatever is wrong with it, the page is made
        return html.escape(formula)
    for node in tree.iter():
        node.tag = node.tag.rpartition("}")[2]
        if node.tag not in TAGS:
            return html.escape(formula)
        for name in set(node.attrib) - ATTRIBUTES:
            del node.attrib[name]
    return ElementTree.tostring(tree, encoding="unicode")


def text_with_maths(text: str) -> Markup:
    """Plain text, escaped, with its formulas."""
    parts = FORMULA.split(text)
    return Markup("".join(mathml(part) if number % 2 else html.escape(part)
                          for number, part in enumerate(parts)))


def markdown_with_maths(text: str) -> Markup:
    """Markdown of a master: never of what a student wrote."""
    found = []

    def keep(match):
        found.append(mathml(match[0]))
        return f"formula{len(found) - 1}elumrof"

    made = re.sub('<a class="anchor-link".*?</a>', "", markdown2html(FORMULA.sub(keep, text)))
    return Markup(re.sub(r"formula(\d+)elumrof", lambda m: found[int(m[1])], made))


def line_with_maths(text: str) -> Markup:
    """One line of a master, without a paragraph around it."""
    return Markup(markdown_with_maths(text).strip().removeprefix("<p>").removesuffix("</p>"))
