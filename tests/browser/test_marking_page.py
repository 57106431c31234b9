"""The page on which a teacher marks written answers: keys, criteria, storage, the file it saves."""

import csv
import subprocess
from pathlib import Path

import pytest

from benchmarks.browser import CHROMIUM, DRIVER

if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not on the path", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-grade" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="needs .venv-grade (make labs)")
NAME = "lab2_masks_and_heads"


@pytest.fixture
def out(tmp_path):
    subprocess.run([PYTHON, ROOT / "labs" / "tests" / "marking_page.py", tmp_path / "out"],
                   check=True, cwd=ROOT)
    return tmp_path / "out"


@pytest.fixture
def browser(tmp_path):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1000,900",
                     f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    yield driver
    driver.quit()


def opened(browser, out):
    page, = (out / "marking").glob(f"{NAME}*.html")
    browser.get(page.as_uri())
    return browser.find_elements("css selector", "fieldset")


def press(browser, *keys):
    for key in keys:
        webdriver.ActionChains(browser).send_keys(key).perform()


def entered(field):
    return (field.find_element("css selector", "[type=number]").get_attribute("value"),
            [box.get_attribute("value") for box in field.find_elements(
                "css selector", "[type=checkbox]") if box.is_selected()],
            field.find_element("css selector", "textarea").get_attribute("value"))


def test_three_answers_are_marked_without_the_mouse(browser, out, tmp_path):
    first, second, third = opened(browser, out)
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    press(browser, Keys.ENTER, "1", "3", "4", "4")  # the last is taken back
    assert entered(first) == ("2", ["1", "3"], "")
    press(browser, Keys.ENTER, "0", "c", *"Why 2?", Keys.ESCAPE, Keys.ENTER, "1", "2", "3", "4")
    assert entered(second) == ("0", [], "Why 2?")
    assert entered(third) == ("4", ["1", "2", "3", "4"], "")
    webdriver.ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(
        Keys.SHIFT).perform()
    assert browser.switch_to.active_element.get_attribute("data-code") == (
        second.get_attribute("data-code"))

    # Closed by accident: everything is there again. A loaded machine can hand a page that opens the
    # browser's storage as it was a moment ago, so it's opened until what was entered has arrived.
    WebDriverWait(browser, 20).until(lambda _: [
        entered(field)[0] for field in opened(browser, out)] == ["2", "0", "4"])
    assert "3 of 3 have points" in browser.find_element("id", "state").text
    browser.find_element("css selector", "button").click()
    saved = tmp_path / f"marks-{NAME}-task7_written.csv"
    WebDriverWait(browser, 20).until(lambda _: saved.exists())
    rows = list(csv.DictReader(saved.read_text("utf-8-sig").splitlines()))
    assert [(row["points"], row["criteria"], row["comment"]) for row in rows] == [
        ("2", "1 3", ""), ("0", "0", "Why 2?"), ("4", "1 2 3 4", "")]

    # Taken over: the page comes with the marks, and the class page counts the criteria.
    saved.rename(out / saved.name)
    subprocess.run([PYTHON, "-m", "labs.grader", "--out", out], check=True, cwd=ROOT)
    assert [entered(field)[:2] for field in opened(browser, out)] == [
        ("2", ["1", "3"]), ("0", []), ("4", ["1", "2", "3", "4"])]
    text = (out / "class.html").read_text("utf8")
    assert [text.count(f"{met} of 3 met:") for met in (1, 2)] == [2, 2]


def test_formulas_are_drawn_and_a_students_text_stays_text(browser, out):
    opened(browser, out)
    browser.find_element("css selector", "summary").click()
    assert len(browser.find_elements("css selector", "details math")) >= 2
    answers = browser.find_elements("css selector", "fieldset .message")
    assert sum(len(answer.find_elements("css selector", "math")) for answer in answers) == 1
    assert any("<script>document.title" in answer.text for answer in answers)
    assert browser.title.startswith("Lab 2") and "hacked" not in browser.title
    assert "$" not in browser.find_element("css selector", "details").text
