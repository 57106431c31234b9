"""Exercises solved in the page: the true Python runtime in Chromium, on the built site."""

import json
import re
import time
from pathlib import Path

import pytest
import run_here

from benchmarks.browser import CHROMIUM, DRIVER, OnlyFromHere
from tests.book.test_page import OWN

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
CODE = SITE / "_static" / "run" / "python.zip"

if not CODE.exists():
    pytest.skip("no built site in _build/html: run `make book`", allow_module_level=True)
if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not on the path", allow_module_level=True)

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

START = 240  # seconds that the runtime may take to start on a busy machine
WHY, ATTENTION = "book/01_why_attention.html", "book/02_scaled_dot_product_attention.html"
MASKS, HEADS = "book/03_masks.html", "book/04_multi_head_attention.html"
# (page, exercise, a wrong answer, what is said of it, a right answer)
ANSWERS = [
    (WHY, 3, "def repaired(x):\n    return x @ x.T", "",
     "def repaired(x):\n    return (x @ x.T).softmax(-1) @ x"),
    (HEADS, 2, "def split(x, n_heads):\n    return x.unflatten(-1, (n_heads, -1))", "",
     "def split(x, n_heads):\n    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)"),
    (HEADS, 3, "def join(heads):\n    return heads.transpose(1, 2).flatten(1)", "",
     "def join(heads):\n    return heads.transpose(1, 2).flatten(2)"),
    (ATTENTION, 1, "answer_1 = [1, 0, 0, 0]", "equal scores for every query",
     "answer_1 = [0.25] * 4"),
    (ATTENTION, 2, "def my_attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v",
     "you forgot to divide the scores",
     "def my_attention(q, k, v):\n"
     "    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) @ v"),
    (ATTENTION, 3, "def repaired(q, k, v):\n    return (q @ k.mT / q.size(-1)).softmax(-1) @ v",
     "you divided by d_k",
     "def repaired(q, k, v):\n"
     "    return (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) @ v"),
    (ATTENTION, 4, "def weights_at(scores, t):\n    return (scores * t).softmax(-1)\ntau = 2.08",
     "you multiply by the temperature",
     "def weights_at(scores, t):\n    return (scores / t).softmax(-1)\ntau = 2.08"),
    (ATTENTION, 5, "def attention_backward(q, k, v, g):\n    return q, k, v",
     "`to_q` is the first that differs",
     "def attention_backward(q, k, v, g):\n"
     "    root = math.sqrt(q.size(-1))\n"
     "    w = (q @ k.mT / root).softmax(-1)\n"
     "    u = g @ v.mT\n"
     "    s = w * (u - (w * u).sum(-1, keepdim=True)) / root\n"
     "    return s @ k, s.mT @ q, w.mT @ g"),
    (ATTENTION, 7, "def draw(n, d_k):\n    return torch.randn(n, d_k), torch.randn(n, d_k)",
     "the sentence still holds",
     "def draw(n, d_k):\n"
     "    return tuple(torch.randn(n, 1).expand(n, d_k) for _ in range(2))"),
    (MASKS, 1, "shape = (2, 1, 6, 6)\ntrue_values = 21", "21 comes from the causal mask alone",
     "shape = (2, 1, 6, 6)\ntrue_values = 18"),
    (MASKS, 2, "def decoder_mask(ids, pad_id):\n    return (ids != pad_id)[:, None, None]",
     "you hid the padding but not the future",
     "def decoder_mask(ids, pad_id):\n"
     "    causal = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()\n"
     "    return (ids != pad_id)[:, None, None] & causal"),
    (MASKS, 3, "def repaired(q, k, v, mask):\n    return (q @ k.mT / q.size(-1) ** 0.5)"
     ".masked_fill(mask, -math.inf).softmax(-1) @ v", "you hide the pairs that may attend",
     "def repaired(q, k, v, mask):\n    return (q @ k.mT / q.size(-1) ** 0.5)"
     ".masked_fill(~mask, -math.inf).softmax(-1) @ v"),
    (MASKS, 4, "def window_mask(size, window):\n"
     "    return torch.ones(1, 1, size, size, dtype=torch.bool).tril()", "the plain causal mask",
     "def window_mask(size, window):\n"
     "    return torch.ones(1, 1, size, size, dtype=torch.bool).tril().triu(1 - window)"),
    (MASKS, 5, "def packed_mask(s):\n"
     "    same = s[:, None, :, None] == s[:, None, None, :]\n    return same.tril()",
     "padding sees padding",
     "def packed_mask(s):\n"
     "    same = s[:, None, :, None] == s[:, None, None, :]\n"
     "    return same.tril() & (s != 0)[:, None, None]"),
]


