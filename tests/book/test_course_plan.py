"""The course page's numbers add up, its links lead somewhere, and its demos give what they say."""

import re
from datetime import date, time

import pytest
from icalendar import Calendar

from benchmarks.browser import CHROMIUM, DRIVER
from course import bank, plan
from tools.setup_cell import ROOT

PLAN = plan.load()
GUIDE = (ROOT / "book" / "teaching-guide.md").read_text(encoding="utf8")
PAGE = (ROOT / "book" / "course.md").read_text(encoding="utf8")


def test_the_hours_add_up():
    found = plan.workload()
    assert found["in class"] == 12 * 90
    assert found["labs"] == sum(lab["minutes"] for n, lab in plan.labs().items() if n <= 6)
    total = re.search(r"\*\*([\d.]+)\*\*", plan.workload_block())[1]
    assert float(total) == pytest.approx(sum(found.values()) / 60, abs=0.051)


def test_sessions_and_homework_are_those_of_the_guide():
    titles = re.findall(r"^\| \d+ \| ([^|]+) \|", GUIDE, re.MULTILINE)
    assert titles[:12] == [session["title"] for session in PLAN["sessions"]]
    homework = [int(n) for n in re.findall(r"^\*\*Homework\*\* \((\d+) minutes", GUIDE, re.M)]
    assert homework[:11] == [s["homework"] for s in PLAN["sessions"] if s["homework"]]


@pytest.mark.parametrize("calendar", PLAN["calendars"], ids=lambda c: c["name"])
def test_a_calendar_has_each_session_once_and_in_order(calendar):
    numbers = [n for week in calendar["weeks"] for n in week]
    assert numbers == list(range(1, len(PLAN["sessions"]) + 1))
    assert len(calendar["weeks"]) == int(calendar["name"].split()[0])


@pytest.mark.parametrize("calendar", PLAN["calendars"], ids=lambda c: c["name"])
def test_the_calendar_file_is_read_back(calendar):
    events = Calendar.from_ical(plan.ics(calendar, date(2027, 2, 1), time(10, 15))).walk("VEVENT")
    sessions = [e for e in events if e["summary"].startswith("Session")]
    assert len(sessions) == 12 and len(events) == 12 + len(plan.course_labs())
    assert all((e["dtend"].dt - e["dtstart"].dt).seconds == 90 * 60 for e in sessions)
    starts = [e["dtstart"].dt for e in sessions]
    assert starts == sorted(starts) and starts[0].weekday() == 0
    assert len({e["uid"] for e in events}) == len(events)


def test_every_lab_that_goes_out_comes_back():
    out = [n for s in PLAN["sessions"] for n in s.get("out", [])]
    due = [n for s in PLAN["sessions"] for n in s.get("due", [])] + [PLAN["last_lab"]]
    assert out == sorted(due) == list(range(1, 7))


@pytest.mark.parametrize("day", PLAN["days"], ids=lambda d: d["name"])
def test_a_day_has_no_gap(day):
    for before, after in zip(day["rows"], day["rows"][1:], strict=False):
        assert before[1] == after[0]
    assert 6 <= plan.working_minutes(day) / 60 <= 6.75


def test_each_task_of_each_lab_serves_one_goal():
    named = [by for s in PLAN["sessions"] for g in s["goals"] for by in g["by"] if by[0] != "q"]
    there = [f"{n}.{task}" for n in plan.course_labs() for task in plan.labs()[n]["points"]]
    assert sorted(named) == sorted(there)
    assert sum(map(plan.points_of, named)) == 6 * 20


def test_each_goal_is_checked_and_its_questions_exist():
    for session in PLAN["sessions"]:
        for goal in session["goals"]:
            assert goal["by"], goal
            for by in goal["by"]:
                plan.points_of(by)
    with pytest.raises(StopIteration):
        plan.points_of("q:no-such-question")


def test_the_page_shows_every_part_and_its_links_lead_somewhere():
    assert set(re.findall(r"<!-- course: (\w+) -->", PAGE)) == set(plan.BLOCKS)
    text = plan.filled(PAGE)
    assert "<!--" not in text
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / "book" / target).exists(), target


def test_the_letter_speaks_of_the_hours_that_the_plan_has():
    weekly = sum(plan.workload().values()) / 60 / 12
    assert "about four hours a week, for twelve weeks" in PAGE.replace("\n> ", " ")
    assert 3.7 <= weekly < 4.5


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")
def test_the_demos_give_what_the_page_says():
    from course.demos import replay

    steps = [step for demo in PLAN["demos"] for step in demo["steps"]]
    assert len(PLAN["demos"]) == 6
    given = replay([step["address"] for step in steps])
    assert [step["gives"] for step in steps] == [result["text"] for result in given]


def test_chapters_of_the_plan_are_chapters():
    assert all(c in bank.chapters() for s in PLAN["sessions"] for c in s["read"])
