"""The course as data (course/plan.yml): what the page book/course.md shows, and calendar files.

    python -m course.plan --start 2027-02-01 --time 10:15    # _build/course/calendar-*.ics

`filled` puts the parts of the page into its text. Whatever another file already says is read
there: minutes of reading in the chapters, minutes and points in the labs.
"""

import argparse
import json
import re
import sys
from datetime import date, datetime, time, timedelta
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

import yaml

from course import bank
from course.bank import ROOT
from tools.arguments import new_folder

OUT = ROOT / "_build" / "course"
STATED = re.compile(r"\*\*Time\*\* (\d+) minutes to read.*?, (\d+) more for the exercises")
WEEKDAYS = (0, 2)  # Monday and, where a week has two sessions, Wednesday


@cache
def load() -> dict:
    """The whole plan."""
    return yaml.safe_load((ROOT / "course" / "plan.yml").read_text(encoding="utf8"))


def markdown_cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


@cache
def title(chapter: str) -> str:
    """A chapter's heading, without what follows a colon."""
    text = markdown_cells(ROOT / "book" / f"{bank.chapters()[chapter]}.ipynb")[0]
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1].partition(":")[0]


def link(chapter: str) -> str:
    return f"[{title(chapter)}]({bank.chapters()[chapter]}.ipynb)"


@cache
def reading(chapter: str) -> int:
    """Minutes that a chapter states for its reading."""
    text = markdown_cells(ROOT / "book" / f"{bank.chapters()[chapter]}.ipynb")[0]
    found = STATED.search(text) or re.search(r"\*\*Time\*\* (\d+) minutes to read", text)
    return int(found[1])


@cache
def labs() -> dict[int, dict]:
    """{number: title, minutes, file, points and title of each task} of the students' labs."""
    found = {}
    for path in sorted((ROOT / "book" / "labs").glob("lab*_*.ipynb")):
        number = int(re.match(r"lab(\d+)", path.stem)[1])
        task, points, tasks, heading, minutes = None, {}, {}, "", 0
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                heading = heading or re.search(r"^# (.+)$", source, re.MULTILINE)[1]
                minutes = minutes or int(re.search(r"(\d+) minutes", source)[1])
                started = re.search(r"^#+ Task (\d+):? *(.*)$", source, re.MULTILINE)
                if started:
                    task = int(started[1])
                    tasks[task] = started[2]
            marks = cell["metadata"].get("nbgrader", {})
            if marks.get("grade"):
                points[task] = points.get(task, 0) + marks["points"]
        found[number] = {"title": heading, "minutes": minutes, "file": path.name, "points": points,
                         "tasks": tasks}
    return found


def sessions() -> list[dict]:
    """The twelve sessions, and those on what came after."""
    return load()["sessions"] + load()["more"]


