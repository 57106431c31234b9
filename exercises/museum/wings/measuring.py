"""The healthy program of the measuring wing: from outputs to the numbers of a table."""

import math

import sacrebleu


def bleu(hypotheses, references):
    """BLEU of a list of sentences, each with one reference: from 0 to 100."""
    return sacrebleu.corpus_bleu(hypotheses, [references]).score


def pieces(sentence, size=3):
    """A sentence as a tokenizer might cut it: words in pieces of three letters."""
    words = sentence.split()
    return [word[i : i + size] for word in words for i in range(0, len(word), size)]


def perplexity(log_probabilities, text):
    """How many words a model wavers between: exp of the mean loss per word of the text.

    log_probabilities: of the text's tokens, in nats. Tokens differ between models, words do not.
    """
    return math.exp(-sum(log_probabilities) / len(text.split()))


def of_seeds(scores):
    """The number for the table, from several runs that differ only in their seed."""
    return sum(scores) / len(scores)


def of_settings(validation, test):
    """The test score of the setting that is best on the validation set."""
    best = max(range(len(validation)), key=validation.__getitem__)
    return test[best]
