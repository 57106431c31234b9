"""An attention-only Transformer whose weights are written by hand, entry by entry, by name."""

import torch
from torch import Tensor

GIVEN = ("one", "place", "place²")  # of each token's vector, besides its letter


def run_by_hand(
    layers: list, readout: dict, texts: list[str], letters: str, causal: bool = True
) -> tuple[Tensor, list]:
    """Run a machine on texts of equal length; return its logits and each head's attention weights.

    A token's vector has a number for each letter (1 for its own), "one" (always 1), "place" (0, 1,
    2, ...) and "place²", and a 0 for every other name that a matrix uses. layers: a list of layers;
    a layer is a list of heads, and a head a pair of matrices as dictionaries. An entry that isn't
    given is 0:

        scores, {(name at the query, name at the key): weight}, summed as weight * number * number
        values, {(name at the key, name at the query): weight}: reads the first, adds to the second

    All heads of a layer read the same vectors, and what they write is added up. readout: {(name,
    answer): weight}; the logits, (B, T, answers), are in the order of the sorted answers. causal:
    whether a token sees only itself and those before it, or all of them. Computed in float64.
    """
    matrices = [matrix for layer in layers for head in layer for matrix in head]
    used = {name for matrix in matrices for pair in matrix for name in pair}
    used |= {number for number, _ in readout}
    names = [*letters, *GIVEN, *sorted(used - {*letters, *GIVEN})]
    answers = sorted({answer for _, answer in readout})

    def filled(entries, columns):  # the matrix of a dictionary
        matrix = torch.zeros(len(names), len(columns), dtype=torch.float64)
        for (row, column), weight in entries.items():
            matrix[names.index(row), columns.index(column)] = weight
        return matrix

    B, T = len(texts), len(texts[0])
    place = torch.arange(T, dtype=torch.float64)
    x = torch.zeros(B, T, len(names), dtype=torch.float64)
    for i, text in enumerate(texts):
        x[i, range(T), [letters.index(letter) for letter in text]] = 1
    x[..., len(letters) : len(letters) + 3] = torch.stack([place**0, place, place**2], dim=-1)
    future = torch.ones(T, T, dtype=torch.bool).triu(1) if causal else torch.zeros(T, T).bool()
    patterns = []
    for layer in layers:
        written = 0
        for scores, values in layer:
            agreement = x @ filled(scores, names) @ x.mT  # (B, T, T)
            weights = agreement.masked_fill(future, -torch.inf).softmax(-1)
            patterns.append(weights)
            written = written + weights @ x @ filled(values, names)
        x = x + written
    return x @ filled(readout, answers), patterns
