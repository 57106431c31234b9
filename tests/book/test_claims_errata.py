"""Numbers that the list of errors gives and no page computes: other captions, other translators."""

import json
import os

import pytest
import torch

from transformer_lib import evaluation, load_pretrained
from transformer_lib.attention import record_attention
from transformer_lib.data import load_parallel
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.scoring.texts import tokens_of
from transformer_lib.tokenization import encode_source

pytestmark = pytest.mark.skipif(
    not os.environ.get("MULTI30K_DIR"), reason="needs Multi30k: set MULTI30K_DIR"
)
INTO_GERMAN = "multi30k-en-de"
NAMES = ["multi30k-de-en", "multi30k-de-en-short", INTO_GERMAN]


@pytest.fixture(scope="module")
def pairs():
    return load_parallel("multi30k")


@pytest.fixture(scope="module")
def rare(pairs):
    """For either side of a pair: the number of rare words in each test sentence."""
    found = []
    for side in (0, 1):
        cut = {
            part: [" ".join(tokens_of(pair[side], "13a")) for pair in pairs[part]]
            for part in ("train", "test")
        }
        found.append(evaluation.rare_word_counts(cut["test"], cut["train"]))
    return found


@torch.no_grad()
def test_the_scores_of_three_encoders_on_sixty_captions(pairs):
    """Chapter 2: the variance of a query's scores, the median over an encoder's heads."""
    medians = []
    for name in NAMES:
        translator, found = load_pretrained(name), []
        for pair in pairs["test"][:60]:
            caption = pair[name == INTO_GERMAN]
            with record_attention(translator.model) as recorded:
                translator.model.encode(
                    torch.tensor(encode_source(translator.tokenizer, [caption]))
                )
            found.append(torch.stack([w[0].log().var(-1).mean(-1) for w in recorded.values()]))
        medians.append(torch.stack(found).mean(0).median().item())
    assert [f"{x:.1f}" for x in medians] == ["1.4", "3.4", "2.8"]


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
@pytest.mark.parametrize("name", NAMES)
def test_exactly_one_rare_word_costs_less_in_a_long_sentence(pairs, rare, name, metric):
    """Chapter 17: the same order for every translator and either score."""
    side = int(name == INTO_GERMAN)
    lines = (results_dir() / name / "translations.jsonl").read_text(encoding="utf8").splitlines()
    said = [json.loads(line)["translation"] for line in lines]
    keys = [
        (len(pair[side].split()) > 11, count)
        for pair, count in zip(pairs["test"], rare[side], strict=True)
    ]
    group = evaluation.breakdown(said, [pair[1 - side] for pair in pairs["test"]], keys, metric)
    short, long = (group[key, 0].score - group[key, 1].score for key in (False, True))
    assert short > long > 4
