"""Sentence pairs for training: encoded, rejected where they do not fit, described, translated."""

import json
import zlib

from tokenizers import Tokenizer

from transformer_lib import tokenization
from transformer_lib.data import Pairs
from transformer_lib.decoding import greedy_decode, in_batches
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.device import of_torchrun


def encode_split(
    tokenizer: Tokenizer, pairs: Pairs, split: str, max_len: int, max_tokens: int | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of the sources and of the targets of a split.

    With max_tokens, the budget of a batch, pairs too long for it or for the model are left out;
    without max_tokens, a sentence too long for the model is an error: leaving it out would change
    the score. Raises ValueError for that, and when nothing is left.
    """
    rows = pairs.get(split, [])
    if not rows:
        held = ", ".join(f"{len(rows):,} {name}" for name, rows in pairs.items()) or "no"
        purpose, other = (
            ("to train on", "") if split == "train" else ("to measure on", ", or leave it out"))
        raise ValueError(
            f"there are no {split} pairs {purpose}: the data holds {held} pairs; "
            f"give it a split {split!r} that is not empty{other}."
        )
    sources, targets = tokenization.encode_pairs(tokenizer, rows)
    # A target has one token more than the decoder reads.
    lengths = [max(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]
    if max_tokens is None:
        if max(lengths) > max_len:
            raise ValueError(
                f"a {split} sentence has {max(lengths)} tokens, the model reads {max_len}: "
                "build it with a larger max_len, or take the sentence out of your data."
            )
        return sources, targets
    limit = min(max_len, max_tokens)
    keep = [i for i, length in enumerate(lengths) if length <= limit]
    if not keep:
        raise ValueError(
            f"every training pair is longer than {limit} tokens, the smaller of max_len "
            f"{max_len} and max_tokens {max_tokens}: make that larger, or cut "
            "the texts into sentences."
        )
    if len(keep) < len(rows) and of_torchrun("RANK", 0) == 0:
        print(f"Left out {len(rows) - len(keep):,} training pairs longer than {limit} tokens.")
    return [sources[i] for i in keep], [targets[i] for i in keep]


def describe(pairs: Pairs, info: dict | None, sources: list, targets: list) -> dict:
    """What config.json says about the data: what is given or known, and a checksum."""
    if not info:
        info = {"source": pairs.source} if hasattr(pairs, "source") else {}
    return info | {"checksum": zlib.crc32(json.dumps([sources, targets]).encode())}


def translate_ids(
    model: Transformer, tokenizer: Tokenizer, sources: list[list[int]], max_tokens: int = 8192
) -> list[str]:
    """Greedy translations of encoded sources, in their order."""

    def decode(src_ids):
        return tokenizer.decode_batch(greedy_decode(model, src_ids).tolist())

    return in_batches(decode, sources, max_tokens, next(model.parameters()).device)


def greedy_bleu(
    model: Transformer, tokenizer: Tokenizer, sources: list[list[int]], references: list[str]
) -> float:
    """BLEU of greedy translations of encoded sources."""
    from transformer_lib.evaluation import score

    return score(translate_ids(model, tokenizer, sources), references).bleu
