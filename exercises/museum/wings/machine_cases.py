# ruff: noqa: E501 (lines of the program are quoted whole)
"""The wing of the machine: laws, cases, and how they look.

Clocks and devices are simulated, so that a law gives the same answer on every machine.
"""

import random

import torch

from exercises.museum.specimens import Catalogue
from exercises.museum.wings import Case, Wing, machine

LAWS = {}


def law(function):
    LAWS[function.__name__] = function
    return function


def padded():
    torch.manual_seed(0)
    real = torch.arange(6) < torch.tensor([[6], [4], [2]])  # (B, T)
    return torch.randn(6, 3, 4) + 5, real


def left_over(p):
    """How many padded vectors are still there."""
    hidden, real = padded()
    p.silence(hidden, real)
    return int((hidden.transpose(0, 1)[~real].abs().sum(-1) > 0).sum())


@law
def what_is_written_arrives(p):
    """After `silence`, the caller's tensor holds zeros at the padding, and nowhere else."""
    hidden, real = padded()
    p.silence(hidden, real)
    rest = left_over(p)
    assert not rest, f"{rest} of {int((~real).sum())} padded vectors are as they were"
    assert (hidden.transpose(0, 1)[real] == padded()[0].transpose(0, 1)[real]).all(), (
        "real vectors have changed"
    )


@law
def the_mean_of_equal_numbers_is_that_number(p):
    """The mean of equal numbers is that number, however many there are, even in 16 bits."""
    for n in (10, 3000):
        mean = p.mean_loss(torch.full((n,), 2.5, dtype=torch.bfloat16))
        assert abs(mean - 2.5) < 0.01, f"the mean of {n} losses of 2.5 is {mean:.2f}"


@law
def equal_batches_have_the_gradient_of_one(p):
    """The mean of many equal gradients is that gradient, even in 16 bits."""
    for n in (4, 512):
        mean = p.mean_gradient([torch.full((3,), 0.01, dtype=torch.bfloat16)] * n)
        size = mean.float().mean().item() / 0.01
        assert abs(size - 1) < 0.02, f"the mean of {n} equal gradients is {size:.0%} of one"


class Device:
    """A device with a queue, and a clock that everybody can read: a launch takes 0.1 ms, the work
    itself 20 ms.
    """

    def __init__(self):
        self.now, self.done = 0.0, 0.0

    def clock(self):
        return self.now

    def launch(self):
        self.now += 1e-4
        self.done = max(self.done, self.now) + 20e-3

    def wait(self):
        self.now = max(self.now, self.done)


def timed(p, busy=False):
    device = Device()
    if busy:
        device.launch()
    return 1000 * p.seconds(device.launch, device.wait, device.clock)


@law
def the_clock_waits_for_the_work(p):
    """A device goes on working after a call has returned, and that work counts."""
    found = timed(p)
    assert 20 <= found < 21, f"work of 20 ms takes {found:.1f} ms"


@law
def earlier_work_is_not_counted(p):
    """Work that was launched before the clock started does not count."""
    found = timed(p, busy=True)
    assert found < 21, f"work of 20 ms takes {found:.1f} ms, after other work that's still going on"


class Remembers:
    """A function that takes 5 ms for an input that it has not seen, and 0.1 ms otherwise; its very
    first call takes 300 ms more.
    """

    def __init__(self):
        self.now, self.seen = 0.0, set()

    def clock(self):
        return self.now

    def __call__(self, x):
        self.now += 1e-4 if x in self.seen else 5e-3 if self.seen else 305e-3
        self.seen.add(x)


def timed_each(p):
    function = Remembers()
    return 1000 * p.seconds_each(function, [*range(11)], function.clock)


@law
def new_inputs_are_timed(p):
    """An answer that's only looked up doesn't show how long users will wait."""
    found = timed_each(p)
    assert found > 4.9, f"an input that takes 5 ms is timed at {found:.1f} ms"


@law
def the_first_call_is_not_timed(p):
    """Compiling, allocating and filling caches happens once, so it does not count."""
    found = timed_each(p)
    assert found < 5.1, f"an input that takes 5 ms is timed at {found:.1f} ms"


