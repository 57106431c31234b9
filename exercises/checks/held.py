"""How much an answer holds in memory while it computes: its largest tensor, and all together."""

import sys

from exercises.checks import diagnosis
from exercises.checks.framework import Wrong, attempt, clone
from transformer_lib.runs.speed import PeakMemory


class Held(PeakMemory):
    """`PeakMemory` that also notes the largest tensor: its shape, and the learner's line."""

    def __init__(self):
        super().__init__()
        self.most, self.shape, self.line = 0, (), ""

    def made(self, tensor):
        if tensor.untyped_storage().nbytes() > self.most:
            self.most, self.shape = tensor.untyped_storage().nbytes(), tuple(tensor.shape)
            frame = sys._getframe(1)
            while frame and not diagnosis.is_theirs(frame.f_code):
                frame = frame.f_back
            self.line = frame and diagnosis.source_line(frame.f_code.co_filename, frame.f_lineno)


def holds(answer, args, largest, together):
    """Stop the check if a call makes a tensor above `largest` numbers, or holds more at once.

    largest, together: (how many numbers of 32 bits are allowed, a sentence on what that many are).
    """
    answer = getattr(answer, "args", [answer])[0]  # as handed in: what guards it copies, too
    args = clone(args)
    with Held() as held:
        attempt(answer, args)
    made, at_once = held.most // 4, held.peak // 4
    if made > largest[0]:
        where = held.line or "your code"
        raise Wrong(
            f"the result is right, but {where} makes a tensor of shape {held.shape}, {made:,} "
            f"numbers. {largest[1]}"
        )
    if at_once > together[0]:
        raise Wrong(
            "the result is right and no tensor is too large, but at one point your tensors hold "
            f"{at_once:,} numbers together. {together[1]}"
        )
