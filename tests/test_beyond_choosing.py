"""Choosing among candidates: each way keeps its law, and bad input gets a sentence."""

import random

import pytest
import torch

from transformer_lib import decoding, load_pretrained
from transformer_lib.beyond import choosing
from transformer_lib.config import BOS, EOS, PAD, ModelConfig
from transformer_lib.decoding import beam_search, greedy_decode
from transformer_lib.evaluation import sentence_scores
from transformer_lib.models.transformer import Transformer

TEXTS = ["a dog runs .", "a dog is running .", "the dog runs .", "a cat sleeps .", "two dogs run ."]


def model(seed=0, vocabulary=40):
    torch.manual_seed(seed)
    return Transformer(ModelConfig(vocabulary, 16, 2, 16, 1, 2, dropout=0.0)).eval()


def sources(n=4, seed=0):
    draw = random.Random(seed).randrange
    return [[draw(4, 40) for _ in range(length)] + [EOS] for length in range(3, 3 + n)]


# ---- candidates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 20])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_first_of_the_list_is_what_beam_search_finds(n, penalty):
    for seed in range(4):
        for ids in sources(seed=seed):
            src, options = torch.tensor([ids]), dict(max_len=12, length_penalty=penalty)
            net = model(seed)
            net.output.weight.data[EOS] *= 4  # some end early, and must not go on
            found = choosing.n_best(net, src, n, **options)
            best, score = beam_search(net, src, n, **options)
            assert all(EOS not in written[:-1] for _, written in found)
            assert found[0][1] == best[0].tolist()
            assert found[0][0] == pytest.approx(score.item(), abs=1e-5)
            scores = [score for score, _ in found]
            assert scores == sorted(scores, reverse=True) and len(found) <= n
            assert len({tuple(written) for _, written in found}) == len(found)


def test_every_search_takes_its_score_from_one_function(monkeypatch):
    """With the form of Wu et al. (2016) in its place, all of them rank by that."""

    def wu(total, length, penalty):
        return total / ((5 + length) / 6) ** penalty

    for module in (decoding, choosing):
        monkeypatch.setattr(module, "finished_score", wu)
    net, src = model(2), sources()[1]
    for score, ids in choosing.n_best(net, torch.tensor([src]), 6):
        total = choosing.log_probability(net, [src], [ids])
        assert score == pytest.approx(total.item() * 6 / (5 + len(ids)), abs=1e-5)
    best, score = beam_search(net, torch.tensor([src]), 6)
    found = choosing.n_best(net, torch.tensor([src]), 6)[0]
    assert found == (pytest.approx(score.item(), abs=1e-5), best[0].tolist())


def test_scores_of_the_list_are_the_models_own():
    net, src = model(1), sources()[2]
    for score, ids in choosing.n_best(net, torch.tensor([src]), 6):
        total = choosing.log_probability(net, [src], [ids])
        assert score == pytest.approx(total.item() / len(ids), abs=1e-5)


def test_samples_stay_with_their_source():
    """Nearly without temperature every sample is what greedy decoding writes for that source."""
    net, rows = model(), sources()
    found = choosing.sampled(net, rows, 3, 1e-4, torch.Generator().manual_seed(0), max_tokens=60)
    for ids, samples in zip(rows, found, strict=True):
        greedy = greedy_decode(net, torch.tensor([ids]))[0].tolist()
        assert samples == [greedy] * 3


def test_a_seed_repeats_the_samples():
    def draw(seed):
        generator = torch.Generator().manual_seed(seed)
        return choosing.sampled(model(), sources(), 4, 1.0, generator)

    assert draw(0) == draw(0) != draw(1)


# ---- what models think ---------------------------------------------------------------------------


