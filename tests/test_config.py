"""Configurations: the paper's sizes, values that cannot work, JSON and back."""

import dataclasses
import json
import math

import pytest

from transformer_lib.config import BlockConfig, ModelConfig, TrainConfig, from_dict, to_dict
from transformer_lib.positional import LearnedEncoding, SinusoidalEncoding


def test_the_contracts_order_of_the_fields():
    c = ModelConfig(100, 16, 2, 32, 3, 4, 0.2, 0.1, 50)
    assert (c.vocab_size, c.d_model, c.n_heads, c.d_ff) == (100, 16, 2, 32)
    assert (c.n_encoder_layers, c.n_decoder_layers) == (3, 4)
    assert (c.dropout, c.attention_dropout, c.max_len) == (0.2, 0.1, 50)
    assert BlockConfig(16, 2).d_model == 16
    assert not hasattr(BlockConfig(), "vocab_size")


@pytest.mark.paper("3.1")
def test_defaults_are_the_base_model_of_table_3():
    c = ModelConfig(vocab_size=37000)
    assert (c.n_encoder_layers, c.n_decoder_layers, c.d_model, c.d_ff) == (6, 6, 512, 2048)
    assert (c.n_heads, c.dropout, c.positional, c.activation) == (8, 0.1, "sinusoidal", "relu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0}, "vocab_size is 0; it must be at least 1"),
        ({"n_heads": 0}, "n_heads is 0; it must be at least 1"),
        ({"d_ff": -1}, "d_ff is -1; it must be at least 1"),
        ({"max_len": 0}, "max_len is 0; it must be at least 1"),
        ({"n_encoder_layers": -1}, "n_encoder_layers is -1; it must be at least 0"),
        ({"eps": 0.0}, "eps is 0.0; it must be above 0"),
        ({"rotary_base": 0.0}, "rotary_base is 0.0; it must be above 0"),
        ({"n_kv_heads": 3}, "n_kv_heads is 3; it must be None or a divisor of n_heads 8"),
        ({"n_kv_heads": 0}, "n_kv_heads is 0; it must be at least 1"),
        ({"dropout": 1.0}, r"dropout is 1.0; it must be at least 0 and below 1"),
        ({"attention_dropout": -0.1}, r"attention_dropout is -0.1; it must be at least 0 and"),
        ({"pad_id": 7}, "pad_id is 7; it must be 0, the id of <pad>"),
        ({"norm": "group"}, "norm is 'group'; it must be one of .*'layer', 'rms'"),
        ({"positional": "sine"}, "positional is 'sine'; it must be one of .*'sinusoidal'"),
        ({"activation": "tanh"}, "activation is 'tanh'; it must be one of .*'relu'"),
        ({"d_model": 10, "n_heads": 3}, "d_model 10 is not divisible by n_heads 3.*choose sizes"),
        ({"d_model": 12, "n_heads": 4, "positional": "rotary"}, "a head has 3: choose an even"),
        ({"d_model": 9, "n_heads": 3}, "sine-cosine pairs; d_model 9 is odd: make it even"),
    ],
)
def test_model_sizes_that_cannot_work_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**({"vocab_size": 100} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_steps": 0}, "max_steps is 0; it must be at least 1"),
        ({"max_tokens": 0}, "max_tokens is 0; it must be at least 1"),
        ({"accumulate": 0}, "accumulate is 0; it must be at least 1"),
        ({"warmup": -1}, "warmup is -1; it must be at least 0"),
        ({"cooldown": -1}, "cooldown is -1; it must be at least 0"),
        ({"checkpoint_every": 0}, "checkpoint_every is 0; it must be at least 1"),
        ({"keep_checkpoints": 0}, "keep_checkpoints is 0; it must be at least 1"),
        ({"validate_every": 0}, "validate_every is 0; it must be at least 1"),
        ({"log_every": 0}, "log_every is 0; it must be at least 1"),
        ({"both_directions": -1}, "both_directions is -1; it must be at least 0"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"peak_lr": 0.0}, "peak_lr is 0.0; it must be above 0"),
        ({"label_smoothing": 1.0}, r"label_smoothing is 1.0; it must be at least 0 and below 1"),
        ({"average": 11}, "average is 11; it must be at most keep_checkpoints 10"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; it must be one of .*'noam'"),
        ({"clip_norm": -1.0}, "clip_norm is -1.0; it must be at least 0"),
        ({"precision": "fp16"}, "precision is 'fp16'; it must be one of .*'bf16'"),
    ],
)
def test_training_values_that_cannot_work_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


LARGEST = {
    "vocab_size": 10**7, "d_model": 10**5, "n_heads": 10**5, "d_ff": 10**6, "max_len": 10**7,
    "n_encoder_layers": 1000, "n_decoder_layers": 1000, "accumulate": 10**6,
}


