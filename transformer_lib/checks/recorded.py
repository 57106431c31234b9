"""What experiments gave that are recorded in results/claims/, for exercises that look them up."""

import json

from transformer_lib.checks.framework import expect
from transformer_lib.runs.pretrained import results_dir


def outcomes(name: str, part: str, value: str, **wanted) -> list[float]:
    """The recorded `value` of every seed, at these settings; `steps` may be one of them.

    Stops the check with a sentence where the recording is missing, or where a setting is not among
    those that were tried.
    """
    path = results_dir() / "claims" / f"{name}.json"
    expect(path.exists(), f"the recording {path} is not there: take the book's folder as a whole")
    records = json.loads(path.read_text(encoding="utf8"))["records"]
    runs = [
        {**r["settings"], "steps": steps, "value": found}
        for r in records
        if r["settings"]["part"] == part
        for steps, found in zip(r["steps"], r[value], strict=True)
    ]
    for key, given in wanted.items():
        known = list(dict.fromkeys(run[key] for run in runs))
        expect(
            given in known,
            f"{key} = {given!r} is not in the recorded grid; there are "
            f"{', '.join(map(str, known))}",
        )
    return [run["value"] for run in runs if wanted.items() <= run.items()]
