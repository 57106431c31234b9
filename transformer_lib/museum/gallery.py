"""The museum's page: each specimen as a case that shows its symptom first, and the key.

All of it is plain HTML with <details>, so that it also opens in a notebook. In the page of the book
the guesses are kept in the reader's browser, as before live figures.
"""

import functools
import html
import json
import math
import random

from transformer_lib.museum import key as keys
from transformer_lib.museum.specimens import CHAPTERS, HERE, SPECIMENS
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.visualize.live import guess_html
from transformer_lib.visualize.stills import Still, attention_squares, curve

TOKENS = ["<bos>", "E", "D", "C", "B", "A"]


@functools.cache
def records():
    """What tools/record_museum.py has recorded: {name: record}, and "healthy"."""
    return json.loads((results_dir() / "museum.json").read_text(encoding="utf-8"))


def numbers(name):
    """What the sentences of a specimen may name: its record, on top of the healthy program's."""
    healthy = records()["healthy"]
    found = healthy | records()[name]
    return found | {"healthy": healthy, "guess": math.log(12)}


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
                f"Training loss: {record['first']} at first, {record['last']} in the end; of the "
                f"healthy program {healthy['first']} and {healthy['last']}.",
                beside=("healthy", healthy["curve"]),
            )
        )
    if "attention" in specimen.shows:
        parts.append(
            attention_squares(
                _without_nan(record["attention"]), TOKENS, TOKENS,
                "Who reads whom in the decoder's self-attention: rows read columns.",
            )
        )  # fmt: skip
    if "outputs" in specimen.shows and "outputs" in record:
        rows = "".join(
            f"<tr><td>{s}</td><td>{t}</td><td>{o or '(nothing)'}</td></tr>"
            for s, t, o in record["outputs"]
        )
        parts.append(
            "<table><thead><tr><th>source</th><th>right</th><th>written</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    if "says" in specimen.shows:
        said = record["breaks"][specimen.law]
        parts.append(f"<p>A test says: <q>{html.escape(said)}</q>.</p>")
    return f'<div class="museum-evidence">{"".join(parts)}</div>'


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
        f"<p><b>It hides:</b> {html.escape(specimen.hides)}</p>"
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
    _display(f'<div class="museum-key">{_branch(keys.tree(records()), 1)}</div>')


def _branch(node, depth):
    if isinstance(node, keys.Leaf):
        items = "".join(
            f'<li><a href="#case-{name}">{html.escape(SPECIMENS[name].title)}</a>: '
            f"<code>{SPECIMENS[name].law}</code></li>"
            for name in node.suspects
        )
        return f'<p class="museum-leaf"><b>Suspects, each with its law:</b></p><ul>{items}</ul>'
    ways = "".join(
        f'<li><details name="museum-{node.question.name}"><summary>{answer}</summary>'
        f"{_branch(child, depth + 1)}</details></li>"
        for answer, child in (("Yes", node.yes), ("No", node.no))
    )
    return (
        f"<p><b>{html.escape(node.question.asks)}</b> {html.escape(node.question.how)}</p>"
        f"<ul>{ways}</ul>"
    )


def legend():
    """One line under the healthy program: what all cases are compared with."""
    healthy = records()["healthy"]
    return Still(
        curve(
            healthy["curve"], "updates", "training loss",
            f"The healthy program's training loss, from {healthy['first']} to {healthy['last']}.",
        )
    )  # fmt: skip
