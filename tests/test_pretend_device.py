"""The library on a GPU, without one: what pretend.py proves, and what it cannot, it says itself.

On a machine that has a GPU the same tests take that; those of the pretend device itself, and those
that count how often the program waits, are left out there.

Each test compares with the CPU. Taken out one at a time, every `device=` and `.to(...)` of the code
that these tests run makes one of them fail, as do the suspects of a first run on a GPU:

- a batch, a mask, positions or the state of a decoding made on the CPU: `Mixed`, or the guards'
  "expected one device";
- a generator of the CPU for `sample` on a GPU's model: `Mixed`;
- a page that trains a model and then gives it ids of the CPU: the page's test fails;
- random numbers of the device that a checkpoint does not keep: the resumed run is another;
- a loss read in every update, batches in memory that is not pinned: counted.
"""

import contextlib
import copy

import pretend
import pytest
import tiny_run
import torch
from conftest import random_ids, tiny_config
from torch.nn import functional as F

from transformer_lib import ModelConfig, TrainConfig, Transformer, load_pretrained, training
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond import (
    adaptive_depth,
    arrows,
    distance,
    encoders,
    far_links,
    flash,
    layer_memory,
    lsh,
    memory,
    neighbours,
    one_stream,
    relative_bias,
    sparse,
)
from transformer_lib.beyond.exchange import exchange
from transformer_lib.decoding import beam_search, greedy_decode, sample
from transformer_lib.fast import translation_loss as fast_loss
from transformer_lib.models.classifier import Classifier, MaskedLanguageModel
from transformer_lib.models.decision_transformer import DecisionTransformer
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.vision_transformer import VisionTransformer
from transformer_lib.runs import speed
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.translation import translate_ids
from transformer_lib.runs.watch import Watch
from transformer_lib.tokenization import encode_source
from transformer_lib.training import translation_loss
from transformer_lib.visualize import LiveCurve

SCHEMES = ["sinusoidal", "learned", "rotary", "alibi", "none"]


REAL = torch.cuda.is_available()


@pytest.fixture
def gpu():
    """The pretend device; "auto" and "cuda" choose it, as they do where there is a GPU."""
    with contextlib.nullcontext(torch.device("cuda", 0)) if REAL else pretend.chosen() as found:
        yield found


@pytest.fixture
def pretended(gpu):
    """The pretend device, also as something to be looked at."""
    if REAL:
        pytest.skip("there is a GPU here")
    return gpu


def assert_same(given, expected, tolerance=1e-5):
    assert given.device.type == ("cuda" if REAL else pretend.NAME)
    tolerance = max(tolerance, 1e-4) if REAL else tolerance  # sums in another order
    torch.testing.assert_close(given.cpu(), expected, atol=tolerance, rtol=tolerance)


def source_batch():
    """(4, 7) ids, two of the sentences padded."""
    ids = random_ids(4, 7)
    ids[1, 4:], ids[3, 2:] = 0, 0
    return ids


