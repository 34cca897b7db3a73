import itertools

import numpy as np
import pytest
import torch

from softtargets.randomness import philox

# Known answers from the Random123 library that accompanies the paper.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def tensors(text):
    return tuple(torch.tensor(int(word, 16)) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    found = philox(tensors(counter), tensors(key))
    assert [f"{int(word):08x}" for word in found] == expected.split()


def by_hand(counter, key, rounds=10):
    """The same in Python's own whole numbers, which never overflow."""
    (a, b, c, d), (j, k) = counter, key
    for _ in range(rounds):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ j, q % 2**32, (p >> 32) ^ d ^ k, p % 2**32
        j, k = (j + 0x9E3779B9) % 2**32, (k + 0xBB67AE85) % 2**32
    return a, b, c, d


def test_many_counters_at_once_with_whole_numbers_of_any_size():
    generator = np.random.default_rng(0)
    values = generator.integers(0, 2**32, (6, 200))
    counter, key = tuple(torch.from_numpy(values[:4])), tuple(torch.from_numpy(values[4:]))
    found = torch.stack(philox(counter, key), 1).tolist()
    for position, row in enumerate(values.T.tolist()):
        assert found[position] == list(by_hand(row[:4], row[4:]))


def test_under_vmap_and_broadcast():
    counter = torch.arange(6)
    zero = torch.tensor(0)
    keys = torch.arange(3)

    def draw(key):
        return torch.stack(philox((counter, zero, zero, zero), (key, zero)))

    together = torch.vmap(draw)(keys)
    for run, place in itertools.product(range(3), range(6)):
        assert together[run, :, place].tolist() == list(by_hand((place, 0, 0, 0), (run, 0)))


@pytest.mark.cuda
def test_the_same_on_a_gpu_and_compiled():
    counter = torch.arange(1000)
    zero = torch.tensor(0)
    here = torch.stack(philox((counter, zero, zero, zero), (zero + 7, zero)))
    there = tuple(each.cuda() for each in (counter, zero, zero, zero, zero + 7, zero))

    def draw(*each):
        return torch.stack(philox(each[:4], each[4:]))

    assert draw(*there).cpu().equal(here)
    assert torch.compile(draw)(*there).cpu().equal(here)
