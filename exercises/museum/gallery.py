"""The museum's page: each specimen as a case that shows its symptom first, and the key.

All of it is plain HTML with <details>, so that it also opens in a notebook. In the page of the book
the guesses are kept in the reader's browser, as before live figures.
"""

import functools
import html
import inspect
import json
import math
import random

from exercises.museum import key as keys
from exercises.museum.specimens import CHAPTERS, HERE, SPECIMENS
from exercises.museum.wings import PAGES, wings
from transformer_lib import one_file as program
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.visualize.live import guess_html
from transformer_lib.visualize.stills import attention_squares, curve

TOKENS = ["<bos>", "E", "D", "C", "B", "A"]


@functools.cache
def records():
    """What recordings/museum.py has recorded: {name: record}, "healthy", and "wings"."""
    return json.loads((results_dir() / "museum.json").read_text(encoding="utf-8"))


def numbers(name):
    """What the sentences of a specimen may name: its record, on top of the healthy program's.

    {loss}, {share} and {validation} compare the last training loss, the share of right
    translations, and the loss of the next letter behind a right prefix with healthy programs.
    """
    healthy = records()["healthy"]
    found = healthy | records()[name]
    return found | {
        "healthy": healthy,
        "guess": math.log(12),
        "loss": compared(found["last"], healthy["range"]["last"], ".2f"),
        "share": compared(found["right"], healthy["range"]["right"], ".0%"),
        "validation": compared(found["known"], healthy["range"]["known"], ".2f"),
    }


def compared(value, healthy, form):
    """A number beside the range of healthy programs, in words that the numbers choose."""
    low, high = (format(bound, form) for bound in healthy)
    if isinstance(value, str):
        return f"{value} (healthy: {low} to {high})"
    given = format(value, form)
    if round(healthy[0], 2) <= round(value, 2) <= round(healthy[1], 2):  # as they are printed
        return f"{given}, as in healthy runs ({low} to {high})"
    way = "lower" if value < healthy[0] else "higher"
    return f"{given}, {way} than in healthy runs ({low} to {high})"


def looks(name):
    """What is seen from outside, with the recorded numbers."""
    return SPECIMENS[name].looks.format(**numbers(name))


def case_number(name):
    """Its number on the page: by rooms, then in the order of the chapters."""
    return [name for names in rooms().values() for name in names].index(name) + 1


def rooms():
    """{title: names}: the cases by the first questions of the key that lead to them."""
    found = {title: [] for title in keys.ROOMS.values()}
    for name in SPECIMENS:
        found[keys.room(records()[name], records()["healthy"])].append(name)
    return found


def cabinet(room):
    """Display the cases of one room."""
    _display("".join(map(_case, rooms()[room])))


def wing(name):
    """Display the cases of one wing."""
    _display("".join(_wing_case(name, case) for case in wings()[name].cases))


def wing_looks(name, case):
    """What is seen of a wing's case from outside, with the recorded numbers."""
    record = records()["wings"][name]
    return wings()[name].cases[case].looks.format(
        **record[case]["measured"], healthy=record["healthy"]
    )


def wing_number(case):
    """The number of a wing's case on the page: after those of the rooms."""
    names = [name for wing in wings().values() for name in wing.cases]
    return len(SPECIMENS) + 1 + names.index(case)


def _wing_case(name, case):
    wing = wings()[name]
    bug, law = wing.cases[case], wing.laws[wing.cases[case].law]
    options = [case, *bug.confused_with]
    random.Random(case).shuffle(options)
    asked = guess_html(
        f"museum-{case}", "What is wrong?", [wing.cases[option].title for option in options],
        options.index(case), bug.why,
    )
    says = records()["wings"][name][case]["says"]
    return (
        f'<details class="museum-case" id="case-{case}"><summary><b>{wing_number(case)}</b> '
        f"{html.escape(wing_looks(name, case))}</summary>{asked}"
        '<details class="museum-reveal"><summary>The broken line</summary>'
        f"<p><b>{html.escape(bug.title)}.</b> {html.escape(bug.why)}</p>"
        f"<pre>{_marked(wing.diff(case))}</pre>"
        f"<p><b>It stays hidden:</b> {html.escape(bug.hides)}</p>"
        f"<p><b>The law that catches it:</b> <code>{bug.law}</code>. "
        f"{html.escape(law.__doc__.splitlines()[0])} It reports: <q>{html.escape(says)}</q>.</p>"
        f'<p>Page: <a href="{bug.page}.html">{html.escape(PAGES[bug.page])}</a>.</p>'
        "</details></details>"
    )


def show_wing_program(name):
    """Display, folded, the healthy program of a wing."""
    text = inspect.getsource(wings()[name].healthy)
    _display(
        '<details class="museum-reveal"><summary>The healthy program, '
        f"{len(text.splitlines())} lines</summary><pre>{html.escape(text)}</pre></details>"
    )


def _display(markup):
    from IPython.display import HTML, display

    display(HTML(f'<div class="museum">{markup}</div>'))


def _case(name):
    specimen, n = SPECIMENS[name], case_number(name)
    options = [name, *specimen.confused_with]
    random.Random(name).shuffle(options)
    asked = guess_html(
        f"museum-{name}",
        "What is wrong?",
        [SPECIMENS[option].title for option in options],
        options.index(name),
        specimen.why,
    )
    return (
        f'<details class="museum-case" id="case-{name}"><summary><b>{n}</b> '
        f"{html.escape(looks(name))}</summary>{_evidence(name)}{asked}{_reveal(name)}</details>"
    )


