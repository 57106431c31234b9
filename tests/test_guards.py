"""Every public name, given what it does not expect, answers in the project's own words.

The walk takes each public function, class and method of the library's top level and models, calls
it as it should be called, and then with one argument at a time replaced: by another type, another
shape, another device, or nothing. It must work, or raise an error of the library, from a `raise`
that stands in the library, that says what was given. What is of the wrong type must not work.
"""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import random
import re
import traceback
import typing
import unittest.mock
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import random_ids, tiny_config
from tokenizers import Tokenizer
from tokenizers.models import BPE
from torch import Tensor, nn

import transformer_lib
from transformer_lib import (
    ModelConfig,
    TrainConfig,
    Transformer,
    _door,
    embeddings,
    masks,
    one_file,
    positional,
    training,
    visualize,
)
from transformer_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.batching import Batches, pad
from transformer_lib.beyond import (
    acting,
    adaptive_depth,
    arrows,
    by_hand,
    caches,
    caption_grammar,
    choosing,
    corridor,
    deberta,
    denoising,
    diffusion,
    digits,
    distance,
    encoders,
    exchange,
    experts,
    families,
    flash,
    layer_memory,
    learning,
    linear,
    memory,
    neighbours,
    one_stream,
    preferences,
    relative_bias,
    routing,
    sparse,
    speculative,
    stacks,
    states,
)
from transformer_lib.beyond import gates as gate_layers
from transformer_lib.beyond.reversible import ReversibleLayer, ReversibleStack
from transformer_lib.cache import DecoderCache, DecodingState, KeyValueCache
from transformer_lib.config import BlockConfig
from transformer_lib.corpora import labelled
from transformer_lib.decoder import DecoderLayer
from transformer_lib.guards import calls, values
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.classifier import Classifier, MaskedLanguageModel
from transformer_lib.models.decision_transformer import DecisionTransformer
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.vision_transformer import VisionTransformer
from transformer_lib.runs import (
    checkpoint,
    checksums,
    export,
    files,
    processes,
    recipes,
    shipping,
    speed,
)
from transformer_lib.scoring import verdict
from transformer_lib.tokenization import train_tokenizer
from transformer_lib.translator import Translator