LAB = "book/labs/lab2_masks_and_heads.html"


SERVED = SITE, OnlyFromHere  # by the fixture `address`


def open_page(browser, url, width=1280):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(url)
    wait_for(browser, "return document.querySelectorAll('.run-open, .run-note').length > 0", 60)


def wait_for(browser, script, seconds=60, *arguments):
    end = time.monotonic() + seconds
    while not (found := browser.execute_script(script, *arguments)):
        assert time.monotonic() < end, f"waited {seconds} s for {script}"
        time.sleep(0.1)
    return found


def loaded(browser, *parts):
    """What the page has loaded with one of these in its address; the browser's own cache counts."""
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)")
    return [name for name in names if any(part in name for part in parts)]


class Box:
    """The editor of one exercise, used with the keyboard and the mouse."""

    def __init__(self, browser, number, kind="Exercise"):
        self.browser, self.number = browser, number
        opener = browser.find_element(By.CSS_SELECTOR, f".run-open[aria-label^='{kind} {number}:']")
        self.cell = opener.find_element(By.XPATH, "./ancestor::div[contains(@class, 'cell')][1]")
        # Charts above are drawn when they come near, and move what a mouse would click.
        browser.execute_script("arguments[0].click()", opener)
        wait_for(browser, "return arguments[0].querySelector('.cm-content')", 60, self.cell)

    def find(self, css):
        return self.cell.find_element(By.CSS_SELECTOR, css)

    def text(self):
        return self.browser.execute_script(
            "return [...arguments[0].querySelectorAll('.cm-line')].map((l) => l.textContent)"
            ".join('\\n')", self.cell)

    def write(self, text):
        """Replace what is there, pasted as a reader would; typing is another test's."""
        content = self.find(".cm-content")
        self.browser.execute_script("arguments[0].focus()", content)
        content.send_keys(Keys.CONTROL, "a")
        self.browser.execute_script("document.execCommand('insertText', false, arguments[0])", text)

    def button(self, text):
        return next(b for b in self.cell.find_elements(By.CSS_SELECTOR, ".run-button")
                    if b.get_attribute("textContent").strip() == text)

    def press(self, text):
        self.browser.execute_script("arguments[0].click()", self.button(text))

    def said(self):
        return self.browser.execute_script(
            "return document.querySelector(`.run-said[aria-label$=' ${arguments[0]}']`)"
            ".textContent", self.number)

    def run(self, seconds=START):
        """What the check says, once it has run."""
        self.browser.execute_script(
            "document.querySelector(`.run-said[aria-label$=' ${arguments[0]}']`).textContent = ''",
            self.number)
        self.find(".cm-content").send_keys(Keys.CONTROL, Keys.ENTER)
        wait_for(self.browser, "return arguments[0].querySelector('.run-status').textContent === ''"
                 " && document.querySelector(`.run-said[aria-label$=' ${arguments[1]}']`)"
                 ".textContent", seconds, self.cell, self.number)
        return self.said()


