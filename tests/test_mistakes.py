"""Mistakes of public implementations, each made here on purpose and caught by a law.

Every test holds a small broken variant beside the library's own, and one assertion that the
library passes and the variant fails. So the laws of the other test files are known to bite.
"""

import math
import random

import pytest
import torch
from conftest import random_ids, tiny_config, tiny_model
from torch import nn

from transformer_lib import data, decoding, masks
from transformer_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.blocks import Residual
from transformer_lib.encoder import EncoderLayer
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.normalization import LayerNorm
from transformer_lib.positional import SinusoidalEncoding, sinusoidal_table
from transformer_lib.runs.checkpoint import load_weights
from transformer_lib.tokenization import UNK, train_tokenizer


def caught(law, right, wrong):
    """The law holds for the library and fails for the mistake."""
    assert law(right), "the library breaks its own law"
    assert not law(wrong), "the law does not notice the mistake"


def close(a, b):
    return torch.allclose(a, b, atol=1e-5)


# ---------------------------------------------------------------------------------------- masks


def naive_attention(q, k, v, mask=None, hide=lambda scores, mask: scores, dim=-1, scale=None):
    scores = hide(q @ k.transpose(-2, -1) * (scale or q.size(-1) ** -0.5), mask)
    weights = scores.softmax(dim)
    return weights @ v, weights


def test_masked_fill_with_the_result_thrown_away():
    def thrown_away(scores, mask):
        scores.masked_fill(mask == 0, -1e9)
        return scores

    def past_ignores_the_future(attention):
        x, causal = torch.randn(1, 5, 4), masks.causal_mask(5)[0]
        other = torch.cat([x[:, :3], torch.randn(1, 2, 4)], 1)
        before, after = (attention(y, y, y, causal)[0][:, :3] for y in (x, other))
        return close(before, after)

    caught(
        past_ignores_the_future,
        scaled_dot_product_attention,
        lambda *args: naive_attention(*args, hide=thrown_away),
    )


def test_padding_mask_on_query_rows():
    def real_tokens_ignore_padding(padding_mask):
        model, src = tiny_model(), random_ids(1, 6)
        longer = torch.cat([src, torch.zeros(1, 3, dtype=torch.long)], 1)
        mask, mask_longer = padding_mask(src, 0), padding_mask(longer, 0)
        return close(model.encode(longer, mask_longer)[:, :6], model.encode(src, mask))

    caught(
        real_tokens_ignore_padding,
        masks.padding_mask,
        lambda ids, pad_id: masks.padding_mask(ids, pad_id).transpose(-2, -1),  # (B, 1, T, 1)
    )


def test_minus_1e9_and_minus_inf_on_a_row_of_nothing():
    def gives_zeros(attention):
        x = torch.randn(1, 3, 4)
        return bool(attention(x, x, x, torch.zeros(1, 3, 3, dtype=torch.bool))[0].eq(0).all())

    for value in (-1e9, -math.inf):  # the mean of all values, and NaN
        caught(
            gives_zeros,
            scaled_dot_product_attention,
            lambda *args, value=value: naive_attention(
                *args, hide=lambda scores, mask: scores.masked_fill(~mask, value)
            ),
        )


def test_minus_1e9_overflows_in_half_precision():
    x, causal = torch.randn(1, 3, 4).half(), masks.causal_mask(3)[0]
    assert scaled_dot_product_attention(x, x, x, causal)[0].isfinite().all()
    with pytest.raises(RuntimeError, match="overflow"):
        naive_attention(x, x, x, causal, hide=lambda scores, mask: scores.masked_fill(~mask, -1e9))


# ------------------------------------------------------------------------------------- attention


def weights_are_distributions(attention):
    q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    return close(attention(q, k, v)[1].sum(-1), torch.ones(2, 3))


def test_softmax_over_the_wrong_axis():
    caught(
        weights_are_distributions,
        scaled_dot_product_attention,
        lambda *args: naive_attention(*args, dim=-2),
    )