EVERY = [one.name.partition(".")[2]
         for one in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib.")]
GUARDED = [name for name in EVERY
           if name.split(".")[0] not in _door.FREE and not re.search(r"\b_", name)]
LATER = [name for name in GUARDED
         if name.startswith(("beyond.", "scoring.", "runs.", "fast.", "corpora."))]
MODULES = [name for name in GUARDED if name not in LATER or name in
           ("runs.pretrained", "runs.recipes", "runs.speed")]
MODULES.remove("one_file")  # the same names once more, with arguments of their own
TEXTS = ["ein Hund spielt", "zwei Hunde spielen im Schnee"]


def config(**changes):
    sizes = dict(vocab_size=20, n_encoder_layers=1, n_decoder_layers=1)
    return tiny_config(**(sizes | changes))


def x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def make_tokenizer():
    return train_tokenizer(TEXTS, 60)


def model():
    return Transformer(config()).eval()


class Anything(nn.Module):
    """Stands for a layer."""

    def forward(self, x):
        return x


# How each parameter is given rightly, by its name; where a name means several things, by function.
RIGHT = {
    "activation": "relu", "a": ["a b"], "accumulate": 1, "at_most": 5, "attention": True,
    "attention_dropout": 0.0, "b": ["a b"], "base": 100.0, "batch": [0, 1], "batches": [[0, 1]],
    "beam_size": 2, "bias": True, "bos_id": 1, "cache": None, "channels": 1, "cls": ModelConfig,
    "columns": [[[4, 5], [6]]], "config": config, "counts": [2, 1], "cross_attention": True,
    "d_ff": 8, "d_head": 4, "d_model": 16, "data_info": None, "decode": lambda ids: ids,
    "device": "cpu", "dropout": 0.0, "dropout_p": 0.0, "dtype": None, "each": map,
    "eos_id": 2, "epoch": 1, "eps": 1e-5, "files": None, "first": 1, "generator": None,
    "hidden": lambda: x(2, 3, 16),
    "hypotheses": TEXTS, "hypothesis": ["a"], "ids": lambda: random_ids(2, 5), "ignore_index": 0,
    "images": lambda: x(2, 1, 4, 4), "k": lambda: x(2, 3, 4), "key": lambda: x(2, 3, 16),
    "keys": lambda: x(2, 4, 3, 4), "kind": "bpe", "language": "en", "length": 3,
    "length_penalty": 1.0, "lengths": [(2, 3), (3, 3)], "logits": lambda: x(2, 3, 20),
    "mask": None, "max_len": 16, "max_steps": 10, "max_tokens": 50, "memory": lambda: x(2, 5, 16),
    "metric": "chrf", "model": model, "module": model, "momentum": 0.1, "n": 5, "n_classes": 3,
    "n_heads": 4, "n_keys": 3, "n_kv_heads": None, "n_layers": 1, "n_queries": 3, "n_segments": 0,
    "name": "multi30k-de-en", "need_weights": False, "norm": True, "pad_id": 0, "path": "nowhere",
    "pairs": [("a", "b")], "patch": 2, "peak_lr": 0.1, "positions": None, "q": lambda: x(2, 3, 4),
    "query": lambda: x(2, 3, 16), "reference": ["a"], "references": TEXTS, "rows": None,
    "scale": True, "seed": 0, "segments": None, "sequences": [[4, 5], [6]], "sentences": None,
    "shuffle": True, "size": 4, "smoothing": 0.1, "source": "mini", "sources": [[4, 5], [6]],
    "src": "de", "src_ids": lambda: random_ids(2, 5), "src_mask": None, "start": 0, "state": None,
    "step": 1, "sublayer": Anything, "table": lambda: x(8, 16), "targets": lambda: random_ids(2, 3),
    "temperature": 1.0, "text": "a b", "texts": TEXTS, "tgt": "en",
    "tgt_ids": lambda: random_ids(2, 4), "tgt_mask": None, "to_itself": True,
    "tokenize": "13a", "tokenizer": make_tokenizer, "top_k": None, "top_p": None,
    "training_texts": TEXTS, "use_cache": True, "v": lambda: x(2, 3, 4),
    "value": lambda: x(2, 3, 16), "values": lambda: x(2, 4, 3, 4), "vocab_size": 60, "warmup": 2,
    "weight": lambda: torch.ones(16), "where": "here", "width": 5, "x": lambda: x(2, 3, 16),
    "n_actions": 2, "n_state": 3, "returns": lambda: x(2, 3), "states": lambda: x(2, 3, 3),
    "actions": lambda: torch.tensor([[0, 1, 0], [1, 1, 0]]),
    "steps": lambda: torch.arange(3).repeat(2, 1), "matrices": lambda: x(2, 3, 4), "rounds": 5,
    "momentum_": 0.1, "p": 0.1, "n_tokens": 1, "cpu": 1, "full": 1, "smoke": 1,
}
SPECIAL = {
    "from_dict": {"values": {"vocab_size": 20}},
    "to_dict": {"config": config}, "tokens": {"ids": lambda: torch.tensor([[4, 6, 2]])},
    "inverse_sqrt": {}, "learning_rate": {"config": TrainConfig},
    "make_optimizer": {"config": TrainConfig},
    "encoder_input": {"model": transformer_lib.example.tiny_model},
    "queries_keys_values": {"model": transformer_lib.example.tiny_model},
    "Batches.restore": {"state": {"epoch": 0, "next_batch": 0}},
    "DecoderLayer.read_memory": {"y": lambda: x(2, 3, 16)}, "make_norm": {"kind": "layer"},
    "paired_bootstrap": {"a": TEXTS, "b": TEXTS}, "breakdown": {"keys": ["short", "long"]},
    "require_fit": {"vocab_size": 48},
    "Translator": {"model": lambda: INSTANCES["Translator"]().model},
    "layer_norm": {"bias": lambda: torch.zeros(16)},
    "RotaryEmbedding.forward": {"x": lambda: x(2, 4, 3, 4)},
    "RotaryEmbedding.turn": {"q": lambda: x(2, 4, 3, 4), "k": lambda: x(2, 4, 3, 4)},
    "PositionalScheme.turn": {"q": lambda: x(2, 4, 3, 4), "k": lambda: x(2, 4, 3, 4)},
    "DecoderCache.select": {"rows": lambda: torch.tensor([0])},
    "KeyValueCache.select": {"rows": lambda: torch.tensor([0])},
    "bleu_from_counts": {"counts": np.ones(10)},
    "translation_loss": {"batch": lambda: (random_ids(2, 5), random_ids(2, 5))},
    "r_drop_loss": {"batch": lambda: (random_ids(2, 5), random_ids(2, 5)), "weight": 1.0},
    "translation_batches": {"targets": [[1, 4, 2], [1, 5, 2]]},
    "validation_loss": {"targets": [[1, 4, 2], [1, 5, 2]]},
    "finished_score": {"total": lambda: x(2, 3)}, "in_batches": {"decode": lambda ids: list(ids)},
    "largest": {"logits": lambda: x(6, 20), "k": 2},
    "Translator.cross_attention": {"ids": lambda: random_ids(2, 4)},
    "MultiHeadAttention.split_heads": {}, "MultiHeadAttention.share_heads":
    {"x": lambda: x(2, 4, 3, 4)}, "MultiHeadAttention.join_heads": {"x": lambda: x(2, 4, 3, 4)},
    "EncoderOnly": {}, "Batches": {"lengths": [2, 1]}, "TokenBatchSampler": {},
    "LanguageModel.start": {}, "BlockConfig": {"norm": "layer"},
    "ModelConfig": {"vocab_size": 20, "positional": "sinusoidal", "norm": "layer"},
    "LiveCurve": {"x": "step"}, "table": {"columns": ["a"], "rows": [["b"]]},
}
# Called elsewhere: they train, load or translate for seconds, or their arguments are their point.
ELSEWHERE = {"train", "fit", "load_pretrained", "run_info", "find_run", "results_dir",
             "load_parallel", "Pairs", "load_tokenizer", "choose", "run_size",
             "lowercased_tokenised_bleu", "Translation", "Scores", "Interval", "Comparison",
             "Group", "DecodingState", "step", "TrainingDiverged"}

INSTANCES = {
    "Transformer": model, "LanguageModel": lambda: LanguageModel(config()),
    "EncoderOnly": lambda: Classifier(config(), 3), "Classifier": lambda: Classifier(config(), 3),
    "Translator": lambda: Translator(
        Transformer(config(vocab_size=make_tokenizer().get_vocab_size())), make_tokenizer()),
}


def right(owner: str, name: str):
    value = SPECIAL.get(owner, {}).get(name, RIGHT.get(name, inspect.Parameter.empty))
    plain = value is inspect.Parameter.empty or name in ("decode", "cls", "each")
    return value if plain or not callable(value) else value()


def arguments(owner: str, function, skip_self: bool) -> dict | None:
    """The right arguments of a function; None where one of them is not known."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" and skip_self:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = right(owner, name)
        if value is inspect.Parameter.empty:
            if parameter.default is inspect.Parameter.empty:
                return None
            continue
        found[name] = value
    return found


def walk():
    """(name, callable without self, right arguments, annotations) of all that is public."""
    for module_name in MODULES:
        module = importlib.import_module(f"transformer_lib.{module_name}")
        for name, value in list(vars(module).items()):
            if name.startswith("_") or name in ELSEWHERE:
                continue
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value):
                yield from entry(name, value, value, False)
            elif inspect.isclass(value):
                yield from entry(name, value, value.__init__, True)
                yield from methods(name, value)


def methods(name, cls):
    if dataclasses.is_dataclass(cls):
        return
    known = arguments(name, cls.__init__, True)
    make = INSTANCES.get(name) or (None if known is None else lambda: cls(**known))
    for key, method in list(vars(cls).items()):
        if key.startswith("_") or not inspect.isfunction(method) or key in ELSEWHERE:
            continue
        owner = name if key == "forward" else f"{name}.{key}"
        try:
            bound = getattr(make(), key)
        except Exception:
            continue
        yield from entry(f"{name}.{key}" if key == "forward" else owner, bound, method, True)


def entry(owner, call, function, skip_self):
    given = arguments(owner, function, skip_self)
    if given:
        yield owner, call, given, values.hints(inspect.unwrap(function))


WRONG = [None, "text", 2.5, -1, [], {}, object(), math.nan, np.zeros((2, 3))]


def shapes(tensor: Tensor):
    """Tensors that differ in one way."""
    yield tensor.to("meta")
    yield tensor.reshape(-1)
    yield tensor[None]
    yield tensor[:0]
    yield tensor[..., :0]
    yield tensor[..., :1].repeat_interleave(tensor.size(-1) + 3, -1)
    yield tensor.to(torch.complex64)
    yield tensor.bool()
    yield (tensor.double() if tensor.is_floating_point() else tensor.float())
    yield (tensor.long() if tensor.is_floating_point() else tensor + 1000)


def cases():
    for owner, call, given, hints in walk():
        for name, value in given.items():
            changed = [(wrong, True) for wrong in WRONG]
            if isinstance(value, Tensor):
                changed += [(other, False) for other in shapes(value)]
            for wrong, other_type in changed:
                yield owner, call, given | {name: wrong}, name, hints.get(name), other_type


def own_words(error: Exception) -> bool:
    """Whether an error was raised on purpose by the library, and its text says something."""
    frames = calls._frames(error)
    return (isinstance(error, (ValueError, TypeError)) and len(str(error)) > 20
            and frames[-1][0].startswith(calls.LIBRARY)
            and calls._is_raise(*frames[-1]))


def test_the_walk_calls_everything_rightly():
    """Else an error would be no answer to the wrong argument."""
    called, failures = [], []
    for owner, call, given, _ in walk():
        called.append(owner)
        try:
            call(**given)
        except Exception as error:
            failures.append(f"{owner}({given}): {type(error).__name__} {error}")
    assert failures == []
    assert len(called) > 90, len(called)
    for name in ("Transformer", "scaled_dot_product_attention", "MultiHeadAttention.forward",
                 "padding_mask", "LayerNorm.forward", "RotaryEmbedding", "noam", "greedy_decode",
                 "beam_search", "sample", "score", "Translator.translate"):
        assert name in called, name


def test_every_wrong_argument_is_named():
    n, failures = 0, []
    for owner, call, given, name, kind, other_type in cases():
        n += 1
        accepted = kind is None or values.fits(given[name], kind)
        try:
            call(**given)
            if other_type and not accepted:
                failures.append(f"{owner}: {name}={given[name]!r} is accepted, not {kind}")
        except Exception as error:
            if not own_words(error):
                what = values.describe(given[name])
                failures.append(f"{owner}: {name}={what}: {type(error).__name__}: {error}"[:300])
    assert failures == [], f"{len(failures)} of {n}\n" + "\n".join(failures[:60])
    assert n >= 400
    print(n, "cases")


def named(module_name):
    """The public functions and classes of a module, by name, that must be given something."""
    module = importlib.import_module(f"transformer_lib.{module_name}")
    for name, value in list(vars(module).items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, (Exception, str)):
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            needed = [key for key, found in inspect.signature(value).parameters.items()
                      if found.default is found.empty
                      and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)]
            if needed:
                yield name, value, needed


@pytest.mark.parametrize("module", LATER)
def test_nonsense_is_answered_in_the_librarys_words(module, tmp_path, monkeypatch):
    """Of Parts V and VI, and of what lies around a run: all that is needed, replaced at once."""
    monkeypatch.chdir(tmp_path)
    failures = []
    for name, call, needed in named(module):
        for wrong in WRONG:
            try:
                call(**dict.fromkeys(needed, wrong))
            except Exception as error:
                if not own_words(error) and not isinstance(error, (OSError, ImportError)):
                    failures.append(f"{name}, {wrong!r}: {type(error).__name__}: {error}"[:200])
    assert failures == []


# ------------------------------------------------------------------------- what was once accepted


def ids_and_mask():
    ids = random_ids(4, 5)
    ids[1, 3:] = 0
    return ids, masks.padding_mask(ids)


MISREAD = {
    "0 and 1 as float": (lambda mask: mask.float(), "dtype torch.float32; expected bool, True = m"),
    "0 and 1 as integers": (lambda mask: mask.long(), "dtype torch.int64; expected bool, True = m"),
    "additive": (lambda mask: torch.zeros(mask.shape).masked_fill(~mask, -1e9), "float32; expecte"),
    "without heads": (lambda mask: mask[:, 0], r"\(4, 1, 5\), and its first axis could be the bat"),
    "of another length": (lambda mask: mask[..., :3], r"\(4, 1, 1, 3\); expected one that can be "),
    "of another batch": (lambda mask: mask[:2], r"\(2, 1, 1, 5\); expected one that can be broadc"),
    "of five axes": (lambda mask: mask[None], r"\(1, 4, 1, 1, 5\); expected one that can be broad"),
    "a list": (lambda mask: mask.tolist(), "mask is .*expected a bool tensor"),
}


@pytest.mark.parametrize("case", MISREAD)
def test_a_mask_that_would_be_misread_is_refused(case):
    change, message = MISREAD[case]
    ids, mask = ids_and_mask()
    with pytest.raises((ValueError, TypeError), match=message):
        model()(ids, ids, src_mask=change(mask))
    attention, states = MultiHeadAttention(16, 4), x(4, 5, 16)
    for need_weights in (False, True):  # the fused kernel and the one that is written out
        with pytest.raises((ValueError, TypeError), match=message.replace("src_mask", "mask")):
            attention(states, states, states, change(mask), need_weights)


FITTING = [(4, 1, 1, 5), (1, 1, 5, 5), (4, 4, 5, 5), (1, 1, 1, 1), (5, 5), (1, 5, 5)]


@pytest.mark.parametrize("shape", FITTING)
def test_a_mask_that_fits_in_one_way_is_read(shape):
    attention, states = MultiHeadAttention(16, 4), x(4, 5, 16)
    mask = torch.ones(shape, dtype=torch.bool)
    expected, _ = attention(states, states, states)
    torch.testing.assert_close(attention(states, states, states, mask)[0], expected)
    with pytest.raises(ValueError, match="first axis could be the batch or another"):
        attention(states[:, :4], states, states, torch.ones(4, 5, dtype=torch.bool))


def test_a_float_mask_of_zeros_and_ones_hides_nothing():
    q, mask = x(1, 3, 4), torch.ones(3, 3).tril()
    with pytest.raises(ValueError, match="holds only 0 and 1: .* would hide nothing; expected boo"):
        scaled_dot_product_attention(q, q, q, mask)
    added = torch.zeros(3, 3).masked_fill(mask == 0, -math.inf)
    hidden = scaled_dot_product_attention(q, q, q, mask.bool())
    torch.testing.assert_close(scaled_dot_product_attention(q, q, q, added), hidden)


ONCE_ACCEPTED = [
    (lambda: TrainConfig(max_steps=1.5), "max_steps is 1.5 .* a whole number"),
    (lambda: TrainConfig(betas="ab"), "betas is 'ab'"),
    (lambda: TrainConfig(betas=(0.9, 1.0)), r"betas is \(0.9, 1.0\); it must be 2 numbers, each"),
    (lambda: TrainConfig(eps=0), "eps is 0; it must be above 0"),
    (lambda: TrainConfig(peak_lr=math.inf), "peak_lr is inf"),
    (lambda: config(dropout=math.nan), "dropout is nan"),
    (lambda: TrainConfig(seed=2**70), "seed is .*; it must be at least 0 and below 9,223"),
    (lambda: config(tie_embeddings="false"), "tie_embeddings is 'false' .* True or False"),
    (lambda: config(n_heads=True), "n_heads is True .* a whole number"),
    (lambda: BlockConfig(positional=("rotary",)), r"positional is \('rotary',\)"),
    (lambda: transformer_lib.positional.SinusoidalEncoding(7), "d_model 7 is odd"),
    (lambda: transformer_lib.positional.make_positions("rotary"), "config = 'rotary'"),
    (lambda: MultiHeadAttention(16, 4, positions="rotary"), "positions is 'rotary'; expected a sc"),
    (lambda: transformer_lib.decoding.greedy_decode(model(), [[4, 5]]), r"src_ids is \[\[4, 5\]\]"),
    (lambda: transformer_lib.decoding.greedy_decode(model(), np.ones((1, 3), int)), "a NumPy arra"),
    (lambda: transformer_lib.decoding.greedy_decode(model(), random_ids(2, 3)[:0]), "nothing to d"),
    (lambda: transformer_lib.decoding.beam_search(model(), random_ids(2, 3)[:, :0]), "nothing to "),
    (lambda: transformer_lib.loss.label_smoothed_cross_entropy(x(2, 9), torch.ones(2).long(), 2.0),
     r"smoothing is 2.0; it must be in \[0, 1\]"),
    (lambda: transformer_lib.load_pretrained(device="meta"), "device is 'meta', which holds no nu"),
    (lambda: transformer_lib.load_pretrained(device="gpu"), "device is 'gpu'; it must be"),
]


def batches(**changes):
    given = {"columns": [[[4], [5]]], "lengths": [1, 1], "counts": [1, 1], "max_tokens": 9,
             "seed": 0}
    return Batches(**(given | changes))


ONCE_ACCEPTED += [
    (lambda: DecoderLayer(config())(x(2, 3, 16), x(3, 5, 16)), "both must have the same batch s"),
    (lambda: model().decode(random_ids(2, 3), x(3, 5, 16)), "both must have the same batch size"),
    (lambda: model().start(random_ids(2, 3), 99), "bos_id holds 99; .* below 20, vocab_size"),
    (lambda: MultiHeadAttention(16, 4).attend(*x(3, 1, 4, 3, 4), need_weights="yes"), "need_weigh"),
    (lambda: model().default_masks(random_ids(1, 3), random_ids(1, 3), "all"), "src_mask is 'all'"),
    (lambda: masks.padding_mask(random_ids(1, 3).bool()), "ids must be whole numbers"),
    (lambda: LanguageModel(config()).mask(x(1, 3)), "ids must be whole numbers"),
    (lambda: transformer_lib.positional.SinusoidalEncoding(16)(torch.ones(1, 3, 16).long()),
     "x is a tensor .* expected numbers of a float type"),
    (lambda: transformer_lib.dropout.Dropout(0.1)(x(2, 3).to(torch.complex64)), "real numbers"),
    (lambda: transformer_lib.schedule.noam(-1, 16, 10), "step is -1"),
    (lambda: transformer_lib.normalization.LayerNorm(16, eps=10**400), "eps is 1000.* a number"),
    (lambda: batches(columns=[[[4]]]), "one entry for each example"),
    (lambda: batches(extra=-1), "extra is -1; it must be at least 0"),
    (lambda: batches().tensors([-1], "cpu"), "batch must hold numbers of examples"),
    (lambda: batches().restore({"epoch": 1.5, "next_batch": 0}), "state must hold epoch and next"),
    (lambda: transformer_lib.batching.padding_share([(-1, 2)], [[0]]), "lengths must be counts"),
    (lambda: visualize.LiveCurve(x=3), "x is 3 .* expected a string"),
    (lambda: visualize.matrix(x(2, 2), row_labels=3), "row_labels is 3"),
    (lambda: MultiHeadAttention(16, 4, positions=object), "positions is"),
    (lambda: verdict.compare_runs([1, 2], [1, 1], spread=(-1, 3)), "spread must be"),
    (lambda: verdict.sign_flip_p([1, math.nan]), "differences must be finite"),
    (lambda: choosing.rerank(torch.tensor([math.nan]), torch.ones(1), 0.5), "own holds nan; each"),
    (lambda: denoising.two_tags([[4]], [], 5, 6), "as many targets as sources"),
    (lambda: denoising.poisson(1e30, random.Random(0)), "mean is 1e.30; it must be at least 0 and"),
    (lambda: digits.shuffle_patches(x(1, 1, 4, 4), torch.tensor([0, 0, 1, 2])), "order must hold"),
    (lambda: caches.truncated_svd(x(3, 4), 9), "rank must be at most the smaller side"),
    (lambda: adaptive_depth.calibrate(torch.full((2, 3), 2.0), 0.1), "losses holds 2; each n"),
    (lambda: acting.asking(nn.Identity(), 1.0, context=0), "context is 0"),
    (lambda: transformer_lib.evaluation.edit_distance(iter("a"), "a"), "expected a string or a"),
    (lambda: visualize.attention_heatmap(x(2, 2), "ab", "cd"), "weights lie between 0 and 1"),
    (lambda: visualize.neuron_view(*x(2, 1, 2, 4), torch.full((1, 2, 2), 0.5), "ab", layer=-1),
     "layer is -1, .* counted from 0"),
    (lambda: visualize.attention_squares([[2.5]], "a", "b", "label"), "weights must lie between"),
    (lambda: visualize.bars([("a", 30)], "label"), "each share must lie between 0 and 1"),
    (lambda: visualize.curve([(0, math.nan)], "x", "y", "label"), "points must be pairs"),
    (lambda: visualize.LiveCurve(y=[3]), r"y is \[3\]"),
    (lambda: visualize.LiveCurve()([("step", 1)]), "metrics is .* expected a dictionary"),
    (lambda: visualize.result_grid([{"a": 1, "b": 2, "c": 3, "v": 0.5}], "a", "b", "v",
                                   menus={"c": 9}), "the menu c begins at 9; expected one of 3"),
    (lambda: ReversibleLayer(Anything(), Anything())(x(1, 4), "x2"), "x2 is 'x2'"),
    (lambda: training.train(object, make_tokenizer(), {"train": [("a", "b")]}), "model is"),
]
@pytest.mark.parametrize("module", GUARDED)
def test_an_argument_that_nobody_knows_is_named(module):
    for name, call, _ in named(module):
        taken = inspect.signature(call).parameters.values()
        if any(one.kind is one.VAR_KEYWORD for one in taken) or isinstance(call, type):
            continue
        with pytest.raises(TypeError, match=f"{name}: no argument is called 'width_of_nothing'"):
            call(width_of_nothing=3)


ONCE_ACCEPTED += [
    (lambda: transformer_lib.dropout.Dropout(math.nan), "p is nan; it must be finite"),
    (lambda: exchange.exchange(model().encoder, nn.Linear), "a class, MultiHeadAttention or one"),
    (lambda: training.label_smoothed_cross_entropy(x(1, 2, 5), torch.zeros(1, 2)),
     "targets must be whole numbers"),
    (lambda: kept().select(torch.tensor([0.0])), "rows must be whole numbers"),
    (lambda: kept().select(torch.tensor([3])), "rows holds 3; each number must be at least 0 and "
     "below 1, the rows that the cache has"),
    (lambda: LanguageModel(config()).start(random_ids(2, 3), 99), "bos_id holds 99; .* below 20"),
    (lambda: denoising.random_lengths(2, 5, random.Random(0)), "parts must be at least 1"),
    (lambda: verdict.compare_runs([1, 2], [1, 1], spread=(1, -3)), "spread must be"),
    (lambda: visualize.result_grid([{"a": 1, "b": 2, "v": 0.5}], "a", "b", "v", domain=(1, 0)),
     "domain must be"),
]


# Numbers that contradict each other, nothing where something is shown, and other kinds of parts.
ONCE_ACCEPTED += [
    (lambda: transformer_lib.schedule.cooldown(50, 100, 200), "length must be at most max_steps"),
    (lambda: transformer_lib.schedule.learning_rate(TrainConfig(max_steps=10, average=1), 11, 8),
     "step is 11, config.max_steps 10"),
    (lambda: transformer_lib.decoding.finished_score(x(2), 0, 1.0), "length is 0; it must be at l"),
    (lambda: transformer_lib.decoding.length_limits(model(), random_ids(1, 3), None, 99),
     "first is 99, model.config.max_len"),
    (lambda: transformer_lib.batching.TokenBatchSampler([4] * 9 + [-3], 50),
     "sentence 9 has the length -3"),
    (lambda: transformer_lib.positional.make_positions(ModelConfig, "add"), "not its class"),
    (lambda: KeyValueCache().append(random_ids(2, 3), random_ids(2, 3)), "of a float type"),
    (lambda: transformer_lib.blocks.Residual(config())(x(1, 2, 16), Tensor.long),
     "the sublayer returned a tensor .* of int64; expected .* of floats"),
    (lambda: transformer_lib.data.Pairs({"train": [("a", "b")] * 9 + [("a",)]}, "mine"),
     r"Pairs: splits\['train'\]\[9\] is \('a',\)"),
    (lambda: train_tokenizer((text for text in ["a", 3]), 9), "texts, entry 1, is 3 .int.; exp"),
    (lambda: transformer_lib.config.from_dict(ModelConfig, {"vocab_size": 9, "dropout": 2.0}, "x"),
     "x does not make a ModelConfig: dropout is 2.0"),
    (lambda: visualize.head_view([[[1.0]]], ["a"], heads=[]), "name at least one head, each once"),
    (lambda: visualize.head_view([[[1.0]]], ["a"], heads=[0, 0]), "name at least one head, each"),
    (lambda: visualize.stills.bars([], "b"), "shares must hold at least one"),
    (lambda: visualize.stills.sentences([]), "named must hold at least one"),
    (lambda: visualize.stills.curve([], "x", "y", "c"), "points must hold an x above 0"),
    (lambda: visualize.stills.curve([(0, 0)], "x", "y", "c"), "points must hold an x above 0"),
    (lambda: visualize.stills.moments([], []), "sources and told must hold at least one"),
    (lambda: visualize.stills.attention_squares([], [], [], "a"), "at least one label"),
    (lambda: visualize.table([], []), "columns must hold at least one heading"),
    (lambda: visualize.result_grid([{"a": 1, "v": 1}], "a", "a", "v"), "x and y must be diff"),
    (lambda: adaptive_depth.calibrate(torch.rand(2, 9), 2.0), "allowed is 2.0; .* at most 1"),
    (lambda: adaptive_depth.AdaptiveSteps(nn.GRU(4, 4), 4, 3)(x(1, 2, 4)),
     "layer returned a tuple of 2"),
    (lambda: denoising.span_corruption([5, 30], 20, random.Random(0)), "ids holds 30, and first_"),
    (lambda: distance.SpanAttention(16, 2, longest=4, start=2.0), "start is 2.0; .* at most 1"),
    (lambda: encoders.ReplacedTokens(config(), config(vocab_size=30)), "are 20 and 30; config and"),
    (lambda: encoders.guessing_loss(MaskedLanguageModel(config()), *[random_ids(1, 2)] * 3),
     "chosen is a tensor .* expected a bool tensor"),
    (lambda: experts.as_mixture(nn.Linear(2, 2), config()), "feed_forward must be a FeedForward"),
    (lambda: linear.fourier_features(x(2, 3), x(3)), "directions must be a matrix"),
    (lambda: relative_bias.RelativeBias(2, True, 64, 8), "max_distance must be above half"),
    (lambda: ReversibleStack([]), "there must be at least one, and each must take two streams"),
    (lambda: states.scan(*gates(), state=torch.zeros(1, 1)), r"must have the shape \(B, H, M, K"),
    (lambda: memory.CompressiveLanguageModel(config(positional="rotary"), 8, 4, 2)
     .compression_loss("auto"), "nothing has been read yet"),
    (lambda: by_hand.run_by_hand([[({("a", "a"): "x"}, {})]], {}, ["a"], "a"), "weight is 'x'"),
    (lambda: by_hand.run_by_hand([[({},)]], {}, ["a"], "a"), "each head a pair of dictionaries"),
    (lambda: sparse.layers_to_hear_all(torch.ones(3, 4).bool()), "have the shape .*T, T"),
    (lambda: arrows.arrival_loss(arrows.Follower(3, 2, 2), (x(1),), 0.1), "what draw of the same"),
    (lambda: shipping.milliseconds(["a"], {}, 5), "translators must hold"),
    (lambda: shipping.compare_on([], {}, 5), "must hold at least one"),
]
# The program on one page answers as the library does.
ONCE_ACCEPTED += [
    (lambda: one_file.noam(0, 32, 100), "noam: step is 0; it must be at least 1"),
    (lambda: one_file.noam(1, 32, 0), "noam does not work with .*a number is 0"),
    (lambda: one_file.label_smoothed_cross_entropy(x(1, 2, 12), torch.tensor([[3, 12]])),
     "targets holds 12, and logits has 12 numbers per row"),
    (lambda: one_file.Transformer(d_model=30, n_heads=4), "must be even, and a multiple of"),
    (lambda: one_file.Transformer()(torch.tensor([[50]]), torch.tensor([[1]])), "an id is beyond"),
    (lambda: one_file.scaled_dot_product_attention(x(2, 4), x(2, 4), x(2, 4), torch.ones(2, 2)),
     "a mask must be bool"),
    (lambda: one_file.make_pairs(3, shortest=5, longest=2), "shortest must be at least 1 and at"),
    (lambda: one_file.split([1, 2], 9), "held_out is 9, and there are 2 pairs"),
    (lambda: one_file.Training(one_file.Transformer(), []), "pairs must hold at least one"),
    (lambda: one_file.train(one_file.Training(one_file.Transformer(), [1]), 0, [1]),
     "steps is 0, and 0 updates have been made"),
    (lambda: one_file.translate(one_file.Transformer(), "bad"), "a list of lists of letters"),
    (lambda: one_file.beam_search(lambda ids: x(12), 0), "beam_size is 0, max_len 12; both must"),
    (lambda: one_file.main(["bad"], updates=50), "updates must be at least 100"),
    (lambda: one_file.Transformer(config()), "vocab_size is a ModelConfig; expected a who"),
    (lambda: one_file.Embedding(config(), 16), "vocab_size is a ModelConfig; expected a whole num"),
    (lambda: one_file.Stack(1, 16), r"expected Stack\(n_layers, sizes\)\.$"),
    (lambda: one_file.causal_mask(2.5), "size is 2.5 .float.; expected a whole number"),
    (lambda: one_file.make_pairs(-1), "count is -1; it must be at least 0"),
    (lambda: one_file.label_smoothed_cross_entropy(x(1, 2, 12), IDS[:1, :2], 3.0),
     r"smoothing is 3.0; it must be in \[0, 1\]"),
    (lambda: one_file.sequence_loss(one_file.Transformer(), (IDS, IDS), 3.0), "smoothing is 3.0"),
    (lambda: one_file.beam_translate(one_file.Transformer(), []), "source must hold a letter"),
]
# Shapes come before values, and what is quoted ends where its sentence does.
ONCE_ACCEPTED += [
    (lambda: label_smoothed_cross_entropy(x(2, 60, 3), IDS.repeat(2, 1)),
     r"logits \(2, 60, 3\) and targets \(2, 3\) do not fit: logits need the shape of targets plus"),
    (lambda: label_smoothed_cross_entropy(x(2, 3, 60), x(2, 3, 60)), "do not fit: logits need the"),
    (lambda: label_smoothed_cross_entropy(x(2, 3, 60), x(2, 3)), r"whole numbers: use .long\(\)"),
    (lambda: scaled_dot_product_attention(*[x(2, 3, 4)] * 3, torch.ones(5, 5).bool()),
     r"add to the scores; broadcastable to \(..., T_query, T_key\)\.$"),
    *[(lambda scheme=scheme: scheme(x(1, 16)), r"x must have the shape \(batch, tokens, d_model\)")
      for scheme in (positional.SinusoidalEncoding(16), positional.LearnedEncoding(16),
                     positional.SinusoidalEncoding(16).add, embeddings.Embed(config()))],
    (lambda: encoders.masked_loss(MaskedLanguageModel(config()), (IDS,), 3), "rate is 3; it mus"),
    (lambda: visualize.LiveCurve(y=("loss", "loss")), "y must name each metric once"),
    (lambda: states.StateMixer(16, 2, 4, "linear").step(x(2, 1, 16), x(1, 2, 4, 8)),
     "state must be what step of the same mixer returned for as many texts"),
    (lambda: model()(IDS, IDS, torch.ones(9, 9).bool()), ": src_mask has shape"),
    (lambda: model()(IDS, IDS, None, torch.ones(9, 9).bool()), ": tgt_mask has shape"),
    (lambda: model()(IDS, IDS, None, torch.ones(4, 4)), ": tgt_mask has dtype torch.float32"),
    (lambda: label_smoothed_cross_entropy(x(2, 3), OrderedDict(a=x(2))), "is an OrderedDict of 1"),
]


def kept():
    """A cache of one row."""
    cache = KeyValueCache()
    cache.append(x(1, 1, 2, 4), x(1, 1, 2, 4))
    return cache


def gates(decay=0.0, size=5):
    """What `scan` and its kin take: (B, H, T, M), and a decay."""
    q = x(1, 2, size, 4)
    return q, q, x(1, 2, size, 3), torch.full((1, 2, size, 1), decay), torch.ones(1, 2, size, 1)


# What broadcasts by accident, what the docstring bounds, and what answered without a reason.
ONCE_ACCEPTED += [
    (lambda: preferences.reward_loss(x(4), x(4, 1)), r"worse is a tensor \(4, 1\) .*expected "
     r"better, worse: \(B,\), B = 4 as in better"),
    (lambda: preferences.dpo_loss(x(4), x(4), x(4, 1), x(4, 1), 0.1), "expected better_before"),
    (lambda: preferences.reweighted(x(5), x(5, 1), 1.0), "reference_log_p, reward: .N,., N = 5"),
    (lambda: neighbours.interpolate(-x(4).abs(), -x(3, 1).abs(), 0.5), "found_logp: .Q,., Q = 4"),
    (lambda: encoders.distillation_loss(x(4, 9), x(1, 9)), "student, teacher: .N, V., N = 4 as in"),
    (lambda: gate_layers.GruGate(16)(x(2, 3, 16), x(1, 3, 16)), "expected x, y:"),
    (lambda: transformer_lib.normalization.layer_norm(x(2, 5, 16), x(5, 1), torch.zeros(16)),
     "expected weight, bias: .D,., D = 16 as in x"),
    (lambda: states.quadratic(*[x(2, 2, 5, 4), *gates()[1:]]), "k is a tensor .*expected q, k"),
    (lambda: states.scan(*gates(0.9)), "log_decay holds 0.9; each number must be at most 0"),
    (lambda: states.by_chunks(*gates(), size=0), "size is 0; it must be at least 1"),
    (lambda: neighbours.interpolate(torch.tensor([0.2]), torch.tensor([0.1]), 0.3),
     "model_logp holds 0.2; each number must be at most 0"),
    (lambda: neighbours.Datastore(x(5, 4), torch.arange(5)).nearest(x(2, 4), 9),
     "n is 9 .int.; n must be at least 1 and at most the number of keys"),
    (lambda: stacks.pixels_as_text(torch.full((1, 1, 2, 2), 255), torch.ones(1).long()),
     "images holds 255; each number must be at least 0 and at most 1"),
    (lambda: corridor.rewards_of(torch.tensor([[0, 7]]), torch.tensor([1])), "actions holds 7"),
    (lambda: experts.balance_loss(x(4, 4).softmax(-1), torch.eye(4).long()), "not one-hot"),
    (lambda: caches.tokens_kept(100, 20, one_global_of=-6), "one_global_of is -6"),
    (lambda: transformer_lib.schedule.learning_rate(TrainConfig(), 0, 8), "step is 0; it must be "),
    (lambda: transformer_lib.positional.make_positions(config(), "multiply"), "must be among"),
    (lambda: layer_memory.MixedMemory(config(), torch.tensor([[2.0, 3.0]])), "that sum to 1"),
    (lambda: verdict.pooled_spread([{0: 1.0, 1: math.nan}]), "leave out the runs that diverged"),
    (lambda: transformer_lib.evaluation.bleu_from_counts([5, 4, 3, 2, 1, 1, 1, 1, 9, 9]),
     "4 totals at least as large"),
    (lambda: exchange.exchange(model(), MultiHeadAttention), "stack must have layers"),
    (lambda: adaptive_depth.AdaptiveSteps(nn.Linear(4, 4), 4, 3), "layer must take .x, mask."),
    (lambda: learning.learn(model(), lambda: torch.zeros(()), 1, 0.1), "without a gradient; expec"),
    (lambda: learning.learn(model(), lambda: 0.5, 1, 0.1), r"loss returned 0.5 .float.; exp"),
    (lambda: learning.learn(model(), lambda batch: batch, 1, 0.1), r"the function <lambda>\(batch"
     r"\); expected a function without arguments"),
    (lambda: learning.learn(model(), lambda: 0.5, 1, 0.1, faster={"nope": 2.0}), "faster must nam"),
    (lambda: denoising.restore([5, 20], [21, 7], 20), "hold each gap of source"),
    (lambda: by_hand.run_by_hand([], {}, ["a", "ab"], "ab"), "all must have the same length"),
    (lambda: by_hand.run_by_hand([], {}, ["z"], "ab"), "written in letters, each of which"),
    (lambda: visualize.result_grid([{"a": 1, "b": 2}], "a", "b", "loss"), "a row has no 'loss', o"),
    (lambda: batches().restore({"epoch": 3}), "state has no 'next_batch': only 'epoch'"),
    (lambda: acting.play(lambda: None, 2), "<lambda> takes different arguments from those it is"),
    (lambda: acting.play(lambda past: None, 2), "choose must return actions, "),
    (lambda: model()(train_tokenizer(TEXTS, 60).encode("ein"), random_ids(1, 3)),
     "src_ids is an Encoding; expected a tensor"),
    (lambda: transformer_lib.encoder.EncoderLayer(config())(x(2, 5, 8)),
     "8 numbers where 16 are expected"),
    (lambda: transformer_lib.corpora.folder.load("nowhere", "de", "en"), "a str has no iterdir"),
]


def stepping(step):
    """A model with another `step`."""
    other = model()
    other.step = lambda ids, state, own=other.step: step(own(ids, state))
    return other


# What fails within, by a cause that is looked for then.
ONCE_ACCEPTED += [
    (lambda: transformer_lib.decoding.greedy_decode(stepping(lambda y: y[None]), random_ids(2, 3)),
     r"model.step\(ids, state\) logits \(B, V\)"),
    (lambda: transformer_lib.decoding.in_batches(lambda ids: ids[:1], [[4, 2], [5, 2]], 99),
     "decode must return B results"),
    (lambda: acting.play(lambda past: torch.rand(3), 3), "choose must return actions, "),
    (lambda: training.translation_loss(model(), (x(2, 3),)), r"must be \(src_ids, tgt_ids\)"),
    (lambda: transformer_lib.batching.pad([]), "sequences must hold at least one"),
    (lambda: training.validation_loss(model(), [], []), "sources must hold at least one"),
    (lambda: transformer_lib.evaluation.bleu_from_counts([1] * 9), "counts must be 10: 4 matches"),
    (lambda: transformer_lib.optimizers.orthogonalize(x(5)), r"expected matrices: \(..., A, B\)"),
    (lambda: ReversibleStack([nn.Linear(4, 4)])(x(2, 3, 4)), "each must take two streams"),
    (lambda: families.from_gpt2(model().state_dict(), config()), "state has no 'wte.weight': onl"),
    (lambda: transformer_lib.decoding.sample(stepping(lambda y: None), random_ids(2, 3)),
     r"model.start must return \(ids, state\), and model.step"),
    (lambda: acting.play(lambda past: [0, 1, 0], 3), "choose must return actions, "),
    (lambda: transformer_lib.batching.padding_share([(3, 4)], []), "batches must hold at least on"),
    (lambda: transformer_lib.config.to_dict({}), "config must be a BlockConfig, a ModelConfig or"),
    (lambda: training.translation_batches([[4]], [[4], [5]], 9, 0), "as many targets as sources"),
    (lambda: transformer_lib.decoding.evaluating(len), "model must be a Module"),
    (lambda: transformer_lib.batching.pad([torch.ones(2)]), "a list of 1, the first a tensor "),
    (lambda: transformer_lib.optimizers.Muon(model(), lr="fast"), r"lr=0.001 .a number"),
    (lambda: caches.latent(MultiHeadAttention(16, 4), 99), "size must be at most d_model"),
    (lambda: corridor.draw_walks(3, 0), "length is 0; it must be at least 2"),
    (lambda: digits.accuracy(digits.conv_net(), digits.Digits(x(4, 8, 8), torch.ones(4).long())),
     r"images must be \(N, C, height, width\)"),
    (lambda: adaptive_depth.Exits(16, 0), "n_layers is 0; it must be at least 1"),
    (lambda: sparse.any_of(), "rules must hold at least one"),
    (lambda: speed.format_seconds(-3.0), "seconds is -3.0; it must be at lea"),
    (lambda: checkpoint.step_of(Path("latest")), "'latest' is not a number"),
    (lambda: families.gpt2_config({}), "given has no 'vocab_size', .*: it is empty"),
    (lambda: scaled_dot_product_attention(x(2, 3), x(2, 3).double(), x(2, 3)),
     r"k is not of torch.float32, as the others are: use .to\(torch.float32\)"),
]


@pytest.mark.parametrize(("error", "reason"), [
    (KeyError("width"), "there is no 'width' in it"),
    (AttributeError("'Linear' object has no attribute 'layers'"), "a Linear has no layers"),
    (RuntimeError("a sentence that nobody foresaw"), 'the cause: "a sentence that nobody foresaw"'),
    (RuntimeError("size of tensor a (3) must match (4)"), " (sizes 3 and 4 do not fit together)"),
    (RuntimeError("shapes cannot be multiplied (3x5 and 4x16)"), " (5 numbers where 4 are expecte"),
    (RuntimeError("normalized_shape=[16], expected [*, 16], but got input of size[2, 5, 1]"),
     " (1 numbers where 16 are expected)"),
    (IndexError("Dimension out of range (expected [-3, 2], but got 7)"), " (there is no axis 7)"),
    (RuntimeError("must have the same number of dimensions"), " (the sizes do not fit together)"),
    (TypeError("cannot unpack non-iterable NoneType object"), " (a NoneType has no entries)"),
    (TypeError("'int' object is not iterable"), " (an int has no entries)"),
    (TypeError("unsupported operand type(s) for +: 'int' and 'str'"), " (values of these types do"),
    (ValueError("Target size ([1, 30]) must be the same as input size"), " (the sizes do not fit"),
    (ZeroDivisionError("integer division or modulo by zero"), " (a number is 0)"),
    (RuntimeError("Expected a floating point or complex tensor as input"), " (numbers of these"),
    (RuntimeError("Cannot copy out of meta tensor; no data!"), " (the device meta holds no number"),
    (TypeError("cannot assign 'str' as child module 'a'"), " (a str is not a module)"),
    (RuntimeError("expected input to have 16 channels, but got 8"), " (8 numbers where 16 are exp"),
    (TypeError("indices must be Tensor, not int"), " (an int where a tensor is expected)"),
])
def test_no_answer_is_without_its_reason(error, reason):
    assert reason in calls._reason(None, error, {})


def acting_model(n_state=4, n_actions=2):
    """A DecisionTransformer, and what it takes for two episodes of three steps."""
    episodes = x(2, 3), x(2, 3, n_state), torch.ones(2, 3).long(), torch.arange(3).repeat(2, 1)
    return (DecisionTransformer(config(max_len=8), n_state, n_actions), *episodes)


def with_changed(i, change):
    model, *given = acting_model()
    given[i] = change(given[i])
    return model, given


def started(rows=2):
    """A decoding of some sentences, one step on."""
    network = model()
    ids, state = network.start(random_ids(rows, 3), 1)
    network.step(ids, state)
    return state


def follower():
    return arrows.Follower(6, 3, 2)


def routed(centroids):
    q = x(1, 2, 6, 4)
    return routing.routing_attention(q, q, q, centroids, 2)


def with_mask(value, *shape):
    q = x(1, 3, 4)
    return scaled_dot_product_attention(q, q, q, torch.full(shape or (3, 3), value))


# Numbers that a table has no row for, widths that broadcast, and what is no number.
ONCE_ACCEPTED += [
    *[(lambda i=i, change=change: (lambda built, given: built(*given))(*with_changed(i, change)),
       message) for i, change, message in (
        (1, lambda states: x(2, 3, 5), "states is .* its last size must be 4, n_state"),
        (1, lambda states: states[..., :1], "states is .* its last size must be 4, n_state"),
        (2, lambda actions: actions + 6, "actions holds 7; .* at least 0 and below 2, n_actions"),
        (3, lambda steps: steps - 1, "steps holds -1; .* at least 0 and below 8, max_len"))],
    (lambda: acting_model()[0].tokens(*acting_model(5)[1:]), "DecisionTransformer.tokens: states"),
    (lambda: started().select(torch.tensor([7])), "DecodingState.select: rows holds 7; .* below 2"),
    (lambda: started().cache.select(torch.tensor([-1])), "DecoderCache.select: rows holds -1"),
    (lambda: started().select(torch.tensor([0]), torch.tensor([2])), "sentences holds 2; .* below"),
    (lambda: started().cache.select(torch.tensor([0]), torch.tensor([2])), "sentences holds 2"),
    (lambda: encoders.FactorisedEmbedding(9, 4, 8)(torch.tensor([[9]])), "ids holds 9; .* below 9"),
    (lambda: follower()(torch.full((1, 6), 6), torch.ones(1).long()), "arrows holds 6; .* below 6"),
    (lambda: follower()(torch.zeros(1, 6).long(), torch.tensor([4])), "hops holds 4; .* below 4"),
    (lambda: states.Recaller("GLA", 8)(torch.full((1, 2), 999), torch.zeros(1, 2).long()),
     "Recaller: names holds 999; each number must be at least 0 and below"),
    (lambda: experts.balance_loss(x(6, 4).softmax(-1), torch.full((6, 1), 9)), "chosen holds 9; "),
    (lambda: speculative.KeepByChance()(x(2, 9), [9], None), "guesses holds 9; .* below 9, the"),
    (lambda: Classifier(config(), 3, n_segments=2)(random_ids(1, 3), torch.full((1, 3), 2)),
     "segments holds 2; .* below 2, n_segments"),
    (lambda: VisionTransformer(config(), 3, 2, channels=3)(x(1, 1, 8, 8)), "channels 3, height"),
    (lambda: transformer_lib.positional.SinusoidalEncoding(16)(x(1, 3, 1)), "must be 16, d_model"),
    (lambda: transformer_lib.positional.LearnedEncoding(16).add(x(1, 3, 1)), "must be 16, d_model"),
    (lambda: transformer_lib.normalization.RMSNorm(16)(x(2, 5, 1)), "must be 16, d_model"),
    (lambda: transformer_lib.normalization.LayerNorm(16)(x(2, 5, 1)), "must be 16, d_model"),
    (lambda: transformer_lib.positional.RotaryEmbedding(8)(x(1, 2, 3, 2)), "must be 8, d_head"),
    (lambda: transformer_lib.positional.RotaryEmbedding(8).turn(x(1, 2, 3, 8), x(1, 2, 3, 6)),
     "k is .* its last size must be 8, d_head"),
    (lambda: linear.positive_features(x(1, 2, 5, 4), x(8, 6)), "must be 6, as each direction"),
    (lambda: MultiHeadAttention(16, 4).split_heads(x(5, 16)), "shape .batch, tokens, d_model"),
    (lambda: MultiHeadAttention(16, 4).join_heads(x(2, 5, 16)), "shape .batch, heads, tokens, d_h"),
    (lambda: MultiHeadAttention(16, 4, n_kv_heads=2).share_heads(x(1, 3, 5, 4)), "n_kv_heads, to"),
    (lambda: routed(x(1, 3, 4)), r"centroids: \(H, C, K\), H = 2 as in q, K = 4 as in q"),
    (lambda: routing.move_centroids(x(1, 3, 4), x(1, 2, 6, 4)), "centroids: .*expected x: "),
    (lambda: encoders.disentangled_scores(*[x(1, 2, 3, 4)] * 2, *[x(1, 6, 4)] * 2), "H = 2 as in"),
    (lambda: sparse.as_mask(lambda i, j: i - j, 4), "rule returned .* of int64; expected a bool"),
    (lambda: sparse.plan_blocks(lambda i, j: 1.0 * (i - j), 4, 2), "rule returned .*float32"),
    (lambda: memory.RecurrentLanguageModel(config(positional="rotary"), -4), "reach is -4; it mu"),
    (lambda: memory.by_segments(4, -1), "reach is -1; it must be at least 0"),
    (lambda: deberta.Deberta(config(positional="none"), reach=0), "reach is 0; it must be at lea"),
    (lambda: transformer_lib.fast.decoding.largest(x(2, 20), 3, width=0), "width is 0; it mu"),
    (lambda: masks.causal_mask(np.int64(-1)), "size is .*-1.*; it must be at least 0"),
    (lambda: speculative.keep_likeliest(x(3, 20), [5, 6, 7, 8], None), "one row more than there a"),
    (lambda: speculative.keep_likeliest(x(3, 20), [5, 6], x(1, 20)), "unless None, one for each"),
    (lambda: recipes.smaller(recipes.SHORT, {"n_heads": 3}, {}, 100), "not divisible by n_heads 3"),
    (lambda: with_mask(math.nan), "mask holds nan; each number must be finite"),
    (lambda: with_mask(math.inf), "mask holds inf; each"),
    (lambda: MultiHeadAttention(16, 4).attend(*x(3, 1, 4, 3, 4), torch.tensor(math.nan)),
     "mask holds nan"),
    (lambda: with_span(math.nan), "attend: mask holds nan"),
    *[(lambda call=call, value=value: call(torch.full((1, 3, 3), value)),
       r"holds -?(nan|inf); each number must be finite")
      for value in (math.nan, math.inf, -math.inf)
      for call in (transformer_lib.optimizers.orthogonalize, lambda x: caches.quantise(x, 4),
                   lambda weight: caches.truncated_svd(weight, 2))],
    (lambda: transformer_lib.optimizers.orthogonalize(torch.ones(1, 3, 3).long()),
     "or an embedding where they are ids"),
]


def with_sublayer(gives):
    """An encoder layer whose feed-forward network gives something else than it should."""
    layer = transformer_lib.encoder.EncoderLayer(config())
    layer.feed_forward = nn.Module()
    layer.feed_forward.forward = gives
    return layer


# A part that was handed in gives another shape, or calls its arguments by other names.
ONCE_ACCEPTED += [
    (lambda: with_sublayer(lambda x: x.mean((0, 1), keepdim=True))(x(2, 3, 16)),
     r"the sublayer returned a tensor \(1, 1, 16\).*; expected a tensor \(2, 3, 16\)"),
    (lambda: with_sublayer(lambda x: (x, None))(x(2, 3, 16)), "the sublayer returned a tuple of 2"),
    (lambda: gate_layers.GatedResidual(config(), gate_layers.OutputGate(16))(
        x(2, 3, 16), lambda x: x.mean(1, keepdim=True)), r"the sublayer returned a tensor \(2, 1,"),
    (lambda: Transformer(config()).decode(random_ids(2, 3), random_ids(2, 3)),
     r"expected memory: \(B, S, D\)"),
    (lambda: transformer_lib.decoder.Decoder(config(n_decoder_layers=2))(
        x(2, 3, 16), x(2, 3, 16), cache=DecoderCache(1)),
     "layers of cache: 1, of the decoder: 2; cache must have as many layers as the decoder"),
    (lambda: transformer_lib.decoding.sample(
        Transformer(config()), random_ids(1, 3), generator=np.random.default_rng(0)),
     "expected a torch.Generator or None"),
    (lambda: denoising.token_deletion([5, 6], np.random.default_rng(0)), "expected a Random"),
    (lambda: transformer_lib.decoding.greedy_decode(Classifier(config(), 2), random_ids(1, 3)),
     "model must decode, with start and step"),
    (lambda: speculative.speculative_decode(
        Transformer(config()), speculative.TableDraft([[4, 5]], 1), random_ids(2, 3), 2),
     "src_ids must hold one source"),
    (lambda: speculative.TableDraft([], 1), "texts must hold a token"),
    (lambda: TrainConfig(max_steps=10, cooldown=20), "cooldown is 20; .* at most max_steps 10"),
    (lambda: digits.train(digits.conv_net(), digits.Digits(x(5, 1, 8, 8), random_ids(4)), 1),
     "data must hold a picture, and a label for each"),
    (lambda: routing.routing_attention(*x(3, 1, 2, 3, 4), x(2, 2, 4), 9), "members must be at mos"),
    (lambda: relative_bias.RelativeBias(2, True, n_buckets=3), "at least 2 for each direction"),
    (lambda: transformer_lib.load_pretrained(Path(transformer_lib.__file__)), "is a file; giv"),
]


def exits(n_layers=1):
    return adaptive_depth.Exits(16, n_layers)


def nothing_but(value, *shape):
    return torch.full(shape, value)


# By kind: no number, below 0, shapes that a parent or another documents, types one by one, empty.
ONCE_ACCEPTED += [
    (lambda: preferences.dpo_loss(*x(4, 4), math.inf), "price is inf; .* above 0 and finite"),
    (lambda: encoders.distillation_loss(x(2, 9), x(2, 9), math.inf), "temperature is inf; .*finit"),
    (lambda: corridor.policy_gradient_loss(corridor.small_agent(), corridor.draw_walks(2, 5),
                                           math.inf), "entropy is inf"),
    (lambda: scaled_dot_product_attention(*[nothing_but(math.nan, 1, 3, 4)] * 3),
     "q holds nan; each number must be finite"),
    (lambda: adaptive_depth.solve_maps(exits(2), [nothing_but(math.inf, 40, 16), x(40, 16)]),
     "states holds inf; each number must be finite"),
    (lambda: adaptive_depth.solve_maps(exits(2), [x(40, 16).to_sparse(), x(40, 16)]),
     "states is a sparse tensor"),
    (lambda: masks.padding_mask(-random_ids(1, 3)), "ids holds -.*; such numbers count from 0"),
    (lambda: transformer_lib.batching.pad([[4], [-5]]), "sequences holds -5; ids count from 0"),
    (lambda: denoising.token_masking([5, -6], 20, random.Random(0)), "ids holds -6; ids count fr"),
    (lambda: corridor.draw_walks(0, 5), "n_walks is 0; it must be at least 1"),
    (lambda: sparse.blockwise(0, 8), "block is 0; it must be at least 1"),
    (lambda: sparse.blockwise(4, -8), "size is -8; it must be at least 0"),
    (lambda: sparse.any_of(sparse.local(1), 3),
     r"rules holds .*; expected each as a function of \(a tensor, a tensor\)"),
    (lambda: preferences.write_texts(model(), 2), "model is a Transformer; expected a LanguageMod"),
    (lambda: preferences.reward_loss(x(0), x(0)), "better is a tensor .0,. .*there is nothing in"),
    (lambda: scaled_dot_product_attention(x(4), x(3, 4), x(3, 4)), "expected q: .*T_query, K"),
    (lambda: ReversibleLayer(Anything(), Anything()).inverse(x(2, 3, 4), x(2, 1, 4)), "y1, y2:"),
    (lambda: with_changed(3, lambda steps: steps[:1])[0](*with_changed(3, lambda s: s[:1])[1]),
     r"ids, steps: \(B, T\), B = 2"),
    (lambda: deberta.DisentangledAttention(config(), nn.Parameter(x(7, 16))), r"\(2R, D\)"),
    (lambda: deberta.DisentangledAttention(config(), nn.Parameter(x(8, 12))), "must be 16, d_mod"),
    (lambda: linear.linear_attention(x(2, 2, 5, 4), x(1, 2, 5, 4), x(1, 2, 5, 4)), "B = 2 as in q"),
    (lambda: caches.QuantisedCache(4).append(x(1, 2, 3, 4), x(1, 3, 3, 4)), "H = 2 as in keys"),
    (lambda: caches.QueryKeyNorm(4).turn(*x(2, 1, 2, 3, 1)), "q is .* must be 4, d_head"),
    (lambda: MultiHeadAttention(16, 4, positions=transformer_lib.positional.AlibiBias(1)),
     "positions must be made for as many heads"),
    (lambda: transformer_lib.decoder.Decoder(config(), False)(x(2, 3, 16), x(2, 5, 16)),
     "memory would not be read"),
    (lambda: transformer_lib.embeddings.Embed(config())(torch.ones(1, 3, 16).long()), "use .float"),
    (lambda: model().start(random_ids(2, 3), 1)[1].select(torch.tensor([7])), "numbers of rows"),
    (lambda: LanguageModel(config()).decode(random_ids(1, 3), DecoderCache(3)), "as many layers"),
    (lambda: Classifier(config(), 3)(torch.zeros(1, 3).long()), "a token besides padding"),
    (lambda: adaptive_depth.EarlyLeaving(model(), exits(3), "classifier", 0.5), "as many layers"),
    (lambda: exits(3).logits(model(), x(2, 16), 1), "as many decoder layers as the exits"),
    (lambda: adaptive_depth.solve_maps(exits(2), [x(4, 16)] * 2), "more rows than a row has"),
    (lambda: adaptive_depth.calibrate(torch.rand(3), 0.5), "the shape .settings, texts"),
    (lambda: caches.bytes_per_token(config(), turned=4), "give latent, too"),
    (lambda: caches.decoder_cache(model(), own=dict), "own returned {} .*expected a cache"),
    (lambda: transformer_lib.schedule.cooldown(150, 100, 10), "step must be at most max_steps"),
    (lambda: transformer_lib.fast.training.projected_cross_entropy(
        nn.Linear(16, 20), x(2, 3, 16), random_ids(3, 2), []), "the shape of hidden, without its"),
    (lambda: acting.best(acting.Episodes(x(4, 6, 4), torch.ones(4, 6).long(), x(4, 6),
                                         torch.full((4,), 9)), 0.5), "no length of episodes may"),
    (lambda: training.fit(model(), (batch for batch in ()), training.translation_loss,
                          TrainConfig(), "run"), "batches is a generator; expected a Batches"),
    (lambda: transformer_lib.data.load_parallel(__file__), "is a file; give the folder that holds"),
    (lambda: transformer_lib.feed_forward.FeedForward(16, 8)(x(2, 3, 16).double()),
     "x is not of torch.float32, as the others are"),
    (lambda: VisionTransformer(config(), 3, 2)(x(1, 1, 0, 8)), "there is nothing in images"),
    (lambda: transformer_lib.batching.TokenBatchSampler([3, (4, 5)], 20),
     "each entry .a whole number, a whole number..$"),
    (lambda: transformer_lib.tokenization.train_tokenizer(iter(()), 99), "one that isn't empty"),
    (lambda: caption_grammar.to_ids([]), "texts must hold at least one"),
    (lambda: memory.Compression(16, 3)(x(2, 4, 16)), "a multiple of the rate"),
    (lambda: sparse.sparse_attention(*x(3, 1, 2, 16, 4), sparse.plan_blocks(sparse.local(2), 8, 4)),
     "plan must be made for as many tokens"),
    (lambda: sparse.plan_blocks(sparse.local(2), 8, 4, order=torch.zeros(8).long()), "order must"),
]


def with_span(value):
    """One of the attentions that override `attend`."""
    return distance.SpanAttention(16, 4, longest=4).attend(*x(3, 1, 4, 3, 4), torch.tensor(value))


# The first update is 1; a device's name, a layer's number and a token's id are said.
ONCE_ACCEPTED += [
    (lambda: transformer_lib.schedule.noam(0, 512, 4000), "noam: step is 0; it must be at least 1"),
    (lambda: transformer_lib.schedule.inverse_sqrt(0, 1.0, 10), "step is 0; it must be at least 1"),
    (lambda: TrainConfig(device="gpu0"), "device is 'gpu0'; it must be 'auto', 'cpu', 'cuda', 'cu"),
    (lambda: batches().tensors([0], "gpu0"), "device is 'gpu0'; it must be 'cpu', 'cuda'"),
    (lambda: transformer_lib.loss.label_smoothed_cross_entropy(x(2, 9), torch.tensor([4, 12])),
     "targets holds 12, and logits has 9 numbers per row; targets must be ids below"),
    (lambda: visualize.head_view(x(2, 4, 3, 3).softmax(-1), "abc", layer=9),
     "layer is 9, heads is None: weights has 2 layers with 4 heads each"),
    (lambda: acting.train_policies(2, keep=(5,)), "keep must hold numbers of updates, from 0 to"),
    (lambda: states.SharpMixer(16, 2, 4, "linear"), "gate must be 'softmax' or 'softmax, gated'"),
    (lambda: states.Recaller("softmax, gatd", 4), "gate must be a name of GATES, or 'softmax' or"),
    (lambda: states.StateMixer(16, 3, 4, "linear"), "d_model must be a multiple of n_heads"),
    (lambda: caption_grammar.to_texts(torch.ones(3).long()), "ids must have the shape"),
    (lambda: caption_grammar.to_texts(torch.full((1, 3), 999)), "of words in vocabul"),
    (lambda: digits.shift(x(2, 1, 28, 28)), r"images must be \(N, 1, 8, 8\)"),
    (lambda: digits.shift_batch(x(2, 1, 28, 28)), r"images must be \(N, C, 8, 8\)"),
    (lambda: one_stream.translate_streams(LanguageModel(config()), [[4]], max_rows=0),
     "max_rows is 0; it must be at least 1"),
    (lambda: speculative.ModelDraft(model(), random_ids(1, 3), bos_id=99), "bos_id holds 99"),
    (lambda: transformer_lib.decoding.beam_search(model(), random_ids(1, 3), bos_id=99),
     "bos_id holds 99; each number must be at least 0 and below 20, vocab_size"),
    (lambda: train_tokenizer(TEXTS, -5), "vocab_size is -5, but the special tokens alone take 4"),
]


# Legal, and refused by a door that was too narrow.
ONCE_REFUSED = [
    # At their bounds, and rare.
    lambda: transformer_lib.decoding.greedy_decode(
        transformer_lib.fast.decoding.for_decoding(model()), random_ids(2, 3), eos_id=-1),
    lambda: visualize.matrix(torch.tensor([math.inf, math.nan])),
    lambda: MultiHeadAttention(16, 4, positions=transformer_lib.positional.AlibiBias(4)),
    lambda: MultiHeadAttention(16, 4, positions=transformer_lib.positional.PositionalScheme()),
    lambda: states.masked_scores(*x(2, 1, 2, 5, 4), torch.zeros(1, 2, 5, 1)),
    lambda: torch.func.vmap(transformer_lib.normalization.RMSNorm(16))(x(3, 2, 16)),
    lambda: scaled_dot_product_attention(x(1, 4), x(3, 4), x(3, 4)),
    lambda: neighbours.nearest_attention(x(1, 1, 1, 8), x(1, 1, 6, 8), x(1, 1, 6, 9), 2),
    lambda: flash.flash_attention(x(1, 1, 5, 4), *x(2, 1, 1, 3, 4), 2),
    lambda: training.label_smoothed_cross_entropy(
        nothing_but(math.inf, 1, 1, 5), torch.zeros(1, 1).long()),
    lambda: transformer_lib.loss.label_smoothed_cross_entropy(
        x(1, 5), torch.tensor([-100]), ignore_index=-100),
    lambda: acting_model()[0](*acting_model()[1:]),
    lambda: started().select(torch.tensor([1, 1, 0]), torch.tensor([1])),
    lambda: DecodingState(None).select(torch.tensor([7])),
    lambda: DecoderCache(1).select(torch.tensor([7])),
    lambda: follower()(torch.full((1, 6), 5), torch.tensor([3])),
    lambda: with_mask(-math.inf),
    lambda: with_mask(-1e9, 1, 3),
    lambda: with_mask(-0.5, 1),
    lambda: with_mask(True),
    lambda: with_span(-math.inf),
    lambda: masks.causal_mask(np.int64(3)),
    lambda: speculative.keep_likeliest(x(1, 20), [], None),
    lambda: speculative.KeepByChance()(x(2, 9), [8], x(1, 5).softmax(-1)[:, :9]),
    lambda: sparse.as_mask(lambda i, j: j < 2, 4),
    lambda: sparse.as_mask(sparse.random_links(16, 4, 9), 16),  # or all
    lambda: sparse.as_mask(sparse.local(1), 0),
    lambda: memory.RecurrentLanguageModel(config(positional="rotary"), 0),
    lambda: MultiHeadAttention(6, 3).join_heads(x(1, 3, 4, 2)),
    lambda: MultiHeadAttention(16, 4, n_kv_heads=2).share_heads(x(1, 2, 5, 4)),
    lambda: transformer_lib.normalization.RMSNorm(16)(x(16)),
    lambda: transformer_lib.optimizers.orthogonalize(torch.zeros(1, 3, 3)),
    lambda: transformer_lib.fast.decoding.largest(x(2, 20), 3, width=10**9),
    lambda: corridor.progress(
        lambda seen: (x(*seen.shape, 3), x(*seen.shape)), corridor.draw_walks(4, 3)
    ),
    lambda: visualize.attention_heatmap(torch.eye(2), "ab", "cd", mask=np.ones((2, 2), bool)),
    lambda: visualize.attention_heatmap(torch.eye(2), torch.arange(2), ["c", "d"]),
    lambda: visualize.attention_heatmap(torch.eye(2), "ab", "cd", title=["Two", "lines"]),
    lambda: visualize.table({"a": 1, "b": 2}, [[1, 2]]),
    lambda: verdict.compare_runs({0: 1.0, 1: 2.0}, {0: 1.0, 1: 3.0}, spread=np.array([0.5, 3])),
    # Shapes agree, whatever stands before them, and rounding is no wrong sign.
    lambda: preferences.reward_loss(torch.tensor(1.0), torch.tensor(0.0)),
    lambda: preferences.reward_loss(x(3, 4), x(3, 4)),
    lambda: MultiHeadAttention(16, 4).attend(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4)),
    lambda: DecoderLayer(config())(x(4, 3, 16), x(2, 5, 16)),
    lambda: sparse.random_links(8, 1, 0),
    lambda: stacks.text_as_pixels(torch.tensor([[0, 40]])),
    lambda: neighbours.interpolate(torch.full((2,), 1e-6), torch.zeros(2), 0.5),
    lambda: states.scan(*gates(-0.5)[:3], -torch.ones(1, 2, 5, 4), torch.ones(1, 2, 5, 1)),
    lambda: learning.learn(model(), lambda *anything: 1 / 0, 0, 0.1),
]


IDS = torch.tensor([[5, 6, 2]])
ENDS = torch.tensor([[1]])
SETTINGS = TrainConfig(max_steps=1)
TRAINED = {"train": [("a b", "a b")] * 4}


def trained(network, folder="unused", settings=SETTINGS, **options):
    return training.train(network, make_tokenizer(), TRAINED, settings, folder, **options)


def own_vocabulary(kind=Transformer, **changes):
    return kind(config(vocab_size=make_tokenizer().get_vocab_size(), **changes))


def several_gpus(model):
    """nn.DataParallel, with no GPU to look for: other tests may have registered a pretend one."""
    found = "torch.nn.parallel.data_parallel._get_available_device_type"
    with unittest.mock.patch(found, return_value=None):
        return nn.DataParallel(model)


def filled(value, dtype=torch.float32):
    state = model().state_dict()
    return {name: torch.full_like(tensor, value, dtype=dtype) for name, tensor in state.items()}


def spoil(module, value=math.nan):
    for parameter in module.parameters():
        nn.init.constant_(parameter, value)


def broken(value=math.nan):
    network = model()
    spoil(network, value)
    return network


def muon(network):
    return transformer_lib.optimizers.Muon(network, lr=0.1)


def stepped(network, make=muon):
    own = make(network)
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    own.step()
    return own.state_dict()


BLIND = [
    (lambda: transformer_lib.decoding.greedy_decode(model(), IDS, max_len=-5),
     "max_len is -5; this model writes between 1 and"),
    (lambda: transformer_lib.decoding.greedy_decode(model(), 0 * IDS),
     "each row of src_ids must hold a token besides padding"),
    (lambda: transformer_lib.decoding.in_batches(list, [[5, 2], []], 100), "must hold a token"),
    (lambda: choosing.n_best(model(), IDS, -3), "n is -3; it must be at least 1"),
    (lambda: speculative.speed_up(0.5, 3, 0.1, 1.0), "tokens is 0.5; it must be at least 1"),
    (lambda: transformer_lib.evaluation.breakdown(["a"] * 2, ["b"] * 2, "ab"), "must be a list"),
    (lambda: transformer_lib.evaluation.bleu_from_counts([math.nan] * 10), r"counts is \[nan"),
    (lambda: transformer_lib.evaluation.bleu_from_counts(np.zeros(9)), r"counts is \[.*0"),
    (lambda: transformer_lib.evaluation.score(np.array(["a"]), ["a"]), r"\(.tolist\(\) makes one"),
    (lambda: verdict.compare_runs({0: "42.1"}, {0: "42.0"}), "a is {0: '42.1'} .*: a number"),
    (lambda: training.translation_loss(model(), (IDS, ENDS)), "tgt_ids hold a token after <bos>"),
    (lambda: training.translation_loss(model(), (IDS, 0 * IDS)), "a token after <bos>"),
    (lambda: training.translation_loss(LanguageModel(config()), (IDS, IDS)),
     r"model must take \(src_ids, tgt_ids\), as a Transformer does"),
    (lambda: training.validation_loss(model(), [[5, 2]], [[1]]), "a token after <bos>"),
    (lambda: transformer_lib.fast.translation_loss(model(), (IDS, IDS), 2.0), "smoothing is 2.0"),
    (lambda: transformer_lib.fast.decoding.joined(nn.Linear(3, 4), nn.Linear(5, 4)),
     "maps must have the same in_features"),
    (lambda: memory.RecurrentLanguageModel(config(positional="rotary", n_decoder_layers=2), 4)
     .read_segment(IDS, [x(1, 2, 16)]), "memories must hold one for each layer"),
    (lambda: MultiHeadAttention(16, 4).split_heads(x(2, 5, 15)), "where a token has 16 numbers"),
    (lambda: MultiHeadAttention(16, 4, positions=transformer_lib.positional.RotaryEmbedding(16)),
     "positions must be made for d_head"),
    (lambda: transformer_lib.optimizers.Muon(model(), learning_rate=0.1), "such as lr=0.001"),
    (lambda: transformer_lib.optimizers.make_optimizer(
        model().requires_grad_(False), TrainConfig()), "must have a parameter that is trained"),
    (lambda: transformer_lib.config.from_dict(ModelConfig, {}), "has no vocab_size, which a Model"),
    (lambda: transformer_lib.tokenization.encode_source(Tokenizer(BPE()), ["a"]), "special tokens"),
    (lambda: acting_model(4)[0](x(1, 3, 1), x(1, 3, 4), torch.zeros(1, 3).long(), IDS),
     r"as in returns: \(B, T\)"),
    (lambda: learning.learn(model(), nn.MSELoss(), 2, 0.01), "a function without arguments"),
    (lambda: training.fit(model(), [(IDS, IDS)], training.translation_loss),
     r"batches is a list of 1, the first a tuple of 2, the first a tensor \(1, 3\)"),
    (lambda: sparse.any_of([sparse.local(2)]), "rules holds a list of 1, the first the function"),
    (lambda: sparse.any_of(), "any_of: rules must hold at least one"),
    (lambda: states.draw(2, 99, torch.Generator()), "64 by default.*, and size / 2 where there is"),
    (lambda: trained(own_vocabulary(), settings=Path("runs")), "config is the path runs; expected"),
    (lambda: trained(own_vocabulary(), ""), "run_dir is ''; expected a name that is not empty"),
    (lambda: trained(own_vocabulary(), "a\0b"), "holds no NUL"),
    (lambda: trained(several_gpus(own_vocabulary())), "of a DataParallel, give .module"),
    (lambda: trained(transformer_lib.fast.DecodingModel(own_vocabulary().eval())), "as a Trans"),
    (lambda: trained(own_vocabulary(LanguageModel)), "as a Transformer does"),
    (lambda: trained(own_vocabulary().half()), "of float16; model must hold float32 numbers"),
    (lambda: trained(own_vocabulary().to("meta")), "than meta"),
    (lambda: transformer_lib.visualize.line_chart([{"x": 1, "y": "high"}], "x", "y"),
     "'high' is a text; expected a number to draw"),
    (lambda: transformer_lib.visualize.LiveCurve()({"step": 1, "loss": "x"}), "'x' is a text"),
    (lambda: TrainConfig(clip_norm=math.inf), "clip_norm is inf; it must be at least 0 and finite"),
    (lambda: model()(IDS[:, :0], IDS), "src_ids must hold a token"),
    (lambda: scaled_dot_product_attention(x(2, 0), x(2, 0), x(2, 4)), "q must hold numbers to com"),
    (lambda: transformer_lib.attention.record_attention(nn.Linear(2, 2)), "a MultiHeadAttention"),
    (lambda: transformer_lib.corpora.mini.load("en", "en"), "must be two languages"),
    (lambda: visualize.LiveCurve()({"loss": [1.0], "step": 1}), r"\[1.0\] is a list; expected"),
    (lambda: visualize.LiveCurve()({"loss": 1.0, "step": "a"}), "'a' is a text; expected a number"),
    (lambda: visualize.line_chart([{"x": 1, "y": 2j}], "x", "y"), "2j is a complex; exp"),
    (lambda: started().cache.layers[0].own.append(x(1, 4, 1, 4), x(1, 4, 1, 4)), "as many rows, h"),
    (lambda: batches(columns=[[["a"], ["b"]]]).tensors([0], "cpu"), "a str where a"),
    (lambda: transformer_lib.optimizers.Muon(model(), lr=-1), "learning rate cannot be -1"),
    (lambda: checkpoint.load_checkpoint("x"), r"a text where a path .* use Path\("),
    (lambda: transformer_lib.runs.device.sums_in("cpu"), r"a text where .* use torch.device\("),
    (lambda: transformer_lib.example.encoder_input(model()), "one for the example's 12 tokens"),
    (lambda: transformer_lib.example.tokens(torch.tensor([12])), "the example's 12 tokens"),
    (lambda: transformer_lib.evaluation.bleu(["a b"], [["a b", "a c"]]), "'a b', which is not a"),
    (lambda: transformer_lib.evaluation.bleu([["a"]], [[["a"]]]), r"\['a'\], which is not a"),
    (lambda: labelled.load_labelled("mini", "text"), "mini holds sentence pairs without labels"),
    (lambda: checkpoint.load_state(model(), filled(math.nan), "here"), "finite; expected finite"),
    (lambda: checkpoint.load_state(model(), filled(math.inf), "here"), "finite; expected finite"),
    (lambda: checkpoint.load_state(model(), filled(1, torch.int8), "here"), "int8; expected"),
    (lambda: transformer_lib.decoding.greedy_decode(broken(), IDS), "not finite, in src_embedding"),
    (lambda: transformer_lib.decoding.sample(broken(), IDS), "not finite, in src_embedding"),
    (lambda: transformer_lib.decoding.beam_search(broken(math.inf), IDS), "holds numbers that are"),
    (lambda: Translator(own_vocabulary().apply(spoil), make_tokenizer()).translate(["ein Hund"]),
     "model holds numbers that are not finite"),
    (lambda: checkpoint.save_weights("w", {"a": torch.tensor([1e5])}, torch.float16),
     "'a' holds numbers too large for torch.float16; choose torch.bfloat16 or"),
    (lambda: checkpoint.save_weights("w", {"a": torch.tensor([math.nan])}), "'a' holds .* not fin"),
    (lambda: checkpoint.save_weights("w", {"a": torch.ones(1)}, torch.int8), "whole numbers; exp"),
    (lambda: visualize.line_chart([{"x": 0, "y": 1}], "x", "y", log_x=True),
     "x is 0 in a row, and a logarithmic axis only shows what is above 0: leave .* log_x=False"),
    (lambda: visualize.line_chart([{"x": 0, "y": -1}], "x", "y", log_y=True), "y is -1 in a row"),
    (lambda: visualize.LiveCurve(log_x=True)({"step": 0, "loss": 1.0}), "step is 0 in a row"),
    (lambda: visualize.LiveCurve(y=()), "y names no metric"),
    (lambda: transformer_lib.runs.device.pick_device("cpu:7"), "device is 'cpu:7'; it must be 'au"),
    (lambda: TrainConfig(device="cpu:7"), "TrainConfig: device is 'cpu:7'"),
    (lambda: masks.causal_mask(3, torch.device("cpu:7")), "causal_mask: device is 'cpu:7'"),
    (lambda: muon(model()).load_state_dict({}), "must be that of a Muon for a model of the same"),
    (lambda: muon(model()).load_state_dict(None), "state_dict is None"),
    (lambda: muon(model()).load_state_dict(muon(LanguageModel(config())).state_dict()),
     "must be that of a Muon for a model of the same sizes"),
    (lambda: muon(model()).load_state_dict(
        stepped(model(), lambda network: torch.optim.Adam(network.parameters()))), "of a Muon for"),
    (lambda: muon(model()).load_state_dict(stepped(Transformer(config(d_model=32)))), "same sizes"),
    (lambda: batches().restore({"epoch": 0, "next_batch": 10**9}), "at least next_batch batches"),
    (lambda: speculative.roll_back(started(), 99), "length is 99 .*at most the tokens in it"),
    (lambda: speculative.roll_back(DecodingState(None), 0), "state must have a cache"),
    (lambda: LanguageModel(config()).step(IDS, model().start(IDS, 1)[1]), "what start of this"),
    (lambda: model().step(IDS, LanguageModel(config()).start(IDS, 1)[1]), "what start of this"),
    (lambda: model().step(IDS, Transformer(config(d_model=32)).start(IDS, 1)[1]), "what start of"),
    (lambda: model().step(IDS, Transformer(config(n_decoder_layers=2)).start(IDS, 1)[1]), "what"),
    (lambda: model().step(IDS, started()), "what start of this model returned for as many rows"),
    (lambda: transformer_lib.evaluation.edit_distance("a b", ["a", "b"]), "must be of one kind"),
    (lambda: verdict.sign_flip_p(["1", "2"]), "differences must be finite numbers"),
    (lambda: verdict.sign_flip_p([[1.0], [2.0]]), "differences must be finite numbers"),
    (lambda: stacks.DeepLanguageModel(config()), "positional is 'sinusoidal'; it must be \"none\""),
    (lambda: stacks.SideBySideLanguageModel(config(), 4), "each layer brings positions of its"),
    (lambda: speculative.all_logits(model(), torch.ones(2, 1).long(), started()), "of one text"),
    (lambda: sparse.layers_to_hear_all(x(3, 3)), "mask must be bool, True = may attend"),
    (lambda: encoders.mask_tokens(IDS, 3, 1.0), "mask_id is 3; it must be at least 5"),
    (lambda: encoders.sentence_pairs([("a", "b")], "next"), "texts must hold at least two"),
    (lambda: encoders.start_from(MaskedLanguageModel(config()), MaskedLanguageModel(
        config(d_model=32))), "the two must have the same sizes"),
    (lambda: started().select(torch.tensor([0.5])), "rows must be whole numbers"),
    (lambda: diffusion.Counting(x(2, 3), config()), "texts must be whole numbers"),
    (lambda: digits.shuffle_patches(x(2, 1, 8, 8), torch.arange(4)), "a number for each patch"),
    (lambda: acting.play(lambda past: torch.tensor([5, 5]), 2), "actions that are 0 or 1"),
    (lambda: preferences.policy_gradient_loss(
        *[LanguageModel(config(vocab_size=len(caption_grammar.vocabulary())))] * 2,
        lambda ids: ids.float(), 0.1, 4), r"reward returned .*expected a tensor \(n,\)"),
    (lambda: speculative.ModelDraft(model(), IDS, [[1]]).propose([1, 5], 2), "pieces must have an"),
    (lambda: transformer_lib.fast.DecodingModel(model()).start(IDS[0], 1), r"\(batch, tokens\)"),
    (lambda: visualize.LiveCurve(ghost=["a"]), "ghost must hold dictionaries"),
    (lambda: transformer_lib.decoding.in_batches(lambda ids: None, [[5, 2]], 9),
     r"\(a NoneType has no entries: look at what decode returns\)"),
    (lambda: sparse.as_mask(lambda i, j: True, 5), "rule returned True .bool.; expected a bo"),
    (lambda: learning.learn(model(), lambda: torch.tensor(1j, requires_grad=True), 2, 0.01),
     r"loss returned a tensor \(\) of complex64; expected a tensor with one real number"),
    (lambda: export.unpack({"shape": [1], "offset": 0}, b"123"),
     "data 3 bytes; entry must be from the table of a file of export_live"),
    (lambda: visualize.result_grid([{"a": 1, "b": 1, "v": 0.5}], "a", "b", "v", number="abc"),
     "number is 'abc' .str.; number must be a format of numbers, such as '.0%'"),
    (lambda: visualize.live_figure("figure_mask", "It hides.", nix=1), "reads no option 'nix'"),
    (lambda: visualize.live_figure("figure_order", "It moves.", text=None), "text is None; expect"),
    (lambda: visualize.guess("n", "Which?", ["a", "a"], 0, "a."), "has a choice twice"),
    (lambda: visualize.LiveCurve(y=""), "y must name a metric"),
    *[(lambda entry=entry: export.unpack(entry, bytes(8)), "entry must be from the table")
      for entry in ({}, {"shape": [1]}, {"shape": [-1], "offset": 0}, {"shape": [1.5], "offset": 0},
                    {"shape": [1], "offset": -4}, {"shape": "3", "offset": 0},
                    {"shape": [], "offset": 0, "scales": 0},
                    {"shape": [1, 1], "offset": 0, "scales": 999})],
    *[(lambda tokens=tokens: export.build_tokenizer({"kind": "word", "tokens": tokens,
                                                     "merges": []}), "a list of strings, each the")
      for tokens in ([1, 2], "abc", ["a", "a"])],
    (lambda: recipes.differences(recipes.SHORT, {"model": []}), "must be dictionaries, as in the"),
    (lambda: recipes.differences(recipes.SHORT, {"train": None}), "must be dictionaries, as in"),
    *[(lambda value=value: visualize.result_grid([{"a": 1, "b": 1, "v": value}], "a", "b", "v"),
       "v is .* in a row; expected a finite number")
      for value in ("high", None, math.nan, math.inf)],
    (lambda: visualize.result_grid([{"a": 1, "b": 1, "v": 1}], "a", "b", "v", framed=[{"c": 1}]),
     "framed names 'c'; expected only a, b"),
    (lambda: checksums.write_lines("l", [{"a": math.nan}]), "is infinite or"),
    (lambda: files.write_json_lines("l", [{"a": math.inf}]), "is infinite or"),
    (lambda: files.append_json_line("l", {"a": math.nan}), "is infinite or"),
    (lambda: transformer_lib.corpora.mini.noun_phrase(
        transformer_lib.corpora.mini.Noun("Hut", 9, "Hüte", "hat", "hats"), "dative"),
     "noun.gender is 9; it must be 0 .masculine"),
    (lambda: transformer_lib.decoding.sample(model(), IDS, 1e-300), "temperature must be .*greedy"),
    (lambda: encoders.distillation_loss(x(2, 5), x(2, 5), 1e-300), "at least 1e-30 and finite"),
    (lambda: neighbours.neighbour_logp(x(2, 3) ** 2, torch.ones(2, 3).long(), torch.ones(2).long(),
                                       1e-300), "scale is 1e-300"),
    (lambda: transformer_lib.fast.DecodingModel(model()).step(IDS, None),
     r"state is None .NoneType.; expected what start\(\) of the same model returned"),
    (lambda: digits.train(nn.Flatten(), digits.load_digits(64)[0], 1), "it has no parameter to tr"),
    (lambda: digits.accuracy(nn.Flatten(), digits.Digits(x(0, 1, 8, 8), IDS[0, :0])), "a picture,"),
    (lambda: speculative.speculative_decode(model(), model(), IDS, 2), r"must have propose\(ids"),
    (lambda: speculative.speculative_decode(len, speculative.TableDraft([[4]], 1), IDS, 2),
     "target is the function|target is <built-in"),
    (lambda: speculative.ModelDraft(MaskedLanguageModel(config()), IDS), "with start and step, as"),
    (lambda: gate_layers.add_gates(model().encoder, config(), gate_layers.GruGate(16)), "is built"),
]


@pytest.mark.parametrize(("call", "message"), BLIND)
def test_what_a_stranger_tried_is_named(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert not [*tmp_path.iterdir()] and "0x" not in str(error.value)


@pytest.mark.parametrize(("given", "message"), [
    ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two'; expected a whole number, which torchrun sets"),
    ({"WORLD_SIZE": "0"}, "WORLD_SIZE='0'; expected a whole number"),
    ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2, but no RANK, which is not how torchrun"),
    ({"WORLD_SIZE": "2", "RANK": "-1", "MASTER_ADDR": "x", "MASTER_PORT": "1"}, "RANK='-1'; expec"),
    ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}, "=2, RANK=2 and"),
])
def test_an_environment_that_torchrun_did_not_make_is_named(given, message, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        processes.Processes("cpu")


@pytest.mark.parametrize("path", ["/proc/x", "nowhere/x"])
def test_where_nothing_can_be_written_is_named(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (files.write_text, files.write_json):
        with pytest.raises(OSError, match=f"^{path} cannot be written .*; choose another place"):
            write(path, "text")


def test_what_is_fixed_and_what_is_not_there_is_named():
    for it, name, near in ((TrainConfig(), "max_step", "max_steps"), (config(), "eps", "eps"),
                           (transformer_lib.evaluation.Interval(1, 0, 2), "mean", "mean")):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"{name} .*another.*{near}="):
            setattr(it, name, 5)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot be changed"):
            delattr(it, name)
    pairs = transformer_lib.data.Pairs({"train": [], "test": []}, "mini")
    with pytest.raises(KeyError, match="there is no split 'dev'; mini has train, test"):
        pairs["dev"]
    assert pairs.get("dev") is None and "dev" not in pairs


def test_a_limit_that_is_named_is_the_limit():
    """A sentence that says "at least 0" where 0 is refused, too, sends its reader twice."""
    wrong, asked = [], 0
    for owner, call, given, _ in walk():
        for name, value in given.items():
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            said = refusal(call, given | {name: -5})
            if limit := re.search(rf"{name} is -5; it must be at least (\d+)", said):
                asked += 1
                again = refusal(call, given | {name: int(limit[1])})
                if re.search(rf"{name} is -?\d+;", again):
                    wrong.append(f"{owner}: {said} {again}")
    assert not wrong and asked > 30, asked


def refusal(call, given):
    try:
        call(**given)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("call", ONCE_REFUSED)
def test_what_is_legal_passes(call):
    call()


@pytest.mark.parametrize(("call", "message"), ONCE_ACCEPTED)
def test_what_was_once_accepted_or_raw_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize(("pairs", "message"), [
    ({"train": [("a", "b")], "val": []}, "pairs has a split 'val'; expected only train"),
    ({"train": ["ab", "cd"]}, r"train pair 0 is 'ab' \(str\); expected \(source, target\), two st"),
    ({"train": [("a", "b"), ("a", 3)]}, r"train pair 1 is \('a', 3\)"),
    ([("a", "b")], "pairs is .*; expected a dictionary"),
    ({"train": 5}, r"pairs\['train'\] is 5 \(int\); expected a list of \(source, target\)"),
    ({"train": [("a", "b")], "validation": None}, r"pairs\['validation'\] is None"),
    ({"train": [("a", "b")], "validation": []},
     "no validation pairs to measure on: .* is not empty, or leave it out"),
])
def test_pairs_that_would_train_something_else_are_named(pairs, message, tmp_path):
    tokenizer = make_tokenizer()
    fitting = Transformer(config(vocab_size=tokenizer.get_vocab_size()))
    with pytest.raises((ValueError, TypeError), match=message):
        training.train(fitting, tokenizer, pairs, TrainConfig(max_steps=1), tmp_path)


# ------------------------------------------------------------------------------- what guards leave


def test_an_error_of_the_callers_own_code_is_left_alone():
    def decode(ids):
        return ids.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        transformer_lib.decoding.in_batches(decode, [[4]], 9)


def test_a_guarded_function_looks_like_itself():
    function = masks.padding_mask
    assert inspect.signature(function).parameters.keys() == {"ids", "pad_id"}
    assert "def padding_mask" in inspect.getsource(function)
    assert function.__code__.co_freevars == ()  # a lab forbids it by giving it other code
    with pytest.raises(TypeError, match="no argument is called 'size'; expected padding_mask"):
        masks.padding_mask(size=3)


def test_calls_within_the_library_are_not_looked_at(monkeypatch):
    looked, network = [], model()
    monkeypatch.setattr(calls, "_problem", lambda *call: looked.append(call[1]))
    network(random_ids(1, 3), random_ids(1, 3))
    assert looked == ["Transformer"]


def test_typed_values_are_told_apart():
    assert values.fits(3, int) and not values.fits(True, int) and not values.fits(3.0, int)
    assert values.fits(3, float) and values.fits(None, int | None)
    assert not values.fits("ab", list[str]) and not values.fits(["a", 3], list[str])
    two = tuple[float, float]
    assert values.fits([0.9, 0.98], two) and not values.fits("ab", two)
    assert typing.get_type_hints(TrainConfig)["betas"] == two


def test_settings_with_our_fields_stand_for_ours_and_others_do_not():
    """A chapter prints a class of settings, so its notebook has one of its own."""
    fields = [(field.name, field.type) for field in dataclasses.fields(TrainConfig)]
    printed = dataclasses.make_dataclass("TrainConfig", fields)
    given = printed(**dataclasses.asdict(TrainConfig()))
    assert values.fits(given, TrainConfig)
    assert not values.fits(given, ModelConfig) and not values.fits(given, nn.Module)


def test_a_rule_may_let_a_token_see_itself_alone():
    rule = sparse.dilated(window=0, dilation=2)
    seen = [bool(rule(torch.tensor(2), torch.tensor(j))) for j in range(4)]
    assert seen == [False, False, True, False]


@pytest.mark.parametrize(("call", "said"), [
    (lambda: train_tokenizer(["a dog"] * 500 + [float("nan")] + ["x"] * 9, 100),
     r"texts\[500\] is nan \(float\); expected texts to be a list of strings"),
    (lambda: pad([[1, 2]] * 7 + [["3"]]), r"\[7\] is \['3'\] \(list\); expected"),
])
def test_in_a_long_list_the_entry_that_does_not_fit_is_named(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_a_traceback_shows_the_frames_of_reader_and_library():
    """Where a layer of one's own fails inside a model, no guard stands between the frames."""
    class Narrow(torch.nn.Module):
        def forward(self, x):
            return x @ torch.zeros(3, 3)

    model, ids = Transformer(tiny_config()), random_ids(2, 3)
    model.decoder.layers[0].feed_forward = Narrow()
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        model(ids, ids)
    with pytest.raises(ValueError, match="every source needs its target") as refused:
        model(ids, random_ids(3, 3))
    files = [
        Path(frame.filename)
        for error in (caught, refused) for frame in traceback.extract_tb(error.value.__traceback__)
    ]
    assert "guards" not in {file.parent.name for file in files}
    assert {"decoder.py", "blocks.py", "transformer.py"} <= {file.name for file in files}
    assert files.count(Path(__file__)) == 3  # both calls, and the layer
