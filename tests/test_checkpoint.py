"""Checkpoints: what is written comes back; what is damaged is named; what is old stays whole."""

import json

import pytest
import torch
from conftest import random_ids, tiny_config, tiny_model

from transformer_lib import Transformer
from transformer_lib.runs import checkpoint
from transformer_lib.runs.checkpoint import (
    average,
    checkpoints,
    discard_all_but,
    load_checkpoint,
    load_model,
    load_state,
    load_weights,
    save_checkpoint,
    save_model,
    save_weights,
)


def make_model(**changes):
    return Transformer(tiny_config(**changes)).eval()


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_a_model_comes_back_as_it_was(tmp_path, tie, positional, norm):
    model = make_model(tie_embeddings=tie, positional=positional, norm=norm)
    save_model(tmp_path, model)
    loaded = load_model(tmp_path)
    src, tgt = random_ids(2, 5), random_ids(2, 4)
    assert torch.equal(loaded(src, tgt), model(src, tgt))
    assert loaded.config == model.config
    assert not loaded.training
    assert (loaded.output.weight is loaded.src_embedding.lookup.weight) == tie


def test_a_tied_matrix_is_stored_once(tmp_path):
    save_model(tmp_path, make_model())
    stored = load_weights(tmp_path / "model.safetensors")
    assert sum(tensor.numel() for tensor in stored.values()) == make_model().count_parameters()


def test_sixteen_bits_halve_the_file_and_load_as_float32(tmp_path):
    model = make_model()
    save_model(tmp_path, model, torch.bfloat16)
    loaded = load_model(tmp_path)
    for ours, theirs in zip(model.parameters(), loaded.parameters(), strict=True):
        assert theirs.dtype == torch.float32
        assert torch.equal(ours.bfloat16().float(), theirs)


def test_nothing_on_disk_is_pickled(tmp_path):
    save_model(tmp_path, make_model())
    save_checkpoint(tmp_path, 1, {"model": make_model().state_dict()}, {"step": 1})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    for path in files:
        assert not path.read_bytes().startswith((b"\x80", b"PK"))  # pickle, zip of pickles


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    tensors = {"model": {"a": torch.randn(2, 3)}, "optimizer": {"step": torch.tensor(7)}}
    path = save_checkpoint(tmp_path, 12, tensors, {"step": 12, "losses": [1.5]})
    assert checkpoints(tmp_path) == [path]
    loaded = load_checkpoint(path)
    assert loaded["step"] == 12 and loaded["losses"] == [1.5]
    assert torch.equal(loaded["model"]["a"], tensors["model"]["a"])
    assert loaded["optimizer"]["step"].item() == 7


def test_the_newest_are_kept_in_the_order_of_their_steps(tmp_path):
    for step in (9, 100, 20):
        save_checkpoint(tmp_path, step, {}, {"step": step})
    assert [load_checkpoint(path)["step"] for path in checkpoints(tmp_path)] == [9, 20, 100]
    discard_all_but(tmp_path, 2)
    assert [load_checkpoint(path)["step"] for path in checkpoints(tmp_path)] == [20, 100]


def test_saving_a_step_again_replaces_it(tmp_path):
    for value in (1, 2):
        path = save_checkpoint(tmp_path, 5, {}, {"value": value})
    assert load_checkpoint(path)["value"] == 2
    assert len(checkpoints(tmp_path)) == 1


def test_an_interruption_leaves_the_earlier_ones_whole(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 1, {"model": {"a": torch.ones(2)}}, {"step": 1})

    def full_disk(tensors, path):
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full_disk)
    with pytest.raises(OSError, match="checkpoint of step 2 could not.*Earlier .* are intact"):
        save_checkpoint(tmp_path, 2, {"model": {"a": torch.ones(2)}}, {"step": 2})
    assert [path.name for path in checkpoints(tmp_path)] == ["step-0000001"]
    assert load_checkpoint(checkpoints(tmp_path)[0])["step"] == 1

    target = tmp_path / "weights.safetensors"
    target.write_bytes(b"earlier")
    with pytest.raises(OSError, match="could not write .*weights.*free some space.*untouched"):
        save_weights(target, {"a": torch.ones(2)})
    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.rglob("*partial*")) == []


