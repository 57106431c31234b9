"""Tokenizers: text to ids and back, fixed special ids, the unknown stays unknown."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.tokenization import (
    BOS,
    EOS,
    PAD,
    SPECIAL_TOKENS,
    UNK,
    encode_pairs,
    encode_source,
    encode_target,
    load_tokenizer,
    train_tokenizer,
)

TEXTS = [
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Two young, White males are outside near many bushes.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "A little girl climbing into a wooden playhouse (it's 3 p.m.!)",
]
ALPHABET = sorted(set("".join(TEXTS)) - {" "})
WORDS = sorted({word for text in TEXTS for word in text.split()})


@pytest.fixture(scope="module")
def bpe():
    return train_tokenizer(TEXTS, 150)


@pytest.fixture(scope="module")
def word():
    return train_tokenizer(TEXTS, 150, kind="word")


@given(st.lists(st.text(ALPHABET, min_size=1, max_size=6), max_size=6).map(" ".join))
def test_decode_undoes_encode_for_known_characters(bpe, text):
    encoding = bpe.encode(text)
    assert bpe.decode(encoding.ids) == unicodedata.normalize("NFC", text)
    assert UNK not in encoding.ids


@given(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
def test_decode_undoes_encode_for_known_words(word, text):
    assert word.decode(word.encode(text).ids) == text


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_special_tokens_have_fixed_ids(kind):
    tokenizer = train_tokenizer(TEXTS, 100, kind)
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == [0, 1, 2, 3]
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)


def test_the_unseen_is_unknown_and_not_an_error(bpe, word):
    assert UNK in bpe.encode("日本").ids
    assert word.encode("Raumschiff").ids == [UNK]


def test_composed_and_decomposed_letters_are_one(bpe):
    assert bpe.encode("Ma\u0308nner").ids == bpe.encode("M\u00e4nner").ids


def test_punctuation_is_a_token_of_its_own(word):
    assert word.encode("girl , girl, girl.").tokens[3:6] == ["▁girl", ",", "▁girl"]


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_texts_may_come_one_at_a_time(kind):
    expected = train_tokenizer(TEXTS, 150, kind=kind).to_str()
    assert train_tokenizer((text for text in TEXTS), 150, kind=kind).to_str() == expected


def test_same_texts_same_tokenizer():
    # The texts repeat so that merges tie, where a careless order would show.
    assert train_tokenizer(TEXTS * 2, 120).to_str() == train_tokenizer(TEXTS * 2, 120).to_str()


def test_frames_of_source_and_target(bpe):
    plain = [bpe.encode(text).ids for text in TEXTS]
    assert encode_source(bpe, TEXTS) == [ids + [EOS] for ids in plain]
    assert encode_target(bpe, TEXTS) == [[BOS] + ids + [EOS] for ids in plain]
    assert bpe.decode(encode_target(bpe, TEXTS)[0]) == TEXTS[0]  # special tokens are not text
    assert encode_source(bpe, [""]) == [[EOS]]


def test_pairs_are_their_sources_and_their_targets(bpe):
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    assert encode_pairs(bpe, pairs) == (encode_source(bpe, TEXTS), encode_target(bpe, TEXTS[::-1]))
    assert encode_pairs(bpe, (pair for pair in pairs)) == encode_pairs(bpe, pairs)
    assert encode_pairs(bpe, []) == ([], [])


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_large_enough_budget_is_kept(kind):
    assert train_tokenizer(TEXTS, 90, kind).get_vocab_size() <= 90


def test_the_largest_budget_is_taken():
    assert train_tokenizer(["a dog"], 10**6).get_vocab_size() < 20
    with pytest.raises(ValueError, match="it must be at most 1,000,000"):
        train_tokenizer(["a dog"], 10**6 + 1)


def test_a_small_budget_is_kept():
    assert train_tokenizer(TEXTS, 20).get_vocab_size() <= 20


def test_save_and_load(tmp_path, bpe):
    path = tmp_path / "tokenizer.json"
    bpe.save(str(path))
    assert load_tokenizer(path).to_str() == load_tokenizer(str(path)).to_str() == bpe.to_str()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXTS, 100, "char"), "kind is 'char'; it must be 'bpe' or 'word'"),
        ((TEXTS, 4), "vocab_size is 4, but the special tokens alone take 4; a few thousand"),
        (([], 100), "no text to learn a vocabulary from"),
        ((["", "  "], 100), "no text to learn a vocabulary from"),
    ],
)
def test_what_cannot_be_learned_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        train_tokenizer(*arguments)


def test_damaged_files_are_an_error(tmp_path, bpe):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(ValueError, match="no tokenizer at .*tokenizer.json: train one"):
        load_tokenizer(path)
    path.write_text(bpe.to_str()[:200])
    with pytest.raises(ValueError, match="tokenizer.json is not a readable tokenizer"):
        load_tokenizer(path)
    other = json.loads(bpe.to_str().replace("<bos>", "[CLS]"))
    path.write_text(json.dumps(other))
    with pytest.raises(ValueError, match=r"the ids \[0, None, 2, 3\]; expected \[0, 1, 2, 3\]"):
        load_tokenizer(path)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_special_token_in_a_text_is_text(tmp_path, kind):
    """Else "<eos>" would end the sentence, and "<pad>" be hidden from attention."""
    text = "a <unk> b <pad> c <eos> <bos>"
    tokenizer = train_tokenizer([text] * 3, 60, kind)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for same in (tokenizer, load_tokenizer(tmp_path / "tokenizer.json")):
        ids = same.encode(text).ids
        assert same.decode(ids) == text
        assert min(ids) > max(range(len(SPECIAL_TOKENS)))
