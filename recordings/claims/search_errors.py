"""Record what the page on search errors concludes: `make record ONLY=search_errors`.

For both directions: what beams of several widths write for captions of the validation set, and
whether the model prefers the reference to it. The functions are the page's own, in its cells tagged
`recorded`. Resumable; about a minute on one core. Needs Multi30k.
"""

import functools
import time
from types import SimpleNamespace

import torch

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import decoding, fast, load_pretrained
from transformer_lib.data import load_parallel
from transformer_lib.evaluation import bleu, paired_bootstrap, score
from transformer_lib.tokenization import encode_source, encode_target

OUT = RESULTS / "search_errors.json"
PAGE = "search-errors"
page = SimpleNamespace(**page_code(PAGE))

DIRECTIONS = ("multi30k-de-en", "multi30k-en-de")
BEAMS = (5, 1, 20)  # the first is what the others are held to
SENTENCES = 200  # the first of the validation set
# The finding is one about German to English; the other direction and its model are recorded, too.
GATE = Gate(edge={"direction": {"multi30k-en-de"}}, measures=("beams",))


@functools.cache
def bench(name: str):
    """A translator, its model laid out for decoding, the captions as ids, and the pairs."""
    loaded = load_pretrained(name)
    source, target = name.split("-")[1:]
    pairs = load_parallel("multi30k", source, target)["validation"][:SENTENCES]
    sources = encode_source(loaded.tokenizer, [text for text, _ in pairs])
    return loaded, fast.for_decoding(loaded.model), sources, pairs


@functools.cache
def beam(name: str, width: int):
    """Ids and texts that a beam of this width writes, and its seconds of processor time."""
    loaded, model, sources, _ = bench(name)
    start = time.process_time()
    ids = page.in_order(sources, lambda src: decoding.beam_search(model, src, width)[0])
    return ids, loaded.tokenizer.decode_batch(ids), time.process_time() - start


def against_beam(name: str, texts: list[str]) -> dict:
    """Scores of these translations, and what they have more than a beam of 5 (95 % interval)."""
    references = [reference for _, reference in bench(name)[-1]]
    against = {
        metric: paired_bootstrap(texts, beam(name, BEAMS[0])[1], references, metric=metric)
        for metric in ("bleu", "chrf")
    }
    return {"bleu": bleu(texts, references, "13a"), "chrf": score(texts, references).chrf} | {
        f"less_beam_{metric}": [found.delta, found.low, found.high]
        for metric, found in against.items()
    }


@torch.no_grad()
def beams(direction: str) -> dict:
    """Beams of several widths, and whether the references are likelier than what they wrote."""
    loaded, _, sources, pairs = bench(direction)
    log_p = {width: page.log_probability(loaded.model, sources, beam(direction, width)[0])
             for width in BEAMS}
    wanted = [ids[1:] for ids in encode_target(loaded.tokenizer, [b for _, b in pairs])]
    reference = page.log_probability(loaded.model, sources, wanted)
    return {
        "widths": BEAMS,
        "seconds_of": [beam(direction, width)[2] for width in BEAMS],
        "results": [against_beam(direction, beam(direction, width)[1]) for width in BEAMS],
        "likelier": [(log_p[w] > log_p[BEAMS[0]] + 1e-3).float().mean().item() for w in BEAMS],
        "reference_likelier": [(reference > log_p[w]).float().mean().item() for w in BEAMS],
    }


def grid():
    """(settings, function) of every cell."""
    return [cell("beams", beams, direction=direction) for direction in DIRECTIONS]
