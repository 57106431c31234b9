"""Exercises that can be solved in the page: a button at each, and the Python files that it needs.

The pages are those of PAGES, whose checks judge alike on the page's own tensor library and on
PyTorch (tests/test_page.py). Without a click nothing is loaded but the small script run/run.js.
"""

import hashlib
import io
import zipfile
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
# With the exercises that need more than a page has: the recorded runs, or more time.
PAGES = {
    "01_why_attention": (),
    "02_scaled_dot_product_attention": (),
    "03_masks": (),
    "04_multi_head_attention": (7,),
    "06_positional_encodings": (8,),
    "07_normalization": (),
    "08_feed_forward_and_residuals": (4, 8),
    "09_encoder": (),
    "10_decoder": (7,),
}
# What an exercise may import: the checks, the tensor library, and what the chapters print.
PACKED = ["exercises/*.py", "exercises/checks/*.py", "exercises/page/*.py",
          "exercises/page/lib/**/*.py", "transformer_lib/*.py", "transformer_lib/guards/*.py",
          "transformer_lib/models/*.py"]
NAME = "run/python.zip"


def files() -> list[Path]:
    return sorted({path for pattern in PACKED for path in ROOT.glob(pattern)})


def packed() -> bytes:
    """The Python files in one zip, the same bytes for the same files."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files():
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), (2026, 1, 1, 0, 0, 0))
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return held.getvalue()


def add_assets(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if doctree is None or app.builder.name != "html" or pagename.removeprefix("book/") not in PAGES:
        return
    without = " ".join(map(str, PAGES[pagename.removeprefix("book/")]))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in files())).hexdigest()[:10]
    app.add_css_file("run/run.css")
    app.add_js_file("run/run.js", type="module", **{
        "data-code": f"python.zip?v={code}", "data-without": without})


def write_code(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        target = Path(app.outdir) / "_static" / NAME
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(packed())


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_assets)
    app.connect("build-finished", write_code)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
