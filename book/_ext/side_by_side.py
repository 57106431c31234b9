"""Let Sphinx read and write two pages at a time.

sphinx-multitoc-numbering does not say whether it allows that. It numbers chapters in _toc.yml that
ask for it, and none does: references.py numbers ours.
"""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
