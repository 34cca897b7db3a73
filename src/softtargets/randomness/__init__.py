"""Random numbers by place instead of by history: any draw of any training can be made again, on any device."""

from softtargets.randomness.draws import (
    below,
    key_words,
    normals,
    permutation,
    ranks,
    stacked_keys,
    uniforms,
    words,
)
from softtargets.randomness.philox import philox
from softtargets.randomness.seeds import derive

__all__ = [
    "below",
    "derive",
    "key_words",
    "normals",
    "permutation",
    "philox",
    "ranks",
    "stacked_keys",
    "uniforms",
    "words",
]