def homework(session: int) -> str:
    """What the teaching guide gives as homework, without its links."""
    guide = (ROOT / "book" / "teaching-guide.md").read_text(encoding="utf8")
    part = guide.partition(f":::{{dropdown}} Session {session}:")[2].partition("\n:::\n")[0]
    found = re.search(r"^\*\*Homework\*\* \([^)]*\): (.+?)\.?$", part, re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", found[1]) if found else ""


def course_labs() -> list[int]:
    """The labs that the plan's sessions hand out."""
    return sorted(lab for session in load()["sessions"] for lab in session.get("out", []))


def workload() -> dict[str, int]:
    """Minutes of the whole course, by kind."""
    sessions = load()["sessions"]
    return {
        "in class": len(sessions) * load()["minutes"],
        "reading": sum(reading(chapter) for s in sessions for chapter in s["read"]),
        "homework": sum(s["homework"] for s in sessions),
        "labs": sum(labs()[lab]["minutes"] for lab in course_labs()),
    }


def hours(minutes: float) -> str:
    return f"{minutes / 60:.1f}".removesuffix(".0")


def points_of(reference: str) -> int | None:
    """Points of a lab task, "1.3"; None for a question of the bank. Raises KeyError."""
    if reference.startswith("q:"):
        next(item for item in bank.load() if item.id == reference[2:])
        return None
    lab, task = map(int, reference.split("."))
    return labs()[lab]["points"][task]


# ------------------------------------------------------------------------------- parts of the page


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def sessions_block() -> str:
    rows = []
    for number, session in enumerate(load()["sessions"], 1):
        minutes = sum(map(reading, session["read"]))
        lab = [f"{n} due" for n in session.get("due", [])] + [
            f"{n} out" for n in session.get("out", [])]
        rows.append([number, session["title"], ", ".join(map(link, session["read"])), minutes,
                     session["homework"] or "", ", ".join(lab)])
    return table(["", "session", "read before", "reading (min)", "homework (min)", "lab"], rows)


def workload_block() -> str:
    found = workload()
    total = sum(found.values())
    rows = [[kind, hours(minutes)] for kind, minutes in found.items()]
    rows.append(["**total**", f"**{hours(total)}**"])
    weeks = {c["name"]: len(c["weeks"]) for c in load()["calendars"]}
    spread = "; ".join(f"{name}: {hours(total / n)} hours a week" for name, n in weeks.items())
    return f"{table(['', 'hours'], rows)}\n\n{spread}."


def calendars_block() -> str:
    parts = []
    for calendar in load()["calendars"]:
        rows = []
        for week, numbers in enumerate(calendar["weeks"], 1):
            listed = [load()["sessions"][n - 1] for n in numbers]
            due = [f"lab {n} due" for s in listed for n in s.get("due", [])]
            what = " · ".join(f"{n} {s['title']}" for n, s in zip(numbers, listed, strict=True))
            if not numbers:
                what = calendar["after"]
            rows.append([week, what, ", ".join(due)])
        if calendar["weeks"][-1]:
            rows.append(["then", calendar["after"], ""])
        parts.append(f"### {calendar['name']}\n\n{table(['week', 'sessions', 'labs'], rows)}")
    return "\n\n".join(parts)


def clock(text: str) -> int:
    hour, minute = map(int, text.split(":"))
    return 60 * hour + minute


def working_minutes(day: dict) -> int:
    """Minutes of a workshop's day without its breaks."""
    return sum(clock(end) - clock(start) for start, end, what in day["rows"] if what)


def days_block() -> str:
    parts = []
    for day in load()["days"]:
        rows = [[f"{start}–{end}",
                 re.sub(r"\{(\w+)\}", lambda found: link(found[1]), what) or "*break*"]
                for start, end, what in day["rows"]]
        said = f"{hours(working_minutes(day))} hours without the breaks."
        parts.append(f"### {day['name']}\n\n{said}\n\n{table(['', ''], rows)}")
    return "\n\n".join(parts)


def goals_block() -> str:
    rows = []
    named = [*enumerate(sessions(), 1), ("lab 8", {"goals": load()["lab_8"]})]
    for number, session in named:
        for goal in session["goals"]:
            tasks = [by for by in goal["by"] if not by.startswith("q:")]
            asked = [by[2:] for by in goal["by"] if by.startswith("q:")]
            points = sum(map(points_of, tasks))
            rows.append([goal["goal"], number, ", ".join(tasks), points or "",
                         ", ".join(f"`{name}`" for name in asked)])
    return table(["you can", "session", "lab tasks", "points", "questions"], rows)


def demos_block() -> str:
    parts = []
    for number, demo in enumerate(load()["demos"], 1):
        lines = [f"### {number}. {demo['title']}", "",
                 f"For session {demo['session']}. **Ask first:** {demo['ask']}", ""]
        for step in demo["steps"]:
            address = "&".join(f"{key}={quote(value, safe=',.')}" for key, _, value in
                               (part.partition("=") for part in step["address"].split("&")))
            # A tag, since a Markdown link to a page may only name a heading behind its #.
            link = f'<a href="translator.html#{escape(address)}">Open</a>'
            lines.append(f"1. {link}: *{step['gives']}*")
        lines += ["", f"**So:** {demo['so']}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


BLOCKS = {"sessions": sessions_block, "workload": workload_block, "calendars": calendars_block,
          "days": days_block, "goals": goals_block, "demos": demos_block}


def filled(text: str) -> str:
    """The page with `<!-- course: name -->` replaced by the parts."""
    return re.sub(r"<!-- course: (\w+) -->", lambda found: BLOCKS[found[1]](), text)


# ------------------------------------------------------------------------------------- ICS files


def ics(calendar: dict, start: date, at: time) -> bytes:
    """A calendar file of the sessions and of the days on which labs are due."""
    from icalendar import Calendar, Event

    made = Calendar()
    made.add("prodid", "-//Attention, Step by Step//course//EN")
    made.add("version", "2.0")

    def add(name, begins, **fields):
        event = Event()
        event.add("uid", f"{calendar['name']}-{name}-{begins}".replace(" ", "-") + "@course")
        event.add("dtstamp", datetime(2026, 1, 1))
        event.add("summary", name)
        event.add("dtstart", begins)
        for key, value in fields.items():
            event.add(key, value)
        made.add_component(event)

    sessions, day = load()["sessions"], start
    for week, numbers in enumerate(calendar["weeks"]):
        for place, number in enumerate(numbers):
            session = sessions[number - 1]
            day = start + timedelta(weeks=week, days=WEEKDAYS[place] - WEEKDAYS[0])
            begins = datetime.combine(day, at)
            add(f"Session {number}: {session['title']}", begins,
                dtend=begins + timedelta(minutes=load()["minutes"]),
                description="Read before: " + ", ".join(map(title, session["read"])))
            for lab in session.get("due", []):
                add(f"Lab {lab} is due", day)
    add(f"Lab {load()['last_lab']} is due", day + timedelta(weeks=1))
    return made.to_ical()


def monday(text: str) -> date:
    """A Monday, as 2027-02-01."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} isn't a date such as 2027-02-01") from None
    if day.weekday():
        raise argparse.ArgumentTypeError(f"{text} is a {day:%A}; expected a Monday")
    return day


def hour(text: str) -> time:
    """A time of the day, as 10:15."""
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} isn't a time such as 10:15") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--start", type=monday, required=True, help="the first Monday")
    parser.add_argument("--time", type=hour, default=time(10, 15))
    parser.add_argument("--out", type=new_folder, default=OUT)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for calendar in load()["calendars"]:
        path = options.out / f"calendar-{calendar['name'].replace(' ', '-')}.ics"
        path.write_bytes(ics(calendar, options.start, options.time))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
