"""One declaration an exercise; everything a check does follows from it.

`exercise` declares an answer that is a function, by its reference. The reference's own local
variables are the steps that an explanation names:

    @exercise(2, inputs=qkv, slips={"you forgot to divide by sqrt(d_k)": unscaled})
    def attention(q, k, v):
        scores = q @ k.mT  # (B, T, S)
        weights = (scores / math.sqrt(q.size(-1))).softmax(-1)
        return weights @ v

`values` declares answers that are numbers or shapes, `judged` those that only a law can judge.
"""

import ast
import contextlib
import copy
import functools
import inspect
import io
import linecache
import re
import signal
import sys
import textwrap
import threading
import time
import traceback
import types
import zlib

import numpy as np
import torch
from torch import nn

from exercises.checks import diagnosis
from exercises.checks.diagnosis import same

EXERCISES = {}  # "masks.1" -> its check, for each chapter module loaded so far
LIMIT = 5.0  # seconds for one call of an answer
ASLEEP = 10  # times as long for one that uses no processor: the machine may be busy elsewhere
PATIENCE = 1.0  # seconds at least for a call on a large input
MAKE_IT = "replace the ... with your answer, then run this cell again"
REPAIR_IT = "find what is wrong, change the code, then run this cell again"


class Wrong(Exception):
    """The answer is wrong; the message says how."""


class NotAttempted(Exception):
    """There is no answer yet."""


class TimeUp(BaseException):
    """The answer runs too long. Not an Exception: a learner's `except` must not catch it."""


# ----------------------------------------------------------------------------- calling an answer


def _spent(start, seconds):
    """Whether a call has had its time: of the processor, or ASLEEP times as long by the clock.

    Code that waits, for an input or asleep, uses no processor.
    start: (time.process_time(), time.monotonic()) at the beginning.
    """
    computed, waited = time.process_time() - start[0], time.monotonic() - start[1]
    return computed >= 0.9 * seconds or waited >= ASLEEP * seconds


def _imports(frame):
    """Whether a frame lies inside an import, which would be left half done if it were stopped."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeUp in this thread after so many seconds, even in an endless Python loop.

    By a timer of the system where there is one (Jupyter and Colab run cells in the main thread),
    else by looking at the clock at every line. Python drops and reports an exception inside a
    finalizer: there the timer is silent, and rings again a moment later.
    """
    begin = time.process_time(), time.monotonic()
    report = sys.unraisablehook
    sys.unraisablehook = lambda it: issubclass(it.exc_type, TimeUp) or report(it)
    try:
        yield from _limited(begin, seconds)
    finally:
        sys.unraisablehook = report


def _limited(begin, seconds):
    """The body of time_limit: one `yield`, with the limit around it."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):

        def stop(number, frame):
            if _spent(begin, seconds) and not _imports(frame):
                raise TimeUp

        handler = signal.signal(signal.SIGALRM, stop)
        others = signal.setitimer(signal.ITIMER_REAL, seconds, min(0.5, seconds))[0]
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            if others:  # somebody else's timer goes on
                left = others - (time.monotonic() - begin[1])
                signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))
        return
    before = sys.gettrace()

    def watch(frame, event, arg):
        if time.monotonic() - begin[1] > seconds and _spent(begin, seconds):
            if not _imports(frame):
                raise TimeUp
        return watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


def clone(value):
    """A copy of an argument that the answer may spoil: tensors, containers and models."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, nn.Module):
        return copy.deepcopy(value)
    if isinstance(value, (list, tuple, set)):
        return type(value)(clone(item) for item in value)
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return value.copy() if hasattr(value, "copy") and hasattr(value, "dtype") else value


def unchanged(value, before) -> bool:
    """Whether an argument still says what it said before."""
    if isinstance(before, torch.Tensor):
        return (
            isinstance(value, torch.Tensor)
            and value.requires_grad == before.requires_grad  # which detach_() takes away
            and torch.equal(value, before)
        )
    if isinstance(before, nn.Module):
        old = before.state_dict()
        return all(torch.equal(new, old[name]) for name, new in value.state_dict().items())
    if isinstance(before, (list, tuple)):
        return len(value) == len(before) and all(map(unchanged, value, before))
    if isinstance(before, dict):
        return value.keys() == before.keys() and all(unchanged(value[k], before[k]) for k in before)
    return callable(before) or bool(diagnosis.same(value, before))


def has_placeholder(value) -> bool:
    """Whether an answer still holds a `...`."""
    if isinstance(value, dict):
        value = list(value.values())
    return value is ... or (isinstance(value, (list, tuple)) and any(map(has_placeholder, value)))


