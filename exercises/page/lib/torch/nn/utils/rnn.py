"""Sequences of several lengths in one tensor."""

import torch


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    """Tensors (length, ...) as one (longest, number, ...); batch_first swaps those two."""
    longest = max(map(len, sequences))
    rows = [
        torch.cat([one, one.new_full((longest - len(one), *one.shape[1:]), padding_value)])
        for one in sequences
    ]
    return torch.stack(rows, 0 if batch_first else 1)


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.nn.utils.rnn")