def small(**changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(tiny_config(**changes)).eval()


# ------------------------------------------------------------------------- the device itself


def test_what_cuda_refuses_is_refused(pretended):
    here, there = torch.ones(3), torch.ones(3, device=pretended)
    linear = torch.nn.Linear(3, 2).to(pretended)
    for mixing in (
        lambda: here + there,
        lambda: torch.cat([here, there]),
        lambda: linear(here),
        lambda: here[there.long()],
        lambda: there.masked_fill(here > 0, 0),
        lambda: torch.where(there > 0, here, there),
        lambda: F.embedding(torch.tensor([1]), linear.weight),
        lambda: there.normal_(generator=torch.Generator()),
        lambda: there.__setitem__(torch.tensor([0, 1]), here[:2]),
        lambda: torch.zeros(()).add_(there.sum()),
    ):
        with pytest.raises(pretend.Mixed):
            mixing()
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()


def test_what_cuda_allows_is_allowed(pretended):
    here, there = torch.arange(3.0), torch.arange(3.0, device=pretended)
    assert_same(there + torch.tensor(2.0), here + 2)  # a number may come from anywhere
    assert_same(there[torch.tensor([2, 0])], here[[2, 0]])  # and so may an index
    there[1] = 7
    assert there.tolist() == [0, 7, 2] and float(there[1]) == 7
    assert here.to(pretended).cpu().equal(here)


def test_its_random_numbers_are_its_own(pretended):
    torch.manual_seed(1)
    expected, first = torch.rand(3), torch.rand(2)
    torch.manual_seed(1)
    assert_same(torch.rand(3, device=pretended), expected)  # of the same seed,
    torch.rand(3)
    assert torch.rand(2).equal(first)  # and apart


def test_tied_weights_stay_tied_where_a_graph_is_alive(pretended):
    model = small()
    logits = model(source_batch(), random_ids(4, 5))
    optimizer = torch.optim.Adam(model.parameters())
    model.to(pretended)
    assert logits.requires_grad and model.output.weight is model.src_embedding.lookup.weight
    assert optimizer.param_groups[0]["params"][0].device == pretended


# ------------------------------------------------------------------------------- the models


OTHER_LAYERS = {"norm_first": False, "norm": "rms", "n_kv_heads": 2, "positional": "rotary"}


@pytest.mark.parametrize("changes", [*({"positional": name} for name in SCHEMES), OTHER_LAYERS])
def test_forward_loss_and_gradients(gpu, changes):
    model = small(**changes)
    batch = source_batch(), random_ids(4, 6)
    twin = copy.deepcopy(model).to(gpu)
    there = [ids.to(gpu) for ids in batch]
    with torch.no_grad():
        assert_same(twin(*there), model(*batch))
    for loss in (translation_loss, fast_loss):
        model.zero_grad(), twin.zero_grad()
        expected, given = loss(model, batch, 0.1), loss(twin, there, 0.1)
        assert_same(given.detach(), expected.detach())
        expected.backward(), given.backward()
        for one, other in zip(twin.parameters(), model.parameters(), strict=True):
            assert_same(one.grad, other.grad)


@pytest.mark.parametrize("positional", ["sinusoidal", "rotary", "alibi"])
def test_decoding(gpu, positional):
    """Every tensor that a decoding makes: the first ids, its output, its limits, its places."""
    model, src = small(positional=positional, max_len=14), source_batch()
    twin, there = copy.deepcopy(model).to(gpu), src.to(gpu)
    end = int(greedy_decode(model, src, 6)[0, 1])  # so that a sentence ends before the others

    def results(model, src):
        yield greedy_decode(model, src, eos_id=end)
        yield greedy_decode(model, src, 6, use_cache=False, eos_id=end)
        yield from beam_search(model, src, 3, eos_id=end)
        yield from beam_search(model, src, 2, 6, length_penalty=0.5, eos_id=end)
        draws = torch.Generator().manual_seed(0)  # of the CPU, for both
        yield sample(model, src, top_k=5, top_p=0.9, generator=draws, max_len=6, eos_id=end)

    for given, expected in zip(results(twin, there), results(model, src), strict=True):
        assert_same(given, expected)
    assert sample(twin, there, max_len=3).device == gpu  # without a generator


def test_the_attention_of_the_chapters(gpu):
    q, k, v = torch.randn(3, 2, 2, 5, 4)
    mask = torch.rand(2, 1, 5, 5) > 0.3
    given = scaled_dot_product_attention(*(x.to(gpu) for x in (q, k, v, mask)))
    for one, other in zip(given, scaled_dot_product_attention(q, k, v, mask), strict=True):
        assert_same(one, other)


IDS = random_ids(3, 8)
BLOCK = tiny_config(positional="learned")
ROTARY = tiny_config(positional="rotary")


def exchanged(attention, **settings):
    model = LanguageModel(ROTARY)
    exchange(model.decoder, attention, **settings)
    return model


QKV = torch.randn(3, 2, 4, 16, 8, generator=torch.Generator().manual_seed(0)).unbind()
OTHERS = {
    "language model": (lambda: LanguageModel(ROTARY), [IDS]),
    "classifier": (lambda: Classifier(BLOCK, 3, n_segments=2), [IDS]),
    "masked language model": (lambda: MaskedLanguageModel(BLOCK), [IDS]),
    "vision": (lambda: VisionTransformer(BLOCK, 10, 2), [torch.rand(3, 1, 8, 8)]),
    "decisions": (
        lambda: DecisionTransformer(BLOCK, 4, 2),
        [torch.rand(2, 5), torch.rand(2, 5, 4), IDS[:2, :5] % 2, torch.arange(5).expand(2, 5)],
    ),
    "replaced tokens": (lambda: encoders.ReplacedTokens(BLOCK, BLOCK), [IDS]),
    "factorised": (lambda: encoders.factorise(MaskedLanguageModel(BLOCK), 4), [IDS]),
    "T5's bias": (
        lambda: relative_bias.add_relative_bias(Transformer(tiny_config(positional="none"))),
        [IDS, IDS],
    ),
    "prefix": (lambda: one_stream.PrefixLanguageModel(BLOCK), [IDS]),
    "two parts": (lambda: one_stream.TwoPartLanguageModel(BLOCK), [IDS]),
    "spans": (lambda: exchanged(distance.SpanAttention, longest=20), [IDS]),
    "memory": (lambda: memory.RecurrentLanguageModel(ROTARY, 4), [IDS]),
    "compressive": (lambda: memory.CompressiveLanguageModel(ROTARY, 4, 2, 2), [IDS]),
    "neighbours": (lambda: neighbours.MemorizingLanguageModel(ROTARY, 4, 2), [IDS]),
    "mixed memory": (lambda: layer_memory.reads_layers(BLOCK), [IDS, IDS]),
    "adaptive steps": (lambda: arrows.Follower(6, 3, 4), [IDS[:, :6] % 6, IDS[:, 0] % 3 + 1]),
    "distances": (lambda: exchanged(distance.DistanceAttention), [IDS]),
    "masked tokens": (
        lambda: lambda ids: encoders.mask_tokens(ids, 19, 0.5, generator=torch.manual_seed(0)),
        [IDS],
    ),
    "content and place": (
        lambda: encoders.disentangled_scores,
        [*QKV[:2], torch.randn(4, 6, 8), torch.randn(4, 6, 8)],
    ),
    "one bucket": (lambda: lambda x: lsh.lsh_buckets(x, 1), QKV[:1]),
    "keys are queries": (lambda: lsh.shared_attention, QKV[:2]),
    "random links": (lambda: sparse.random_links(16, 4, 1), torch.ones(9, 9).nonzero().T.unbind()),
    "flash": (lambda: lambda q, k, v: flash.flash_attention(q, k, v, 5, causal=True), QKV),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_models(gpu, name):
    make, inputs = OTHERS[name]
    torch.manual_seed(0)
    model = make()
    is_module = isinstance(model, torch.nn.Module)
    twin = copy.deepcopy(model).eval().to(gpu) if is_module else model
    with torch.no_grad():
        expected = (model.eval() if is_module else model)(*inputs)
        given = twin(*(x.to(gpu) for x in inputs))
    pairs = zip(_tensors(given), _tensors(expected), strict=True)
    assert [assert_same(one, other) for one, other in pairs]


def _tensors(result):
    """The tensors of a result, which may be one, or lie in tuples."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [x for part in result if part is not None for x in _tensors(part)]


@pytest.mark.parametrize("name", far_links.NAMES)
def test_cheaper_attention(gpu, name):
    torch.manual_seed(0)
    model = far_links.reader(name, size=64, n_facts=8).eval()
    names, values, *_ = far_links.draw(2, 64, 8, torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    with torch.no_grad():
        expected = model(names, values)
        torch.manual_seed(0)
        assert_same(model.to(gpu)(names.to(gpu), values.to(gpu)), expected)


def test_language_models_continue_and_translate(gpu):
    torch.manual_seed(0)
    model = LanguageModel(ROTARY).eval()
    expected = greedy_decode(model, IDS, 6)
    streams = [[5, 6, 7], [8, 9], [4, 4, 4]]
    written = one_stream.translate_streams(model, streams)
    model.to(gpu)
    assert_same(greedy_decode(model, IDS.to(gpu), 6), expected)
    assert one_stream.translate_streams(model, streams) == written


@pytest.mark.parametrize(("measure", "threshold"), [
    ("gap", 0.05), ("stillness", 0.9), ("agree", 0.5), ("depth", 1),
])
def test_tokens_leave_early(gpu, measure, threshold):
    model, src = small(max_len=14), source_batch()
    exits = adaptive_depth.Exits(16, 2)
    with torch.no_grad():
        states = adaptive_depth.decoder_states(model, src, random_ids(4, 9))
        states = [x.flatten(0, 1) for x in states]
        adaptive_depth.solve_maps(exits, states)
        expected = greedy_decode(adaptive_depth.EarlyLeaving(model, exits, measure, threshold), src)
        model.to(gpu), exits.to(gpu)
        adaptive_depth.solve_maps(exits, [x.to(gpu) for x in states])
        early = adaptive_depth.EarlyLeaving(model, exits, measure, threshold)
        assert_same(greedy_decode(early, src.to(gpu)), expected)


# ----------------------------------------------------------------------------------- training


def loss_of(entries):
    return [entry["loss"] for entry in entries if "loss" in entry]


@pytest.mark.parametrize("fast", [False, True])
def test_training_gives_the_numbers_of_the_cpu(gpu, tmp_path, fast):
    """Dropout too: both draw the same numbers. Fast dropout draws others on a CPU."""
    same = {"fast": fast, "dropout": 0.0 if fast or REAL else 0.2, "validation_bleu": True}
    model, given = tiny_run.run(tmp_path / "gpu", device="auto", **same)
    other, expected = tiny_run.run(tmp_path / "cpu", **same)
    assert next(model.parameters()).device == gpu and next(other.parameters()).device.type == "cpu"
    torch.testing.assert_close(loss_of(given), loss_of(expected), atol=1e-4, rtol=1e-4)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_same(one.detach(), two.detach(), 0.02)  # Adam makes much of a last digit
    assert given[-1]["averaged"] == 2
    assert given[-1]["validation_loss"] == pytest.approx(expected[-1]["validation_loss"], rel=1e-3)
    pairs, tokenizer = tiny_run.data()
    sources = [tokenizer.encode(source).ids for source, _ in pairs["validation"]]
    assert translate_ids(model, tokenizer, sources) == translate_ids(other, tokenizer, sources)


def test_fast_takes_the_loss_in_blocks_on_a_processor_alone(gpu, tmp_path, monkeypatch):
    def blocks(*_, **__):
        raise RuntimeError("in blocks")

    monkeypatch.setattr(training.fast, "translation_loss", blocks)
    tiny_run.run(tmp_path / "gpu", device="auto", fast=True, max_steps=2, average=1)
    with pytest.raises(RuntimeError, match="in blocks"):
        tiny_run.run(tmp_path / "cpu", fast=True, max_steps=2, average=1)


def test_a_resumed_run_is_the_run_never_stopped(gpu, tmp_path):
    """Bit for bit: the device's random numbers, which dropout draws, are kept as well."""
    tiny_run.run(tmp_path / "whole", device="auto")

    def stop(entry):
        if entry["step"] == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_run.run(tmp_path / "parts", stop, device="auto")
    torch.manual_seed(5)  # whatever was drawn in between
    tiny_run.run(tmp_path / "parts", device="auto")
    if not REAL:  # where sums are not always taken in the same order
        tiny_run.assert_same_run(tmp_path / "whole", tmp_path / "parts")
    whole, parts = (read_json_lines(tmp_path / run / "metrics.jsonl") for run in ("whole", "parts"))
    torch.testing.assert_close(loss_of(parts), loss_of(whole), atol=1e-3, rtol=1e-3)


def test_a_run_is_measured_and_watched(gpu, tmp_path):
    """As on the page: the operations of a batch, a product, and sentences while it trains."""
    ids, model = source_batch(), small(dropout=0.0)
    expected = speed.update_flops(model, translation_loss, (ids, ids))
    there = (ids.to(gpu), ids.to(gpu))
    assert speed.update_flops(model.to(gpu), translation_loss, there) == expected > 0
    assert speed.product_speed(32, 16, 16, gpu, seconds=0.01) > 0
    pairs, tokenizer = tiny_run.data()
    model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **tiny_run.MODEL))
    curve = LiveCurve("step", ("loss", "validation_loss"), seconds=1e9)
    curve.drawn_at = 1e18

    def translate(texts):
        return translate_ids(model, tokenizer, encode_source(tokenizer, texts))

    config = TrainConfig(**tiny_run.TRAIN | {"device": "auto"})
    watch = Watch(tmp_path, config, translate, ["Ein Hund ."], curve, 1e6, 1e9, stop_after=6)
    for folder, stops in ((tmp_path, True), (tmp_path, False)):
        with pytest.raises(KeyboardInterrupt) if stops else contextlib.nullcontext():
            training.train(model, tokenizer, pairs, config, folder, watch)
        watch.stop_after = None
    assert [*watch.said] == [6, 12] and watch.reached == 12 and watch.utilisation() > 0


