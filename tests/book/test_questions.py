"""The rules of the question bank (course/README.md): each item, and all of them together."""

import re
from collections import Counter
from statistics import mean

import pytest

from course import bank, facts
from tools import prose

ITEMS = bank.load()
each = pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)


@each
def test_an_item_has_what_it_needs(item):
    assert re.fullmatch(r"[a-z0-9-]+", item.id)
    assert len(item.options) == 4 and sum(option.right for option in item.options) == 1
    assert len({option.text for option in item.options}) == 4
    assert item.question.rstrip().endswith("?"), "a situation, and then a question"
    for option in item.options:
        assert option.says.startswith("Right.") == option.right
        assert bool(option.belief and option.source) != option.right, option.text
        lazy = r"\b(?:all|none|both) of the (?:above|others)\b"
        assert not re.search(lazy, option.text, re.IGNORECASE)


@each
def test_each_wrong_option_says_who_believes_it(item):
    assert not bank.unsourced(item)


@each
def test_its_numbers_are_computed(item):
    for printed, expression in item.facts:
        assert re.search(rf"(?<![\d.]){re.escape(printed)}(?!\d)", item.text), printed
        digits = len(printed.partition(".")[2])
        off = abs(facts.value(expression) - float(printed.replace(",", "")))
        assert off <= 0.5000001 * 10**-digits, f"{expression} is {facts.value(expression)}"


@each
def test_its_english_has_none_of_the_habits(item):
    assert not prose.habits(item.text)


def test_a_wrong_number_and_a_wrong_source_are_found():
    item = ITEMS[0]
    broken = bank.Option("x", "y", belief="z", source="guide: what nobody ever said")
    made = bank.Item(**vars(item) | {"options": (broken,)})
    assert bank.unsourced(made) == [f"{item.id}: guide: what nobody ever said"]
    assert facts.value("log(10_000)") == pytest.approx(9.2103, abs=1e-4)


def test_every_chapter_has_items():
    """A chapter that has just come must get some, and an item's chapter must be there."""
    counted = Counter(item.chapter for item in ITEMS)
    few = {name: counted[name] for name in bank.chapters() if counted[name] < 4}
    gone = sorted(set(counted) - set(bank.chapters()))
    assert not gone, f"items of chapters that are gone: {gone}"
    assert not few, f"chapters with fewer than four items in course/questions: {few}"


def test_no_two_items_are_the_same():
    assert len({item.id for item in ITEMS}) == len({item.question for item in ITEMS}) == len(ITEMS)
    assert len(ITEMS) >= 110


def test_the_right_letter_cannot_be_guessed():
    counted = Counter(item.right for item in ITEMS)
    assert all(0.2 < counted[place] / len(ITEMS) < 0.3 for place in range(4)), counted
    for chapter in bank.chapters():  # the three that a page shows
        assert len({item.right for item in bank.on_the_page(chapter)}) > 1, chapter


def test_the_right_option_is_not_the_long_one():
    """By chance the right one would be the longest, or the shortest, one time in four."""
    longest = shortest = 0
    ratios = []
    for item in ITEMS:
        right = len(item.options[item.right].text)
        wrong = [len(option.text) for option in item.options if not option.right]
        longest, shortest = longest + (right > max(wrong)), shortest + (right < min(wrong))
        ratios.append(right / mean(wrong))
    assert longest / len(ITEMS) < 0.32 and shortest / len(ITEMS) < 0.32, (longest, shortest)
    assert 0.9 < mean(ratios) < 1.1, mean(ratios)


def test_most_beliefs_are_honest_about_their_source():
    """How many wrong options have been met somewhere: it may only grow."""
    sources = [o.source for item in ITEMS for o in item.options if not o.right]
    conjectured = sum(source == "conjectured" for source in sources)
    assert conjectured / len(sources) < 0.62