def untouched(function) -> bool:
    """Whether a function's body is still what the exercise printed: `...`, `pass` or nothing."""
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        body = tree.body[0].body
    except (OSError, TypeError, SyntaxError, IndexError, AttributeError):
        return set(function.__code__.co_consts) <= {None, ..., function.__doc__}
    if all(isinstance(node, (ast.Pass, ast.Expr)) and not isinstance(
            getattr(node, "value", None), ast.Call) for node in body):
        return True
    holders = (node.value for part in body for node in ast.walk(part)
               if isinstance(node, (ast.Return, ast.Assign)) and node.value)
    return any(isinstance(leaf, ast.Constant) and leaf.value is ...
               for node in holders for leaf in ([node, *getattr(node, "elts", ())]))


def fingerprint(function):
    """A checksum of a function's code without its spacing; None where the code is not known."""
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return None
    return zlib.crc32("".join(source.split()).encode())


def call(answer, args, show_prints=False):
    """`answer(*args)` within the time limit, its printing held back; Wrong if nothing comes."""
    printed = io.StringIO()
    try:
        with time_limit(LIMIT), contextlib.redirect_stdout(printed):
            result = answer(*args)
    except TimeUp as stopped:
        raise Wrong(too_long(stopped)) from None
    if has_placeholder(result):
        raise NotAttempted
    if result is None:
        if isinstance(answer, nn.Module) or untouched(answer):
            raise NotAttempted
        prints = printed.getvalue().strip()
        raise Wrong(
            f"your function prints {prints.splitlines()[0]:.40} but gives nothing back: "
            "end it with `return`, not with `print`"
            if prints
            else "your function gives nothing back: does every path through it end with `return`?"
        )
    if show_prints and printed.getvalue():
        print(printed.getvalue(), end="")
    return result


def _learners_line(error):
    steps = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)
             if diagnosis.is_theirs(frame.f_code)]
    return (steps[-1][0].f_code.co_filename, steps[-1][1]) if steps else None


def too_long(error, seconds=None):
    place = _learners_line(error)
    where = f", in {diagnosis.source_line(*place)}" if place else ""
    seconds = seconds or LIMIT
    return f"your code was still running after {seconds:g} seconds{where}: does its loop end?"


# Python and PyTorch say it in many ways: `reshape(B, T, H / K)` fails to unpack a tuple of ints.
_FRACTION = re.compile(
    r"ints?, ?(but got|not) float|element of type float|\(got float\)"
    r"|'float' object cannot be interpreted as an integer"
)


def stopped(error):
    """One sentence for an exception: its name, its message and the learner's line."""
    message = " ".join(str(error).split()) or "no message"
    message = message.partition(" Exception raised from ")[0]  # and what follows of PyTorch's C++
    if _FRACTION.search(message):
        message = "a size, place or count is a float: these must be whole, so divide with //"
    problem = f"{type(error).__name__} ({message:.200})"
    place = _learners_line(error)
    if place is None:
        return f"the check cannot use your answer, which leads to {problem}"
    file, line = place
    source = linecache.getline(file, line).strip()
    return f"your code stops with {problem} in line {line} of its cell" + (
        f", `{source}`" if source else ""
    )


def attempt(answer, args, show_prints=False):
    """`call`, with every error of the learner's code as Wrong."""
    try:
        return call(answer, args, show_prints)
    except (NotAttempted, Wrong, diagnosis.Forbidden):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, NotImplementedError) and not error.args:
            raise NotAttempted from None  # raised by hand; those of PyTorch say what is missing
        if "ellipsis" in str(error).lower():  # computed with a ... that nobody has replaced yet
            raise NotAttempted from None
        raise Wrong(stopped(error)) from error


# -------------------------------------------------------------------------------- what is expected


def expect(condition, message):
    """Stop the check with `message` unless the condition holds."""
    if condition is ...:
        raise NotAttempted
    if not condition:
        raise Wrong(message)


def expect_shape(actual, shape, message="the result has the wrong shape"):
    """Stop the check unless `actual` (a tensor, array, number or nested list) has this shape."""
    given = _numbers(actual).shape
    expect(given == tuple(shape), f"{message}: yours is {given}, expected {tuple(shape)}")


def expect_close(actual, expected, message, tolerance=1e-5):
    """Stop the check unless the numbers are equal up to the tolerance, as `same` sees it."""
    given, right = _numbers(actual), _numbers(expected)
    if not same(given, right, tolerance):
        how = diagnosis.relation(given, right)
        how = f". {how[0].upper()}{how[1:]}" if how else ""
        raise Wrong(f"{message}: {diagnosis.difference(given, right)}{how}")


def _numbers(value):
    if value is None or has_placeholder(value):
        raise NotAttempted
    found = diagnosis.numbers(value)
    if found is None:
        kind = type(value).__name__
        raise Wrong(f"expected numbers of one regular shape, got {kind}: {value!r:.60}")
    return found


