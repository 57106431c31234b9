"""Checks for the page A translator in ten minutes."""

from exercises.checks import exercise, expect, judged


def _solved(slope, value=1, first=1, third=3, fifth=5):
    """b and c from a + b + c = value and first * a + third * b + fifth * c = slope."""

    def answer(a):
        c = (slope - first * a - third * (value - a)) / (fifth - third)
        return value - a - c, c

    return answer


@exercise(
    1,
    inputs=[(1.5,), (1.875,), (2.5,), (3.4445,), (1.0,), (0.4,)],
    hint=(
        "you have two conditions and two unknowns: what do p(1) = 1 and p'(1) = 0 say about a, b, "
        "c?",
        "p(1) = a + b + c, and p'(1) = a + 3b + 5c",
        "subtract three times the first from the second: 2c = 2a - 3",
    ),
    wrong="with these numbers, 1 doesn't stay where it is, or a stretch near 1 isn't drawn "
          "towards it",
    shape="return two numbers, b and c",
    parts=("b", "c"),
    shrinks=False,
    slips={
        "they're swapped: b belongs to the third power, c to the fifth": (
            lambda a: _solved(0)(a)[::-1]
        ),
        "the powers are s, s^3 and s^5: the derivative at 1 is a + 3b + 5c": [
            _solved(0, third=2, fifth=3), _solved(0, third=2, fifth=4),
        ],
        "1 must stay 1, so p(1) is 1; you set it to 0": _solved(0, value=0),
        "with a slope of 1 at 1, a stretch near 1 stays as far from it as it was: the slope must "
        "be 0": _solved(1),
        "the derivative of a * s is a: it doesn't vanish": _solved(0, first=0),
        "1 stays 1, but with that slope at 1 its neighbours may leave: you have a second "
        "condition, and c to meet it with": [lambda a: (1 - a, 0.0), lambda a: (0.0, 1 - a)],
        "the slope at 1 is 0, but 1 doesn't stay 1: p(1) = a + b + c": [
            lambda a: (-a / 3, 0.0), lambda a: (0.0, -a / 5),
        ],
        "these are the numbers of Muon's polynomial, which doesn't keep 1 at 1; and they fit "
        "only one slope": lambda a: (-4.7750, 2.0315),
    },
)
def settling(a):
    c = a - 1.5
    b = 1 - a - c
    return b, c


ROUNDS, GENTLE, APART = 5, 1.5, 0.3


def _p(a, s):
    b, c = settling.reference(a)
    return a * s + b * s**3 + c * s**5


def _after(a, s):
    for _ in range(ROUNDS):
        s = _p(a, s)
        if s > 1e6:
            break  # it has run away
    return s


def _highest(a):
    """Where the slope is 0: at 1, and where s^2 = a / 5c, which is below 1 from 15/8 on."""
    if a <= 1.875:
        return 1.0
    return _p(a, (a / (5 * (a - 1.5))) ** 0.5)


@judged(
    2,
    hint=(
        "what happens to a stretch that lands above 1? Try 1.3 with a few slopes",
        "a + 3bs^2 + 5cs^4 is 0 at s = 1, so it's (1 - s^2)(a - 5cs^2): where else is the slope 0?",
        "the highest point is there, at s^2 = a / 5c, if that's below 1; which slope makes it so "
        "high that the next rounds run away?",
    ),
    example=(3.4445, 0.5, 1.26966),
)
def overturned(a, stretch, highest):
    for name, given in dict(a=a, stretch=stretch, highest=highest).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    expect(GENTLE < a <= 4, f"`a` must be above {GENTLE} and at most 4; you gave {a:g}")
    expect(0 < stretch <= 1, f"a stretch must be above 0 and at most 1; you gave {stretch:g}")
    gentle, steep = _after(GENTLE, stretch), _after(a, stretch)
    how = f"{steep:.2f}" if steep < 1e6 else "more than a million"
    expect(
        abs(steep - 1) >= abs(gentle - 1) + APART,
        f"five rounds turn that stretch into {gentle:.2f} with a slope of {GENTLE}, and into {how} "
        f"with yours, which isn't {APART} further from 1: can it overshoot so far that it "
        "doesn't come back?",
    )
    right = _highest(a)
    if abs(highest - right) > 0.005 * right:
        found = {
            (a / (5 * (a - 1.5))) ** 0.5: "that's the stretch at the highest point, not the "
            "number that it becomes",
            a / (5 * (a - 1.5)): "that's the square of the stretch at the highest point",
            1: "the slope is 0 at 1, but with your a, that's a low point",
            _p(a, stretch): "one round takes your stretch there; another stretch gets higher",
        }
        near = [said for value, said in found.items() if abs(highest - value) < 0.005 * value]
        expect(False, "your slope does refute the claim. But the most that one round "
                      f"reaches isn't {highest:.3g}"
                      + (f": {near[0]}" if near else ": where is p'(s) 0?"))
    return (
        f"One round lifts a stretch to {right:.2f} at the most; five turn yours into {how}, or "
        f"into {gentle:.2f} with the slope {GENTLE}."
    )
