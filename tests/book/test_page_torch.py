"""PyTorch itself for the page: wheels are taken if each has the sum that was given."""

import hashlib
import json
import zipfile

import pytest
import run_here

from tools import page_torch

TORCH, NUMPY = "torch-9.9.9-py3-none-any.whl", "numpy-9.9.9-py3-none-any.whl"


@pytest.fixture
def wheels(tmp_path):
    """FILE=SHA256 of two dummy wheels."""
    given = []
    for name in (TORCH, NUMPY):
        package = name.partition("-")[0]
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"{package}/__init__.py", '__version__ = "9.9.9"\n')
        digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        given.append(f"{tmp_path / name}={digest}")
    return given


def test_wheels_with_the_right_sums_are_what_the_next_build_loads(wheels, tmp_path, monkeypatch):
    target = tmp_path / "wheels"
    monkeypatch.setattr(run_here, "WHEELS", target / "wheels.json")
    assert run_here.wheels() == []
    page_torch.take(wheels, target)
    listed = run_here.wheels()
    assert [one["file"] for one in listed] == [TORCH, NUMPY]
    for one in listed:
        assert (target / one["file"]).stat().st_size == one["bytes"]
    capitals = [f"{file}={digest.upper()}" for file, _, digest in
                (one.rpartition("=") for one in wheels)]
    page_torch.take(capitals, target)  # once more
    assert len(json.loads((target / "wheels.json").read_text())) == 2
    page_torch.remove(target)
    assert run_here.wheels() == []


def test_a_wrong_sum_refuses_with_a_sentence_and_copies_nothing(
    wheels, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(page_torch, "WHEELS", tmp_path / "wheels")
    file, _, digest = wheels[1].rpartition("=")
    with pytest.raises(page_torch.Refused, match="has the SHA-256 .*, expected 000.*not the file"):
        page_torch.take([wheels[0], f"{file}={'0' * 64}"], tmp_path / "wheels")
    with pytest.raises(SystemExit) as left:
        page_torch.main([wheels[0], f"{file}={'0' * 64}"])
    assert left.value.code == 1 and "Nothing was copied" in capsys.readouterr().err
    assert not (tmp_path / "wheels").exists()


@pytest.mark.parametrize("change, said", [
    (lambda given: given[:1], "give a wheel of numpy as well"),
    (lambda given: given[1:], "give a wheel of torch as well"),
    (lambda given: [given[0].partition("=")[0], given[1]], "is no FILE=SHA256"),
    (lambda given: [given[0].replace("torch-", "other-"), given[1]], "there is no file"),
])
def test_what_cannot_be_used_is_refused_with_a_sentence(wheels, tmp_path, change, said):
    with pytest.raises(page_torch.Refused, match=said):
        page_torch.take(change(wheels), tmp_path / "wheels")
    assert not (tmp_path / "wheels").exists()


def test_a_file_that_is_not_named_like_a_wheel_is_refused(tmp_path):
    file = tmp_path / "torch.zip"
    file.write_bytes(b"")
    with pytest.raises(page_torch.Refused, match="not named like a wheel"):
        page_torch.take([f"{file}={hashlib.sha256(b'').hexdigest()}"], tmp_path / "wheels")