@pytest.mark.parametrize("page", [WHY, ATTENTION, MASKS, HEADS])
def test_wrong_and_right_answers_are_judged_in_the_page(browser, address, page):
    """Fourteen exercises in all; nothing but run.js before a click, and never another host."""
    open_page(browser, address + page, 390 if page == MASKS else 1280)
    assert browser.execute_script("return document.querySelector('script[data-code]') !== null")
    assert not loaded(browser, "pyodide", "codemirror", "python.zip", "editor.js")
    for _, number, wrong, sentence, right in [row for row in ANSWERS if row[0] == page]:
        box = Box(browser, number)
        box.write(wrong)
        said = box.run()
        assert said.startswith(f"✗ Exercise {number}. Not yet") and sentence in said, said
        box.write(right)
        said = box.run()
        assert said.startswith(f"✓ Exercise {number}. Right."), said
    assert loaded(browser, "codemirror", "editor.js")
    refused = [entry["message"] for entry in browser.get_log("browser")
               if "Content Security Policy" in entry["message"]]
    assert not refused
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    solved = json.loads(browser.execute_script(
        "return localStorage['attention-step-by-step.solved']"))
    asked = sum(row[0] == page for row in ANSWERS)
    assert len(solved[page.removeprefix("book/").removesuffix(".html")]) == asked


def test_a_labs_visible_check_runs_in_the_page_with_the_readers_cells_above(browser, address):
    open_page(browser, address + LAB, 390)
    assert not loaded(browser, "pyodide", "codemirror", "python.zip", "editor.js")
    above = Box(browser, 1, "Task")
    assert "raise NotImplementedError()" in above.text()
    assert "`make_mask` isn’t written yet" in above.run()
    above.write("def same_number(n):\n    return n")
    box = Box(browser, 3, "Task")
    right = ("def split_heads(x, n_heads):\n"
             "    return x.unflatten(-1, (same_number(n_heads), -1)).transpose(1, 2)\n\n"
             "def join_heads(heads):\n    return heads.transpose(1, 2).flatten(2)")
    box.write(right.replace("(same_number(n_heads), -1)", "(-1, n_heads)").replace(
        "transpose(1, 2)\n\n", "permute(0, 3, 1, 2)\n\n"))
    assert "your head 0 takes every second feature" in box.run()
    box.write(right)
    assert box.run() == "✓ Task 3: visible check passed."
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert not [entry for entry in browser.get_log("browser")
                if "Content Security Policy" in entry["message"]]
    open_page(browser, address + LAB)
    labels = browser.execute_script("return [...document.querySelectorAll('.run-open')].map((b) => "
                                    "b.getAttribute('aria-label'))")
    assert labels == [f"Task {n}: {'Carry on' if n in (1, 3) else 'Run'} here" for n in range(1, 7)]


@pytest.mark.parametrize("page", run_here.LABS)
def test_each_task_of_a_lab_has_a_button_unless_it_is_left_out(browser, address, page):
    text = (ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf8")
    tasks = set(re.findall(r"Task (\d+): visible check passed", text))
    left_out = set(map(str, run_here.LABS[page]))
    open_page(browser, f"{address}book/{page}.html")
    labels = browser.execute_script("return [...document.querySelectorAll('.run-open')].map((b) => "
                                    "b.getAttribute('aria-label'))")
    assert {label.partition(":")[0] for label in labels} == {f"Task {n}" for n in tasks - left_out}
    elsewhere = browser.execute_script(
        "return [...document.querySelectorAll('.run-note a')].map((a) => a.href)")
    assert len(elsewhere) == len(left_out) and all("colab" in link for link in elsewhere)


def test_an_endless_loop_ends_and_an_answer_survives_going_offline(browser, address):
    open_page(browser, address + MASKS)
    browser.execute_script("localStorage.removeItem('attention-step-by-step.answers')")
    open_page(browser, address + MASKS)
    box = Box(browser, 4)
    box.write("def window_mask(size, window):\n    while True:\n        pass")
    said = box.run()
    assert "still running after 12 seconds" in said and "does its loop end?" in said, said

    # No line of Python is reached here, so only the end of the worker helps.
    box.write("def window_mask(size, window):\n    return sum(range(10**15))")
    box.find(".cm-content").send_keys(Keys.CONTROL, Keys.ENTER)
    wait_for(browser, "return arguments[0].querySelector('.run-status').textContent", 20, box.cell)
    time.sleep(1)
    box.press("Stop")
    wait_for(browser, "return document.querySelector(`.run-said[aria-label$=' 4']`)"
             ".textContent === 'Stopped.'", 20)

    # A new worker starts; then the network goes, and runs go on.
    right = ANSWERS[-2][4]
    box.write(right)
    assert box.run().startswith("✓ Exercise 4. Right.")
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {
        "offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
    try:
        box.write(ANSWERS[-2][2])
        assert "the plain causal mask" in box.run()
        box.write(right)
    finally:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})

    # What was written is there after a reload, and Reset brings back what the book prints.
    open_page(browser, address + MASKS)
    assert browser.find_element(
        By.CSS_SELECTOR, ".run-open[aria-label^='Exercise 4:']").text.strip() == "Carry on here"
    box = Box(browser, 4)
    assert box.text() == right
    box.press("Reset")
    assert box.text().strip() == "def window_mask(size, window):\n    return ..."


