"""Weights and training state on disk: safetensors and JSON, nothing pickled."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from transformer_lib.config import ModelConfig, from_dict, to_dict
from transformer_lib.guards.checks import require_regular
from transformer_lib.guards.values import describe
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.files import make_folder, remove, replacing, sha256, sync, write_json


def save_file(tensors: dict[str, Tensor], path: Path) -> str:
    """Write tensors in the format of safetensors; returns the SHA-256 of the file."""
    content = save(tensors)
    with open(path, "wb") as file:
        file.write(content)
    return sha256(content)


def save_weights(
    path: str | Path, state: dict[str, Tensor], dtype: torch.dtype | None = None
) -> str:
    """Write named tensors to a safetensors file; returns its SHA-256.

    dtype: convert first, for example to bfloat16.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state is {describe(state)}; expected a dictionary of named tensors.")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype is {describe(dtype)}; expected one such as torch.bfloat16.")
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(
            f"dtype is {dtype}, for whole numbers; expected one such as torch.bfloat16."
        )
    tensors, seen = {}, set()
    for name, tensor in state.items():
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            raise TypeError(f"{name!r} is {describe(tensor)}; expected a dense tensor to save.")
        if tensor.data_ptr() not in seen or not tensor.numel():  # a tied matrix is stored once
            seen.add(tensor.data_ptr())
            keep = tensor.dtype if dtype is None or not tensor.is_floating_point() else dtype
            tensors[name] = tensor.detach().to("cpu", keep).contiguous()
            can = tensor.is_floating_point() and tensors[name].itemsize > 1  # not float8
            if can and not tensors[name].isfinite().all():
                too_large = f"too large for {keep}; choose torch.bfloat16 or torch.float32"
                why = too_large if tensor.isfinite().all() else "that are not finite; expected none"
                raise ValueError(f"{name!r} holds numbers {why}.")
    try:
        with replacing(path) as partial:
            return save_file(tensors, partial)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"could not write {path} ({getattr(error, 'strerror', None) or error}); free some "
            "space or choose another folder. Files saved earlier are untouched."
        ) from None


def load_weights(path: str | Path) -> dict[str, Tensor]:
    """Read a safetensors file. Raises ValueError when it is missing, cut short or damaged, or holds
    numbers that are not finite; OSError when permissions forbid reading it.
    """
    require_regular(path)
    if not Path(path).exists():
        raise ValueError(
            f"there are no weights at {path}: the run has not finished, or the file was not copied."
        )
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; expected a file of weights.")
    try:
        with open(path, "rb") as file:  # a file that can't be read isn't damaged
            header = file.read(9)[8:]  # its length comes first, then JSON
        if header not in (b"{", b""):
            raise ValueError(
                f"{path} is not a safetensors file: it has another format, or its beginning is "
                "damaged. If torch.save wrote it, read it with torch.load and pass what that "
                "returns to save_weights; otherwise copy it again."
            )
        tensors = load_file(path)
    except PermissionError as error:
        raise OSError(f"{path} cannot be read ({error.strerror}).") from None
    except (SafetensorError, OSError):
        raise ValueError(
            f"{path} is damaged or cut short (it is not a complete safetensors file); use an "
            "earlier checkpoint or copy it again."
        ) from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(
                f"{path} is damaged: {name} holds numbers that are not finite; use an earlier "
                "checkpoint or copy it again."
            )
    return tensors


def load_state(model: torch.nn.Module, state: dict[str, Tensor], where: str | Path) -> None:
    """Copy named tensors into the model, or say which do not fit."""
    own = model.state_dict()
    if wrong := [name for name, value in state.items() if not isinstance(value, Tensor)]:
        raise TypeError(f"{wrong[0]!r} is {describe(state[wrong[0]])}; expected a tensor.")
    for name, value in state.items():
        if name in own and own[name].is_floating_point() and not (
                value.is_floating_point() and value.isfinite().all()):
            what = "holds numbers that are not finite" if value.is_floating_point() else (
                f"is {describe(value)}")
            raise ValueError(f"the weights in {where} cannot be used: {name} {what}; expected "
                             "finite numbers of a float type: take an earlier checkpoint.")
    shared = {tensor.data_ptr(): name for name, tensor in own.items() if name in state}
    missing = [name for name in own if name not in state and own[name].data_ptr() not in shared]
    surplus = [name for name in state if name not in own]
    misfits = [
        f"{name} is {tuple(state[name].shape)}, the model expects {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    problems = [f"missing: {missing[:3]}"] * bool(missing) + [f"surplus: {surplus[:3]}"] * bool(
        surplus
    )
    problems += misfits[:3]
    if problems:
        raise ValueError(
            f"the weights in {where} belong to another model ({'; '.join(problems)}); "
            "build the model from the config.json that was written with them, and copy that again "
            "if it has been changed."
        )
    model.load_state_dict(state, strict=False)


