"""What was recorded of a chapter's experiment under other settings, for "overturn this"."""

import json

from exercises.checks.framework import expect


def recorded(grid: str, **settings) -> list[dict]:
    """The records of results/claims/<grid>.json with these settings.

    Stops the check with a sentence where the recording is missing.
    """
    from transformer_lib.runs.pretrained import results_dir  # not in a page, where no file is

    path = results_dir() / "claims" / f"{grid}.json"
    expect(path.exists(), f"this check needs {path}, which isn't here: get the whole book")
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    return [r for r in records if settings.items() <= r["settings"].items()]


def outcomes(grid: str, part: str, value: str, **wanted) -> list[float]:
    """The recorded `value` of every seed, at these settings; `steps` may be one of them.

    A setting given as None is one that the runs may not have. Stops the check where a setting is
    not among those that were tried.
    """
    runs = [
        {**r["settings"], "steps": steps, "value": found}
        for r in recorded(grid, part=part)
        for steps, found in zip(r["steps"], r[value], strict=True)
    ]
    for name, given in wanted.items():
        if given is not None:
            expect_one_of(name, given, [run[name] for run in runs])
    return [run["value"] for run in runs if all(run.get(k) == given for k, given in wanted.items())]


def expect_one_of(name: str, given, known):
    """Wrong, with the values that were recorded, unless `given` is one of them."""
    known = sorted(set(known))
    listed = ", ".join(str(value) for value in known)
    expect(
        not isinstance(given, bool) or isinstance(known[0], bool),
        f"{name} is {given!r}; the recorded ones are {listed}",
    )
    expect(given in known, f"{name} is {given!r}; the recorded ones are {listed}")


def span(values) -> str:
    """Lowest to highest of several seeds."""
    return f"{min(values):.2f} to {max(values):.2f}"


def ends_lower(first, second, names: tuple[str, str]) -> str:
    """Which of two arms ends lower with every seed: its name, or "undecided" where they overlap."""
    if max(first) < min(second):
        return names[0]
    return names[1] if max(second) < min(first) else "undecided"


def expect_share(given):
    """Wrong unless the prediction is a number between 0 and 1."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    expect(
        number and 0 <= given <= 1,
        f"the setting is right; now predict a share between 0 and 1 (you gave {given!r})",
    )
