"""Random numbers: the state, kept and brought back."""

import contextlib

from torch import _base as base


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, **_):
    state = base.generator.get_state()
    try:
        yield
    finally:
        base.generator.set_state(state)


def manual_seed(seed):
    return base.generator.manual_seed(seed)


def get_rng_state():
    return base.generator.get_state()


def set_rng_state(state):
    base.generator.set_state(state)
