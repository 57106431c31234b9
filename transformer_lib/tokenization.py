"""Turn text into ids and back, with the `tokenizers` library.

Special tokens have fixed ids: <pad> 0, <bos> 1, <eos> 2, <unk> 3. A tokenizer is trained on the
training split only; words that only the validation or test split contains must stay unknown.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from transformer_lib.config import BOS, EOS, PAD, UNK

SPECIAL_TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>"]  # in the order of their ids


def train_tokenizer(texts: Iterable[str], vocab_size: int, kind: str = "bpe") -> Tokenizer:
    """Learn a vocabulary of at most `vocab_size` tokens, special tokens included.

    kind: "bpe" for subwords by byte-pair encoding (Sennrich et al. 2016), "word" for the most
    frequent words. Spaces become part of the following token, as "▁", so that
    `tokenizer.decode(tokenizer.encode(text).ids) == text` if the text has no outer or unusual
    spaces and training has seen its characters (or words). A special token that occurs in a text,
    such as "<eos>", is text like any other.
    Raises ValueError for an unknown kind, a vocabulary that is too small, or no text.
    """
    if kind not in ("bpe", "word"):
        raise ValueError(f"kind is {kind!r}; it must be 'bpe' or 'word'.")
    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size is {vocab_size}, but the special tokens alone take {len(SPECIAL_TOKENS)}; "
            "a few thousand will do for sentence pairs."
        )
    if vocab_size > 10**6:  # the trainer reserves memory for all of them at once
        raise ValueError(
            f"vocab_size is {vocab_size:,}; it must be at most 1,000,000. A few thousand will do "
            "for sentence pairs."
        )
    texts = list(texts)
    if not any(text.strip() for text in texts):
        raise ValueError("no text to learn a vocabulary from: give one that isn't empty.")
    options = {"vocab_size": vocab_size, "special_tokens": SPECIAL_TOKENS, "show_progress": False}
    if kind == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        # Every character of the text, unless the budget is too small even for those.
        options["limit_alphabet"] = vocab_size - len(SPECIAL_TOKENS)
        trainer = trainers.BpeTrainer(**options)
    else:
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        trainer = trainers.WordLevelTrainer(**options)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(),  # "a dog." -> "▁a", "▁dog."
            pre_tokenizers.Split(Regex(r"[^\w▁]"), "isolated"),  # "▁dog." -> "▁dog", "."
        ]
    )
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.encode_special_tokens = True
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Read a tokenizer.json. Raises ValueError if it is missing, damaged or not one of ours."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no tokenizer at {path}: train one, or name a run folder that has one.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # the library raises bare Exception
        raise ValueError(
            f"{path} is not a readable tokenizer: it is cut short, or `tokenizers` "
            "did not write it; copy it again."
        ) from None
    ids = [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS]
    if ids != [PAD, BOS, EOS, UNK]:
        raise ValueError(f"{path} gives {SPECIAL_TOKENS} the ids {ids}; expected [0, 1, 2, 3].")
    tokenizer.encode_special_tokens = True  # the file does not store this setting
    return tokenizer


def require_fit(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Raise ValueError unless the tokenizer has as many tokens as the model's vocabulary."""
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the model {vocab_size}: "
            "they do not belong together; build the model with "
            "vocab_size=tokenizer.get_vocab_size()."
        )


def encode_source(tokenizer: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """Ids of each text with <eos> at the end."""
    return [encoding.ids + [EOS] for encoding in tokenizer.encode_batch(list(texts))]


def encode_target(tokenizer: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """Ids of each text, with <bos> in front and <eos> at the end: the decoder reads all but the
    last of them and predicts all but the first."""
    return [[BOS, *ids] for ids in encode_source(tokenizer, texts)]


def encode_pairs(
    tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]
) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of the sources and of the targets of sentence pairs, as training reads them."""
    pairs = list(pairs)
    sources = encode_source(tokenizer, (source for source, _ in pairs))
    return sources, encode_target(tokenizer, (target for _, target in pairs))
