"""One checked file from a run: what the engine in the page (book/_static/live/) reads.

The file, all numbers little-endian:

    8 bytes   the magic word "BOOKLIVE"
    4 bytes   version of the format
    4 bytes   length of the header, padded with spaces so that the data starts at a multiple of 8
    32 bytes  SHA-256 of everything that follows
    header    JSON: name, languages, scores, the ModelConfig, the tokenizer, a table of tensors
    data      the tensors in the order of the table, each at a multiple of 8

A matrix is rounded: int8 numbers of -127..127 with one float32 scale for each row; the scales come
after the numbers. A vector stays float32. Nothing depends on the time or the machine: the same run
gives the same bytes.
"""

import dataclasses
import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from transformer_lib.config import ModelConfig, from_dict
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs import checksums
from transformer_lib.runs.files import make_folder, require_replaceable, write_bytes
from transformer_lib.runs.pretrained import find_run, load_pretrained, run_info
from transformer_lib.tokenization import SPECIAL_TOKENS, train_tokenizer
from transformer_lib.translator import Translator

MAGIC, VERSION = b"BOOKLIVE", 1
# The fields of ModelConfig that exports know; every other must have its default.
FIELDS = (
    "vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "dropout",
    "attention_dropout", "max_len", "norm_first", "norm", "eps", "positional", "rotary_base",
    "activation", "bias", "n_kv_heads", "pad_id", "tie_embeddings", "scale_embeddings",
)
CHOICES = {
    "norm": ("layer", "rms"),
    "positional": ("sinusoidal", "learned", "rotary", "alibi", "none"),
    "activation": ("relu", "gelu", "gelu_tanh", "swiglu"),
}
KINDS = {"BPE": "bpe", "WordLevel": "word"}
START = struct.Struct("<8sII32s")  # magic, version, length of the header, SHA-256


def export_live(run: str | Path, path: str | Path) -> dict:
    """Write a run of results/, or any run folder, as one file for the page; returns its header.

    Raises ValueError when the run does not exist, or has a part that the page's engine lacks, and
    for a path that is a link, a device, one of the run's own files, or a file of another kind.
    """
    folder, path = find_run(run), Path(path)
    require_replaceable(path)
    if path.resolve().parent == folder.resolve() and path.name in own_files(folder):
        raise ValueError(
            f"{path} is one of the run's own files: choose another name, such as "
            f"{folder.name}.bin."
        )
    if path.is_file() and path.stat().st_size:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError(
                    f"{path} already exists, and is not an exported model: choose another name, or "
                    "remove it first."
                )
    translator = load_pretrained(folder)
    header = run_header(folder, translator)
    table, data = pack({name: tensor for name, tensor in unique(translator.model)})
    content = to_bytes(header | {"tensors": table}, data)
    make_folder(path.parent)
    write_bytes(path, content)
    return header | {"tensors": table, "bytes": len(content)}


def own_files(folder: Path) -> set[str]:
    """The names that belong to a run: those that its checksums.json lists, and that list."""
    known = {"config.json", "tokenizer.json", "metrics.jsonl", "sentences.jsonl", "lock"}
    return known | {checksums.NAME, checksums.WEIGHTS} | (checksums.read(folder) or {}).keys()


def run_header(folder: Path, translator: Translator) -> dict:
    """What the page must know besides the tensors."""
    config, info = translator.model.config, run_info(folder).get("data", {})
    require_known(config)
    scores = folder / "scores.json"
    try:
        scores = json.loads(scores.read_text(encoding="utf-8")) if scores.exists() else {}
        scores.pop("weights", None)  # the folder's, not this file's
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            f"{folder / 'scores.json'} is damaged: it should be a JSON object. Delete it, or write "
            "it again with `evaluate --save`."
        ) from None
    return {
        "name": folder.name,
        "src": info.get("src", "source"),
        "tgt": info.get("tgt", "target"),
        "length_penalty": translator.length_penalty,
        "scores": scores or None,
        "parameters": translator.model.count_parameters(),
        "config": {name: getattr(config, name) for name in FIELDS},
        "tokenizer": tokenizer_data(translator.tokenizer),
    }


def require_known(
    config: ModelConfig, known: dict = CHOICES, who: str = "the page's engine"
) -> None:
    """Raise ValueError, naming the field, for what `who` cannot do. known: values, by field."""
    for field in dataclasses.fields(config):
        given = getattr(config, field.name)
        if given not in known.get(field.name, (given,)):
            raise ValueError(
                f"{who} has no {field.name} {given!r}; export a run with one of "
                f"{known[field.name]}."
            )
        if field.name not in FIELDS and given != field.default:
            raise ValueError(
                f"{who} knows only {field.name} {field.default}, but this run has "
                f"{given}: export a run with the default."
            )


