"""The largest of many numbers in an order that never depends on the device: of equals, the first comes first."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.arrays import has_triton

_CHUNK = 128
# A kernel has whole rows in registers: no longer ones.
_LONGEST_ROW = 16384
_LOW = 0xFFFFFFFF
_LEAST = -(0x7F800000 + 1)  # the key of -inf
HAS_KERNELS = has_triton()


def best(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row of (n, V) and their places, largest first, of equals the lower place first.

    ``torch.topk`` leaves open which of several equal numbers it takes, and differs between devices. Here numbers in
    single or lower precision are compared together with their places, as whole numbers; of long rows only the chunks
    with the largest maxima are looked at, which hold all that can be among the best. Infinities are fine; of rows with
    NaN at least one NaN is given.

    >>> best(torch.tensor([[0.5, 0.75, 0.5, 0.75]]), 3)
    (tensor([[0.7500, 0.7500, 0.5000]]), tensor([[1, 3, 0]]))
    """
    if values.dtype == torch.float64:
        found, places = values.sort(dim=-1, descending=True, stable=True)
        return found[:, :count], places[:, :count]
    values = values.float()
    length = values.shape[1]
    if length // _CHUNK < 2 * count:
        places = _largest(_keys(values, torch.arange(length, device=values.device)), count)
        return values.gather(1, places), places
    whole = length // _CHUNK * _CHUNK
    maxima = values[:, :whole].unflatten(1, (-1, _CHUNK)).amax(-1)
    if whole < length:
        maxima = torch.cat((maxima, values[:, whole:].amax(-1, keepdim=True)), 1)
    chunks = _largest(_keys(maxima, torch.arange(maxima.shape[1], device=values.device)), count)
    within = torch.arange(_CHUNK, device=values.device)
    inside = (chunks[..., None] * _CHUNK + within).flatten(1)
    there = inside.clamp(max=length - 1)
    keys = _keys(values.gather(1, there), there).masked_fill(inside >= length, torch.iinfo(torch.int64).min)
    places = _largest(keys, count)
    return values.gather(1, places), places


def likeliest(logits: Tensor, count: int, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """The `count` likeliest tokens of each row of logits (n, V): log_softmax(logits / temperature), and the tokens.

    As `best` of the log-probabilities; on a GPU one kernel that reads the logits once.

    >>> likeliest(torch.tensor([[0.0, 1.0, 1.0]]), 2)
    (tensor([[-0.8620, -0.8620]]), tensor([[1, 2]]))
    """
    fits = logits.dtype == torch.float32 and logits.shape[1] <= _LONGEST_ROW
    if logits.is_cuda and fits and HAS_KERNELS:
        return likeliest_by_kernel(logits, count, temperature)
    return best((logits / temperature if temperature != 1 else logits).log_softmax(-1), count)


def likeliest_by_kernel(logits: Tensor, count: int, temperature: float) -> tuple[Tensor, Tensor]:
    """The same for logits in single precision, by the kernel."""
    from softtargets.translation.kernels.top import top_kernel

    rows, vocabulary = logits.shape
    log_probs, tokens = logits.new_empty(rows, count), logits.new_empty(rows, count, dtype=torch.int64)
    block = max(128, 1 << (vocabulary - 1).bit_length())
    searched = max(2, 1 << (count - 1).bit_length())
    top_kernel[(rows,)](
        logits.contiguous(),
        log_probs,
        tokens,
        temperature,
        VOCABULARY=vocabulary,
        COUNT=count,
        BLOCK=block,
        CHUNK=_CHUNK,
        SEARCHED=searched if block // _CHUNK > searched else 0,
        SCALED=temperature != 1,
        num_warps=min(16, max(4, block // 1024)),
    )
    return log_probs, tokens


def _keys(values: Tensor, places: Tensor) -> Tensor:
    """Whole numbers in the order of the values, of equal ones in the opposite order of their places."""
    bits = (values + 0.0).view(torch.int32)  # which makes 0 of -0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    # Below -inf are NaNs with a sign, such as a CPU makes of inf - inf; they come first like others.
    ordered = ordered.masked_fill(ordered < _LEAST, torch.iinfo(torch.int32).max)
    return ordered.long() << 32 | _LOW - places


def _largest(keys: Tensor, count: int) -> Tensor:
    return _LOW - (keys.topk(count, dim=1).values & _LOW)