def crops(p, workers=4, epochs=2):
    """The first three crops of each worker in each epoch."""
    found = []
    for worker in range(workers):
        for epoch in range(epochs):
            draw = random.Random(p.worker_seed(0, worker, epoch))
            found.append(tuple(draw.randrange(1000) for _ in range(3)))
    return found


@law
def workers_draw_for_themselves(p):
    """No two workers or epochs draw the same crops, and the same seed repeats everything."""
    found = crops(p)
    assert len({*found}) == len(found), f"different draws: {len({*found})} of {len(found)}"
    assert found == crops(p), "the same seed draws something different"


def threads_seen(p):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        return p.compare(torch.get_num_threads, torch.get_num_threads)
    finally:
        torch.set_num_threads(before)


@law
def both_arms_get_the_same_threads(p):
    """Both arms run with the number of threads that was asked for."""
    found = threads_seen(p)
    assert found == [1, 1], f"asked for 1 thread, the arms have {found[0]} and {found[1]}"


def measure(p, trains):
    """What each part does, in numbers."""
    small = torch.full((3000,), 2.5, dtype=torch.bfloat16)
    gradients = [torch.full((3,), 0.01, dtype=torch.bfloat16)] * 512
    draws = crops(p)
    first, second = threads_seen(p)
    return {
        "left_over": left_over(p),
        "mean": round(p.mean_loss(small), 2),
        "gradient": round(p.mean_gradient(gradients).float().mean().item() / 0.01, 2),
        "ms": round(timed(p), 2),
        "ms_busy": round(timed(p, busy=True), 2),
        "ms_each": round(timed_each(p), 2),
        "draws": len(draws),
        "different": len({*draws}),
        "first": first,
        "second": second,
    }


CASES = Catalogue(Case)
case = CASES.add