def tokenizer_data(tokenizer: Tokenizer) -> dict:
    """The vocabulary in the order of its ids, and the merges as pairs of ids, in their order."""
    parts, vocab = json.loads(tokenizer.to_str()), tokenizer.get_vocab()
    kind = KINDS.get(parts["model"]["type"])
    rules = ("normalizer", "pre_tokenizer", "decoder", "added_tokens")
    if kind is None or any(parts[rule] != bare_tokenizer(kind)[rule] for rule in rules):
        raise ValueError(
            "the page's engine only reads tokenizers made by tokenization.train_tokenizer; "
            f"this one is a {parts['model']['type']} with other rules."
        )
    merges = parts["model"].get("merges", [])
    return {
        "kind": kind,
        "tokens": sorted(vocab, key=vocab.get),
        "merges": [vocab[part] for pair in merges for part in pair],
    }


def bare_tokenizer(kind: str) -> dict:
    """One of our tokenizers as JSON: all have its rules, and its vocabulary means nothing."""
    return json.loads(train_tokenizer(["a"], len(SPECIAL_TOKENS) + 1, kind).to_str())


def unique(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of each parameter; a tied matrix is given once, under its first name."""
    seen = set()
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            yield name, tensor.detach().cpu().float()


def round_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, columns) float -> int8 of the same shape and a float32 scale for each row.

    The number with the largest absolute value becomes 127 or -127, so the error is at most 1/254
    of it.
    """
    scale = matrix.abs().amax(1) / 127  # (rows,)
    scale = scale.where(scale > 0, torch.ones_like(scale))  # a row of zeros stays zeros
    return (matrix / scale[:, None]).round().to(torch.int8), scale


def pack(tensors: dict[str, Tensor]) -> tuple[list[dict], bytes]:
    """The table of tensors for the header, and their bytes."""
    table, data = [], bytearray()

    def append(array: np.ndarray) -> int:
        data.extend(bytes(-len(data) % 8))
        data.extend(array.tobytes())
        return len(data) - array.nbytes

    for name, tensor in tensors.items():
        entry = {"name": name, "shape": list(tensor.shape)}
        if tensor.dim() == 2:
            rounded, scale = round_rows(tensor)
            entry |= {"offset": append(rounded.numpy()), "scales": append(_float32(scale))}
        else:
            entry |= {"offset": append(_float32(tensor))}
        table.append(entry)
    return table, bytes(data)


def to_bytes(header: dict, data: bytes) -> bytes:
    """The whole file."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(START.size + len(text)) % 8)
    checksum = hashlib.sha256(text + data).digest()
    return START.pack(MAGIC, VERSION, len(text), checksum) + text + data


def load_exported(path: str | Path) -> Translator:
    """The translator that the page runs: the same tokenizer, the same rounded weights.

    Raises ValueError when the file isn't an exported model, is damaged, or has another version.
    """
    if not Path(path).is_file():
        what = "it is a folder" if Path(path).is_dir() else "there is no such file"
        raise ValueError(f"{path} is not a model for the page: {what}; make one with export_live.")
    content = Path(path).read_bytes()
    if len(content) < START.size or not content.startswith(MAGIC):
        raise ValueError(f"{path} is not a model for the page: make one with export_live.")
    _, version, length, checksum = START.unpack_from(content)
    if version != VERSION:
        raise ValueError(f"{path} has format {version}, not {VERSION}: export it again.")
    if hashlib.sha256(content[START.size :]).digest() != checksum:
        raise ValueError(f"{path} is damaged: its checksum is wrong; export or copy it again.")
    header = json.loads(content[START.size : START.size + length])
    data = content[START.size + length :]
    model = Transformer(from_dict(ModelConfig, header["config"], str(path)))
    state = {entry["name"]: unpack(entry, data) for entry in header["tensors"]}
    model.load_state_dict(state, strict=False)  # a tied matrix is stored under its first name only
    return Translator(model, build_tokenizer(header["tokenizer"]), header["length_penalty"])


def unpack(entry: dict, data: bytes) -> Tensor:
    """One tensor of the table, its rounding undone: float32."""
    shape, offset = entry["shape"], entry["offset"]
    count = int(np.prod(shape))
    if "scales" not in entry:
        return torch.from_numpy(np.frombuffer(data, "<f4", count, offset).reshape(shape).copy())
    rounded = np.frombuffer(data, np.int8, count, offset).reshape(shape)
    scale = np.frombuffer(data, "<f4", shape[0], entry["scales"])
    return torch.from_numpy(rounded.astype(np.float32) * scale[:, None])


def build_tokenizer(data: dict) -> Tokenizer:
    """The tokenizer that tokenizer_data took apart."""
    tokens, ids = data["tokens"], data["merges"]
    parts = bare_tokenizer(data["kind"])
    parts["model"]["vocab"] = {token: i for i, token in enumerate(tokens)}
    if data["kind"] == "bpe":
        pairs = zip(ids[::2], ids[1::2], strict=True)
        parts["model"]["merges"] = [[tokens[a], tokens[b]] for a, b in pairs]
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    tokenizer.encode_special_tokens = True  # the JSON doesn't record it
    return tokenizer


def _float32(tensor: Tensor) -> np.ndarray:
    return tensor.numpy().astype("<f4")
