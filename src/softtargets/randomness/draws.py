"""What trainings draw: numbers, choices and orders, from a key and a place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.randomness.philox import philox
from softtargets.randomness.seeds import derive


def key_words(seed: int, purpose: str, device: torch.device | str = "cpu") -> Tensor:
    """The key of one purpose of a training, (2,): other purposes and other seeds share no draws with it.

    >>> key_words(0, "order").tolist() != key_words(0, "augmentation").tolist()
    True
    """
    key = derive(seed, purpose)
    return torch.tensor([key & 0xFFFFFFFF, key >> 32], dtype=torch.int64, device=device)


def words(key: Tensor, *place: int | Tensor) -> Tensor:
    """Four random words, (..., 4), for each key (..., 2) at a place of up to four coordinates, which broadcast.

    The first and third coordinates are those words of the counter that Philox does not multiply at once: a compiler
    that knows a running index for what it is would do so in 32 bits.

    >>> words(key_words(0, "example"), torch.arange(3), 7).shape  # examples 0 to 2 of epoch 7
    torch.Size([3, 4])
    """
    first, second, third, fourth = (_coordinate(each, key) for each in place + (0,) * (4 - len(place)))
    drawn = philox((second, first, fourth, third), (key[..., 0], key[..., 1]))
    return torch.stack(torch.broadcast_tensors(*drawn), dim=-1)


def _coordinate(value: int | Tensor, key: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(key.device, torch.int64)
    # Filled on the device: a copy from the host would wait for it, and cannot be recorded.
    return torch.full((), value, dtype=torch.int64, device=key.device)


def uniforms(drawn: Tensor) -> Tensor:
    """Words as numbers from 0 to just below 1, in single precision, all 2**24 of them equally likely."""
    return (drawn >> 8).float() * 2.0**-24


def below(drawn: Tensor, count: int | Tensor) -> Tensor:
    """Words as whole numbers from 0 to count - 1; none is likelier than another by more than count / 2**32."""
    return drawn * count >> 32


def normals(drawn: Tensor) -> Tensor:
    """An even number of words as half as many standard normal numbers (Box and Muller), along the last dimension."""
    radius, angle = uniforms(drawn).unflatten(-1, (-1, 2)).unbind(-1)
    return (-2 * torch.log1p(-radius)).sqrt() * torch.cos(2 * math.pi * angle)


def permutation(key: Tensor, count: int, *place: int | Tensor) -> Tensor:
    """The numbers from 0 to count - 1 in random order, one order for each key (..., 2): (..., count).

    >>> sorted(permutation(key_words(0, "order"), 5, 1).tolist())
    [0, 1, 2, 3, 4]
    """
    outer = [each[..., None] if isinstance(each, Tensor) else each for each in place]
    drawn = ranks(key, torch.arange(count, device=key.device), *outer)
    return torch.argsort(drawn, dim=-1, stable=True)


def ranks(key: Tensor, numbers: Tensor, *place: int | Tensor) -> Tensor:
    """What numbers (n,) are sorted by in a random order, for each key (..., 2): (..., n). `place` broadcasts with them.

    63 bits: two of 60,000 examples meet with a probability of 2e-10, and then a stable sort keeps their order.
    """
    drawn = words(key[..., None, :], numbers, *place)
    return drawn[..., 0] << 31 | drawn[..., 1] >> 1


def stacked_keys(seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu") -> Tensor:
    """The keys of several trainings, (runs, 2)."""
    return torch.stack([key_words(seed, purpose, device) for seed in seeds])