def test_the_probabilities_of_all_short_targets_and_their_rest_sum_to_one():
    """Every target of one token, or of two that begins so, is one way the text can go on."""
    net, src = model(vocabulary=9), [5, 6, EOS]
    words = [w for w in range(9) if w != PAD]
    ends = [[EOS]]
    longer = [[a, b] for a in words if a != EOS for b in words]
    found = choosing.log_probability(net, [src] * (len(ends) + len(longer)), ends + longer, size=7)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_padding_of_other_pairs_changes_nothing():
    net, rows = model(), sources(6)
    targets = [[7] * n + [EOS] for n in (1, 9, 3, 5, 2, 4)]
    together = choosing.log_probability(net, rows, targets, size=3)
    alone = [choosing.log_probability(net, [a], [b]) for a, b in zip(rows, targets, strict=True)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_per_token_is_the_score_of_a_translation():
    translator = load_pretrained("multi30k-de-en-short")
    texts = ["Zwei Hunde spielen im Schnee .", "Ein Mann schläft ."]
    found = translator.translate(texts, length_penalty=1.0, attention=False)
    scores = choosing.per_token(translator, texts, [t.text for t in found])
    torch.testing.assert_close(scores, torch.tensor([t.score for t in found]), atol=1e-4, rtol=0)


# ---- who chooses ---------------------------------------------------------------------------------


def test_reranking_at_the_ends_is_one_model_alone():
    own, other = torch.tensor([-1.0, -0.5, -2.0]), torch.tensor([-3.0, -4.0, -1.0])
    assert choosing.rerank(own, other, 0) == [1, 0, 2]
    assert choosing.rerank(own, other, 1) == [2, 0, 1]
    assert choosing.rerank(own, other, 0.5) == [2, 0, 1]  # -2, -2.25, -1.5
    assert choosing.rerank(own, torch.zeros(3), 0.7) == [1, 0, 2]  # nothing to say: own order
    assert choosing.rerank(torch.zeros(4), torch.zeros(4), 0.3) == [0, 1, 2, 3]


def test_a_constant_added_to_either_side_changes_no_order():
    own, other = torch.randn(2, 9, generator=torch.Generator().manual_seed(0))
    for weight in (0.0, 0.3, 1.0):
        before = choosing.rerank(own, other, weight)
        assert choosing.rerank(own + 5, other - 3, weight) == before
        assert sorted(before) == list(range(9))


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_agreement_is_the_mean_of_all_pairs(metric):
    drawn = [*TEXTS, TEXTS[1], TEXTS[1]]
    found = choosing.agreement(drawn, metric)
    for text, score in zip(drawn, found, strict=True):
        scores = sentence_scores([text] * len(drawn), drawn, metric)
        assert score == pytest.approx(sum(scores) / len(scores))


def test_the_same_text_every_time_is_chosen_and_so_is_a_majority():
    assert choosing.agreement(["a dog ."] * 4) == pytest.approx([100.0] * 4)
    drawn = ["a cat sleeps .", "a dog runs .", "a dog runs .", "two birds fly away ."]
    scores = choosing.agreement(drawn)
    assert scores[1] == scores[2] == max(scores)


def test_agreement_does_not_depend_on_the_order():
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    found = dict(zip(TEXTS, choosing.agreement(TEXTS), strict=True))
    assert dict(zip(shuffled, choosing.agreement(shuffled), strict=True)) == pytest.approx(found)


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_no_choice_is_nearer_to_the_reference_than_the_oracles(metric):
    for reference in (*TEXTS, "a dog sleeps .", "birds"):
        scores = sentence_scores(TEXTS, [reference] * len(TEXTS), metric)
        assert scores[choosing.nearest(TEXTS, reference, metric)] == max(scores)
    assert choosing.nearest(TEXTS, TEXTS[3], metric) == 3
    assert choosing.nearest(["b", "a .", "a ."], "a .", metric) == 1  # the first of equals


def test_one_candidate_is_chosen_by_everybody():
    assert choosing.rerank(torch.tensor([-1.0]), torch.tensor([-2.0]), 0.5) == [0]
    assert choosing.agreement(["a dog ."]) == pytest.approx([100.0])
    assert choosing.nearest(["a dog ."], "two cats") == 0


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: choosing.agreement([]), ValueError, "no candidates"),
        (lambda: choosing.nearest([], "a"), ValueError, "no candidates"),
        (lambda: choosing.agreement("a dog ."), TypeError, "one string"),
        (lambda: choosing.agreement(TEXTS, "ter"), ValueError, "metric is 'ter'"),
        (lambda: choosing.rerank(torch.zeros(2), torch.zeros(3), 0.5), ValueError, "other (3,)"),
        (lambda: choosing.rerank(torch.zeros(0), torch.zeros(0), 0.5), ValueError, "one number"),
        (lambda: choosing.rerank(torch.zeros(2), torch.zeros(2), 1.5), ValueError, "weight is 1.5"),
        (lambda: choosing.sampled(model(), sources(), 0, 1.0), ValueError, "n is 0"),
        (lambda: choosing.sampled(model(), sources(), 2, 0.0), ValueError, "temperature is 0"),
        (lambda: choosing.n_best(model(), torch.tensor([[BOS, EOS]]), 21), ValueError, "n is 21"),
        (lambda: choosing.n_best(model(), torch.ones(2, 3).long(), 2), ValueError, "has 2 rows"),
        (lambda: choosing.log_probability(model(), [[5]], []), ValueError, "1 sources and 0"),
    ],
)
def test_bad_input_gets_a_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
