"""The exams: points, answers, and that each session is asked for once."""

import re

import pytest

from benchmarks.browser import CHROMIUM
from course import bank, exams, facts, plan

EXAMS = exams.load()["written"]
each_exam = pytest.mark.parametrize("exam", EXAMS, ids=lambda exam: exam["name"])
TASKS = [task for exam in EXAMS for task in exam["by_hand"] + exam["runs"]]
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task["title"])


@each_exam
def test_an_exam_has_sixty_points(exam):
    assert exams.points(exam) == exams.POINTS == 60
    assert len(exam["questions"]) == 12 and len(exam["by_hand"]) == 4 and len(exam["runs"]) == 2


@each_exam
def test_each_session_is_asked_for_once_and_in_order(exam):
    read = [session["read"] for session in plan.load()["sessions"]]
    for chapters, item in zip(read, exams.questions(exam), strict=True):
        assert item.chapter in chapters, item.id


@each_exam
def test_the_right_letters_do_not_make_a_pattern(exam):
    letters = [item.right for item in exams.questions(exam)]
    assert max(letters.count(place) for place in range(4)) <= 5
    assert all(len(set(letters[i : i + 4])) > 1 for i in range(9))


def test_no_question_is_in_both_or_on_a_page():
    a, b = ({item.id for item in exams.questions(exam)} for exam in EXAMS)
    assert not a & b
    shown = {item.id for chapter in bank.chapters() for item in bank.on_the_page(chapter)}
    assert not (a | b) & shown, "its answer is at the end of a chapter"


@each_task
def test_the_numbers_of_an_answer_are_computed(task):
    assert sum(mark[0] for mark in task["marks"]) == 6
    for _, text, computed in task["marks"]:
        for printed, expression in computed:
            assert re.search(rf"(?<![\d.,]){re.escape(printed)}(?![\d])", text), (printed, text)
            digits = len(printed.partition(".")[2])
            off = abs(facts.value(expression) - float(printed.replace(",", "")))
            assert off <= 0.5000001 * 10**-digits, (printed, facts.value(expression))


@each_exam
def test_the_paper_does_not_show_its_answers(exam):
    paper, marking = exams.exam_html(exam), exams.exam_html(exam, answers=True)
    assert "☒" not in paper and marking.count("☒") == 12
    for task in exam["by_hand"] + exam["runs"]:
        for _, text, _ in task["marks"]:
            assert exams.words(text) in marking and exams.words(text) not in paper
    assert "http" not in paper + marking


def test_the_readiness_check_asks_seven_questions_and_answers_none():
    made = exams.readiness_html()
    assert made.count('class="task"') == 7 and "[0, ln 3]" in made and "$" not in made
    assert "<code>a @ b</code>" in made and "factor" not in made and "dropdown" not in made


def test_the_oral_list_has_two_questions_for_each_session():
    assert len(exams.load()["oral"]) == 24


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_a_paper_prints(tmp_path):
    from pypdf import PdfReader

    path = tmp_path / "exam.html"
    path.write_text(exams.exam_html(EXAMS[0]), encoding="utf8")
    pages = PdfReader(exams.print_pdf(path)).pages
    assert 4 <= len(pages) <= 7
    assert "60 points" in pages[0].extract_text()
