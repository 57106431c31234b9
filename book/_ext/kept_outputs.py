"""Executed notebooks in _build/jupyter_execute have their outputs, those from the cache as well.

MyST-NB writes a notebook there as it's in the book where it took the outputs from the cache, which
is where they always are after `make book` (tools/execute.py). The Markdown twins, the EPUB and the
PDF are made from that folder.
"""

from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from sphinx.application import Sphinx


def write_outputs(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.env.mystnb_config.execution_mode != "cache":
        return
    cache = get_cache(app.env.mystnb_config.execution_cache_path)
    for page in app.env.found_docs:
        source = Path(app.env.doc2path(page))
        if source.suffix != ".ipynb":
            continue
        try:
            _, made = cache.merge_match_into_notebook(nbformat.read(source, as_version=4))
        except KeyError:  # a student's lab, which isn't executed
            continue
        nbformat.write(made, Path(app.outdir).parent / "jupyter_execute" / f"{page}.ipynb")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", write_outputs, priority=400)  # before the twins are written
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