@pytest.mark.parametrize("scale", [1.0, 64**-0.5], ids=["no scale", "root of d_model"])
def test_scale_left_out_or_of_the_wrong_size(scale):
    d_k = 16  # four heads of a d_model of 64

    def scores_have_unit_variance(attention):
        q, k = torch.randn(100, 200, d_k), torch.randn(100, 1, d_k)
        two_keys = torch.cat([k, torch.zeros_like(k)], 1)  # the second key scores 0
        weights = attention(q, two_keys, two_keys)[1]
        scores = (weights[..., 0] / weights[..., 1]).log()
        return abs(scores.var().item() - 1) < 0.2

    caught(
        scores_have_unit_variance,
        scaled_dot_product_attention,
        lambda *args: naive_attention(*args, scale=scale),
    )


def test_heads_split_without_a_transpose():
    class Wrong(MultiHeadAttention):
        def split_heads(self, x):
            return x.reshape(x.size(0), self.n_heads, x.size(1), -1)  # mixes tokens with heads

        def join_heads(self, x):
            return x.reshape(x.size(0), x.size(2), -1)

    def equivariant(kind):
        torch.manual_seed(0)
        attention, x, order = kind(8, 2), torch.randn(1, 4, 8), [2, 0, 3, 1]
        y = x[:, order]
        return close(attention(y, y, y)[0], attention(x, x, x)[0][:, order])

    caught(equivariant, MultiHeadAttention, Wrong)


def test_dropout_not_passed_to_attention():
    class Wrong(MultiHeadAttention):
        def __init__(self, d_model, n_heads, dropout):
            super().__init__(d_model, n_heads)

    def drops_in_training(kind):
        attention, x = kind(8, 2, 0.5), torch.randn(2, 4, 8)
        return not close(attention(x, x, x)[0], attention(x, x, x)[0])

    caught(drops_in_training, MultiHeadAttention, Wrong)


# -------------------------------------------------------------------- normalisation and residuals


def equals_torch_layer_norm(kind):
    torch.manual_seed(0)
    ours, theirs, x = kind(16), nn.LayerNorm(16), torch.randn(20, 16)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(a)
        b.data.copy_(a.data.expand(16))
    return close(ours(x), theirs(x))


class UnbiasedNorm(LayerNorm):
    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return (x - mean) / (std + self.eps) * self.weight + self.bias


class EpsilonOutside(LayerNorm):
    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False)
        return (x - mean) / (std + self.eps) * self.weight + self.bias


def test_layer_norm_with_the_unbiased_deviation():
    caught(equals_torch_layer_norm, LayerNorm, UnbiasedNorm)


def test_layer_norm_with_epsilon_outside_the_root():
    def equal_for_small_vectors(kind):
        x = 1e-3 * torch.randn(20, 16)
        return close(kind(16)(x), nn.LayerNorm(16)(x))

    caught(equal_for_small_vectors, LayerNorm, EpsilonOutside)


def test_layer_norm_with_one_gain_for_all_features():
    class OneGain(LayerNorm):
        def __init__(self, d_model):
            super().__init__(d_model)
            self.weight, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * self.weight

    def can_scale_one_feature_alone(kind):
        norm, x = kind(16), torch.randn(4, 16)
        before = norm(x)
        norm.weight.data.view(-1)[-1] = 3.0
        return close(norm(x)[:, :-1], before[:, :-1])

    caught(can_scale_one_feature_alone, LayerNorm, OneGain)


def test_pre_norm_that_adds_the_normalised_input():
    class Wrong(Residual):
        def forward(self, x, sublayer):
            x = self.norm(x)
            return x + self.dropout(sublayer(x))

    def zeroed_sublayer_is_the_identity(kind):
        x = 3 * torch.randn(2, 4, 16)
        return close(kind(tiny_config())(x, torch.zeros_like), x)

    caught(zeroed_sublayer_is_the_identity, Residual, Wrong)


def test_post_norm_drawn_and_pre_norm_coded():
    def output_is_normalised(layer):
        y = layer(5 * torch.randn(2, 4, 16))
        size = y.std(-1, unbiased=False)
        return close(y.mean(-1), torch.zeros(2, 4)) and close(size, torch.ones(2, 4))

    drawn, coded = (EncoderLayer(tiny_config(norm_first=first)) for first in (False, True))
    caught(output_is_normalised, drawn, coded)


def test_final_norm_of_pre_norm_forgotten():
    def output_has_unit_size_at_any_depth(forget):
        model = tiny_model(n_encoder_layers=6, d_ff=64)
        model.encoder.norm = nn.Identity() if forget else LayerNorm(16).double()
        return abs(model.encode(random_ids(4, 7)).std().item() - 1) < 0.05

    caught(output_has_unit_size_at_any_depth, False, True)