ABOVE_0 = ((1e-300, 1e300), (0.0, math.inf))
FROM_0 = ((0.0, 1e300), (-1e-9, math.inf))
FRACTION = ((0.0, 1 - 1e-9), (-1e-9, 1.0))
COUNT = ((1, 10**12), (0,))
COUNT_OR_NONE = ((0, 10**12), (-1,))
# For each number in a configuration: values at the edge that are taken, and beyond it that aren't.
EDGES = {
    "dropout": FRACTION, "attention_dropout": FRACTION, "eps": ABOVE_0, "rotary_base": ABOVE_0,
    "max_steps": ((10, 10**12), (0,)), "max_tokens": COUNT, "both_directions": COUNT_OR_NONE,
    "peak_lr": ABOVE_0, "warmup": COUNT_OR_NONE, "cooldown": ((0, 8000), (-1, 8001)),
    "weight_decay": FRACTION, "label_smoothing": FRACTION, "r_drop": FROM_0, "clip_norm": FROM_0,
    "average": ((1, 10), (0, 11)), "checkpoint_every": COUNT,
    "keep_checkpoints": ((10, 10**12), (0,)), "validate_every": COUNT, "log_every": COUNT,
    "seed": ((0, 2**63 - 1), (-1, 2**63)),
} | {name: ((0 if "layers" in name else 1, most), (-1 if "layers" in name else 0, most + 1))
     for name, most in LARGEST.items()}


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig])
def test_the_edges_of_what_a_configuration_takes(kind):
    fitting = {"n_heads": dict(d_model=10**5), "d_model": dict(n_heads=1)}  # heads must divide

    def made(name, value):
        others = dict(vocab_size=50, positional="none") if kind is ModelConfig else {}
        return getattr(kind(**(others | fitting.get(name, {}) | {name: value})), name)

    fields = {f.name: f for f in dataclasses.fields(kind) if f.type in ("int", "float", int, float)}
    for name in fields.keys() - {"pad_id"}:
        taken, refused = EDGES[name]
        for value in taken:
            assert made(name, value) == value
        for value in refused:
            with pytest.raises(ValueError, match=f"^{name} is "):
                made(name, value)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ModelConfig, name) for name in ("norm", "positional", "activation")]
    + [(TrainConfig, name) for name in ("schedule", "optimizer", "precision")],
)
def test_a_word_that_is_no_choice_is_refused(kind, name):
    given = {"vocab_size": 50} if kind is ModelConfig else {}
    with pytest.raises(ValueError, match=f"^{name} is 'none of them'; it must be one of "):
        kind(**given, **{name: "none of them"})


def test_both_betas_are_fractions():
    assert TrainConfig(betas=(0.0, 1 - 1e-9)).betas == (0.0, 1 - 1e-9)
    for refused in ((0.9, 1.0), (1.0, 0.9), (-1e-9, 0.9), (0.9, -1e-9)):
        with pytest.raises(ValueError, match="^betas is "):
            TrainConfig(betas=refused)


def test_a_run_of_which_nothing_is_said():
    """A changed default would change the runs of everybody who relies on it."""
    assert to_dict(TrainConfig()) == dict(
        max_steps=8000, max_tokens=4096, accumulate=1, both_directions=0,
        schedule="inverse_sqrt", peak_lr=0.005, warmup=2000, cooldown=0,
        optimizer="adam", betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0,
        label_smoothing=0.1, r_drop=0.0, clip_norm=1.0,
        average=10, checkpoint_every=200, keep_checkpoints=10,
        validate_every=200, validation_bleu=True, log_every=20,
        seed=0, device="auto", precision="auto", fast=False, tensorboard=False, progress=True,
    )


def test_a_model_of_which_only_the_vocabulary_is_said():
    assert to_dict(ModelConfig(50)) == dict(
        vocab_size=50, d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6,
        dropout=0.1, attention_dropout=0.0, max_len=256,
        norm_first=True, norm="layer", eps=1e-5, positional="sinusoidal", rotary_base=10000.0,
        activation="relu", bias=True, n_kv_heads=None,
        pad_id=0, tie_embeddings=True, scale_embeddings=True,
    )
    assert LearnedEncoding(4).table.size(0) == SinusoidalEncoding(4).table.size(-2) == 256


@pytest.mark.parametrize("config", [ModelConfig(50, d_model=8, n_heads=2), TrainConfig(seed=3)])
def test_json_and_back(config):
    values = json.loads(json.dumps(to_dict(config)))
    assert from_dict(type(config), values) == config


def test_a_slip_in_a_name_is_an_error():
    with pytest.raises(ValueError, match=r"my file has unknown fields \['vocab'\]; ModelConfig"):
        from_dict(ModelConfig, {"vocab": 50}, "my file")


def test_weights_shrink_by_less_than_all_of_themselves():
    """weight_decay times the rate is taken off; at 1 and a rate of 1, nothing would be left."""
    with pytest.raises(ValueError, match="weight_decay is 1.0; it must be"):
        TrainConfig(weight_decay=1.0)


def test_no_configuration_can_be_changed():
    for config in (BlockConfig(), ModelConfig(vocab_size=9), TrainConfig()):
        with pytest.raises(AttributeError, match="cannot be changed"):
            config.dropout = 0.5
