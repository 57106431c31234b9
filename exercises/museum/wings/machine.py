"""The healthy program of the machine wing: memory, 16-bit numbers, clocks, processes."""

import random

import torch


def silence(hidden, real):
    """Set the padding of hidden (T, B, D) to zero, in place; real: (B, T) bool."""
    hidden.transpose(0, 1)[~real] = 0.0


def mean_loss(losses):
    """The mean of many losses, a tensor of any precision."""
    return losses.float().mean().item()


def mean_gradient(gradients):
    """The mean of the gradients of several small batches, a list of tensors."""
    total = torch.zeros_like(gradients[0], dtype=torch.float32)
    for gradient in gradients:
        total += gradient
    return total / len(gradients)


def seconds(launch, wait, clock):
    """How long the work that launch() hands to a device takes; wait() returns when it is done."""
    wait()
    start = clock()
    launch()
    wait()
    return clock() - start


def seconds_each(function, inputs, clock):
    """The mean time of function(x) for new inputs, once everything is warm."""
    warm, *fresh = inputs
    function(warm)
    start = clock()
    for x in fresh:
        function(x)
    return (clock() - start) / len(fresh)


def worker_seed(base, worker, epoch):
    """The seed of a process that loads data: a different one for each process and epoch."""
    return random.Random(f"{base} {worker} {epoch}").randrange(2**31)


def compare(first, second, threads=1):
    """What first() and second() return, both with this many threads."""
    before, found = torch.get_num_threads(), []
    for arm in (first, second):
        torch.set_num_threads(threads)
        found.append(arm())
        torch.set_num_threads(before)
    return found