def save_model(folder: str | Path, model: Transformer, dtype: torch.dtype | None = None) -> None:
    """Write model.safetensors and config.json (its ModelConfig under "model") into a folder."""
    folder = Path(folder)
    make_folder(folder)
    write_json(folder / "config.json", {"model": to_dict(model.config)})
    save_weights(folder / "model.safetensors", model.state_dict(), dtype)


def read_config(folder: str | Path) -> dict:
    """config.json of a run folder. Raises ValueError when it is missing or damaged."""
    path = Path(folder) / "config.json"
    require_regular(path)
    if path.parent.is_file():
        raise ValueError(f"{folder} is a file; give the run's folder, which holds its config.json.")
    if not path.exists():
        raise ValueError(f"there is no model in {folder}: it holds no config.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict) or "model" not in config:
        raise ValueError(f"{path} is damaged: expected JSON in UTF-8 with the sizes under 'model'.")
    for part in ("model", "train", "data"):
        if not isinstance(config.get(part, {}), dict):
            raise ValueError(
                f"{path} is damaged: {part!r} is {config[part]!r:.60}; expected a JSON object."
            )
    return config


def load_model(folder: str | Path) -> Transformer:
    """The model of a run folder, in float32 and ready to use (dropout off)."""
    config = read_config(folder)
    model = Transformer(from_dict(ModelConfig, config["model"], f"{folder}/config.json"))
    weights = Path(folder) / "model.safetensors"
    load_state(model, load_weights(weights), weights)
    return model.eval()


def save_checkpoint(
    run_dir: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: dict
) -> Path:
    """Write checkpoints/step-000123/ with one safetensors file per group and state.json, which
    holds the SHA-256 of each file and of itself.
    """
    root = Path(run_dir) / "checkpoints"
    final = root / f"step-{step:07d}"
    try:
        make_folder(root)
        with replacing(final, root / "partial") as partial:
            os.mkdir(partial)
            files = {
                f"{group}.safetensors": save_weights(partial / f"{group}.safetensors", values)
                for group, values in tensors.items()
            }
            state = state | {"files": files}
            write_json(partial / "state.json", state | {"sha256": _own_sha256(state)})
            if final.exists():  # saved twice at the same step
                remove(final)
    except OSError as error:
        raise OSError(
            f"the checkpoint of step {step} could not be saved in {root} "
            f"({error.__context__ or error}). "
            "Earlier checkpoints are intact; free some space and start the same command again."
        ) from None
    return final


NEEDED = "model optimizer rng step epoch next_batch loss_sum n_tokens log".split()


def load_checkpoint(path: Path, needed: list[str] | tuple = ()) -> dict:
    """What save_checkpoint wrote: each group of tensors by name, and the entries of state.json.

    Raises ValueError when a file is not what was written, or an entry that is `needed` is missing.
    """
    state = read_state(path)
    try:
        tensors = {file.stem: load_weights(file) for file in path.glob("*.safetensors")}
    except ValueError as error:
        raise _damaged(path, error) from None
    found = state | tensors
    if missing := [name for name in needed if name not in found]:
        raise _damaged(path, f"it lacks {missing}")
    return found


def read_state(path: Path) -> dict:
    """The entries of a checkpoint's state.json. Raises ValueError unless it, and every file of the
    checkpoint, is what was written.
    """
    try:
        state = json.loads((path / "state.json").read_bytes())
        if not isinstance(state, dict):
            raise ValueError
    except PermissionError as error:  # it need not be damaged
        raise PermissionError(
            f"{path / 'state.json'} cannot be read ({error.strerror}): change its permissions."
        ) from None
    except (OSError, ValueError, RecursionError):
        if not (path.is_dir() and path.name.startswith("step-")):
            raise ValueError(
                f"there is no checkpoint at {path} (it holds no state.json); give a folder such as "
                "RUN/checkpoints/step-0000200."
            ) from None
        raise _damaged(path, "state.json") from None
    if state.pop("sha256", None) != _own_sha256(state) or "files" not in state:
        raise _damaged(path, "state.json")
    for name, known in state["files"].items():
        if not (path / name).exists() or sha256(path / name) != known:
            raise _damaged(path, name)
    return state


def _own_sha256(state: dict) -> str:
    return sha256(json.dumps(state, sort_keys=True))


def _damaged(path: Path, what) -> ValueError:
    return ValueError(
        f"the checkpoint {path} is damaged ({what}); delete it, and those after it, to train "
        "them again from the one before."
    )


def _cause(damaged: ValueError) -> str:
    """The sentence of _damaged, without its advice."""
    return str(damaged).partition("; delete it")[0]


def set_aside_damaged(run_dir: str | Path) -> list[str]:
    """Rename the damaged checkpoints after the newest intact one, so that it becomes the newest.
    Returns sentences about them, and about damage further back.

    Raises ValueError when there are checkpoints and none is intact.
    """
    damaged, kept = [], checkpoints(run_dir)
    for path in reversed(kept):
        try:
            load_checkpoint(path, NEEDED)
            break
        except ValueError as error:
            damaged.append((path, _cause(error)))
    else:
        if damaged:
            raise ValueError(
                f"no checkpoint of {run_dir} is intact: "
                f"{damaged[-1][1]}, and there is none before it: choose a new run folder."
            )
    for path, _ in damaged:
        aside = path.with_name(f"damaged-{path.name}")
        remove(aside)
        os.replace(path, aside)
        sync(path.parent)
    said = [f"{what}: going on from the one before." for _, what in damaged]
    for path in kept[: -1 - len(damaged)]:
        try:
            read_state(path)
        except ValueError as error:
            said.append(f"{_cause(error)}: training goes on from a later one, which is intact.")
    return said


def discard_all_but(run_dir: str | Path, newest: int, every: int = 1) -> None:
    """Delete all checkpoints except the newest at multiples of `every` steps, and the very last."""
    kept = checkpoints(run_dir)
    regular = [path for path in kept if step_of(path) % every == 0]
    for path in kept[:-1]:
        if path not in regular[-newest:]:
            remove(path)


def discard_remains(run_dir: str | Path) -> None:
    """Delete what a killed process left of a file or checkpoint that it was writing or deleting."""
    root = Path(run_dir) / "checkpoints"
    for path in (root / "partial", root / "old", *Path(run_dir).glob("*.partial")):
        remove(path)


def discard_damaged(run_dir: str | Path) -> None:
    """Delete the checkpoints that set_aside_damaged put away."""
    for path in Path(run_dir, "checkpoints").glob("damaged-step-*"):
        remove(path)


def checkpoints(run_dir: str | Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    if Path(run_dir).is_file():
        raise ValueError(f"{run_dir} is a file; give the run's folder.")
    paths = (Path(run_dir) / "checkpoints").glob("step-*")
    return sorted((path for path in paths if path.name[5:].isdecimal()), key=step_of)


def step_of(checkpoint: Path) -> int:
    """The step at which a checkpoint was saved, 123 for .../step-0000123."""
    return int(checkpoint.name.removeprefix("step-"))


def average(paths: list[Path]) -> dict[str, Tensor]:
    """The mean of the weights in several checkpoints (sec. 6.1)."""
    if not paths:
        raise ValueError("no checkpoints to average.")
    total: dict[str, Tensor] = {}
    for path in map(Path, paths):
        read_state(path)  # raises if the model is not the one that was saved
        for name, tensor in load_weights(path / "model.safetensors").items():
            total[name] = total.get(name, 0) + tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
