"""Ctrl-C ends a run after the update under way, with its state saved."""

import signal

import torch

from transformer_lib.runs.processes import Processes


class StopRequest:
    """Within its block, Ctrl-C and SIGTERM are only noted; a second one ends the run at once."""

    def __init__(self, processes: Processes, device: torch.device, every: int):
        """Several processes agree every so many steps: more often would make a GPU wait."""
        self.processes, self.device, self.every = processes, device, every
        self.noted, self._before = False, {}

    def agreed(self, step: int) -> bool:
        """Whether a signal came to this process or, as all must agree, to any other."""
        if self.processes.world == 1:
            return self.noted
        return step % self.every == 0 and self.processes.any(self.noted, self.device)

    def __enter__(self) -> "StopRequest":
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        except ValueError:  # not the main thread: nobody can press Ctrl-C here
            pass
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number, _frame) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True
