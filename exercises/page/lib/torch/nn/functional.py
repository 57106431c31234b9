"""torch.nn.functional: what the exercises use of it."""

import math

from torch import _base as base
from torch import _ops
from torch._base import bool_, float32, int64, packed
from torch._ops import (
    cat,
    masked_fill,
    matmul,
    mean,
    pick,
    relu,
    sigmoid,
    tanh,
    where,
)
from torch._tensor import function, lacking, make, missing


@function
def linear(input, weight, bias=None):
    result = matmul(input, weight.t())
    return result if bias is None else result + bias


@function
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _ops.softmax(input, dim, dtype, _stacklevel)


@function
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _ops.log_softmax(input, dim, dtype, _stacklevel)


@function
def gelu(input, approximate="none"):
    if approximate == "tanh":
        return 0.5 * input * (1 + tanh(math.sqrt(2 / math.pi) * (input + 0.044715 * input**3)))
    return _ops._gelu(input)


@function
def silu(input, inplace=False):
    return input * sigmoid(input)


@function
def softplus(input, beta=1.0, threshold=20.0):
    return _ops._softplus(input * beta) / beta


@function
def logsigmoid(input):
    return -_ops._softplus(-input)


@function
def leaky_relu(input, negative_slope=0.01, inplace=False):
    return where(input > 0, input, input * negative_slope)


@function
def glu(input, dim=-1):
    a, b = input.chunk(2, dim)
    return a * sigmoid(b)


@function
def dropout(input, p=0.5, training=True, inplace=False):
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    draws = base.generator.uniforms(math.prod(input.shape), float32)
    kept = make(packed([x >= p for x in draws], input.dtype), input.shape, input.dtype)
    return input * kept / (1 - p)


@function
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    shape = (
        tuple(normalized_shape) if not isinstance(normalized_shape, int) else (normalized_shape,)
    )
    if tuple(input.shape[len(input.shape) - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    dims = list(range(-len(shape), 0))
    apart = input - input.mean(dims, True)
    result = apart * (mean(apart * apart, dims, True) + eps).rsqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@function
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None,
                  use_input_stats=True, momentum=0.1, eps=1e-05):
    dims = list(range(2, len(input.shape)))
    apart = input - input.mean(dims, True)
    result = apart * (mean(apart * apart, dims, True) + eps).rsqrt()
    shape = [1, -1] + [1] * len(dims)
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


@function
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    rows = input.reshape(input.shape[0], num_groups, -1)
    result = instance_norm(rows, eps=eps).reshape(input.shape)
    shape = [1, -1] + [1] * (len(input.shape) - 2)
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


@function
def rms_norm(input, normalized_shape, weight=None, eps=None):
    eps = 1.1920928955078125e-07 if eps is None else eps
    dims = list(range(-len(normalized_shape), 0))
    result = input * (mean(input * input, dims, True) + eps).rsqrt()
    return result if weight is None else result * weight


@function
def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    dims = [0, *range(2, len(input.shape))]
    shape = [1, -1] + [1] * (len(input.shape) - 2)
    if training or running_mean is None:
        middle, spread = input.mean(dims), input.var(dims, unbiased=False)
        if running_mean is not None:
            n = math.prod(input.shape) // input.shape[1]
            running_mean.copy_((1 - momentum) * running_mean + momentum * middle.detach())
            running_var.copy_(
                (1 - momentum) * running_var + momentum * spread.detach() * n / max(n - 1, 1)
            )
    else:
        middle, spread = running_mean, running_var
    result = (input - middle.reshape(shape)) / (spread.reshape(shape) + eps).sqrt()
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


@function
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)


@function
def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    size = (x1.norm(2, dim) * x2.norm(2, dim)).clamp_min(eps)
    return (x1 * x2).sum(dim) / size


@function
def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    flat, width = input._flat(), weight.shape[1]
    for i in flat:
        if not 0 <= i < weight.shape[0]:
            raise IndexError("index out of range in self")
    return pick(weight, [i * width + j for i in flat for j in range(width)], (*input.shape, width))


@function
def one_hot(tensor, num_classes=-1):
    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    flat = tensor._flat()
    if flat and min(flat) < 0:
        raise RuntimeError("Class values must be non-negative.")
    n = num_classes if num_classes > 0 else max(flat) + 1
    if flat and max(flat) >= n:
        raise RuntimeError("Class values must be smaller than num_classes.")
    out = [0] * (len(flat) * n)
    for i, x in enumerate(flat):
        out[i * n + x] = 1
    return make(packed(out, int64), (*tensor.shape, n), int64)


@function
def pad(input, pad, mode="constant", value=None):
    if mode != "constant":
        raise missing(f"F.pad(mode={mode!r})")
    value = 0 if value is None else value
    for i in range(0, len(pad), 2):
        at = len(input.shape) - 1 - i // 2
        before, after = pad[i], pad[i + 1]
        if before < 0 or after < 0:
            input = input.narrow(
                at, max(-before, 0), input.shape[at] - max(-before, 0) - max(-after, 0)
            )
        parts = []
        for n in (before, after):
            shape = [*input.shape[:at], max(n, 0), *input.shape[at + 1 :]]
            parts.append(make(packed([value] * math.prod(shape), input.dtype), shape, input.dtype))
        if before > 0 or after > 0:
            input = cat([parts[0], input, parts[1]], at)
    return input