# ------------------------------------------------------------------------------------- the checks


class Check:
    """An exercise: called with the learner's answers it prints a verdict.

    Returns True (right), False (wrong) or None (not attempted); it never raises.
    """

    remark = ""  # what is said of a right answer

    def __init__(self, number, name, module, hints, given):
        self.__name__, self.__module__ = name, module
        # Exercises are counted in their chapter; the parts of one's own model have names.
        counted = isinstance(number, int)
        self.id = f"{module.rpartition('.')[2]}.{number}" if counted else number
        self.title = f"Exercise {number}" if counted else number
        hints = (hints,) if isinstance(hints, str) else tuple(hints or ())
        self.hints = (*((REPAIR_IT,) if given is not None else ()), *hints) or (MAKE_IT,)
        self.given, self.hints_shown = given, 0
        known = EXERCISES.setdefault(self.id, self)
        if (known.__module__, known.__name__) != (module, name):
            raise ValueError(
                f"exercise {self.id} is already checked by {known.__module__}.{known.__name__}: "
                f"give {name} a number of its own."
            )
        EXERCISES[self.id] = self

    def __call__(self, *answers):
        verdict, mistakes = self.judge(answers)
        if verdict is None:
            end = "" if self.hints[0].endswith("?") else "."
            print(f"○ {self.title}. Not attempted yet: {self.hints[0]}{end}")
        for sentence, *details in mistakes:
            print(f"✗ {self.title}. Not yet: {sentence}")
            for detail in details:
                print(f"    {detail}")
        if verdict:
            print(f"✓ {self.title}. Right.{self.praise(answers)}")
        return verdict

    def praise(self, answers):
        return self.remark and f" {self.remark}"

    def judge(self, answers, explain=True):
        """(verdict, [(sentence, *details)]); without `explain` the first difference is enough."""
        self.remark = ""
        try:
            if any(answer is None or has_placeholder(answer) for answer in answers):
                raise NotAttempted
            if self.given is not None and any(fingerprint(a) == self.given for a in answers):
                raise NotAttempted
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                mistakes = self.mistakes(answers, explain)
        except NotAttempted:
            return None, []
        except Wrong as wrong:
            mistakes = [(str(wrong),)]
        except TimeUp as late:
            mistakes = [(too_long(late),)]
        except (Exception, SystemExit) as error:  # a check never stops the notebook
            if "ellipsis" in str(error).lower():
                return None, []
            mistakes = [(stopped(error),)]
        return not mistakes, mistakes

    def more_hints(self):
        """Hints that follow from the declaration, after the written one."""
        return ()

    def hint(self):
        """The next hint: the idea, then the steps with their shapes, then an example."""
        found = [*self.hints, *self.more_hints()]
        text = found[min(self.hints_shown, len(found) - 1)]
        self.hints_shown += 1
        return f"{min(self.hints_shown, len(found))} of {len(found)}: {text}"


