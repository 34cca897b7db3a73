"""Philox, the counter-based generator: four random words from a counter and a key, and nothing to remember."""

from __future__ import annotations

from torch import Tensor

Words = tuple[Tensor, Tensor, Tensor, Tensor]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF


def philox(counter: Words, key: tuple[Tensor, Tensor], rounds: int = 10) -> Words:
    """Philox4x32 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    Every word is an int64 tensor with a value from 0 to 2**32 - 1, since torch has few operations on unsigned
    integers; counter and key broadcast. The same bits come out on every device, under vmap and when compiled.

    >>> import torch
    >>> zero = torch.zeros((), dtype=torch.int64)
    >>> [hex(word) for word in philox((zero, zero, zero, zero), (zero, zero))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        # A product of two words wraps around in 64 signed bits, but all 64 bits are right.
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (second >> 32 & _LOW) ^ c1 ^ k0, (first >> 32 & _LOW) ^ c3 ^ k1
        c1, c3 = second & _LOW, first & _LOW
        k0, k1 = k0 + _KEY_STEPS[0] & _LOW, k1 + _KEY_STEPS[1] & _LOW
    return c0, c1, c2, c3
