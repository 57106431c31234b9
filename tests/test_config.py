"""Configurations: the paper's sizes, values that cannot work, JSON and back."""

import json

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


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_size_is_taken_and_the_next_is_not(name):
    def made(size):
        if name == "accumulate":
            return TrainConfig(accumulate=size)
        fitting = {"d_model": {"n_heads": 1}, "n_heads": {"d_model": 10**5}}.get(name, {})
        return ModelConfig(**{"vocab_size": 50} | fitting | {name: size})

    assert getattr(made(LARGEST[name]), name) == LARGEST[name]
    with pytest.raises(ValueError, match=f"^{name} is .* at most {LARGEST[name]:,}"):
        made(LARGEST[name] + 1)


def test_a_run_of_which_nothing_is_said():
    """A changed default would change the runs of everybody who relies on it."""
    c = TrainConfig()
    assert (c.max_steps, c.max_tokens, c.accumulate) == (8000, 4096, 1)
    assert (c.schedule, c.peak_lr, c.warmup, c.cooldown) == ("inverse_sqrt", 0.005, 2000, 0)
    assert (c.optimizer, c.betas, c.eps, c.weight_decay) == ("adam", (0.9, 0.98), 1e-9, 0.0)
    assert (c.label_smoothing, c.clip_norm, c.average, c.seed) == (0.1, 1.0, 10, 0)
    assert (c.checkpoint_every, c.keep_checkpoints, c.validate_every) == (200, 10, 200)
    assert ModelConfig(50).max_len == LearnedEncoding(4).table.size(0) == 256
    assert SinusoidalEncoding(4).table.size(-2) == 256


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
