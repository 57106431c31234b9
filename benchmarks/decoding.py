"""Decoding the test set, greedily and with a beam of 5: our cache against the alternatives.

A decoder here is a function (sources, batch size) -> the written ids of each source, without
<eos>. Each is timed at its own best batch size, and their outputs are compared.
"""

import dataclasses
import tempfile
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.peers import Uncached, marian_pair
from benchmarks.timing import Row, alternate, compare, median, rates, rounds_for, seconds
from transformer_lib import Transformer, Translator, fast
from transformer_lib.batching import pad
from transformer_lib.decoding import beam_search, greedy_decode
from transformer_lib.fast.compiled import CompiledModel, refusal
from transformer_lib.runs.to_ctranslate2 import specification
from transformer_lib.tokenization import EOS, PAD

Ids = list[list[int]]
Decoder = Callable[[Ids, int], Ids]
MAX_LEN = 100  # tokens; captions end long before
FORCED_LEN = 15  # tokens of each output where random weights write: about the test set's mean


def in_batches(decode_batch, each: Callable, sources: Ids, batch_size: int) -> Ids:
    """Sentences of like length together, the longest first; the outputs come back in the given
    order. each: map, or what does several batches at a time.
    """
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    outputs = each(lambda rows: decode_batch(pad([sources[i] for i in rows])), batches)
    written: Ids = [[] for _ in sources]
    for rows, output in zip(batches, outputs, strict=True):
        for i, ids in zip(rows, output.tolist(), strict=True):
            written[i] = ids
    return written


def until_end(written: Ids) -> Ids:
    """Each output up to its <eos> or padding."""
    return [
        ids[: next((i for i, x in enumerate(ids) if x in (EOS, PAD)), len(ids))] for ids in written
    ]


def our_decoder(
    model: Transformer, beam: int, use_cache=True, max_len=MAX_LEN, eos=EOS, each=map
) -> Decoder:
    """greedy_decode for beam 1, else beam_search, as the chapters print them."""

    def decode_batch(src_ids):
        if beam == 1:
            return greedy_decode(model, src_ids, max_len, eos_id=eos, use_cache=use_cache)
        searched = model if use_cache else Uncached(model)
        return beam_search(searched, src_ids, beam, max_len, eos_id=eos)[0]

    return partial(in_batches, decode_batch, each)


def fast_decoder(model: Transformer, beam: int, **options) -> Decoder:
    """The same loops, on the model laid out for decoding, a batch on each thread."""
    return our_decoder(fast.DecodingModel(model), beam, each=fast.parallel_map, **options)


def compiled_decoder(model: Transformer, beam: int) -> Decoder:
    """The same loops, each step by the program in C, a batch on each thread."""
    return our_decoder(CompiledModel(model), beam, each=fast.parallel_map)


