"""Words that depend on a number."""


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number and its noun: "1 letter", "2 letters". plural: if it isn't the noun with an s."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
