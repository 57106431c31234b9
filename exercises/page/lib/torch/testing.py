"""torch.testing.assert_close, in short."""

from torch._base import float32, float64
from torch._ops import isclose
from torch._tensor import as_tensor_like


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, msg=None, **_):
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg)
        return
    a, b = as_tensor_like(actual), as_tensor_like(expected)
    small = {float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7)}.get(b.dtype, (0, 0))
    if a.shape != b.shape:
        raise AssertionError(
            f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}."
        )
    near = isclose(
        a, b, small[0] if rtol is None else rtol, small[1] if atol is None else atol, equal_nan
    )
    if not bool(near.all()):
        raise AssertionError(msg or "Tensor-likes are not close!")