def ctranslate2_decoder(translator: Translator, beam: int, folder: str, workers: int) -> Decoder:
    """CTranslate2 in float32 with our weights. workers share out the threads, batch by batch."""
    import ctranslate2

    tokenizer = translator.tokenizer
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    specification(translator).save(folder)
    threads = torch.get_num_threads()
    theirs = ctranslate2.Translator(
        folder, device="cpu", compute_type="float32", inter_threads=workers,
        intra_threads=max(1, threads // workers),
    )
    torch.set_num_threads(threads)  # making it changes what torch shares: ours would crawl

    def decode(sources: Ids, batch_size: int) -> Ids:
        results = theirs.translate_batch(
            [[tokens[i] for i in ids[:-1]] for ids in sources], max_batch_size=batch_size,
            beam_size=beam, length_penalty=1.0, max_decoding_length=MAX_LEN,
        )
        return [[tokenizer.token_to_id(token) for token in r.hypotheses[0]] for r in results]

    return decode


def marian_decoder(marian, beam: int) -> Decoder:
    """`generate` of transformers, with its own cache."""

    @torch.inference_mode()
    def decode_batch(src_ids):
        return marian.generate(
            src_ids, attention_mask=(src_ids != PAD).long(), num_beams=beam, do_sample=False,
            max_new_tokens=FORCED_LEN,
        )[:, 1:]

    return partial(in_batches, decode_batch, map)


def best_batch_size(decode: Decoder, sources: Ids, sizes: list[int]) -> tuple[int, float]:
    """The batch size at which this decoder is fastest, of `sizes` and all at once; its seconds."""
    decode(sources[: sizes[0]], sizes[0])
    sizes = [size for size in sizes if size < len(sources)] + [len(sources)]
    times = {size: seconds(lambda size=size: decode(sources, size)) for size in sizes}
    best = min(times, key=times.get)
    return best, times[best]


def duel(
    what: str, against: str, ours: Decoder, peer: Decoder, sources: Ids, sizes, rounds,
    target="", until=until_end,
) -> Row:
    """Both at their best batch size, in turn; how many outputs are the same."""
    size, _ = best_batch_size(ours, sources, sizes)
    peer_size, _ = best_batch_size(peer, sources, sizes)
    written = until(ours(sources, size))
    same = sum(a == b for a, b in zip(written, until(peer(sources, peer_size)), strict=True))
    taken = alternate(
        {"ours": lambda: ours(sources, size), "peer": lambda: peer(sources, peer_size)}, rounds
    )
    ends = until is until_end  # where outputs are cut at <eos>, that was written too
    n_tokens = sum(len(ids) + ends for ids in written)
    note = f"{same} of {len(sources)} outputs the same; batches of {size} and {peer_size}"
    speed = {name: rates(n_tokens, t) for name, t in taken.items()}
    return compare(what, against, "tokens/s", speed["ours"], speed["peer"], target, note)


def decoding_rows(
    translator: Translator, sources: Ids, few: int, sizes: dict[int, list[int]], rounds: int
):
    """Greedy and beam 5 against each peer. few: sentences for what is slow without a cache.

    sizes: the batch sizes to try, by beam size. Yields rows as they are measured.
    """
    model = translator.model
    sample = sources[:: max(1, len(sources) // few)]
    marian, twin = marian_pair(model.config)
    for beam in (1, 5):
        name = "greedy decoding" if beam == 1 else f"beam {beam} decoding"
        ours = our_decoder(model, beam)
        uncached = our_decoder(model, beam, use_cache=False)
        what = f"{name}, {len(sample)} sentences"
        yield duel(what, "ours, no cache", ours, uncached, sample, sizes[beam], rounds, "10")

        what, quick = f"{name}, {len(sources)} sentences", fast_decoder(model, beam)
        yield duel(what, "ours, as printed", quick, ours, sources, sizes[beam], rounds)
        in_c, best = f"{name} in C, {len(sources)} sentences", quick
        if reason := refusal(model):
            yield Row(in_c, "ours, as printed", note=reason)
        else:
            best = compiled_decoder(model, beam)
            yield duel(in_c, "ours, as printed", best, ours, sources, sizes[beam], rounds)
        with tempfile.TemporaryDirectory() as folder:
            against = "CTranslate2 float32, same weights"
            try:
                # One batch on all threads, or a batch on each thread: whichever is faster for it.
                choices = [
                    ctranslate2_decoder(translator, beam, folder, workers)
                    for workers in sorted({1, torch.get_num_threads()})
                ]
            except ImportError:
                yield Row(in_c, against, target="1", note="not installed: pip install -r "
                          "benchmarks/requirements.txt")
            else:
                peer = min(choices, key=lambda d: best_batch_size(d, sources, sizes[beam])[1])
                yield duel(what, against, quick, peer, sources, sizes[beam], rounds)
                if best is not quick:
                    yield duel(in_c, against, best, peer, sources, sizes[beam], rounds, "1")

        forced = fast_decoder(twin, beam, max_len=FORCED_LEN, eos=-1)  # no token has id -1
        yield duel(
            f"{what}, {FORCED_LEN} tokens each", "Marian (transformers), same random weights",
            forced, marian_decoder(marian, beam), sources, sizes[beam], rounds,
            until=lambda written: written,
        )


def with_max_len(model: Transformer, max_len: int) -> Transformer:
    """The same model for longer texts; its positions are computed and not learned."""
    longer = Transformer(dataclasses.replace(model.config, max_len=max_len))
    longer.load_state_dict(model.state_dict())
    return longer.eval()


def cost_curves(model: Transformer, lengths, batch_sizes, rounds: int) -> list[dict]:
    """Milliseconds of greedy decoding against output length and batch size, random sources."""
    model = with_max_len(model, max(model.config.max_len, max(lengths) + 1))
    points = [("length", 32, n) for n in lengths] + [("batch size", b, 16) for b in batch_sizes]
    curves = []
    for varied, batch, length in points:
        src_ids = torch.randint(4, model.config.vocab_size, (batch, length))
        decode = partial(greedy_decode, model, src_ids, length, eos_id=-1)
        runs = {"ours": decode, "ours, no cache": partial(decode, use_cache=False)}
        for name, taken in alternate(runs, rounds_for(rounds, length)).items():
            curves.append({"what": "greedy decoding", "varied": varied, "batch_size": batch,
                           "length": length, "who": name, "ms": 1000 * median(taken)})
    return curves
