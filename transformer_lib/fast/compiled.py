"""Decoding by a program in C: one call for each step of the decoder, `decoder.c`.

It is compiled when a process first uses it, in about a second. If there is no C compiler, or for a
model of another kind, `refusal` says so, and `fast.DecodingModel` does the same without it.
"""

import ctypes
import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lib import fast
from transformer_lib.config import PAD
from transformer_lib.fast.decoding import joined

SOURCE = Path(__file__).with_name("decoder.c")
# The sums of a product may be taken in any order; no other rule of arithmetic is loosened.
FLAGS = (
    "-O3 -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno -shared -fPIC"
).split()
NATIVE = "-march=native"  # all instructions of this processor; not every compiler knows them


@functools.cache
def library() -> ctypes.CDLL | str:
    """decoder.c as a loaded library, or a sentence that says why there is none."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or platform.system() == "Windows":
        return "there is no C compiler (cc) here"
    command = [*shlex.split(compiler), *FLAGS]
    try:
        with tempfile.TemporaryDirectory() as folder:  # once loaded, it needs no file
            built = str(Path(folder) / "decoder.so")
            rest = ["-o", built, str(SOURCE), "-lm"]
            options = dict(capture_output=True, text=True, errors="replace", timeout=60)
            if subprocess.run([*command, NATIVE, *rest], **options).returncode:
                subprocess.run([*command, *rest], check=True, **options)
            return ctypes.CDLL(built)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return f"decoder.c could not be compiled by {compiler}: {said[0] if said else error}"


def refusal(model: nn.Module) -> str:
    """Why there is no CompiledModel for this model; empty if there is one."""
    if reason := fast.refusal(model):
        return reason
    config = model.config
    if not config.norm_first or config.norm != "layer" or config.activation != "relu":
        return "the program in C only knows pre-norm, LayerNorm and ReLU"
    if any(p.dtype != torch.float32 or p.device.type != "cpu" for p in model.parameters()):
        return "its weights are not float32 numbers on the CPU"
    found = library()
    return found if isinstance(found, str) else ""


class CompiledModel(fast.DecodingModel):
    """A DecodingModel whose decoder and choice of tokens are a program in C.

    The encoder is that of DecodingModel. A step never copies a cache, makes no tensor between its
    products, and looks for the best tokens while it computes the logits (`top_tokens`). Raises
    ValueError for a model that `refusal` rejects.
    """

    def __init__(self, model: nn.Module):
        if reason := refusal(model):
            raise ValueError(f"the program in C can't decode this model: {reason}.")
        super().__init__(model)
        self._program, self._kept = library(), []
        layers = [self._layer(layer) for layer in model.decoder.layers]
        norm, config = model.decoder.norm, self.config
        self._decoder = _Decoder(
            (_Layer * len(layers))(*layers), self._map(model.output),
            self._keep(norm.weight), self._keep(norm.bias),
            len(layers), config.d_model, config.n_heads, config.d_ff, norm.eps,
        )

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """Read the sources; return the first ids, (B, 1), and the state of the decoding."""
        if not use_cache:
            raise ValueError("a CompiledModel has a cache: to decode without one, use the model.")
        x, _ = self._encode(src_ids)  # (B * S, D)
        read = (src_ids != PAD).to(torch.uint8).contiguous()  # (B, S)
        ids = torch.full((len(src_ids), 1), bos_id, device=src_ids.device)
        return ids, _State(self.memory(x).contiguous(), read)

    def step(self, ids: Tensor, state: "_State") -> Tensor:
        """ids: (A * n, 1), the newest of n hypotheses of each sentence -> logits (A * n, V)."""
        return self.output(self._hidden(ids, state))

    def top_tokens(
        self, ids: Tensor, state: "_State", k: int, log_p: bool
    ) -> tuple[Tensor, Tensor]:
        """The k likeliest next tokens of each row, never padding: their logits or
        log-probabilities, and their ids, (A * n, k) each. Raises ValueError for a k below 1
        or above V."""
        self._require_count(k)
        hidden = self._hidden(ids, state)
        best = hidden.new_empty(len(ids), k)
        tokens = torch.empty(len(ids), k, dtype=torch.long)
        self._call("top", _at(hidden), len(ids), k, PAD, int(log_p), _at(best), _at(tokens))
        return best, tokens

    def _hidden(self, ids: Tensor, state: "_State") -> Tensor:
        """The input of the output layer for these ids, (A * n, D)."""
        # The program in C works with addresses: with a wrong size it would read other memory.
        size, known = 2 * self.config.n_decoder_layers * self.config.d_model, len(state.places)
        if state.memory.size(1) != size:
            raise ValueError("the state belongs to a model of another size; make one with start().")
        if len(ids) != len(state.path) if state.path is not None else len(ids) % known:
            raise ValueError(f"{len(ids)} rows of ids don't fit this state of {known} sentences: "
                             "each needs as many hypotheses as at its first step.")
        x = self.embed(self.tgt_embedding(ids), state.length).squeeze(1).contiguous()
        state.extend(len(ids) // len(state.places), self.config)
        self._call(
            "step", _at(x), len(ids), state.n, _at(state.memory), _at(state.read),
            state.read.size(1), _at(state.own), state.own.size(2), state.length,
            _at(state.places), _at(state.path), state.path.size(1),
        )
        state.length += 1
        return x

    def _call(self, name: str, *arguments) -> None:
        whole = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
        if getattr(self._program, name)(ctypes.byref(self._decoder), *whole):
            raise MemoryError(f"decoder.c: no memory for a {name} of {arguments[1]} rows.")

    def _keep(self, tensor: Tensor) -> ctypes.c_void_p:
        """The address of the tensor's numbers, which are kept as long as this object."""
        tensor = tensor.detach().contiguous()
        self._kept.append(tensor)
        return _at(tensor)

    def _map(self, *maps: nn.Linear) -> "_Map":
        """Several linear maps of the same input as one, laid out for `product`."""
        weight, bias = joined(*maps)  # (out, in), (out,) or None
        block, (out, size) = self._program.block(), weight.shape
        weight = nn.functional.pad(weight, (0, 0, 0, -out % block))  # a whole number of blocks
        bias = weight.new_zeros(out) if bias is None else bias
        bias = nn.functional.pad(bias, (0, -out % block))
        weight = weight.view(-1, block, size).transpose(1, 2)  # (out / block, in, block)
        return _Map(self._keep(weight), self._keep(bias), size, out)

    def _layer(self, layer: nn.Module) -> "_Layer":
        own, cross, part = layer.self_attention, layer.cross_attention, layer.feed_forward
        norms = [residual.norm for residual in layer.residuals]
        three = ctypes.c_void_p * 3
        return _Layer(
            self._map(own.w_q, own.w_k, own.w_v), self._map(own.w_o), self._map(cross.w_q),
            self._map(cross.w_o), self._map(part.expand), self._map(part.contract),
            three(*(self._keep(norm.weight) for norm in norms)),
            three(*(self._keep(norm.bias) for norm in norms)),
        )