class Exercise(Check):
    """A function to be written, judged by a reference. Parameters: see `exercise`."""

    slips, vary, parts, forbid = {}, (), (), ()
    wrong, shape, in_place = "the result is not right", None, "work on a copy of it"
    tell = view = adapt = right = laws = large = dtype = None
    tolerance, gradients, mutates, shrinks = 1e-5, False, False, True

    def __init__(self, reference, number, *, inputs, hint=None, given=None, **options):
        super().__init__(number, reference.__name__, reference.__module__, hint, given)
        self.reference, self.inputs = reference, inputs
        self.names = list(inspect.signature(reference).parameters)
        self.__doc__ = reference.__doc__
        for name, value in options.items():
            if not hasattr(type(self), name):
                raise TypeError(f"exercise {self.id} has no option {name!r}")
            setattr(self, name, value)

    # -- the inputs

    @functools.cached_property
    def cases(self):
        """[(arguments, sizes or None)], the same in every run."""
        with torch.random.fork_rng(devices=[]):
            if not callable(self.inputs):
                torch.manual_seed(0)
                return [(tuple(args), None) for args in self.inputs]
            defaults = {name: parameter.default for name, parameter
                        in inspect.signature(self.inputs).parameters.items()}
            found = []
            for i, changed in enumerate(({}, *self.vary)):
                torch.manual_seed(i)
                sizes = {**defaults, **changed}
                found.append((tuple(self.inputs(**sizes)), sizes))
            return found

    def run(self, answer, args, show_prints=False):
        """(what came out, the arguments afterwards) of an answer on copies."""
        args = clone(args)
        torch.manual_seed(0)
        return self.seen(attempt(answer, args, show_prints), args), args

    def seen(self, result, args):
        return result if self.view is None else self.view(result, *args)

    def expected(self, args):
        torch.manual_seed(0)
        args = clone(args)
        return self.seen(self.reference(*args), args)

    def defined(self, args):
        """Whether the right result holds neither NaN nor infinity, such as 0 / 0 after rounding."""
        found = diagnosis.numbers(self.expected(args))
        return found is None or bool(np.isfinite(found).all())

    def adapted(self, answers):
        answers = answers if isinstance(answers, tuple) else (answers,)
        return answers[0] if self.adapt is None else self.adapt(*answers)

    def fits(self, given, expected):
        if self.dtype is not None:
            if not isinstance(given, torch.Tensor) or given.dtype != self.dtype:
                return False
        if isinstance(expected, torch.Tensor) and given is not None:
            shape = getattr(diagnosis.numbers(given), "shape", None)
            if shape != tuple(expected.shape):
                return False
        return same(given, expected, self.tolerance)

    # -- the verdict

    def mistakes(self, answers, explain):
        for answer in answers:
            if not callable(answer):
                raise Wrong(
                    "the check needs the function itself, not what it returns: give its name "
                    f"without (); yours is {type(answer).__name__} {answer!r:.40}"
                )
        answer = self.adapted(answers)
        changed_args = None
        for index, (args, _) in enumerate(self.cases):
            expected = self.expected(args)
            try:
                given, after = self.run(answer, args, show_prints=explain and not index)
                failed = None if self.fits(given, expected) else self.say(given, expected, args)
            except Wrong as wrong:
                given, failed = None, str(wrong)
            if failed is not None:
                if not explain:
                    return [(failed,)]
                found = [self.explained(answer, index, given, expected, failed)]
                if given is not None and not self.mutates:
                    changed_args = self.changed(args, after)
                    if changed_args:
                        found.append((self.blame(answer, args, changed_args),))
                return found
            changed_args = changed_args or (not self.mutates and self.changed(args, after) and args)
        if changed_args:
            return [(self.blame(answer, changed_args, None) if explain else "in place",)]
        self.obeys_the_rules(answer)
        if self.gradients:
            self.lets_gradients_through(answer)
        if self.large is not None:
            self.works_on_large_inputs(answer)
        if self.laws is not None:
            self.laws(functools.partial(attempt_with, answer))
        return []

    def changed(self, args, after):
        """The names of the arguments that are not what they were."""
        return [name for name, value, before in zip(self.names, after, args, strict=False)
                if not unchanged(value, before)]

    def blame(self, answer, args, names):
        """Name the argument that was changed in place, and the line."""
        mine = clone(args)
        if names is None:
            _, after = self.run(answer, args)
            names = self.changed(args, after)
        where = ""
        with contextlib.suppress(Exception, TimeUp), time_limit(LIMIT):
            quiet = contextlib.redirect_stdout(io.StringIO())
            with quiet:
                guilty = diagnosis.record(
                    answer, mine, changed=lambda: bool(self.changed(args, mine))
                )[2]
            where = f", in {diagnosis.source_line(*guilty)}" if guilty else ""
        listed = " and ".join(f"`{name}`" for name in names)
        return f"you changed {listed} in place{where}: {self.in_place}"

    def obeys_the_rules(self, answer):
        if not self.forbid:
            return
        try:
            with time_limit(LIMIT), contextlib.redirect_stdout(io.StringIO()):
                diagnosis.record(answer, clone(self.cases[0][0]), forbid=set(self.forbid))
        except diagnosis.Forbidden as called:
            raise Wrong(
                f"the result is right, but your code calls `{called}`, which this exercise "
                "rules out: write it yourself"
            ) from None
        except TimeUp as late:
            raise Wrong(too_long(late)) from None

    def lets_gradients_through(self, answer):
        """The answer's derivatives with respect to its tensors are the reference's."""
        args = self.cases[0][0]
        cut = "something takes the numbers out of the graph, such as .item(), .data, .detach(), "
        cut += "numpy or torch.tensor(...)"

        def derivatives(function):
            leaves, given = [], list(clone(args))
            for i, value in enumerate(given):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    leaf = value.requires_grad_()
                    leaves.append((self.names[i], leaf))
                    given[i] = leaf * 1.0
            torch.manual_seed(0)
            out = self.seen(function(*given), given)
            out = out if isinstance(out, torch.Tensor) else torch.as_tensor(out)
            weights = torch.linspace(0.5, 1.5, out.numel(), dtype=torch.float64).view(out.shape)
            found = torch.autograd.grad((out.double() * weights).sum(), [x for _, x in leaves],
                                        allow_unused=True)
            return {name: gradient for (name, _), gradient in zip(leaves, found, strict=True)}

        right = derivatives(self.reference)
        try:
            found = derivatives(answer)
        except RuntimeError:
            raise Wrong(f"the numbers are right, but no gradient flows back: {cut}") from None
        for name, gradient in right.items():
            if gradient is None:
                continue
            if found[name] is None:
                raise Wrong(f"the numbers are right, but no gradient reaches `{name}`: {cut}")
            if self.gradients != "flow" and not same(found[name], gradient, 1e-3):
                met = []  # mistakes that show in the gradient alone
                for sentence, slips in self.slips.items():
                    for slip in slips if isinstance(slips, list) else [slips]:
                        with contextlib.suppress(Exception, TimeUp):
                            theirs = derivatives(self.adapted(slip))
                            if same(found[name], theirs[name], 1e-3):
                                met.append(sentence)
                raise Wrong(met[0] if met else "the numbers are right, but the gradient with "
                            f"respect to `{name}` is not that of the formula")

    def works_on_large_inputs(self, answer):
        """Slow code that is right stays right: no exercise asks for speed. The message says so."""
        args = self.large() if callable(self.large) else self.large
        start = time.process_time()
        expected = self.reference(*clone(args))
        took = max(time.process_time() - start, 0.001)
        try:
            patience = max(PATIENCE, 20 * took)
            with time_limit(patience):
                with contextlib.redirect_stdout(io.StringIO()):
                    given = answer(*clone(args))
        except TimeUp:
            self.remark = (
                f"But it's far too slow for larger inputs: on one it was still running after "
                f"{patience:.1f} s, where {1000 * took:.0f} ms is enough."
            )
            return
        if not self.fits(self.seen(given, args), self.seen(expected, args)):
            raise Wrong("right on small inputs, wrong on a large one")

    # -- the explanation

    def say(self, given, expected, args):
        """What is wrong at first sight: kind, dtype, number of parts, shape; else the sentence."""
        if self.dtype is not None and getattr(given, "dtype", None) != self.dtype:
            kind = getattr(given, "dtype", type(given).__name__)
            if self.dtype == torch.bool:
                return f"the result must be boolean, yours is {kind}: compare, and combine with &"
            return f"the result must be a tensor of {self.dtype}, yours is {kind}"
        if isinstance(expected, tuple) and self.parts:
            if not isinstance(given, (tuple, list)) or len(given) != len(expected):
                many = {2: "two", 3: "three", 4: "four"}[len(expected)]
                return f"return {many} values: {', '.join(self.parts)}"
            if self.tell:
                with contextlib.suppress(Exception):
                    return self.tell(given, expected, *args)
            for name, one, other in zip(self.parts, given, expected, strict=True):
                if not same(one, other, self.tolerance):
                    return f"{self.wrong}; `{name}` is the first that differs"
        shape = diagnosis.numbers(given)
        right = diagnosis.numbers(expected)
        sequence = isinstance(expected, list) and not self.shape
        if shape is None and right is not None and not sequence:
            return f"{self.shape or self.wrong}: expected numbers, got {type(given).__name__}"
        if right is not None and not sequence and shape.shape != right.shape:
            sentence = self.shape or "the result has the wrong shape"
            return f"{sentence}: yours is {shape.shape}, expected {right.shape}"
        if self.tell:
            with contextlib.suppress(Exception):  # it may not know what to do with such an answer
                return self.tell(given, expected, *args)
        return self.wrong

    def explained(self, answer, index, given, expected, sentence):
        """(sentence, details): a slip by its name, or the relation, the step and an example."""
        args, sizes = self.cases[index]
        slip = self.slip_of(answer, index)
        details = []
        if slip:
            sentence = slip
        elif given is not None:
            how = self.relation(answer, given, expected, args)
            if how:
                details.append(f"{how[0].upper()}{how[1:]}.")
        if given is None and not slip:
            if not sentence.startswith("your code stops"):
                return (sentence,)
            right = self.with_shapes("It was right with", index - 1) if index else ()
            return (sentence, *self.with_shapes("With", index), *right)
        quiet = contextlib.redirect_stdout(io.StringIO())
        with contextlib.suppress(Exception, TimeUp), time_limit(2 * LIMIT), quiet:
            details += self.small_example(answer, index, slip)
            step = diagnosis.first_divergence(
                answer, self.reference, clone(args), clone(args)
            ) if self.adapt is None and not slip else None
            if step:
                details.append(f"{step[0].upper()}{step[1:]}.")
        return (sentence, *details)

    def with_shapes(self, words, index):
        """A sentence with the shapes of an input; empty if it holds no tensor."""
        shapes = [
            f"{name} {tuple(value.shape)}"
            for name, value in zip(self.names, self.cases[index][0], strict=False)
            if isinstance(value, torch.Tensor)
        ]
        return (f"{words} {', '.join(shapes)}.",) if shapes else ()

    def relation(self, answer, given, expected, args):
        """What shows a pattern: an argument without effect, a formula of the arguments, numbers."""
        if how := diagnosis.wrong_kind(given, expected):
            return how
        quiet = contextlib.redirect_stdout(io.StringIO())
        with contextlib.suppress(Exception, TimeUp), time_limit(4 * LIMIT), quiet:
            idle = self.without_effect(answer)
            if idle:
                return f"your result is the same whatever `{idle}` is"
            how = diagnosis.formula(self.names, *self.results(answer))
            if how:
                return how
        if isinstance(expected, tuple) and self.parts:
            return diagnosis.relation_of_parts(given, expected, self.parts, diagnosis._sizes(args))
        return diagnosis.relation(given, expected, diagnosis._sizes(args))

    def results(self, answer):
        """[(arguments, given, expected)] of the cases that run, for answers of plain numbers."""
        found = []
        for args, _ in self.cases:
            with contextlib.suppress(Wrong, NotAttempted):
                found.append((args, self.run(answer, args)[0], self.expected(args)))
        return (found,)

    def without_effect(self, answer):
        """The first argument that the answer does not use, although the result depends on it."""
        for position, name in enumerate(self.names):
            tried = 0
            for args, changed in self.exchanges(position):
                try:
                    if same(self.expected(changed), self.expected(args), self.tolerance):
                        continue
                    given = [self.run(answer, values)[0] for values in (args, changed)]
                except Wrong as wrong:
                    if str(wrong).startswith("your code was still running"):
                        break  # it does make a difference, and costs time
                    continue
                except Exception:
                    continue
                if not same(*given, 1e-9):
                    break
                tried += 1
            else:
                if tried > 1:
                    return name
        return None

    def exchanges(self, position):
        """(arguments, the same with another value at `position`), from a few of the cases."""
        cases = [args for args, _ in self.cases[:4]]
        for args in cases:
            value = args[position]
            others = [other[position] for other in cases]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others += [value + 1, value * 2] if isinstance(value, int) else [value / 2]
            for other in others:
                if diagnosis.exchangeable(value, other):
                    yield args, (*args[:position], other, *args[position + 1 :])

    def slip_of(self, answer, failing):
        """The sentence of the slip that gives what the answer gives, on all inputs if possible."""

        @functools.lru_cache(None)
        def learner(i):
            try:
                return self.run(answer, self.cases[i][0])[0], None
            except Wrong as wrong:
                return None, str(wrong)

        def alike(slip, i):
            args = self.cases[i][0]
            try:
                theirs = self.run(self.adapted(slip), args)[0]
            except (Wrong, NotAttempted):
                return learner(i)[1] is not None
            given = learner(i)[0]
            dtypes = getattr(given, "dtype", None), getattr(theirs, "dtype", None)
            if self.dtype is not None and torch.bool in dtypes and dtypes[0] != dtypes[1]:
                return False
            return (
                given is not None
                and same(given, theirs, self.tolerance)
                and not (i == failing and self.fits(theirs, self.expected(args)))
            )

        def right(i):
            given = learner(i)[0]
            return given is not None and self.fits(given, self.expected(self.cases[i][0]))

        def met(slip):
            """(whether on all inputs, on how many it gives the same wrong result)

            None where the answer is right on an input on which the slip goes wrong.
            """
            agree = [i for i in range(len(self.cases)) if alike(slip, i)]
            others = [i for i in range(len(self.cases)) if i not in agree]
            if any(right(i) and self.runs(slip, i) for i in others):
                return None
            wrong = [i for i in agree if learner(i)[0] is not None and not right(i)]
            return len(agree) == len(self.cases), len(wrong)

        named = [
            (*found, -order, sentence)
            for order, (sentence, several) in enumerate(self.slips.items())
            for slip in (several if isinstance(several, list) else [several])
            if alike(slip, failing) and (found := met(slip))
        ]
        # On one input alone a slip may be met by chance, unless there is much to agree upon.
        found = diagnosis.numbers(learner(failing)[0])
        telling = found is not None and found.size >= 6
        everywhere, often, _, sentence = max(named, default=(False, 0, 0, None))
        return sentence if (everywhere and often) or often > 1 or telling else None

    def runs(self, slip, i):
        with contextlib.suppress(Wrong, NotAttempted):
            self.run(self.adapted(slip), self.cases[i][0])
            return True
        return False

    def small_example(self, answer, index, slip):
        """The smallest input found on which the answer still fails, with both results."""
        args, sizes = self.cases[index]
        if not any(diagnosis.readable(value) for value in args):
            return []
        slips = self.slips.get(slip) if slip else None
        slips = slips if isinstance(slips, list) else [slips] if slips else []

        def fails(candidate):
            try:
                expected = self.expected(candidate)
                found = diagnosis.numbers(expected)
                if found is not None and (not found.size or np.isnan(found).any()):
                    return False
                given = self.run(answer, candidate)[0]
                if self.fits(given, expected):
                    return False
                return not slips or any(
                    same(given, self.run(self.adapted(one), candidate)[0], self.tolerance)
                    for one in slips
                )
            except (Wrong, NotAttempted, Exception):
                return False

        smallest = args
        if self.shrinks and fails(args):
            make = self.inputs if callable(self.inputs) else None
            fixed = [  # an argument of one length in all cases keeps it: a pair stays a pair
                len({len(case[0][i]) for case in self.cases}) == 1 < len(self.cases) - 1
                if isinstance(value, (tuple, str)) else False
                for i, value in enumerate(args)
            ]
            rounder = self.shrinks != "sizes"
            smallest = diagnosis.shrink(args, fails, make, sizes, fixed, rounder)
        expected, given = self.expected(smallest), self.run(answer, smallest)[0]
        return [diagnosis.example(self.names, smallest, given, expected)]

    def more_hints(self):
        args = self.cases[0][0]
        found = []
        with contextlib.suppress(Exception):
            steps = diagnosis.stages(self.reference, clone(args))
            listed = [f"`{name}` {tuple(value.shape)}" for name, value in steps]
            shape = diagnosis.numbers(self.expected(args)).shape
            if listed:
                found.append(
                    f"one way makes {', '.join(listed)}, and returns {shape or 'a number'}"
                )
        if callable(self.inputs):  # the smallest sizes at which it is not trivial
            with contextlib.suppress(Exception):
                sizes = {name: min(size, 2) if type(size) is int else size
                         for name, size in self.cases[0][1].items()}
                self.expected(self.inputs(**sizes))
                args = self.inputs(**sizes)
        with contextlib.suppress(Exception):
            rounded = [*diagnosis._rounded(args)]
            args = next((one for one in rounded if self.defined(one)), rounded[0])
            shown = [
                f"{name} = {diagnosis.show(value)}"
                for name, value in zip(self.names, args, strict=False)
                if diagnosis.readable(value)
            ]
            if shown:
                result = diagnosis.show(self.expected(args))
                found.append(f"{', '.join(shown)} should give {result}")
        return found


