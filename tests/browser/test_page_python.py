"""The page's Python in Chromium, on a site of one page: solutions as typed, and a wheel of PyTorch.

The wheel is a dummy, the page's own small tensor library under another version.
"""

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest
import run_here
from turns import one_in

from benchmarks.browser import CHROMIUM, DRIVER, OnlyFromHere, served
from tests.book.test_page import typed
from tools import page_torch

ROOT = Path(__file__).resolve().parents[2]

if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not on the path", allow_module_level=True)

PAGE = """<!doctype html><meta charset=utf-8><title>one exercise</title>
<link rel=icon href="data:,"><link rel=stylesheet href="_static/run/run.css">
<script>localStorage.clear()</script>
<script type=module src="_static/run/run.js" data-code=python.zip
 data-wheels="{wheels}"></script>
<article class=bd-article><p><strong>Exercise 1.</strong></p>
<div class=cell><div class=cell_input><pre>print(torch.__version__, "is torch")
shape = (2, 1, 6, 6)
true_values = 18
</pre></div></div>
<div class=cell><div class=cell_input>
<pre>checks.masks.combined(shape, true_values);</pre></div></div></article>
"""


def wheel(folder, name, spoilt=False):
    """FILE=SHA256 of a wheel of the page's own torch or numpy, as version 9.9.9."""
    library = ROOT / "exercises" / "page" / "lib"
    path = folder / f"{name}-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((library / name).rglob("*.py")):
            text = file.read_text(encoding="utf8").replace("2.13.0+page", "9.9.9")
            text = "raise ImportError('no')\n" if spoilt and file.parent.name == name else text
            archive.writestr(file.relative_to(library).as_posix(), text)
        info = f"{name}-9.9.9.dist-info"
        archive.writestr(f"{info}/METADATA",
                         f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9.9\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return f"{path}={hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a site that holds what runs Python and no page yet."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "book" / "_static" / "run", folder / "_static" / "run")
    (folder / "_static" / "run" / "python.zip").write_bytes(run_here.packed())
    shutil.copytree(ROOT / "book" / "_extra" / "vendor", folder / "vendor",
                    ignore=shutil.ignore_patterns("wheels", "mathjax", "vega"))
    return folder


@pytest.fixture(scope="module")
def opened(site, browser):
    """A browser that has opened the site's page, with some wheels beside it."""
    browser.set_script_timeout(300)

    def opened(*wheels):
        taken = page_torch.take(wheels, site / "vendor" / "pyodide" / "wheels") if wheels else []
        (site / "page.html").write_text(
            PAGE.format(wheels=" ".join(path.name for path in taken)), encoding="utf8")
        browser.get(f"{address}/page.html")
        return browser

    with served(site, OnlyFromHere) as address:
        yield opened


def said(browser):
    """What the check says of what is printed in the page, and the note below the editor."""
    return browser.execute_async_script("""
        const done = arguments[0], find = (css) => document.querySelector(css);
        const until = (test) => new Promise((resolve) => {
          const timer = setInterval(() => {
            if (test()) { clearInterval(timer); resolve(); }
          }, 100);
        });
        (async () => {
          await until(() => find(".run-open"));
          find(".run-open").click();
          await until(() => find(".run-go"));
          find(".run-go").click();
          await until(() => find(".run-said").textContent && !find(".run-status").textContent);
          done([find(".run-said").textContent, find(".run-note").textContent]);
        })();""")


def test_a_wheel_named_torch_is_preferred_and_one_that_fails_is_not_missed(opened, tmp_path):
    text, note = said(opened(wheel(tmp_path, "torch"), wheel(tmp_path, "numpy")))
    assert text.startswith("9.9.9 ") and "✓ Exercise 1. Right." in text
    assert "torch here is PyTorch 9.9.9" in note
    text, note = said(opened(wheel(tmp_path, "torch", spoilt=True), wheel(tmp_path, "numpy")))
    assert text.startswith("2.13.0+page ") and "✓ Exercise 1. Right." in text
    assert "small tensor library" in note
    text, note = said(opened())
    assert text.startswith("2.13.0+page ") and "small tensor library" in note


# Each starts a Python in the page. book/test_page.py judges all of them each time without one.
@pytest.mark.parametrize("page", one_in(4, run_here.PAGES))
def test_each_solution_is_right_and_quick_in_the_browsers_python(opened, page):
    answers = {number: cells for number, cells in typed(page).items()
               if number not in map(str, run_here.PAGES[page])}
    given = opened().execute_async_script("""
        const [runs, done] = arguments, here = (path) => new URL(path, location).href;
        const worker = new Worker("_static/run/worker.js", { type: "module" });
        const ask = (message) => new Promise((resolve) => {
          worker.onmessage = ({ data }) => resolve(data);
          worker.postMessage(message);
        });
        (async () => {
          const found = [await ask({ start: {
            wheels: [], code: here("_static/run/python.zip"), runtime: here("vendor/pyodide/"),
          } })];
          if (!found[0].failed) {
            for (const [answer, check, imports] of runs) {
              found.push(await ask({ answer, check, imports }));
            }
          }
          worker.terminate();
          done(found);
        })();""", [[*cells, run_here.imports(page)] for cells in answers.values()])
    assert "failed" not in given[0], given[0]
    for number, one in zip(answers, given[1:], strict=True):
        print(f"{page} {number}: {one.get('took', 0) / 1000:.2f} s")
        assert one.get("verdict") is True, (number, one)
        assert one["took"] < 20_000, number