class _State:
    """What a CompiledModel keeps between steps, for A sentences of n hypotheses each.

    memory: (B * S, L * 2 * D), keys and values of the sources; read: (B, S), 0 for padding. own:
    (B, L, room, n, 2 * D), those of all tokens written so far, by step and place in the beam.
    places: (A,), the rows of B that are not done. path: (A * n, room), the place in the beam of
    each token of a hypothesis. When hypotheses are selected, only path is rearranged.
    """

    ROOM = 64  # steps for which the cache grows at a time; unused memory costs nothing

    def __init__(self, memory: Tensor, read: Tensor):
        self.memory, self.read = memory, read
        self.own = self.path = None
        self.length = 0
        self.places = torch.arange(len(read))

    def extend(self, n: int, config) -> None:
        """Room for one more step."""
        if self.own is None:
            self.n = n  # set by the first step
            shape = len(self.read), config.n_decoder_layers, self.ROOM, n, 2 * config.d_model
            self.own = self.memory.new_empty(shape)
            self.path = torch.zeros(len(self.places) * n, self.ROOM, dtype=torch.int32)
        elif self.length == self.own.size(2):
            self.own = torch.cat([self.own, torch.empty_like(self.own)], dim=2)
            self.path = torch.cat([self.path, torch.zeros_like(self.path)], dim=1)
        self.path.view(-1, n, self.path.size(1))[:, :, self.length] = torch.arange(n)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, and these sentences (None: all of them)."""
        self.path = self.path[rows]
        if sentences is not None:
            self.places = self.places[sentences]


def _at(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _structure(name: str, **fields) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


# As decoder.c declares them.
_P, _N = ctypes.c_void_p, ctypes.c_long
_Map = _structure("_Map", weight=_P, bias=_P, n_in=_N, n_out=_N)
_Layer = _structure(
    "_Layer", qkv=_Map, own_out=_Map, cross_q=_Map, cross_out=_Map, expand=_Map, contract=_Map,
    gain=_P * 3, shift=_P * 3,
)
_Decoder = _structure(
    "_Decoder", layers=ctypes.POINTER(_Layer), output=_Map, gain=_P, shift=_P, n_layers=_N,
    width=_N, heads=_N, inner=_N, eps=ctypes.c_float,
)
