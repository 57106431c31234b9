"""Speculative decoding writes what the target writes, whoever guesses."""

import itertools
import math
from collections import Counter

import pytest
import torch

from transformer_lib.beyond import speculative
from transformer_lib.beyond.speculative import (
    KeepByChance,
    ModelDraft,
    TableDraft,
    keep_likeliest,
    speculative_decode,
)
from transformer_lib.config import EOS, PAD, ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer

SIZES = dict(d_model=16, n_heads=2, d_ff=16, dropout=0.0, n_encoder_layers=1)


def translator(seed, layers=2, positional="sinusoidal"):
    torch.manual_seed(seed)
    config = ModelConfig(30, **SIZES, n_decoder_layers=layers, positional=positional)
    return Transformer(config).eval()


class Stubborn:
    def propose(self, ids, n):
        return [10] * n, None


@pytest.mark.parametrize("n_ahead", [0, 1, 3, 7])
@pytest.mark.parametrize("who", ["itself", "another", "in pieces", "a table", "stubborn"])
def test_greedy_words_do_not_depend_on_who_guesses(n_ahead, who):
    target = translator(0)
    for seed in range(4):
        src = torch.randint(4, 30, (1, 6), generator=torch.Generator().manual_seed(seed))
        plain = greedy_decode(target, src, max_len=20)[0].tolist()
        pieces = [[i] if i < 20 else [i - 10, 5] for i in range(30)]
        draft = {
            "itself": ModelDraft(target, src),
            "another": ModelDraft(translator(1, 1, "rotary"), src),
            "in pieces": ModelDraft(translator(1, 1), src, pieces),
            "a table": TableDraft([[1, *plain]], 2),
            "stubborn": Stubborn(),
        }[who]
        found = speculative_decode(target, draft, src, n_ahead, max_len=20)
        assert found.ids == plain
        if who == "itself":  # all guesses stay
            assert len(found.kept) == math.ceil(len(plain) / (n_ahead + 1))


def test_a_table_that_knows_the_text_is_right():
    table = TableDraft([[1, 7, 8, 9, 7, 8, 5, 2]], order=3)
    assert table.propose([1, 7], 3) == ([8, 9, 7], None)
    assert table.propose([9, 7, 8], 2) == ([5, 2], None)
    assert table.propose([1, 26], 1) == ([26], None)  # nothing is known
    assert table.propose([1, 7], 0) == ([], None)


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_out_has_the_targets_probabilities(seed):
    """Both ways into a token add up to p, and the share that is kept is the overlap."""
    generator = torch.Generator().manual_seed(seed)
    logits, q = torch.randn(2, 4, generator=generator), torch.rand(1, 3, generator=generator)
    p, q = logits[0].softmax(-1), q / q.sum()
    keep, n, counts, kept = KeepByChance(generator), 1500, Counter(), 0
    for _ in range(n):
        x = int(torch.multinomial(q[0], 1, generator=generator))
        n_right, token = keep(logits, [x], q)
        counts[x if n_right else token] += 1
        kept += n_right
    for x in range(4):
        assert abs(counts[x] / n - p[x]) < 4.5 * math.sqrt(p[x] * (1 - p[x]) / n)
    overlap = torch.minimum(p[:3], q[0]).sum()
    assert abs(kept / n - overlap) < 4.5 * math.sqrt(overlap * (1 - overlap) / n)


def test_a_certain_guess_is_kept_with_the_targets_probability():
    logits, generator = torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.Generator().manual_seed(0)
    keep, counts = KeepByChance(generator), Counter()
    for _ in range(3000):
        n_right, token = keep(logits, [1], None)
        counts[1 if n_right else token] += 1
        assert n_right or token != 1
    for x, p in enumerate(logits[0].softmax(-1).tolist()):
        assert abs(counts[x] / 3000 - p) < 4.5 * math.sqrt(p * (1 - p) / 3000)


def tiny(seed):
    torch.manual_seed(seed)
    sizes = SIZES | {"d_model": 8, "d_ff": 8, "n_encoder_layers": 0}
    model = LanguageModel(ModelConfig(5, **sizes, n_decoder_layers=1, max_len=8)).eval()
    with torch.no_grad():
        model.embedding.lookup.weight *= 1.5  # so that what came before matters
    return model


def p_value(keep, n=800, length=3, generator=None):
    target, small = tiny(0), tiny(1)
    expected, counts = {}, Counter()
    with torch.no_grad():
        for tokens in itertools.product(range(1, 5), repeat=length):
            logits = target(torch.tensor([[1, *tokens]]))[0, :length]
            logits[:, PAD] = -torch.inf
            log_p = logits.log_softmax(-1)
            end = tokens.index(EOS) + 1 if EOS in tokens else length
            log = sum(log_p[i, t].item() for i, t in enumerate(tokens[:end]))
            expected[tokens[:end]] = math.exp(log)
    assert abs(sum(expected.values()) - 1) < 1e-5
    for _ in range(n):
        draft = ModelDraft(small, torch.tensor([[1]]), generator=generator)
        found = speculative_decode(target, draft, torch.tensor([[1]]), 2, keep, max_len=length)
        counts[tuple(found.ids)] += 1
    assert set(counts) <= set(expected)
    rare = {s for s, p in expected.items() if n * p < 5}  # counted together
    cells = [(counts[s], n * p) for s, p in expected.items() if s not in rare]
    cells.append((sum(counts[s] for s in rare), n * sum(expected[s] for s in rare)))
    statistic = sum((found - due) ** 2 / due for found, due in cells)
    freedom = len(cells) - 1
    spread = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - 1 + spread) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def test_samples_pass_a_chi_square_test_and_unchecked_guesses_do_not():
    generator = torch.Generator().manual_seed(0)
    assert p_value(KeepByChance(generator), generator=generator) > 0.01

    def all_of_them(logits, guesses, q):
        return len(guesses), int(torch.multinomial(logits[-1].softmax(-1), 1, generator=generator))

    assert p_value(all_of_them, n=400, generator=generator) < 1e-4

    def one_place_late(logits, guesses, q):
        return KeepByChance(generator)(torch.cat([logits[1:], logits[-1:]]), guesses, q)

    assert p_value(one_place_late, n=400, generator=generator) < 1e-4


def test_greedy_sampling_of_another_draft_is_seen_too():
    generator = torch.Generator().manual_seed(0)
    assert p_value(keep_likeliest, n=200, generator=generator) < 1e-4


def test_the_formulas():
    assert speculative.tokens_a_pass(0.0, 4) == 1 and speculative.tokens_a_pass(1.0, 4) == 5
    assert speculative.tokens_a_pass(0.5, 2) == 1.75
    assert speculative.speed_up(1.75, 2, 0.25, 1.25) == 1.0
