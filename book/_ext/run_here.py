"""Exercises that can be solved in the page: a button at each, and the Python files that it needs.

The pages are those of PAGES, whose checks judge alike on the page's own tensor library and on
PyTorch (tests/book/test_page.py). Without a click nothing is loaded but the small script
run/run.js.
"""

import ast
import hashlib
import io
import json
import zipfile
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
# With the exercises that need more than a page has: files, a trained model, a real measurement, or
# more time.
PAGES = {
    "01_why_attention": (),
    "02_scaled_dot_product_attention": (),
    "03_masks": (),
    "04_multi_head_attention": (7,),
    "05_tokens_and_embeddings": (),
    "06_positional_encodings": (8,),
    "07_normalization": (),
    "07a_pre_norm_and_warm_up": (),
    "08_feed_forward_and_residuals": (4, 8),
    "09_encoder": (),
    "10_decoder": (7,),
    "11_whole_model": (),
    "12_batches_loss_schedule": (9,),
    "13_toy_tasks": (),
    "14_multi30k_data": (7,),
    "15_decoding": (),
    "16_training_on_multi30k": (7,),
    "17_evaluation": (4, 7, 8),
    "18_looking_inside": (7,),
    "19_encoder_only": (6,),
    "20_decoder_only": (),
    "21_vision_transformer": (),
    "22_encoder_decoders": (),
    "23_cheaper_attention": (7, 8),
    "24_longer_memory": (),
    "24a_less_depth": (),
    "25_acting": (),
    "26_what_a_cache_costs": (),
    "27_states": (),
    "28_preferences": (1,),
    "choices": (),
    "descendants": (),
    "diffusion": (),
    "experts": (),
    "exposure": (),
    "inside-an-update": (1,),
    "larger-runs": (),
    "more-on-positions": (),
    "replication": (),
    "scaling": (),
    "search-errors": (),
    "speculative": (),
    "speed": (),
    "speedrun": (),
    "weights-by-hand": (),
    "your-transformer": (),
}
# The same of the labs, whose tasks run with what stands above them.
LABS = {
    "labs/lab1_attention": (),
    "labs/lab2_masks_and_heads": (),
    "labs/lab3_positions_and_normalization": (),
    "labs/lab4_encoder_and_decoder": (),
    "labs/lab5_training_and_decoding": (),
    "labs/lab6_debug_a_transformer": (4,),
    "labs/lab7_language_model": (),
    "labs/lab8_data_and_evaluation": (),
}
# What an exercise may import: the checks, the tensor library, and what the chapters print.
PACKED = ["exercises/*.py", "exercises/checks/*.py", "exercises/page/*.py",
          "exercises/page/lib/**/*.py", "transformer_lib/*.py",
          *(f"transformer_lib/{part}/*.py" for part in ("beyond", "guards", "models", "scoring"))]
# Of these, what no exercise of a page imports: the race of the course, and the museum's program.
UNUSED = {"exercises/race.py", "transformer_lib/one_file.py"}
NAME = "run/python.zip"
# PyTorch itself, where somebody brought it: tools/page_torch.py.
WHEELS = ROOT / "book" / "_extra" / "vendor" / "pyodide" / "wheels" / "wheels.json"
RUNTIME = 7  # MB, compressed


def files() -> list[Path]:
    found = {path for pattern in PACKED for path in ROOT.glob(pattern)}
    return sorted(path for path in found if path.relative_to(ROOT).as_posix() not in UNUSED)


def packed() -> bytes:
    """The Python files in one zip, the same bytes for the same files."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files():
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), (2026, 1, 1, 0, 0, 0))
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return held.getvalue()


def imports(page: str) -> str:
    """The import statements of a chapter, each of one name, one a line; not its setup cell's.

    What it prints of the library is imported, too, since in the notebook it's defined there.
    """
    cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf8"))["cells"]
    found = {}
    for cell in cells:
        tags = cell["metadata"].get("tags", ())
        if cell["cell_type"] != "code" or "setup" in tags:
            continue
        for tag in tags:
            if tag.startswith("lib:"):
                module, _, name = tag.removeprefix("lib:").rpartition(".")
                found[f"from transformer_lib.{module} import {name}"] = None
        for node in ast.parse("".join(cell["source"])).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in node.names:
                    node.names = [name]
                    found[ast.unparse(node)] = None
    return "\n".join(found)


def wheels() -> list[dict]:
    """The wheels that the page loads in place of its tensor library: [{file, bytes}]."""
    return json.loads(WHEELS.read_text(encoding="utf8")) if WHEELS.exists() else []


def add_assets(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    page = pagename.removeprefix("book/")
    left_out = (PAGES | LABS).get(page)
    if doctree is None or app.builder.name != "html" or left_out is None:
        return
    code = hashlib.sha256(b"".join(path.read_bytes() for path in files())).hexdigest()[:10]
    app.add_css_file("run/run.css")
    app.add_js_file("run/run.js", type="module", **{
        "data-code": f"python.zip?v={code}", "data-imports": "" if page in LABS else imports(page),
        "data-without": " ".join(map(str, left_out)),
        "data-wheels": " ".join(wheel["file"] for wheel in wheels()),
        "data-megabytes": str(RUNTIME + round(sum(one["bytes"] for one in wheels()) / 1e6))})


def write_code(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        target = Path(app.outdir) / "_static" / NAME
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(packed())


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_assets)
    app.connect("build-finished", write_code)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