def plain(answer):
    """A single number of NumPy or PyTorch as Python's; everything else as it is."""
    return answer.item() if getattr(answer, "ndim", None) == 0 else answer


def attempt_with(answer, *args):
    """An answer called by a law: on copies, which it must leave as they are."""
    copies = clone(args)
    result = attempt(answer, copies)
    for copied, value in zip(copies, args, strict=True):
        expect(unchanged(copied, value), "you changed your argument in place: work on a copy")
    return result


def attempt_freely(answer, *args):
    return attempt(answer, args)


def parameters_of(answer):
    """How many parameters the function behind an answer takes; 0 where that is not known."""
    answer = getattr(answer, "args", [answer])[0]
    with contextlib.suppress(TypeError, ValueError):
        return len(inspect.signature(answer).parameters)
    return 0


def exercise(number, *, inputs, **options):
    """Declare an exercise by its reference, the decorated function.

    number: 1 is the first exercise of the chapter that the module is named after.
    inputs: a list of argument tuples, or a function that makes them from sizes with defaults.
    vary: other sizes for that function; every argument must vary over the cases.
    slips: {sentence: a wrong function, or a list of them}: what the usual mistakes compute.
    hint: shown while there is no answer, the first of `checks.hint`.
    given: the fingerprint of code with a bug, which isn't an attempt while it's unchanged.
    wrong, shape, parts: what is said when no slip fits; of the shape; names of several results.
    tell: `tell(given, expected, *args)`, the sentence for a wrong result of the right shape.
    dtype, tolerance: of the result; whole numbers are compared exactly.
    forbid: names of functions that the answer must not call.
    gradients: whether derivatives must be right as well; "flow": whether they must arrive.
    mutates: whether it may change its arguments; in_place: what is said if it may not.
    large: arguments on which slow code shows, and is reported. laws: `laws(answer)`, more demands.
    view: `view(result, *args)`, what of a result counts.
    adapt: makes one function of the answers, where they are not one; right: right answers then.
    shrinks: whether smaller arguments are looked for when it fails; "sizes": with their numbers
        as `inputs` makes them, where rounding them one by one would break how they fit together.
    """
    return lambda reference: Exercise(reference, number, inputs=inputs, **options)


