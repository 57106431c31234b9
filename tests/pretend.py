"""A pretend accelerator: real numbers, and the rule that devices do not mix.

`with pretend.device() as gpu:` gives a second device. Its tensors are computed on the CPU, so that
every result can be compared, but they live apart, as those of a GPU do:

- an operation on tensors of both devices raises `Mixed`. What CUDA allows is allowed: copies, a
  number (a tensor without axes) from the CPU, and CPU indices;
- it has random numbers of its own, so that a resumed run is right only if they were saved too;
- under autocast, matrix products round to half precision;
- `.numpy()` on its tensors, and a generator of the CPU for them, are errors;
- `waits()` counts where the program waited for the device: `.item()`, `.tolist()`, `.cpu()`,
  `nonzero`, a Boolean index, and copies to the device from memory that is not pinned.

It proves that the code puts every tensor on the device it was told, gets the numbers that the CPU
gets, and waits no more often than it must. It cannot prove speed, memory, or what the kernels of a
GPU do in the last digit; and an id outside the vocabulary, of which a GPU complains later and
elsewhere, is found here at once.

Torch lets a process register one device that it does not know, once. It stays registered, and is
not touched outside of `device()`.

`with pretend.named_mps():` gives it the name of Apple's GPU and refuses what that refuses.

    python tests/pretend.py book/15_decoding.ipynb      # a notebook, with this device chosen
"""

import contextlib
import functools
import json
import os
import sys
import time
import traceback
import unittest.mock
from collections import Counter
from pathlib import Path

import torch
from torch.autograd.grad_mode import inference_mode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
aten = torch.ops.aten
# Operations that take tensors of two devices: copies, and indices that lie on the CPU.
COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXED = {
    aten.index.Tensor, aten.index_put.default, aten.index_put_.default,
    aten._index_put_impl_.default,
}
# Operations whose result, or the shape of it, the program must know before it goes on.
WAITING = {aten._local_scalar_dense.default, aten.nonzero.default, aten.masked_select.default}


class Mixed(RuntimeError):
    """Tensors of two devices met in one operation."""


class PretendTensor(torch.Tensor):
    """A tensor on the pretend device; `on_cpu` holds its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, on_cpu: torch.Tensor):
        made = torch.Tensor._make_wrapper_subclass(
            cls, on_cpu.size(), strides=on_cpu.stride(), storage_offset=on_cpu.storage_offset(),
            dtype=on_cpu.dtype, device=torch.device(NAME, 0),
        )
        made.on_cpu = on_cpu
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})

    def __repr__(self, *, tensor_contents=None):
        return f"{self.on_cpu!r} on {NAME}"


class Everywhere(TorchDispatchMode):
    """Sees operations that have no tensor of the device yet, as torch.ones(3, device=...)."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})


class Accelerator:
    """What torch asks of a device's module (torch.cuda is such a module): one device, its seed."""

    def __init__(self):
        self.random = torch.Generator()

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def synchronize(self, device=None) -> None:
        note("synchronize")

    def get_device_name(self, device=None) -> str:
        return "a pretend accelerator"

    def get_amp_supported_dtype(self) -> list:
        return [torch.bfloat16, torch.float16]

    def manual_seed_all(self, seed: int) -> None:
        self.random.manual_seed(seed)

    def get_rng_state(self, device=None) -> torch.Tensor:
        return self.random.get_state()

    def set_rng_state(self, state: torch.Tensor, device=None) -> None:
        self.random.set_state(state)

    def _is_in_bad_fork(self) -> bool:
        return False


# ---------------------------------------------------------------------------- one operation


computed = Counter()  # how many operations there were on the device


@functools.cache
def kind_of(operation) -> tuple[bool, bool]:
    """Whether an operation is made of others, and whether it draws random numbers."""
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(
        operation.name(), "CompositeImplicitAutograd"
    )
    return composite, torch.Tag.nondeterministic_seeded in operation.tags


def flat(values) -> list:
    """All values, those in lists as well."""
    found = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def each(change, value):
    """change(value), or of everything in it."""
    if isinstance(value, (list, tuple)):
        return type(value)([each(change, one) for one in value])
    return change(value)