def test_the_editor_is_left_with_the_keyboard_and_hints_come_one_by_one(browser, address):
    open_page(browser, address + MASKS)
    browser.execute_script("localStorage.removeItem('attention-step-by-step.answers')")
    open_page(browser, address + MASKS)
    box = Box(browser, 5)
    assert "Not attempted yet" in box.said() and "Copy" not in box.said()
    content = box.find(".cm-content")
    content.send_keys(Keys.CONTROL, "a")
    content.send_keys("def packed_mask(segments):\n")
    content.send_keys("x = 1\n", "return x")
    assert box.text() == "def packed_mask(segments):\n    x = 1\n    return x"
    content.send_keys(Keys.HOME, Keys.TAB)
    assert box.text().endswith("        return x")  # Tab indents
    content.send_keys(Keys.ESCAPE)
    content.send_keys(Keys.TAB)
    assert browser.execute_script("return document.activeElement.textContent") == "Run"
    for number in (1, 2):
        wait_for(browser, "return !arguments[0].disabled", START, box.button("Hint"))
        box.press("Hint")
        wait_for(browser, "return document.querySelector(`.run-said[aria-label$=' 5']`)"
                 f".textContent.includes('hint {number} of')", START)


@pytest.mark.parametrize("page", run_here.PAGES)
def test_each_exercise_with_a_check_has_a_button_unless_it_is_left_out(browser, address, page):
    cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf8"))["cells"]
    number, checked = None, set()
    left_out = {f"Exercise {number}" for number in run_here.PAGES[page]}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            number = (re.findall(r"^\*\*Exercise (\d+)", source, re.MULTILINE) or [number])[-1]
        elif number and re.search(r"\bchecks\.(?!hint\b)\w+\.\w+\(", source):
            checked.add(f"Exercise {number}")
        elif page in OWN and (part := re.search(r'own\.hand_in\("(\w+)"', source)):
            checked.add(f"Part {part[1]}")
    open_page(browser, f"{address}book/{page}.html")
    labels = browser.execute_script("return [...document.querySelectorAll('.run-open')].map((b) => "
                                    "b.getAttribute('aria-label'))")
    assert {label.partition(":")[0] for label in labels} == checked - left_out
    elsewhere = browser.execute_script(
        "return [...document.querySelectorAll('.run-note a')].map((a) => a.href)")
    assert len(elsewhere) == len(left_out) and all("colab" in link for link in elsewhere)


def test_the_open_editor_has_no_serious_barrier(browser, address):
    """axe, in light and in dark, with a verdict on the page."""
    open_page(browser, address + MASKS, 390)
    box = Box(browser, 1)
    box.write(ANSWERS[-5][2])
    assert box.run().startswith("✗ Exercise 1. Not yet")
    browser.execute_script(Path(__file__).with_name("axe.min.js").read_text(encoding="utf8"))
    for theme in ("light", "dark"):
        browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        time.sleep(0.5)
        found = browser.execute_async_script("""
            const done = arguments[arguments.length - 1];
            axe.run({ include: ["#exercises"] }).then((it) => done(it.violations
              .filter((v) => ["serious", "critical"].includes(v.impact))
              .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`)));
        """)
        assert not found, f"{theme}: {found}"


def test_a_page_without_such_exercises_loads_nothing_of_it(browser, address):
    browser.get(address + "book/how-to-use.html")
    wait_for(browser, "return document.readyState === 'complete'")
    assert not loaded(browser, "/run/", "pyodide", "codemirror")
