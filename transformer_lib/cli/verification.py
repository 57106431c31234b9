"""The command verify."""

from transformer_lib.runs.verification import verify


def run(options) -> int:
    """Print what holds (✓), what doesn't (✗) and what could not be checked (?)."""
    failed = 0
    for finding in verify(options.run):
        print(finding, flush=True)
        failed += finding.holds is False
    return 1 if failed else 0