class Part:
    """One number, shape or list of an answer: what is right, and what wrong ones mean."""

    def __init__(self, right, wrong, slips=None, tolerance=0.0, read=None):
        self.right, self.wrong, self.slips, self.tolerance = right, wrong, slips or {}, tolerance
        self.read = read or (lambda given: given)  # such as `sorted`

    def fits(self, given):
        right = self.right
        return same(given, right, self.tolerance) or (
            isinstance(right, tuple) and isinstance(given, (list, torch.Size))
            and same(tuple(given), right)
        )

    def sentence(self, given):
        """The slip that this value is, or what is generally wrong with it."""
        for sentence, wrong in self.slips.items():
            if callable(wrong):
                with contextlib.suppress(Exception):
                    if wrong(given):
                        return sentence
                continue
            for value in wrong if isinstance(wrong, list) else [wrong]:
                if same(given, value, max(self.tolerance, 1e-9)) or (
                    isinstance(value, tuple) and not isinstance(given, (int, float))
                    and same(tuple(given), value)
                ):
                    return sentence
        return f"{self.wrong}; yours is {diagnosis.show(given, 40)}"


class Values(Check):
    """Answers that are numbers, shapes or lists: one `Part` for each."""

    def __init__(self, number, name, module, hint, parts, packed, measure):
        super().__init__(number, name, module, hint, None)
        self.parts, self.packed, self.measure = parts, packed, measure
        self.guesses = []

    def mistakes(self, answers, explain):
        if self.packed:  # one answer that holds all of them, by name or in order
            answers = self.unpacked(answers[0])
        for part, given in zip(self.parts.values(), answers, strict=True):
            if given is None or has_placeholder(given):
                raise NotAttempted
            if isinstance(part.right, (list, tuple)) and isinstance(given, (int, float)):
                raise Wrong(f"{len(part.right)} numbers are expected here; you gave one, {given!r}")
            try:
                given = part.read(given)
            except (TypeError, ValueError):
                raise Wrong(f"{part.wrong}; yours is {given!r:.40}") from None
            if not part.fits(given):
                self.guesses.append(answers)
                return [(part.sentence(given),)]
        return []

    def measured(self):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.measure()

    def unpacked(self, answer):
        if isinstance(answer, dict):
            return [
                answer.get(name.replace("_", " "), answer.get(name, ...)) for name in self.parts
            ]
        try:
            answer = list(answer)
        except TypeError:
            raise Wrong(f"{len(self.parts)} values are expected; you gave {answer!r:.40}") from None
        expect(
            len(answer) == len(self.parts),
            f"{len(self.parts)} values are expected, {', '.join(self.parts)}; "
            f"you gave {len(answer)}",
        )
        return answer

    def praise(self, answers):
        """What the measurement gives, and the first guess if it was a different one."""
        text = ""
        if self.measure is not None:  # really run what was predicted
            found = [
                f"{name.replace('_', ' ')} {diagnosis.show(value, 40)}"
                for name, value in self.measured().items()
            ]
            text += f" Computed just now: {', '.join(found)}."
        if self.guesses:
            text += f" Your first guess was {diagnosis.show(tuple(self.guesses[0]), 60)}."
        return text


