"""The decoder in C writes what the printed one writes."""

import ctypes
import inspect
import math
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_model
from test_fast_decoding import eager_model, sources

from transformer_lib import data, fast, load_pretrained
from transformer_lib.config import PAD
from transformer_lib.decoding import _top, beam_search, greedy_decode, in_batches, sample
from transformer_lib.fast import compiled
from transformer_lib.fast.compiled import CompiledModel
from transformer_lib.tokenization import encode_source

KINDS = [
    {},
    dict(positional="learned", bias=False),
    dict(positional="none", n_heads=2, n_decoder_layers=3),
    dict(scale_embeddings=False, d_model=24, n_heads=3, d_ff=50, max_len=200),
]


@pytest.fixture(autouse=True, scope="module")
def program_in_c():
    """Compiled here, and not where this file is imported: a second."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or platform.system() == "Windows":
        pytest.skip("no program in C: there is no compiler")
    assert isinstance(compiled.library(), ctypes.CDLL), compiled.library()


def eager(seed, **changes):
    return eager_model(seed, **changes).float()


@pytest.mark.parametrize("changes", KINDS)
def test_greedy_beam_and_samples_are_those_of_the_printed_model(changes):
    for seed in range(4):
        model, src = eager(seed, **changes), sources(seed)
        quick = CompiledModel(model)
        assert torch.equal(greedy_decode(quick, src, 25), greedy_decode(model, src, 25))
        for size, penalty in ((1, 1.0), (2, 0.0), (5, 1.5), (6, 1.0)):  # 6: all of the vocabulary
            found, expected = (beam_search(m, src, size, 25, penalty) for m in (quick, model))
            assert torch.equal(found[0], expected[0])
            assert_equal(found[1], expected[1], 1e-5)
        draws = [
            sample(m, src, 2.0, generator=torch.Generator().manual_seed(seed), max_len=20)
            for m in (quick, model)
        ]
        assert torch.equal(*draws)


@pytest.mark.parametrize("changes", KINDS)
def test_each_step_gives_the_logits_and_the_best_of_the_printed_model(changes):
    """80 steps: the cache has to grow. 105 rows: more than the program computes at a time."""
    model, src = tiny_model(**{"max_len": 120} | changes).float(), random_ids(35, 6)
    src[1, 4:] = 0
    quick = CompiledModel(model)
    states = [m.start(src, bos_id=1)[1] for m in (quick, model)]
    prefix = torch.cat([torch.ones(105, 1, dtype=torch.long), random_ids(105, 80)], 1)
    with torch.inference_mode():
        for t in range(80):
            assert states[0].length == states[1].length == t
            if t:
                assert states[0].own.size(2) == (64 if t <= 64 else 128), "it doubles when full"
            newest = prefix[:, t : t + 1]
            given, expected = (
                m.step(newest, state) for m, state in zip((quick, model), states, strict=True)
            )
            assert_equal(given, expected, 1e-5)
            if t not in (5, 10, 70):
                continue
            picks = torch.Generator().manual_seed(t)
            kept = torch.arange(len(prefix) // 3)
            if t == 10:  # sentences end
                kept = kept[kept % 3 != 1]
            # Of each sentence three hypotheses: some twice, some not at all.
            rows = 3 * kept[:, None] + torch.randint(3, (len(kept), 3), generator=picks)
            rows, prefix = rows.flatten(), prefix[rows.flatten()]
            for state in states:
                state.select(rows, kept if t == 10 else None)


@pytest.mark.parametrize("k", [1, 2, 7, 150])
def test_the_best_tokens_are_those_of_all_logits(k):
    """75 rows and 150 tokens: neither fills the blocks in which they are computed."""
    model = tiny_model(vocab_size=150, tie_embeddings=False).float()
    with torch.no_grad():
        model.output.weight[0] *= 50  # padding would be the best of half of the rows
        model.output.weight[7:9] = model.output.weight[5]  # as likely as another
    src = random_ids(75, 6)
    quick = CompiledModel(model)
    with torch.inference_mode():
        logits = model.step(*model.start(src, bos_id=1))
        padded = logits.index_fill(1, torch.tensor(PAD), -math.inf)
        plain = quick.top_tokens(*quick.start(src, bos_id=1), k, log_p=False)
        pairs = [(plain, padded.topk(k))]
        pairs.append([_top(m, *m.start(src, bos_id=1), k) for m in (quick, model)])
        for found, expected in pairs:
            assert_equal(found[0], expected[0], 1e-5)
            assert_equal(logits.gather(1, found[1]), logits.gather(1, expected[1]), 1e-5)
            assert all(len(set(row)) == k and 0 not in row[:149] for row in found[1].tolist())
    assert bool((logits.argmax(-1) == 0).any())


def test_without_padding():
    model, src = eager(0), random_ids(3, 5, vocab_size=12)
    quick = CompiledModel(model)
    assert torch.equal(greedy_decode(quick, src, 6), greedy_decode(model, src, 6))
    assert_equal(beam_search(quick, src, 2, 6)[1], beam_search(model, src, 2, 6)[1], 1e-5)


def test_its_weights_are_those_of_the_moment():
    model, src = eager(2), sources(2)
    quick, before = CompiledModel(model), greedy_decode(model, src, 9)
    with torch.no_grad():
        model.output.weight.mul_(-1)
    assert torch.equal(greedy_decode(quick, src, 9), before)
    assert not torch.equal(greedy_decode(CompiledModel(model), src, 9), before)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (dict(norm_first=False), "only knows pre-norm, LayerNorm and ReLU"),
        (dict(norm="rms"), "only knows pre-norm, LayerNorm and ReLU"),
        (dict(activation="gelu"), "only knows pre-norm, LayerNorm and ReLU"),
        (dict(positional="rotary"), "rotary positions"),
    ],
)
def test_what_it_would_not_do_right_is_refused(changes, reason):
    model = tiny_model(**changes).float()
    assert reason in compiled.refusal(model)
    with pytest.raises(ValueError, match=reason):
        CompiledModel(model)
    with pytest.raises(ValueError, match="not float32"):
        CompiledModel(tiny_model())
    with pytest.raises(ValueError, match="has a cache"):
        greedy_decode(CompiledModel(tiny_model().float()), sources(0), use_cache=False)


def test_what_would_be_read_from_elsewhere_is_refused():
    """In C, nothing checks a size: k = 0 ended the process."""
    quick, src = CompiledModel(eager(0)), sources(0)
    other = CompiledModel(eager(0, d_model=24, n_heads=3))
    for k in (0, -1, quick.config.vocab_size + 1):
        with pytest.raises(ValueError, match=f"k is {k}; it must be from 1 to"):
            quick.top_tokens(*quick.start(src, 1), k, log_p=True)
    with pytest.raises(ValueError, match="belongs to a model of another size"):
        quick.step(*other.start(src, 1))
    ids, state = quick.start(src, 1)
    with pytest.raises(ValueError, match=f"{len(src) + 1} rows of ids don't fit"):
        quick.step(torch.cat([ids, ids[:1]]), state)
    quick.step(ids, state)
    with pytest.raises(ValueError, match=f"{2 * len(src)} rows of ids don't fit"):
        quick.step(torch.cat([ids, ids]), state)
    for model in (quick, fast.DecodingModel(eager(0))):
        with pytest.raises(ValueError, match="src_ids"):
            model.start(src[:, :0], 1)


@pytest.mark.parametrize("bias", [True, False])
def test_a_maps_bias_is_padded_to_whole_blocks_as_its_weights_are(bias):
    """The program reads both block by block: a shorter bias would be read past its end."""
    kept = CompiledModel(eager(0, bias=bias, d_ff=51))._kept
    maps = [(w, b) for w, b in zip(kept, kept[1:], strict=False) if w.dim() == 3]
    assert any(w.size(0) * w.size(2) > 51 for w, _ in maps)  # the one to d_ff, filled up
    assert all(b.numel() == w.size(0) * w.size(2) for w, b in maps)


def test_a_limit_of_one_token():
    model, src = eager(3), sources(3)
    quick = CompiledModel(model)
    assert torch.equal(greedy_decode(quick, src, 1), greedy_decode(model, src, 1))
    assert torch.equal(beam_search(quick, src, 3, 1)[0], beam_search(model, src, 3, 1)[0])


def test_sentences_that_end_at_the_first_step():
    model, src = eager(3), sources(3)
    with torch.no_grad():
        model.decoder.norm.bias.fill_(1.0)  # what the output reads adds up to d_model
        model.output.weight.zero_()
        model.output.weight[2] = 1.0  # so <eos> is sure, whatever was read
    quick = CompiledModel(model)
    assert greedy_decode(quick, src, 9).tolist() == [[2]] * len(src)
    assert beam_search(quick, src, 3, 9)[0].tolist() == [[2]] * len(src)


def test_what_cannot_be_decoded_is_said_as_by_the_printed_model():
    model = eager(0)
    quick = CompiledModel(model)
    for src, max_len in ((torch.zeros(0, 4, dtype=torch.long), 5), (sources(0), 10_000)):
        said = []
        for each in (model, quick):
            with pytest.raises(ValueError) as caught:
                greedy_decode(each, src, max_len)
            said.append(str(caught.value))
        assert said[0] == said[1]


# ---------------------------------------------------------------------------------- the compiler


@pytest.fixture
def anew():
    """Nothing is compiled yet, nor after the test."""
    compiled.library.cache_clear()
    yield
    compiled.library.cache_clear()


def test_it_is_compiled_once_and_leaves_nothing(anew, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended, run = [], subprocess.run

    def counted(*command, **options):
        ended.append(run(*command, **options))
        return ended[-1]

    monkeypatch.setattr(subprocess, "run", counted)
    program = compiled.library()
    assert isinstance(program, ctypes.CDLL) and program is compiled.library()
    assert len(ended) == (2 if ended[0].returncode else 1)  # twice where "native" is unknown
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_hangs_is_given_up(anew, monkeypatch):
    def hangs(command, *, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hangs)
    assert "timed out after 60 seconds" in compiled.library()


def test_two_that_compile_at_once_do_not_meet():
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: compiled.library.__wrapped__(), range(2)))
    assert all(isinstance(one, ctypes.CDLL) for one in found) and found[0] is not found[1]


def test_a_compiler_that_does_not_know_the_processor_is_asked_again(
    anew, tmp_path, monkeypatch, capfd
):
    """As Apple's has been with -march=native. CC may hold options, too. Nobody sees its words."""
    script, real = tmp_path / "plain cc", shutil.which("cc") or shutil.which("gcc")
    complains = 'case "$*" in *-march=native*) echo no >&2; exit 1;; esac'
    script.write_text(f'#!/bin/sh\n{complains}\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", f"'{script}' -DOTHER")
    assert isinstance(compiled.library(), ctypes.CDLL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("false", "could not be compiled by false"),
        ("/no/cc", "No such file"),
        ("true", "cannot open shared object"),  # it says nothing, and makes nothing
        ("sh -c 'echo sorry, $((20 + 3)) times >&2; exit 1'", ": sorry, 23 times"),
    ],
)
def test_a_compiler_that_fails_is_named(anew, monkeypatch, compiler, said):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(ValueError, match=said):
        CompiledModel(tiny_model().float())