def _evidence(name):
    """Curve, sentences and map of a record, as far as they show something."""
    specimen, record, healthy = SPECIMENS[name], records()[name], records()["healthy"]
    parts = []
    if "curve" in specimen.shows and "curve" in record:
        known = [point for point in record["curve"] if not isinstance(point[1], str)]
        parts.append(
            curve(
                known or [[0, 0.0]],
                "updates",
                "training loss",
                f"Training loss: {record['first']} at first, {record['last']} at the end; the "
                f"healthy program has {healthy['first']} and {healthy['last']}.",
                beside=("healthy", healthy["curve"]),
            )
        )
    if "attention" in specimen.shows:
        parts.append(
            attention_squares(
                _without_nan(record["attention"]), TOKENS, TOKENS,
                "Who reads whom in the decoder's self-attention: rows read columns.",
            )
        )
    if "outputs" in specimen.shows and "outputs" in record:
        parts.append(_table(record))
    if "says" in specimen.shows:
        said = record["breaks"][specimen.law]
        parts.append(f"<p>A test reports: <q>{html.escape(said)}</q>.</p>")
    return f'<div class="museum-evidence">{"".join(parts)}</div>'


def _table(record):
    rows = "".join(
        f"<tr><td>{source}</td><td>{target}</td><td>{html.escape(output or '(nothing)')}</td></tr>"
        for source, target, output in record["outputs"]  # "<bos>" among others
    )
    return (
        "<table><thead><tr><th>source</th><th>correct</th><th>written</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _without_nan(weights):
    return [[0.0 if isinstance(w, str) else w for w in row] for row in weights]


def _reveal(name):
    specimen = SPECIMENS[name]
    law = specimen.caught_by()
    source = html.escape(specimen.source)
    if source.startswith("https://"):
        place = source.removeprefix("https://github.com/").replace("/issues/", ", issue ")
        source = f'<a href="{source}">{place.replace("/pull/", ", pull request ")}</a>'
    chapter = f'<a href="{specimen.page}.html">{html.escape(CHAPTERS[specimen.page])}</a>'
    met = "Met while building this book" if specimen.source == HERE else f"Seen in: {source}"
    return (
        '<details class="museum-reveal"><summary>The broken line</summary>'
        f"<p><b>{html.escape(specimen.title)}.</b> {html.escape(specimen.why)}</p>"
        f"<pre>{_marked(specimen.diff())}</pre>"
        f"<p><b>It stays hidden:</b> {html.escape(specimen.hides)}</p>"
        f"<p><b>The law that catches it:</b> <code>{specimen.law}</code>. "
        f"{html.escape(law.__doc__.splitlines()[0])}</p>"
        f"<p>Chapter: {chapter}. {met}.</p></details>"
    )


def _marked(diff):
    kinds = {"-": "museum-right", "+": "museum-broken"}
    return "\n".join(
        f'<span class="{kinds.get(line[:1], "museum-same")}">{html.escape(line)}</span>'
        for line in diff.splitlines()
    )


def show_key():
    """Display the key: questions that open one after the other, down to the suspects."""
    _display(f'<div class="museum-key">{_branch(keys.ROOT, [])}</div>')


def _branch(question, path):
    """A question with its two answers, each of them folded; or the suspects."""
    if question is None:
        items = "".join(
            f'<li><a href="#case-{name}">{html.escape(SPECIMENS[name].title)}</a>: '
            f"<code>{SPECIMENS[name].law}</code></li>"
            for name in keys.suspects(path, records())
        )
        return f'<p class="museum-leaf"><b>Suspects, each with its law:</b></p><ul>{items}</ul>'
    group = "-".join(["museum", *("y" if answer else "n" for _, answer in path)])
    ways = "".join(
        f'<li><details name="{group}"><summary>{word}</summary>'
        f"{_branch(child, [*path, (question, answer)])}</details></li>"
        for word, answer, child in (("Yes", True, question.yes), ("No", False, question.no))
    )
    return f"<p><b>{html.escape(question.asks)}</b> {html.escape(question.how)}</p><ul>{ways}</ul>"


def count():
    """How many of the bugs the training loss shows, in a sentence."""
    healthy = records()["healthy"]
    shown = [name for name in SPECIMENS if name in records() and (
        keys.fails_in_training(records()[name], healthy)
        or not keys.trained_well(records()[name], healthy))]
    wrong = [name for name in SPECIMENS if name not in shown
             and keys.writes_worse(records()[name], healthy)]
    rest = len(SPECIMENS) - len(shown) - len(wrong)
    return (
        f"Of {len(SPECIMENS)} bugs, {len(shown)} show in the training loss: it is clearly higher, "
        f"or not a number. Another {len(wrong)} show as soon as something is decoded, and {rest} "
        "show in neither."
    )


def show_healthy():
    """Display how the healthy program looks, and, folded, its text."""
    record, text = records()["healthy"], inspect.getsource(program)
    drawn = curve(
        record["curve"], "updates", "training loss",
        f"The healthy program's training loss, from {record['first']} to {record['last']}.",
    )
    _display(
        f'<div class="museum-evidence">{drawn}{_table(record)}</div>'
        f'<details class="museum-reveal"><summary>The healthy program, '
        f"{len(text.splitlines())} lines</summary><pre>{html.escape(text)}</pre></details>"
    )