def test_the_remains_of_a_killed_save_are_not_a_checkpoint(tmp_path):
    (tmp_path / "checkpoints" / "partial").mkdir(parents=True)
    assert checkpoints(tmp_path) == []
    save_checkpoint(tmp_path, 3, {}, {"step": 3})
    assert len(checkpoints(tmp_path)) == 1


@pytest.mark.paper("6.1")
def test_average_is_the_mean_of_each_weight(tmp_path):
    values = torch.randn(4, 5)
    for step, value in enumerate(values):
        save_checkpoint(tmp_path, step, {"model": {"w": value.clone()}}, {})
    torch.testing.assert_close(average(checkpoints(tmp_path))["w"], values.mean(0))
    with pytest.raises(ValueError, match="no checkpoints to average"):
        average([])


# ---------------------------------------------------------------------------------------- damage


def test_a_pickle_in_the_place_of_the_weights_is_not_loaded(tmp_path):
    """Loading a pickle would run whatever code it holds."""
    save_model(tmp_path, make_model())
    torch.save({"a": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="is not a safetensors file: it has another format"):
        load_model(tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 0.5, -1])
def test_weights_cut_short_are_named(tmp_path, keep):
    save_model(tmp_path, make_model())
    path = tmp_path / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match="model.safetensors is damaged or cut short .*; use an"):
        load_model(tmp_path)


def test_weights_that_may_not_be_read_are_not_called_damaged(tmp_path, monkeypatch):
    checkpoint.save_model(tmp_path, tiny_model())

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(checkpoint, "open", refuse, raising=False)
    with pytest.raises(OSError, match=r"model.safetensors cannot be read \(Permission denied\)"):
        checkpoint.load_model(tmp_path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="there is no model in .*: it holds no config.json"):
        load_model(tmp_path)
    save_model(tmp_path, make_model())
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="there are no weights at .*model.safetensors"):
        load_model(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", "3"])
def test_a_damaged_config_is_named(tmp_path, content):
    save_model(tmp_path, make_model())
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match="config.json is damaged: expected JSON in UTF-8 with"):
        load_model(tmp_path)


@pytest.mark.parametrize("sizes", [{}, 3, {"vocab_size": "20"}, {"vocab_size": None}])
def test_a_config_of_wrong_values_is_named(tmp_path, sizes):
    save_model(tmp_path, make_model())
    (tmp_path / "config.json").write_text(json.dumps({"model": sizes}))
    with pytest.raises(ValueError, match=r"config\.json"):
        load_model(tmp_path)


def test_an_unknown_field_is_named(tmp_path):
    save_model(tmp_path, make_model())
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace("d_model", "d_modle"))
    with pytest.raises(ValueError, match=r"config.json has unknown fields \['d_modle'\]; Model"):
        load_model(tmp_path)


def test_weights_of_another_model_are_named(tmp_path):
    model = make_model()
    for other, message in (
        (make_model(d_ff=32), r"expand.weight is \(32, 16\), the model expects \(24, 16\)"),
        (make_model(n_encoder_layers=1), r"missing: \['encoder.layers.1"),
        (make_model(n_encoder_layers=3), r"surplus: \['encoder.layers.2"),
    ):
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        with pytest.raises(ValueError, match=rf"weights in here belong to another.*{message}.*b"):
            load_state(model, other.state_dict(), "here")
        assert all(torch.equal(before[name], model.state_dict()[name]) for name in before)


def test_a_damaged_state_is_named(tmp_path):
    path = save_checkpoint(tmp_path, 1, {}, {"step": 1})
    (path / "state.json").write_text('{"step":')
    with pytest.raises(ValueError, match=r"step-0000001 is damaged \(state.json\); delete it"):
        load_checkpoint(path)


def test_other_folders_beside_the_checkpoints_are_passed_over(tmp_path):
    for name in ("step-0000002", "step-0000002 (copy)", "step-0000010", "step-old", "partial"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    found = [path.name for path in checkpoint.checkpoints(tmp_path)]
    assert found == ["step-0000002", "step-0000010"]



def test_a_checkpoint_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    """It is whole, as far as anybody knows: nothing is set aside."""
    path = tmp_path / "checkpoints" / "step-0000002"
    path.mkdir(parents=True)

    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(OSError, match="state.json cannot be read .*change its permissions"):
        checkpoint.read_state(path)
