"""Mistakes of public implementations which no specimen of the museum makes, caught by a law.

Every test holds a small broken variant beside the library's own, and one assertion that the
library passes and the variant fails. So the laws of the other test files are known to bite.
The museum's own bugs are held to its laws in test_museum.py.
"""

import random

import pytest
import torch
from conftest import random_ids, tiny_config, tiny_model

from transformer_lib import decoding, masks
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.encoder import EncoderLayer
from transformer_lib.runs.checkpoint import load_weights
from transformer_lib.tokenization import UNK, train_tokenizer


def caught(law, right, wrong):
    """The law holds for the library and fails for the mistake."""
    assert law(right), "the library breaks its own law"
    assert not law(wrong), "the law does not notice the mistake"


def close(a, b):
    return torch.allclose(a, b, atol=1e-5)


def naive_attention(q, k, v, mask=None, hide=lambda scores, mask: scores, dim=-1, scale=None):
    scores = hide(q @ k.transpose(-2, -1) * (scale or q.size(-1) ** -0.5), mask)
    weights = scores.softmax(dim)
    return weights @ v, weights


def test_minus_1e9_overflows_in_half_precision():
    x, causal = torch.randn(1, 3, 4).half(), masks.causal_mask(3)[0]
    assert scaled_dot_product_attention(x, x, x, causal)[0].isfinite().all()
    with pytest.raises(RuntimeError, match="overflow"):
        naive_attention(x, x, x, causal, hide=lambda scores, mask: scores.masked_fill(~mask, -1e9))


def test_post_norm_drawn_and_pre_norm_coded():
    def output_is_normalised(layer):
        y = layer(5 * torch.randn(2, 4, 16))
        size = y.std(-1, unbiased=False)
        return close(y.mean(-1), torch.zeros(2, 4)) and close(size, torch.ones(2, 4))

    drawn, coded = (EncoderLayer(tiny_config(norm_first=first)) for first in (False, True))
    caught(output_is_normalised, drawn, coded)


def test_vocabulary_of_all_splits():
    train, test = ["ein Hund rennt"], ["ein Pferd rennt"]

    def the_test_split_stays_unknown(texts):
        return UNK in train_tokenizer(texts, 50, "word").encode(test[0]).ids

    caught(the_test_split_stays_unknown, train, train + test)


def test_pickled_weights_are_not_read(tmp_path):
    path = tmp_path / "model.safetensors"
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="damaged"):
        load_weights(path)


def test_dropout_left_on_in_decoding():
    model, src = tiny_model(dropout=0.5).train(), random_ids(3, 6)

    def repeatable(decode):
        return len({str(decode().tolist()) for _ in range(4)}) == 1

    def with_dropout():
        ids = torch.ones(3, 1, dtype=torch.long)
        for _ in range(8):
            ids = torch.cat([ids, model(src, ids)[:, -1:].argmax(-1)], 1)
        return ids

    caught(repeatable, lambda: decoding.greedy_decode(model, src, 8), with_dropout)


def test_the_whole_prefix_decoded_again_at_every_step():
    def work(use_cache):
        """Positions that the decoder is asked for while it writes 12 tokens."""
        model, seen = tiny_model(tie_embeddings=False), []
        with torch.no_grad():  # word 7 at every step: the sentence never ends early
            model.decoder.norm.weight.zero_()
            model.decoder.norm.bias.fill_(1.0)
            model.output.weight.zero_()[7] = 1.0
        count = lambda _, args: seen.append(args[0].size(1))  # noqa: E731
        handle = model.decoder.register_forward_pre_hook(count)
        decoding.greedy_decode(model, random_ids(1, 5), 12, use_cache=use_cache)
        handle.remove()
        return sum(seen)

    caught(lambda use_cache: work(use_cache) == 12, True, False)
    assert work(False) == sum(range(1, 13))


def test_batches_of_unsorted_sentences():
    from transformer_lib.batching import TokenBatchSampler, padding_share

    rng = random.Random(0)
    lengths = [(n, n + rng.randint(-2, 2)) for n in (rng.randint(5, 40) for _ in range(1000))]
    plain = [list(range(i, i + 50)) for i in range(0, 1000, 50)]
    caught(
        lambda batches: padding_share(lengths, batches) < 0.15,
        list(TokenBatchSampler(lengths, 1000)),
        plain,
    )