def plain(value):
    return value.on_cpu if isinstance(value, PretendTensor) else value


def compute(operation, args, kwargs):
    """The result of an operation, wherever its tensors are."""
    values = flat([*args, *kwargs.values()])
    ours = any(isinstance(value, PretendTensor) for value in values)
    named = kwargs.get("device")
    here = ours if named is None else torch.device(named).type == NAME
    if not ours and not here:
        return operation(*args, **kwargs)
    computed["operations"] += 1
    composite, random = kind_of(operation)
    if composite:
        with Everywhere():  # made of others: those are looked at
            result = operation.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
    require_one_device(operation, args, values)
    look_for_waits(operation, args, here)
    given = {id(plain(value)): value for value in values if isinstance(value, PretendTensor)}
    args, kwargs = each(plain, args), {name: each(plain, v) for name, v in kwargs.items()}
    if named is not None:
        kwargs["device"] = torch.device("cpu")
    if operation is aten._to_copy.default:
        kwargs.pop("non_blocking", None)
    with own_random_numbers() if random else contextlib.nullcontext():
        result = operation(*args, **kwargs)
    if not here:
        return result

    def owned(value):
        """The tensor that was given, where the operation changed one in place; else a new one."""
        if not isinstance(value, torch.Tensor):
            return value
        return given[id(value)] if id(value) in given else PretendTensor(value)

    return each(owned, result)


def require_one_device(operation, args, values) -> None:
    """Raise Mixed as CUDA would."""
    generators = [value for value in values if isinstance(value, torch.Generator)]
    if generators:
        raise Mixed(f"{operation}: expected a generator of '{NAME}', found one of 'cpu'")
    if operation in COPIES:
        return
    # Indices may lie anywhere.
    moved = values if operation not in INDEXED else [args[0], *args[2:3]]
    placed = [value for value in moved if isinstance(value, torch.Tensor)]
    strangers = [v for v in placed if not isinstance(v, PretendTensor) and v.dim()]
    # A result that is written over something of the CPU: not even a number may lie there.
    first = args[0] if args else None
    written = operation in INDEXED or operation._schema.is_mutable
    if written and isinstance(first, torch.Tensor) and not isinstance(first, PretendTensor):
        strangers.append(first)
    if strangers:
        shapes = [f"{tuple(v.shape)} on {v.device}" for v in placed]
        raise Mixed(f"{operation}: expected all tensors on one device, found {', '.join(shapes)}")


@contextlib.contextmanager
def own_random_numbers():
    """Random numbers come from the device's generator; the CPU's stays where it is."""
    before, accelerator = torch.get_rng_state(), getattr(torch, NAME)
    torch.set_rng_state(accelerator.get_rng_state())
    try:
        yield
    finally:
        accelerator.set_rng_state(torch.get_rng_state())
        torch.set_rng_state(before)


# ------------------------------------------------------------------------------ waiting

_waits: list[Counter] = []  # those who count


def note(kind: str) -> None:
    """One more wait, by its kind and the line of the library that asked for it."""
    if not _waits:
        return
    frames = [f for f in traceback.extract_stack() if "transformer_lib" in f.filename]
    line = f"{frames[-1].filename.rpartition('transformer_lib/')[2]}: {frames[-1].line}"
    for counter in _waits:
        counter[kind, line if frames else "?"] += 1


@contextlib.contextmanager
def waits():
    """A Counter of (kind, line of the library) for the waits inside the block."""
    _waits.append(Counter())
    try:
        yield _waits[-1]
    finally:
        _waits.pop()


def look_for_waits(operation, args, here: bool) -> None:
    if operation in WAITING:
        note(operation.name().removeprefix("aten::"))
    elif operation in INDEXED:
        if any(index is not None and index.dtype == torch.bool for index in args[1]):
            note("a Boolean index")
    elif operation in COPIES:
        source = args[0] if operation is aten._to_copy.default else args[1]
        onto = here if operation is aten._to_copy.default else isinstance(args[0], PretendTensor)
        if isinstance(source, PretendTensor) and not onto:
            note("a copy to the CPU")
        elif onto and not isinstance(source, PretendTensor) and source.dim():
            if not getattr(source, "pinned", False):
                note("a copy of memory that is not pinned")