def test_where_there_is_no_compiler_the_reason_is_said(anew, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    assert compiled.refusal(tiny_model().float()) == "there is no C compiler (cc) here"


# ------------------------------------------------------------------------- the shipped translator


def test_the_shipped_translator_on_several_threads():
    translator = load_pretrained("multi30k-de-en")
    texts = [german for german, _ in data.load_parallel("mini")["validation"][:12]]
    ids, threads = encode_source(translator.tokenizer, texts), torch.get_num_threads()
    outputs = []
    torch.set_num_threads(2)
    try:
        quick = CompiledModel(translator.model)
        for model, each in ((translator.model, map), (quick, fast.parallel_map)):
            found = in_batches(
                lambda src, model=model: beam_search(model, src, 5)[0].tolist(), ids, 60, each=each
            )
            outputs.append([[i for i in row if i] for row in found])
    finally:
        torch.set_num_threads(threads)
    assert outputs[0] == outputs[1]


def test_translate_takes_it_for_many_sentences(monkeypatch):
    """What users run is what the table of speed measures."""
    translator, made = load_pretrained("multi30k-de-en"), []
    texts = [german for german, _ in data.load_parallel("mini")["validation"][:6]]
    expected = [it.text for it in translator.translate(texts, 2, attention=False)]
    monkeypatch.setattr(inspect.unwrap(fast.for_decoding), "__defaults__", (1, 6))

    def noted(model):
        made.append(model)
        return CompiledModel(model)

    monkeypatch.setattr(compiled, "CompiledModel", noted)
    assert [it.text for it in translator.translate(texts, 2, attention=False)] == expected
    assert made == [translator.model]
    translator.translate(texts[:5], 2, attention=False)
    assert len(made) == 1, "five sentences are too few"
