"""Further pairs from teachers: which side they write, what is left out, what is kept."""

import json
from types import SimpleNamespace

import pytest

from transformer_lib import diversification
from transformer_lib.data import Pairs
from transformer_lib.diversification import diversify

PAIRS = Pairs(
    {"train": [("a", "A"), ("b", "B"), ("c", "C")], "validation": [("v", "V")]}, "my_folder"
)


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    """teacher(src, tgt, words): a run folder whose model translates word by word with `words`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = {}

    def make(src, tgt, words, name="teacher"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(
            json.dumps({"model": {}, "data": {"src": src, "tgt": tgt}})
        )
        (folder / "model.safetensors").write_text(f"{src} {tgt} {words}")
        asked = []
        model = SimpleNamespace(config=SimpleNamespace(max_len=4))

        def translate(texts, attention):
            asked.append(list(texts))
            return [SimpleNamespace(text=words[text]) for text in texts]

        known[folder] = SimpleNamespace(
            length_penalty=1.0, translate=translate, model=model, tokenizer=None
        )
        return folder, asked, known[folder]

    monkeypatch.setattr(diversification, "load_pretrained", lambda run, device: known[run])
    encode = lambda tokenizer, texts: [text.split() for text in texts]  # noqa: E731
    monkeypatch.setattr(diversification, "encode_source", encode)
    return make


def test_a_teacher_of_the_same_direction_writes_targets_and_one_of_the_other_writes_sources(
    teacher, capsys
):
    forward, asked_forward, _ = teacher("en", "de", {"a": "X", "b": "Y", "c": "Z"}, "forward")
    backward, asked_backward, _ = teacher("de", "en", {"A": "x", "B": "y", "C": "z"}, "backward")
    found = diversify(PAIRS, [forward, backward], "en", "de")
    assert found["train"] == PAIRS["train"] + [
        ("a", "X"), ("b", "Y"), ("c", "Z"), ("x", "A"), ("y", "B"), ("z", "C"),
    ]  # fmt: skip
    assert asked_forward == [["a", "b", "c"]] and asked_backward == [["A", "B", "C"]]
    assert found["validation"] == PAIRS["validation"] and found.source == "my_folder"
    assert len(PAIRS["train"]) == 3, "the caller's pairs have changed"
    assert "6 new pairs for 3 real ones" in capsys.readouterr().out


def test_a_pair_that_is_known_or_empty_is_left_out(teacher):
    one, *_ = teacher("en", "de", {"a": "A", "b": "", "c": "Z"}, "one")
    two, *_ = teacher("en", "de", {"a": "A", "b": "Y", "c": "Z"}, "two")
    assert diversify(PAIRS, [one, two], "en", "de")["train"][3:] == [("c", "Z"), ("b", "Y")]


def test_a_teacher_translates_a_training_set_once(teacher):
    folder, asked, translator = teacher("en", "de", {"a": "X", "b": "Y", "c": "Z"})
    first = diversify(PAIRS, [folder], "en", "de")
    assert diversify(PAIRS, [folder], "en", "de") == first and len(asked) == 1
    # Other sentences, another penalty or other weights are another translation.
    fewer = Pairs({"train": PAIRS["train"][:2]}, "my_folder")
    assert diversify(fewer, [folder], "en", "de")["train"][2:] == [("a", "X"), ("b", "Y")]
    assert len(asked) == 2
    translator.length_penalty = 2.0
    diversify(PAIRS, [folder], "en", "de")
    assert len(asked) == 3
    (folder / "model.safetensors").write_text("trained longer")
    diversify(PAIRS, [folder], "en", "de")
    assert len(asked) == 4


@pytest.mark.parametrize("damage", ["", "[", '["X"]'])
def test_a_damaged_cache_is_written_anew(teacher, tmp_path, damage):
    folder, asked, _ = teacher("en", "de", {"a": "X", "b": "Y", "c": "Z"})
    first = diversify(PAIRS, [folder], "en", "de")
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_text(damage)
    assert diversify(PAIRS, [folder], "en", "de") == first and len(asked) == 2
    assert diversify(PAIRS, [folder], "en", "de") == first and len(asked) == 2


def test_an_interrupted_translation_goes_on(teacher, monkeypatch):
    monkeypatch.setattr(diversification, "PIECE", 2)
    words = {"a": "X", "b": "Y"}  # the third sentence is its end
    folder, asked, _ = teacher("en", "de", words)
    with pytest.raises(KeyError):
        diversify(PAIRS, [folder], "en", "de")
    words["c"] = "Z"
    found = diversify(PAIRS, [folder], "en", "de")["train"][3:]
    assert found == [("a", "X"), ("b", "Y"), ("c", "Z")]
    assert asked == [["a", "b"], ["c"], ["c"]]


def test_a_sentence_longer_than_the_teacher_reads_is_left_out(teacher):
    folder, asked, _ = teacher("en", "de", {"a": "X", "b b b b": "Y"})
    pairs = Pairs({"train": [("b b b b b", "B"), ("a", "A"), ("b b b b", "B")]}, "my_folder")
    assert diversify(pairs, [folder], "en", "de")["train"][3:] == [("a", "X"), ("b b b b", "Y")]
    assert asked == [["a", "b b b b"]]


def test_without_a_cache_the_teacher_translates_again(teacher, tmp_path, monkeypatch):
    folder, asked, _ = teacher("en", "de", {"a": "X", "b": "Y", "c": "Z"})
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for times in (1, 2):
        assert len(diversify(PAIRS, [folder], "en", "de")["train"]) == 6
        assert len(asked) == times


def test_a_teacher_of_other_languages_and_one_that_is_not_there_are_named(teacher, monkeypatch):
    folder, *_ = teacher("fr", "de", {})
    message = "translates fr -> de; it can write pairs for en -> de only if"
    with pytest.raises(ValueError, match=message):
        diversify(PAIRS, [folder], "en", "de")
    good, asked, _ = teacher("en", "de", {"a": "X", "b": "Y", "c": "Z"}, "good")
    with pytest.raises(ValueError, match="there is no trained run 'nobody'"):
        diversify(PAIRS, [good, "nobody"], "en", "de")
    assert not asked, "hours of work before the message"
