from __future__ import annotations

import pytest
import torch
from scipy.stats import binomtest

from softtargets.data.augment import Flip

from .making import drawn_for, many, pictures


@pytest.mark.parametrize("width", [1, 2, 5])
def test_those_drawn_are_mirrored_and_the_others_are_not(width):
    images = pictures(40, width=width)
    drawn = drawn_for(Flip(), images)
    found = Flip().apply(images, drawn)
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    assert 10 < drawn["mirrored"].sum() < 30
    for after, before, mirrored in zip(found, images, drawn["mirrored"], strict=True):
        for x in range(width):
            assert after[:, :, x].equal(before[:, :, width - 1 - x if mirrored else x])


@pytest.mark.parametrize("probability", [0.0, 0.2, 0.5, 1.0])
def test_the_share_of_mirrored_images_is_the_probability(probability):
    mirrored = many(Flip(probability=probability), 5000)["mirrored"]
    assert mirrored.dtype == torch.bool
    assert binomtest(int(mirrored.sum()), 5000, probability).pvalue > 0.001


@pytest.mark.parametrize(("probability", "words"), [(0.0, 0), (1.0, 2**32 - 1)])
def test_never_and_always_hold_at_the_ends_of_the_words(probability, words):
    drawn = Flip(probability=probability).draw(torch.full((4,), words), (1, 2, 2))
    assert drawn["mirrored"].item() is bool(probability)
