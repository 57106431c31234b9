"""Written exams with marking schemes, an oral list, a readiness check: `make exams`.

    python -m course.exams               # _build/course/exam-A.html, exam-A-marking.html ...

course/exams.yml names questions of the bank and holds the open tasks. In the paper that students
get, nothing says which option is right; the marking scheme repeats the paper with the answers.
"""

import argparse
import html
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from course import bank
from course.bank import ROOT, Item
from tools.arguments import new_folder

OUT = ROOT / "_build" / "course"
HERE = Path(__file__).parent
MINUTES, POINTS = 90, 60
PER_QUESTION = 2  # points
STYLE = (HERE / "exam.css").read_text(encoding="utf8")


@cache
def load() -> dict:
    """Both exams and the oral list."""
    return yaml.safe_load((ROOT / "course" / "exams.yml").read_text(encoding="utf8"))


def questions(exam: dict) -> list[Item]:
    """The exam's items from the bank, in its order. Raises KeyError for one that is gone."""
    known = {item.id: item for item in bank.load()}
    return [known[name] for name in exam["questions"]]


def points(exam: dict) -> int:
    """What the whole exam is worth."""
    tasks = exam["by_hand"] + exam["runs"]
    return PER_QUESTION * len(exam["questions"]) + sum(m[0] for t in tasks for m in t["marks"])


def words(text: str) -> str:
    return MarkdownIt().renderInline(text)


def question_html(number: int, item: Item, answers: bool) -> str:
    lines = []
    for letter, option in zip(bank.LETTERS, item.options, strict=True):
        mark = "☒" if answers and option.right else "☐"
        css = ' class="right"' if answers and option.right else ""
        lines.append(f"<li{css}>{mark} {letter} &nbsp;{words(option.text)}</li>")
    says = f'<p class="says">{words(item.options[item.right].says)}</p>' if answers else ""
    return (f'<div class="task"><p><span class="points">{PER_QUESTION} points</span>'
            f"<b>{number}.</b> {words(item.question)}</p>"
            f'<ol class="options">{"".join(lines)}</ol>{says}</div>')


def task_html(number: int, task: dict, answers: bool) -> str:
    worth = sum(mark[0] for mark in task["marks"])
    rows = "".join(f"<tr><td>{mark}</td><td>{words(text)}</td></tr>"
                   for mark, text, _ in task["marks"])
    below = f'<table class="marks">{rows}</table>' if answers else '<div class="room"></div>'
    return (f'<div class="task"><p><span class="points">{worth} points</span><b>{number}. '
            f'{words(task["title"])}.</b> {words(task["text"])}</p>{below}</div>')


def page(title: str, body: str) -> str:
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
            f"<style>{STYLE}</style></head><body>{body}</body></html>\n")


def exam_html(exam: dict, answers: bool = False) -> str:
    """An exam as students get it, or with what earns the points."""
    title = f"Transformers, exam {exam['name']}" + (": marking scheme" if answers else "")
    head = "" if answers else ('<div class="head"><span>Name:</span><span>Number:</span>'
                               "<span>Points:</span></div>")
    intro = "" if answers else (
        f"<p>{MINUTES} minutes, {POINTS} points. A pocket calculator is allowed, and one sheet "
        "that you wrote by hand. In part 1, each question has exactly one right answer; a wrong "
        "one costs nothing. "
        "In parts 2 and 3, show how you got there.</p>")
    parts, number = [], 0
    for heading, tasks, made in (
        ("1 Situations", questions(exam), question_html),
        ("2 By hand", exam["by_hand"], task_html),
        ("3 What does this show?", exam["runs"], task_html),
    ):
        parts.append(f"<h2>{heading}</h2>")
        for task in tasks:
            number += 1
            parts.append(made(number, task, answers))
    return page(title, f"{head}<h1>{html.escape(title)}</h1>{intro}{''.join(parts)}")


def oral_html() -> str:
    rows = "".join(f'<div class="task"><p><b>{n}.</b> {words(asked)}</p><p class="says">'
                   f"{words(good)}</p></div>" for n, (asked, good) in enumerate(load()["oral"], 1))
    return page("Transformers, oral exam", (
        "<h1>Transformers, oral exam</h1><p>Fifteen minutes: draw two questions, follow them up, "
        "and have one cell of the student's own labs explained. Below each question is what a good "
        f"answer names.</p>{rows}"))


def readiness_html() -> str:
    """The seven questions of the teaching guide's readiness check, without their answers."""
    guide = (ROOT / "book" / "teaching-guide.md").read_text(encoding="utf8")
    part = guide.partition("### A readiness check\n")[2].partition("\n## ")[0]
    asked = re.findall(r"^\*\*(\d)\.\*\* (.+?)\n\n:::\{dropdown\}", part, re.M | re.DOTALL)
    rows = ""
    for number, text in asked:
        plain = re.sub(r"\$([^$]*)\$", r"\1", text).replace("\\", "")  # its one formula: [0, ln 3]
        rows += (f'<div class="task"><p><b>{number}.</b> {words(plain)}</p>'
                 '<div class="room short"></div></div>')
    return page("Are you ready?", "<h1>Are you ready?</h1><p>Ten minutes, on paper, without a "
                f"computer. Nobody marks it; it tells you what to read up on.</p>{rows}")


def write(out: Path) -> list[Path]:
    """All papers as HTML."""
    out.mkdir(parents=True, exist_ok=True)
    papers = {"exam-oral": oral_html(), "readiness-check": readiness_html()}
    for exam in load()["written"]:
        papers[f"exam-{exam['name']}"] = exam_html(exam)
        papers[f"exam-{exam['name']}-marking"] = exam_html(exam, answers=True)
    made = []
    for name, text in papers.items():
        made.append(out / f"{name}.html")
        made[-1].write_text(text, encoding="utf8")
    return made


def print_pdf(path: Path) -> Path | None:
    """A page as PDF through Chromium; None where there is none."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        return None
    pdf = path.with_suffix(".pdf")
    subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
                    "--no-pdf-header-footer", f"--print-to-pdf={pdf}", path.as_uri()],
                   check=True, capture_output=True, timeout=120)
    return pdf


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=new_folder, default=OUT)
    options = parser.parse_args(arguments)
    for path in write(options.out):
        print(print_pdf(path) or f"{path} (a PDF needs chromium on the path)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