# ------------------------------------------------------------------------------- switched on


def register() -> None:
    """Tell torch of the device, once in a process."""
    if hasattr(torch, NAME):
        return
    _setup_privateuseone_for_python_backend(NAME, Accelerator())
    _kept.append(torch.library.Library("_", "IMPL", AUTOCAST))
    _kept[-1].fallback(torch.library.fallthrough_kernel)
    _kept.append(torch.library.Library("aten", "IMPL", AUTOCAST))
    for name, exact in [*((name, False) for name in HALF), *((name, True) for name in FLOAT)]:
        _kept[-1].impl(name, functools.partial(_rounded, name, exact))


# Under autocast: products in half precision, sums over many numbers in float32, as on a GPU.
AUTOCAST = "AutocastPrivateUse1"
HALF = "linear matmul mm addmm bmm baddbmm scaled_dot_product_attention".split()
FLOAT = "softmax.int log_softmax.int layer_norm logsumexp sum sum.dim_IntList exp log".split()
ROUNDED = torch.float32, torch.bfloat16, torch.float16
_kept: list = []  # what is registered lives as long as these do


def _rounded(name, exact, *args, **kwargs):
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(aten, packet), overload or "default")
    dtype = torch.float32 if exact else torch.get_autocast_dtype(NAME)

    def cast(value):
        rounds = isinstance(value, torch.Tensor) and value.dtype in ROUNDED
        return value.to(dtype) if rounds else value

    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(AUTOCAST)):
        return operation(*each(cast, args), **{key: each(cast, v) for key, v in kwargs.items()})


def _tolist(tensor):
    note("tolist")
    return plain(tensor).tolist()


def _numpy(tensor, *args, **kwargs):
    if isinstance(tensor, PretendTensor):
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy; use .cpu() first")
    return _TENSOR["numpy"](tensor, *args, **kwargs)


def _pin_memory(tensor, *args, **kwargs):
    pinned = tensor.clone()
    pinned.pinned = True
    return pinned


def _no_gradients(self):
    self.before = torch.is_grad_enabled()
    torch.set_grad_enabled(self.before and not self.mode)


def _gradients_as_before(self, *error):
    torch.set_grad_enabled(self.before)


_make = torch.tensor


def _tensor(data, *, device=None, requires_grad=False, **options):
    """torch.tensor, which asks no mode where to put the numbers."""
    made = _make(data, **options)
    return (made if device is None else made.to(device)).requires_grad_(requires_grad)


_TENSOR = {name: getattr(torch.Tensor, name) for name in ("tolist", "numpy", "data_ptr")}
CHANGED = {
    "tolist": lambda t: _tolist(t) if isinstance(t, PretendTensor) else _TENSOR["tolist"](t),
    "numpy": _numpy,
    "data_ptr": lambda tensor: _TENSOR["data_ptr"](plain(tensor)),
    "pin_memory": _pin_memory,
}


def _swap(one, other) -> None:
    """torch.utils.swap_tensors, also where a graph of the past still holds one of the two."""
    one.__class__, other.__class__ = other.__class__, one.__class__
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    torch._C._swap_tensor_impl(one, other)


@contextlib.contextmanager
def device():
    """The pretend device, usable inside the block."""
    register()
    before = {name: vars(torch.Tensor).get(name) for name in CHANGED}
    swap = torch.__future__.get_swap_module_params_on_conversion()
    # A module's parameters stay the same objects when it moves, so that tied weights stay tied.
    torch.__future__.set_swap_module_params_on_conversion(True)
    swap_tensors, torch.utils.swap_tensors = torch.utils.swap_tensors, _swap
    torch.tensor = _tensor
    enter, leave = inference_mode.__enter__, inference_mode.__exit__
    # Inference tensors cannot stand behind a wrapper: no gradients will do.
    inference_mode.__enter__, inference_mode.__exit__ = _no_gradients, _gradients_as_before
    for name, method in CHANGED.items():
        setattr(torch.Tensor, name, method)
    try:
        # In the thread of the program: torch starts those of a device before it knows this one.
        with torch.autograd.set_multithreading_enabled(False), Everywhere():
            yield torch.device(NAME, 0)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swap)
        torch.utils.swap_tensors, torch.tensor = swap_tensors, _make
        inference_mode.__enter__, inference_mode.__exit__ = enter, leave
        for name, method in before.items():
            if method is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, method)