# -------------------------------------------------------------------------------------- training


def gradient_of_accumulated(batches, when_to_step, divide, weight):
    """The gradient at the first update, for a mean-squared loss of one weight vector."""
    weight = weight.clone().requires_grad_()
    for i, (x, y) in enumerate(batches):
        loss = (x @ weight - y).pow(2).mean()
        (loss / len(batches) if divide else loss).backward()
        if when_to_step(i):
            break
    return weight.grad


@pytest.mark.parametrize(
    "wrong", [(lambda i: i % 4 == 0, True), (lambda i: (i + 1) % 4 == 0, False)],
    ids=["steps on batch 0", "loss not divided"],
)
def test_gradient_accumulation(wrong):
    x, y, weight = torch.randn(12, 3), torch.randn(12), torch.randn(3)
    batches = list(zip(x.split(3), y.split(3), strict=True))
    whole = gradient_of_accumulated([(x, y)], lambda i: True, True, weight)

    def equals_the_big_batch(variant):
        return close(gradient_of_accumulated(batches, *variant, weight), whole)

    caught(equals_the_big_batch, (lambda i: (i + 1) % 4 == 0, True), wrong)


def test_target_not_shifted():
    # A model that repeats its input has learned nothing: its loss must not be small.
    tgt = random_ids(2, 6)
    parrot = 20.0 * nn.functional.one_hot(tgt, 20).float()  # logits at t name the token at t

    def a_parrot_scores_badly(shift):
        logits, targets = (parrot[:, :-1], tgt[:, 1:]) if shift else (parrot, tgt)
        return label_smoothed_cross_entropy(logits, targets, 0.0).item() > 5

    caught(a_parrot_scores_badly, True, False)


@pytest.mark.parametrize("mistake", ["padding counted", "averaged over padding"])
def test_padding_in_the_loss(mistake):
    def wrong(logits, targets):
        ignore = -100 if mistake == "padding counted" else 0
        total = nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=ignore, reduction="sum"
        )
        return total / targets.numel()

    def ignores_how_much_padding(loss):
        logits, targets = torch.randn(2, 4, 9), random_ids(2, 4, vocab_size=9)
        longer = torch.cat([targets, torch.zeros(2, 5, dtype=torch.long)], 1)
        longer_logits = torch.cat([logits, torch.randn(2, 5, 9)], 1)
        return close(loss(logits, targets), loss(longer_logits, longer))

    caught(ignores_how_much_padding, lambda x, y: label_smoothed_cross_entropy(x, y, 0.0), wrong)


def test_label_smoothing_by_a_naive_divergence():
    # q log(q / p) with q = 0 is 0 * -inf.
    def naive(logits, targets):
        soft = nn.functional.one_hot(targets, 6).float()
        return (soft * (soft.log() - logits.log_softmax(-1))).sum(-1).mean()

    def finite(loss):
        return bool(loss(torch.randn(3, 6), torch.tensor([1, 2, 3])).isfinite())

    caught(finite, lambda x, y: label_smoothed_cross_entropy(x, y, 0.0), naive)


# ------------------------------------------------------------------------------------------ data


def test_vocabularies_swapped_behind_an_unknown_default():
    pairs = data.load_parallel("mini")["train"][:300]
    german, english = (train_tokenizer(side, 400, "word") for side in zip(*pairs, strict=True))

    def knows_the_source(tokenizer):
        ids = [i for source, _ in pairs for i in tokenizer.encode(source).ids]
        return ids.count(UNK) / len(ids) < 0.3

    caught(knows_the_source, german, english)


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


# -------------------------------------------------------------------------------------- decoding


def test_positions_fixed_to_the_training_length():
    class Wrong(SinusoidalEncoding):
        def forward(self, x, start=0):
            return x + self.table[: x.size(1)]  # wherever the piece stands

    def pieces_equal_the_whole(kind):
        encoding, x = kind(8, 10), torch.randn(1, 6, 8)
        return close(torch.cat([encoding(x[:, :4]), encoding(x[:, 4:], 4)], 1), encoding(x))

    caught(pieces_equal_the_whole, SinusoidalEncoding, Wrong)
    # A longer table continues a shorter one: max_len is no property of the weights.
    assert torch.equal(sinusoidal_table(20, 8)[:10], sinusoidal_table(10, 8))


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
