"""Hypotheses and references: do they fit together, and how does a sentence split into tokens?"""

import re


def check_texts(hypotheses: object, references: object, also: type = str) -> None:
    """Raise TypeError or ValueError, naming the trouble, unless each hypothesis has a reference.

    also: another type that a sentence may have, such as list for tokens.
    """
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} is one string; pass a list of strings, one per sentence.")
        for index, text in enumerate(texts):
            if not isinstance(text, (str, also)):
                raise TypeError(
                    f"{name}[{index}] is of type {type(text).__name__}; expected a string."
                )
            tokens = text if isinstance(text, list) else []
            if wrong := [it for it in tokens if isinstance(it, list) or " " in str(it)]:
                raise TypeError(
                    f"{name}[{index}] holds {wrong[0]!r:.60}, which is not a token; expected "
                    "one sentence each: a string, or a list of its tokens."
                )
            if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
                raise ValueError(
                    f"{name}[{index}] holds half of a surrogate pair, which is not a "
                    "character: read the text as UTF-8."
                )
    if len(hypotheses) != len(references):
        raise ValueError(
            f"got {len(hypotheses)} hypotheses and {len(references)} references: every sentence "
            "needs one of each, in the same order."
        )
    if len(references) == 0:
        raise ValueError("there is nothing to score: both lists are empty.")


def tokens_of(text: str | list, tokenize: str) -> list:
    """The tokens of a sentence, as BLEU counts them: "none" splits at spaces, "13a" as sacrebleu.

    A list of tokens stays as it is.
    """
    if tokenize not in ("none", "13a"):
        raise ValueError(f'tokenize must be "none" or "13a", got {tokenize!r}.')
    if isinstance(text, list):
        return text
    if tokenize == "13a":
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

        text = Tokenizer13a()(text.rstrip())
    return text.split()
