"""Record what the chapter on decoding claims of beam search: `python tools/claims/beams.py`.

The recorded model German to English translates the whole validation set with beams of several
widths and length penalties of several exponents. Resumable; a few minutes on one core. Needs
Multi30k. `make claims` runs it.
"""

import functools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from _record import RESULTS, page_code, record  # noqa: E402

from transformer_lib import decoding, evaluation, fast, load_pretrained  # noqa: E402
from transformer_lib.data import load_parallel  # noqa: E402
from transformer_lib.tokenization import encode_source  # noqa: E402

OUT = RESULTS / "beams.json"
PAGE = "15_decoding"
page = SimpleNamespace(**page_code(PAGE))
torch.set_grad_enabled(True)  # the page switches it off for good

WIDTHS = (1, 2, 5, 10, 20)
ALL_WIDTHS = (1.0, 0.0)  # exponents of the length penalty for which all widths are tried
OTHERS = (0.5, 1.5, 2.0, 3.0)  # and with the chapter's width
OWN = (5, 1.0)  # the chapter's setting
DRAWS = 1000


@functools.cache
def task():
    """The model for many sentences, the model, the tokenizer, and the validation set."""
    translator = load_pretrained("multi30k-de-en")
    german, english = map(list, zip(*load_parallel("multi30k")["validation"], strict=True))
    sources = encode_source(translator.tokenizer, german)
    swift = fast.for_decoding(translator.model)
    return swift, translator.model, translator.tokenizer, sources, english


@functools.cache
@torch.no_grad()
def searched(width: int, penalty: float) -> tuple:
    """(ids, texts) of the validation set."""
    swift, _, tokenizer, sources, _ = task()

    def decode(src):
        return decoding.beam_search(swift, src, width, length_penalty=penalty)[0]

    written = page.in_order(sources, decode, size=64)
    return written, tokenizer.decode_batch(written)


@functools.cache
def counts(width: int, penalty: float) -> np.ndarray:
    """(sentences, 10): what each sentence adds to BLEU."""
    return evaluation._statistics("bleu", searched(width, penalty)[1], task()[-1])[0]


@functools.cache
def draws() -> np.ndarray:
    n = len(task()[-1])
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)


def less(one: tuple, other: tuple) -> list[float]:
    """Difference in BLEU of two settings, with the ends of its 95 % interval, on equal draws."""
    score = evaluation.bleu_from_counts
    drawn = score(draws() @ counts(*one)) - score(draws() @ counts(*other))
    delta = score(counts(*one).sum(0)) - score(counts(*other).sum(0))
    return [float(delta), *map(float, np.percentile(drawn, (2.5, 97.5)))]


@torch.no_grad()
def beam(width: int, penalty: float) -> dict:
    """Scores of one setting, and its BLEU less that of three others."""
    _, model, _, sources, references = task()
    written, texts = searched(width, penalty)
    words = [sum(len(text.split()) for text in side) for side in (texts, references)]
    own = (width, penalty)
    return {
        "BLEU": evaluation.bleu(texts, references, "13a"),
        "mean log p": page.log_probabilities(model, sources, written).mean().item(),
        "tokens": sum(map(len, written)) / len(written),
        "words per 100": 100 * words[0] / words[1],
        "sentences": len(written),
        "against": {
            "chapter": less(own, OWN),
            "greedy": less(own, (1, penalty)),
            "five": less(own, (5, penalty)),
        },
    }


def grid():
    """(settings, function) of every cell."""
    every = [(width, penalty) for penalty in ALL_WIDTHS for width in WIDTHS]
    for width, penalty in every + [(OWN[0], penalty) for penalty in OTHERS]:
        settings = {"width": width, "penalty": penalty}
        yield {"part": "beam"} | settings, lambda s=settings: beam(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
