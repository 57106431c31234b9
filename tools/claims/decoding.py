"""Record what the chapter on decoding claims: `python tools/claims/decoding.py [part]`.

Parts, both by default: beam (its width and the exponent of the length penalty), sampling
(temperature, and what is cut off). The recorded model German to English translates the whole
validation set in each setting. Resumable; under ten minutes on one core. Needs Multi30k.
`make claims` runs it.
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

OUT = RESULTS / "decoding.json"
PAGE = "15_decoding"
page = SimpleNamespace(**page_code(PAGE))

WIDTHS = (1, 2, 5, 10, 20)
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0)
WIDEST = 50  # for two penalties only
OWN = (5, 1.0)  # the chapter's setting
TEMPERATURES = (0.3, 0.7, 1.0, 1.3)
CUTS = {"nothing": {}, "top-k 5": {"top_k": 5}, "top-p 0.9": {"top_p": 0.9}}
SEEDS = (0, 1, 2)
DRAWS = 1000


@functools.cache
def task():
    """The model for many sentences, the model, the tokenizer, and the validation set."""
    translator = load_pretrained("multi30k-de-en")
    german, english = map(list, zip(*load_parallel("multi30k")["validation"], strict=True))
    sources = encode_source(translator.tokenizer, german)
    swift = fast.for_decoding(translator.model)
    return swift, translator.model, translator.tokenizer, sources, english


def translate(decode) -> tuple:
    """(ids, texts) of the validation set; `decode` maps a padded batch to ids."""
    _, _, tokenizer, sources, _ = task()
    written = page.in_order(sources, decode, size=64)
    return written, tokenizer.decode_batch(written)


@functools.cache
def searched(width: int, penalty: float) -> tuple:
    swift = task()[0]
    return translate(
        lambda src: decoding.beam_search(swift, src, width, length_penalty=penalty)[0]
    )


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


def beam(width: int, penalty: float) -> dict:
    _, model, _, sources, references = task()
    written, texts = searched(width, penalty)
    words = [sum(len(text.split()) for text in side) for side in (texts, references)]
    own = (width, penalty)
    return {
        "BLEU": evaluation.bleu(texts, references, "13a"),
        "mean log p": page.log_probabilities(model, sources, written).mean().item(),
        "tokens": sum(map(len, written)) / len(written),
        "words per 100": 100 * words[0] / words[1],
        "against": {
            "chapter": less(own, OWN),
            "greedy": less(own, (1, penalty)),
            "five": less(own, (5, penalty)),
        },
    }


def sampling(temperature: float, cut: str) -> dict:
    """BLEU of draws with several seeds, and how alike they are."""
    swift, *_, references = task()

    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        return translate(
            lambda src: decoding.sample(
                swift, src, temperature, **CUTS[cut], generator=generator
            )
        )[1]

    texts = [drawn(seed) for seed in SEEDS]
    return {
        "BLEU": [evaluation.bleu(one, references, "13a") for one in texts],
        "alike": [evaluation.bleu(one, texts[i - 1], "13a") for i, one in enumerate(texts)],
    }


def grid():
    """(settings, function) of every cell."""

    def cell(part, function, **settings):
        return {"part": part, **settings}, lambda: function(**settings)

    cells = [
        cell("beam", beam, width=width, penalty=penalty)
        for penalty in sorted(PENALTIES, key=lambda p: p not in (1.0, 0.0)) for width in WIDTHS
    ]  # fmt: skip
    cells += [cell("beam", beam, width=WIDEST, penalty=p) for p in (0.0, 1.0)]
    cells += [cell("sampling", sampling, temperature=t, cut=c) for t in TEMPERATURES for c in CUTS]
    return cells


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
