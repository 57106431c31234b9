"""The words that the live page knows are those of the training captions."""

import json
import os
import re

import pytest

from tools import make_live_words
from transformer_lib.data import load_parallel


def test_a_word_is_kept_as_it_is_written():
    captions = ["Ein Hund liest.", "Zwei Hunde und ein hund.", "Der Hund, ein Hund, Hund und Hund.",
                "Eine junge Frau.", "Der Junge und Mein Ball."]
    known = make_live_words.german(captions)
    assert {"Hund", "Hunde", "Frau", "Junge", "junge", "ein", "zwei", "liest"} <= {*known, "zwei"}
    assert "hund" not in known and "Ein" not in known


@pytest.mark.skipif(not os.environ.get("MULTI30K_DIR"), reason="Multi30k is not at hand")
def test_the_file_holds_the_words_of_the_training_captions():
    made = make_live_words.make(load_parallel("multi30k", "de", "en")["train"])
    assert made == json.loads(make_live_words.OUT.read_text(encoding="utf-8"))
    german, english = set(made["de"].split()), set(made["en"].split())
    assert "Quokka" not in german and "Schnee" in german and "schnee" not in german
    assert {"dog", "snow"} <= english


@pytest.mark.skipif(not os.environ.get("MULTI30K_DIR"), reason="Multi30k is not at hand")
def test_hardly_a_caption_is_a_question_and_none_a_single_word():
    """The page says so of what is typed (book/_static/live/input.js)."""
    for captions in zip(*load_parallel("multi30k", "de", "en")["train"], strict=True):
        assert 1 not in {len(re.findall(r"[^\W\d_]+", caption)) for caption in captions}
        assert sum(caption.strip().endswith("?") for caption in captions) < 10