def test_the_record_names_the_device(gpu, tmp_path):
    tiny_run.run(tmp_path, device="auto", max_steps=2)
    about = (tmp_path / "environment.json").read_text()
    name = torch.get_device_module(gpu).get_device_name(gpu)
    assert name in about and "CPU" not in about and "training_seconds" in about


def test_half_precision_is_for_the_forward_pass_alone(gpu, tmp_path, monkeypatch):
    seen = []

    def spy(model, batch, smoothing=0.0):
        seen.append((torch.is_autocast_enabled(gpu.type), torch.get_autocast_dtype(gpu.type)))
        return translation_loss(model, batch, smoothing)

    monkeypatch.setattr(training, "translation_loss", spy)
    tiny_run.run(tmp_path, device="auto", precision="bf16", max_steps=2, validate_every=99)
    # Two updates; then the end is validated, in full precision.
    assert seen[:2] == [(True, torch.bfloat16)] * 2 and not any(on for on, _ in seen[2:])


@pytest.mark.parametrize("loss", [translation_loss, fast_loss])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_changes_the_loss_little(gpu, loss, dtype):
    """No tensor of one precision meets another where torch does not join them."""
    model, batch = small(), (source_batch(), random_ids(4, 6))
    expected = loss(model, batch, 0.1)
    expected.backward()
    twin = copy.deepcopy(model).to(gpu)
    twin.zero_grad()
    with torch.autocast(gpu.type, dtype):
        rounded = twin(batch[0].to(gpu), batch[1].to(gpu)).dtype
        given = loss(twin, [ids.to(gpu) for ids in batch], 0.1)
    given.backward()
    assert rounded == dtype and given.dtype == torch.float32
    assert_same(given.detach(), expected.detach(), 0.02)
    for one, other in zip(twin.parameters(), model.parameters(), strict=True):
        assert one.grad.dtype == torch.float32
        assert (one.grad.cpu() - other.grad).norm() <= 0.1 * other.grad.norm() + 1e-3