@function
def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    if len(input.shape) == 1:
        input, target = input.unsqueeze(0), target.reshape(1)
    if len(input.shape) > 2:
        input = input.movedim(1, -1)
    classes, shape = input.shape[-1], input.shape[:-1]
    if tuple(target.shape) != tuple(shape):
        if target.shape and target.shape[0] != shape[0]:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({target.shape[0]})."
            )
        raise RuntimeError(f"Expected target size {list(shape)}, got {list(target.shape)}")
    if target.dtype is not int64:
        title = {"float32": "Float", "float64": "Double", "int32": "Int", "bool": "Bool"}
        raise RuntimeError(f"expected scalar type Long but found {title.get(target.dtype.name)}")
    ids = target._flat()
    for i in ids:
        if i != ignore_index and not 0 <= i < classes:
            raise IndexError(f"Target {i} is out of bounds.")
    real = [i != ignore_index for i in ids]
    places = [n * classes + (i if ok else 0) for n, (i, ok) in enumerate(zip(ids, real))]
    counts = make(packed(real, input.dtype), shape, input.dtype)
    if weight is not None:
        counts = counts * pick(weight, [i if ok else 0 for i, ok in zip(ids, real)], shape)
    losses = where(counts == 0, input.new_zeros(()), -pick(input, places, shape) * counts)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / counts.sum()


@function
def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    at = 0 if len(input.shape) == 1 else 1
    if target.dtype.kind == "f":
        if target.shape != input.shape:
            raise RuntimeError(
                "Expected floating point type for target with class probabilities, got Long"
            )
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / input.shape[at]
        losses = -(log_softmax(input, at) * target).sum(at)
        n = max(math.prod(losses.shape), 1)
        return losses if reduction == "none" else losses.sum() / (n if reduction == "mean" else 1)
    logs = log_softmax(input, at)
    found = nll_loss(logs, target, weight, None, ignore_index, None, reduction)
    if not label_smoothing:
        return found
    spread = logs if weight is None else logs * weight
    even = -spread.sum(at)
    hidden = target == ignore_index
    even = masked_fill(even, hidden, 0.0)
    if reduction == "sum":
        even = even.sum()
    elif reduction == "mean":
        even = even.sum() / (~hidden).sum()
    return (1 - label_smoothing) * found + label_smoothing / input.shape[at] * even


@function
def binary_cross_entropy(input, target, reduction="mean"):
    losses = -(
        target * input.log().clamp_min(-100) + (1 - target) * (1 - input).log().clamp_min(-100)
    )
    return losses.mean() if reduction == "mean" else losses


@function
def binary_cross_entropy_with_logits(input, target, reduction="mean"):
    losses = _ops._softplus(input) - input * target
    return losses.mean() if reduction == "mean" else losses


@function
def mse_loss(input, target, reduction="mean"):
    losses = (input - target) ** 2
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


@function
def l1_loss(input, target, reduction="mean"):
    losses = (input - target).abs()
    return losses.mean() if reduction == "mean" else losses


@function
def kl_div(input, target, reduction="mean", log_target=False):
    losses = target * (target.log() - input) if not log_target else target.exp() * (target - input)
    if reduction == "batchmean":
        return losses.sum() / input.shape[0]
    return {"mean": losses.mean, "sum": losses.sum, "none": lambda: losses}[reduction]()


@function
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    scores = matmul(query, key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = _ops.tril(
            make(
                packed([1] * (scores.shape[-2] * scores.shape[-1]), bool_), scores.shape[-2:], bool_
            )
        )
    if attn_mask is not None:
        if attn_mask.dtype is bool_:
            scores = masked_fill(scores, ~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    weights = softmax(scores, -1)
    weights = where(weights != weights, weights.new_zeros(()), weights)
    return matmul(dropout(weights, dropout_p), value)


@function
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if groups != 1:
        raise missing("F.conv1d(groups=...)")
    width = weight.shape[2]
    if padding == "same":
        padding = dilation * (width - 1) // 2
    wide = pad(input, (padding, padding))
    length = (wide.shape[-1] - dilation * (width - 1) - 1) // stride + 1
    shifted = [
        wide[..., i * dilation : i * dilation + (length - 1) * stride + 1 : stride]
        for i in range(width)
    ]
    result = sum(matmul(weight[:, :, i], part) for i, part in enumerate(shifted))
    return result if bias is None else result + bias[:, None]


@function
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C, H, W) -> (N, C * kh * kw, places)."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (
        (n, n) if isinstance(n, int) else n for n in (kernel_size, dilation, padding, stride)
    )
    wide = pad(input, (pw, pw, ph, ph))
    high = (wide.shape[-2] - dh * (kh - 1) - 1) // sh + 1
    long = (wide.shape[-1] - dw * (kw - 1) - 1) // sw + 1
    rows = [slice(i * dh, i * dh + (high - 1) * sh + 1, sh) for i in range(kh)]
    columns = [slice(j * dw, j * dw + (long - 1) * sw + 1, sw) for j in range(kw)]
    parts = [wide[..., row, column] for row in rows for column in columns]
    return _ops.stack(parts, -3).flatten(-2).flatten(-3, -2)


__getattr__ = lacking("torch.nn.functional")