case(
    "write-to-a-copy", "The zeros are written into a copy", "02_scaled_dot_product_attention",
    ("    hidden.transpose(0, 1)[~real] = 0.0\n",
     "    hidden.transpose(0, 1).reshape(-1, hidden.size(-1))[~real.flatten()] = 0.0\n"),
    looks="The padding was set to zero, and yet {left_over} of 6 padded vectors are as they were "
          "(healthy: {healthy[left_over]}). There's no error.",
    why="A transposed tensor isn't contiguous, so reshape has to copy it. The zeros go into the "
    "copy, "
        "which is then thrown away. With view, you'd have got an error.",
    hides="While the transposed tensor happens to be contiguous, as with a batch of one. Then "
    "reshape "
          "gives you a view, and the line works.",
    law="what_is_written_arrives",
    confused_with=("sum-in-16-bits", "gradients-in-16-bits", "workers-alike"),
)
case(
    "sum-in-16-bits", "A running sum is kept in bfloat16", "16_training_on_multi30k",
    ("    return losses.float().mean().item()\n",
     "    total = torch.zeros((), dtype=losses.dtype)\n    for loss in losses:\n"
     "        total += loss\n    return (total / len(losses)).item()\n"),
    looks="Each of 3,000 losses is 2.5, and their mean is {mean} (healthy: {healthy[mean]}).",
    why="bfloat16 has 8 significant bits. Once 2.5 is less than half the distance from the sum to "
        "the next number, adding it doesn't change the sum.",
    hides="On short lists, while the sum is small enough to be exact.",
    law="the_mean_of_equal_numbers_is_that_number",
    confused_with=("gradients-in-16-bits", "write-to-a-copy", "clock-does-not-wait"),
)
case(
    "gradients-in-16-bits", "Gradients are accumulated in bfloat16", "inside-an-update",
    ("    total = torch.zeros_like(gradients[0], dtype=torch.float32)\n",
     "    total = torch.zeros_like(gradients[0])\n"),
    looks="The mean of 512 equal gradients is {gradient:.0%} of one of them (healthy: "
          "{healthy[gradient]:.0%}).",
    why="The sum keeps 8 significant bits, so adding a much smaller number changes nothing. Keep the "
    "sum "
        "in float32, as mixed precision does with its master weights.",
    hides="While you accumulate few batches. With many, and SGD, it looks as if the learning rate "
          "were too low. (Adam cancels a common factor, and gradients of both signs lose less than "
          "equal ones.)",
    law="equal_batches_have_the_gradient_of_one",
    confused_with=("sum-in-16-bits", "write-to-a-copy", "threads-differ"),
)
case(
    "clock-does-not-wait", "The clock stops before the device is done", "speed",
    ("    launch()\n    wait()\n", "    launch()\n"),
    looks="Work that takes 20 ms is timed at {ms:.1f} ms (healthy: {healthy[ms]:.1f}).",
    why="A call hands the work to the device and returns at once, so only the hand-over is "
    "timed.",
    hides="On a CPU, where the call returns when the work is done. On a GPU the number is too "
    "good.",
    law="the_clock_waits_for_the_work",
    confused_with=("earlier-work-counted", "same-input-again", "first-call-timed"),
)
case(
    "earlier-work-counted", "The clock starts while earlier work is still running", "speed",
    ("    wait()\n    start = clock()\n    launch()\n", "    start = clock()\n    launch()\n"),
    looks="Work that takes 20 ms is timed at {ms:.1f} ms on its own, and at {ms_busy:.1f} ms after "
          "other work (healthy: {healthy[ms_busy]:.1f}).",
    why="The device works through its queue in order, and the wait at the end is for everything "
    "in it.",
    hides="As long as nothing was launched before. In a loop over arms, the first one pays for the "
    "set-up.",
    law="earlier_work_is_not_counted",
    confused_with=("clock-does-not-wait", "first-call-timed", "threads-differ"),
)
case(
    "same-input-again", "The same input is timed again and again", "speed",
    ("    for x in fresh:\n        function(x)\n", "    for _ in fresh:\n        function(warm)\n"),
    looks="An input that takes 5 ms is timed at {ms_each:.1f} ms (healthy: "
          "{healthy[ms_each]:.1f}).",
    why="The function remembers its input, in a cache of its own or the processor's, so only the "
        "first call pays. But users bring new inputs.",
    hides="As long as nothing is remembered.",
    law="new_inputs_are_timed",
    confused_with=("clock-does-not-wait", "first-call-timed", "workers-alike"),
)
case(
    "first-call-timed", "The first call is timed along with the others", "speed",
    ("    function(warm)\n    start = clock()\n", "    fresh = inputs\n    start = clock()\n"),
    looks="An input that takes 5 ms is timed at {ms_each:.1f} ms (healthy: "
          "{healthy[ms_each]:.1f}).",
    why="The first call compiles, allocates memory and loads libraries. In a mean of eleven calls "
        "it weighs more than the other ten together.",
    hides="In long measurements, where it's a small part.",
    law="the_first_call_is_not_timed",
    confused_with=("earlier-work-counted", "same-input-again", "threads-differ"),
)
case(
    "workers-alike", "All data-loading processes share one seed", "14_multi30k_data",
    ("    return random.Random(f\"{base} {worker} {epoch}\").randrange(2**31)\n",
     "    return base\n"),
    looks="Four workers draw crops for two epochs, {draws} draws in all. The number of different "
          "draws is {different} (healthy: {healthy[different]}).",
    why="Every process starts its generator from the same seed in every epoch, so all of them draw "
        "the same crops. The data set seems larger than it is.",
    hides="For good: the run does train, on a fraction of the variety.",
    law="workers_draw_for_themselves",
    confused_with=("write-to-a-copy", "same-input-again", "threads-differ"),
)
case(
    "threads-differ", "Two arms run with different numbers of threads", "speed",
    ("    for arm in (first, second):\n        torch.set_num_threads(threads)\n",
     "    torch.set_num_threads(threads)\n    for arm in (first, second):\n"),
    looks="Asked for one thread, the first arm runs with {first} and the second with {second} "
          "(healthy: {healthy[first]} and {healthy[second]}).",
    why="The number of threads is a setting of the whole process. After the first arm it's put "
    "back "
        "to what it was, and nobody sets it again for the second.",
    hides="On a machine with one core, for good.",
    law="both_arms_get_the_same_threads",
    confused_with=("earlier-work-counted", "first-call-timed", "workers-alike"),
)

WING = Wing("The machine", machine, LAWS, CASES, measure)
