"""Write the test: the reader's test is tested, by broken versions and by unusual right ones.

    def my_test(attention):
        q = torch.randn(2, 3, 4)
        output, weights = attention(q, q, q)
        assert torch.allclose(weights.sum(-1), torch.ones(2, 3))

    checks.write_the_test("attention", my_test)

A test rejects what it is given by raising an error, as assert does, or by returning False.
"""

import contextlib
import io

import torch

from exercises.checks.framework import LIMIT, TimeUp, stopped, time_limit, untouched


def write_the_test(component, my_test):
    """Print which broken versions of a component a test catches; True when it catches them all.

    component: "attention", "masks", "layer norm", "loss", "schedule" or "beam search". my_test is
    called with the component. Returns None while there is no test, and never raises.
    """
    from exercises.museum.mutants import COMPONENTS, official

    if component not in COMPONENTS:
        print(f"There is no component {component!r}; the components are {', '.join(COMPONENTS)}.")
        return None
    found = COMPONENTS[component]
    if my_test is None or my_test is ... or not callable(my_test) or untouched(my_test):
        print(f"○ {component}: no test yet. What a test may rely on: {found.contract}.")
        return None
    complaint = verdict(my_test, official(found))
    if complaint:
        return _refuses_the_right_one(found, my_test, complaint)
    refused = [said for right in found.right if (said := verdict(my_test, right))]
    missed = [hint for broken, hint in found.mutants() if not verdict(my_test, broken)]
    caught = len(found.broken) - len(missed)
    perfect = not missed and not refused
    print(
        f"{'✓' if perfect else '✗'} {component}: caught {caught} of {len(found.broken)} broken "
        f"versions; rejected {len(refused)} of {len(found.right)} correct ones."
    )
    if refused:
        print(f"    Your test rejects a correct version, written in another way: {refused[0]}")
    if missed:
        print(f"    A hint about the next broken version that your test misses: {missed[0]}")
    return perfect


def _refuses_the_right_one(component, my_test, complaint):
    others = [broken for broken, _ in component.mutants()]
    if all(verdict(my_test, broken) for broken in others):
        print(
            f"✗ {component.name}: your test rejects everything, even the correct version, so it "
            "catches nothing.",
        )
    else:
        print(f"✗ {component.name}: your test rejects the correct version.")
    print(f"    With that version, {complaint}.")
    print(f"    What a test may rely on: {component.contract}.")
    return False


def verdict(my_test, component):
    """Why a test rejects a component, in words; "" if it does not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            with time_limit(LIMIT), contextlib.redirect_stdout(io.StringIO()):
                answer = my_test(component)
        except TimeUp:
            return f"it was still running after {LIMIT:g} seconds"
        except AssertionError as error:
            said = " ".join(str(error).split())
            return f"it asserts something that isn't true{f' ({said:.120})' if said else ''}"
        except Exception as error:
            return stopped(error)
    refuses = answer is not None and not isinstance(answer, torch.Tensor) and not answer
    return "it returns False" if refuses else ""