def test_a_translator_moves_with_its_model(gpu, tmp_path):
    tiny_run.run(tmp_path, device="cpu", max_steps=4)
    texts = [source for source, _ in tiny_run.data()[0]["validation"]]
    here, there = load_pretrained(tmp_path), load_pretrained(tmp_path, device="auto")
    assert there.device == gpu
    expected, given = here.translate(texts, 3), there.translate(texts, 3)
    assert [found.text for found in given] == [found.text for found in expected]
    for one, other in zip(given, expected, strict=True):
        assert one.cross_attention.device.type == "cpu"  # ready to be drawn
        torch.testing.assert_close(one.cross_attention, other.cross_attention, atol=1e-4, rtol=1e-3)


# ------------------------------------------------------------------------ waiting for the device


def training_waits(folder, steps, **changes):
    """The waits of a run that logs, checks and saves at its end alone."""
    changes = {"log_every": 999, "validate_every": 999, "checkpoint_every": 999} | changes
    with pretend.waits() as found:
        tiny_run.run(folder, device="auto", max_steps=steps, **changes)
    return found


@pytest.mark.parametrize("fast", [False, True])
def test_an_update_waits_for_nothing(pretended, tmp_path, fast):
    """Four updates more wait no more often: batches come from pinned memory, and the loss stays
    on the device until it is logged."""
    few, many = (
        training_waits(tmp_path / str(n), n, fast=fast, average=1, keep_checkpoints=1)
        for n in (4, 8)
    )
    assert many - few == {} and few, dict(many - few)


def test_an_entry_of_the_log_reads_four_numbers(pretended, tmp_path):
    """The loss and the gradient's norm, to see that they are numbers, and to write them."""
    few, many = (
        training_waits(tmp_path / str(every), 8, log_every=every, average=1, keep_checkpoints=1)
        for every in (8, 1)
    )
    more = many - few
    assert {kind for kind, _ in more} == {"_local_scalar_dense"}, dict(more)
    assert more.total() <= 4 * 7


@pytest.mark.parametrize(("decode", "needed"), [(greedy_decode, 1), (beam_search, 2)])
def test_a_decoding_step_waits_to_see_who_has_ended(pretended, decode, needed):
    """Once; beam search also to see whose best translation is a better one."""
    model, src = small(max_len=64, tie_embeddings=False), source_batch()
    with torch.no_grad():
        model.output.weight[2] = 0  # the same logit everywhere,
        model.output.weight[5:9] = 1  # and four that are always larger: no sentence ends
        model.decoder.norm.bias += 1
    model, src = model.to(pretended), src.to(pretended)
    found = {}
    for n in (4, 12):
        with pretend.waits() as found[n]:
            decode(model, src, max_len=n)
    more = found[12] - found[4]
    assert more.total() == needed * (12 - 4), dict(more)