@contextlib.contextmanager
def chosen():
    """`device()`, and "auto" and "cuda" choose it, as they do where there is a GPU."""
    from transformer_lib.runs import device as places

    really = places.pick_device
    with device() as found:

        def pick_device(name: str = "auto") -> torch.device:
            return found if name in ("auto", "cuda") else really(name)

        users = [m for name, m in sys.modules.items() if name.startswith("transformer_lib")
                 and getattr(m, "pick_device", None) is really]
        for module in users:
            module.pick_device = pick_device
        try:
            yield found
        finally:
            for module in users:
                module.pick_device = really


# --------------------------------------------------------------------------------- named mps


class Apple(TorchFunctionMode):
    """Calls the device mps, and refuses what Apple's GPU refuses.

    What the program asks of "mps" goes to the pretend device; a tensor of that says that it is on
    mps. Apple's GPU has no float64 and no pinned memory, and what is copied to it without waiting
    can change on the way.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.device:
            return function(*args, **kwargs)
        there = {name: each(_from_mps, value) for name, value in kwargs.items()}
        result = function(*each(_from_mps, args), **there)
        if isinstance(result, torch.device):
            return torch.device("mps", 0) if result.type == NAME else result
        for tensor in flat([result]):
            if isinstance(tensor, PretendTensor):
                if tensor.dtype in (torch.float64, torch.complex128):
                    raise TypeError("the MPS framework doesn't support float64")
                if kwargs.get("non_blocking"):
                    raise RuntimeError("a copy to mps that nobody waits for")
        return result


def _from_mps(value):
    if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("mps")):
        return torch.device(NAME, 0) if torch.device(value).type == "mps" else value
    return value


def _no_pinned_memory(tensor, *args, **kwargs):
    raise RuntimeError("Apple's GPU has no pinned memory")


@contextlib.contextmanager
def named_mps():
    """`device()` under the name mps; the library's own "auto" finds it there, and no other GPU."""
    found = {"is_available": lambda: True}
    module = {name: getattr(Accelerator, name) for name in ("get_rng_state", "set_rng_state")}
    with contextlib.ExitStack() as stack:
        stack.enter_context(device())
        accelerator = getattr(torch, NAME)
        module = {name: functools.partial(method, accelerator) for name, method in module.items()}
        patches = [
            (torch.backends.mps, found), (torch.mps, module), (torch.cuda, {"is_available": bool}),
            (torch.Tensor, {"pin_memory": _no_pinned_memory}),
        ]
        for owner, changes in patches:
            for name, value in changes.items():
                stack.enter_context(unittest.mock.patch.object(owner, name, value))
        stack.enter_context(Apple())
        yield torch.device("mps", 0)


# --------------------------------------------------------------------------------- a notebook


def run_notebook(path: Path) -> int:
    """Run a notebook's code in this process, the device chosen; returns how much it computed there.

    The first error is raised.
    """
    from IPython.core.interactiveshell import InteractiveShell

    import transformer_lib.cli  # noqa: F401
    import transformer_lib.runs.pretrained  # noqa: F401
    import transformer_lib.training  # noqa: F401

    cells = [cell for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
             if cell["cell_type"] == "code"]
    shell = InteractiveShell.instance()
    before = computed["operations"]
    with chosen():
        for number, cell in enumerate(cells):
            result = shell.run_cell("".join(cell["source"]), store_history=False, silent=True)
            if not result.success:
                print(f"{path.name}: code cell {number} ({cell.get('id')}) fails", file=sys.stderr)
                result.raise_error()
    return computed["operations"] - before


if __name__ == "__main__":
    notebook, begin = Path(sys.argv[1]).resolve(), time.perf_counter()
    os.chdir(notebook.parent)
    sys.modules["pretend"] = sys.modules["__main__"]
    done = run_notebook(notebook)
    seconds = f"{time.perf_counter() - begin:.0f} s, {time.process_time():.0f} s of the processor"
    print(f"{notebook.name}: {done:,} operations on the device, {seconds}")