def values(number, name, *, hint=None, packed=False, measure=None, **parts):
    """Declare answers that are values: `name=Part(right, wrong, slips)` for each, in order.

    name: that of the check. packed: the learner gives one dictionary, list or pair with them all.
    measure: a function that really runs what was predicted: {name of the part: what came out}.
    """
    module = sys._getframe(1).f_globals["__name__"]
    return Values(number, name, module, hint, parts, packed, measure)


class Judged(Check):
    """Answers that only laws can judge: many are right, or chance has a part in them."""

    def __init__(self, law, number, hint, given, example, slips, mutates):
        super().__init__(number, law.__name__, law.__module__, hint, given)
        self.law, self.example, self.slips, self.mutates = law, example, slips or {}, mutates
        self.__doc__ = law.__doc__

    def mistakes(self, answers, explain):
        guarded = [
            functools.partial(attempt_freely if self.mutates else attempt_with, answer)
            if isinstance(answer, types.FunctionType) else plain(answer)
            for answer in answers
        ]
        found = self.law(*guarded)
        self.remark = found if isinstance(found, str) else ""
        return [(message,) for message in found] if inspect.isgenerator(found) else []


def judged(number, *, hint=None, given=None, example=None, slips=None, mutates=False):
    """Declare an exercise by a law, the decorated function of the answers, which uses `expect`.

    What it returns, if a text, is said of a right answer.
    example: right answers, for the tests. slips: {sentence: wrong answers}, for the tests.
    mutates: a function that is the answer may change its arguments.
    """
    return lambda law: Judged(law, number, hint, given, example, slips, mutates)
