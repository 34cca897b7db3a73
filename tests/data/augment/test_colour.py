from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest

from softtargets.data.augment import Brightness, Contrast

from .making import drawn_for, many, numbers, pictures


def test_brightness_adds_one_number_to_all_of_an_image():
    images = pictures()
    drawn = drawn_for(Brightness(), images)
    found = Brightness().apply(images, drawn)
    assert found.dtype == torch.float32
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        delta = numbers(drawn, place)["delta"]
        for value, original in zip(after.flatten().tolist(), before.flatten().tolist(), strict=True):
            assert value == pytest.approx(original + delta, abs=1e-4)
    assert found.min() < 0
    assert found.max() > 255


def test_contrast_scales_the_distance_to_the_mean_of_each_channel():
    images = pictures()
    drawn = drawn_for(Contrast(), images)
    found = Contrast().apply(images, drawn)
    assert found.dtype == torch.float32
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        factor = numbers(drawn, place)["factor"]
        for channel in range(3):
            values = before[channel].flatten().tolist()
            mean = sum(values) / len(values)
            expected = [(value - mean) * factor + mean for value in values]
            assert after[channel].flatten().tolist() == pytest.approx(expected, abs=1e-3)
    assert found.min() < 0
    assert found.max() > 255


@pytest.mark.parametrize("delta", [63.0, 1.0])
def test_what_is_added_is_uniform(delta):
    drawn = many(Brightness(delta=delta), 20_000)["delta"]
    assert drawn.dtype == torch.float32
    assert kstest(drawn.numpy(), "uniform", args=(-delta, 2 * delta)).pvalue > 0.001


@pytest.mark.parametrize(("low", "high"), [(0.2, 1.8), (0.0, 0.5)])
def test_factors_are_uniform(low, high):
    drawn = many(Contrast(low=low, high=high), 20_000)["factor"]
    assert drawn.dtype == torch.float32
    assert kstest(drawn.numpy(), "uniform", args=(low, high - low)).pvalue > 0.001


@pytest.mark.parametrize("kind", [Brightness(delta=0), Contrast(low=1, high=1)])
def test_options_that_change_nothing_change_nothing(kind):
    images = pictures()
    assert torch.allclose(kind.apply(images, drawn_for(kind, images)), images.float(), atol=1e-4)


def test_no_contrast_is_the_mean_of_each_channel():
    images = pictures()
    found = Contrast(low=0, high=0).apply(images, drawn_for(Contrast(low=0, high=0), images))
    assert torch.allclose(found, images.double().mean((-2, -1), keepdim=True).float().expand_as(found))


def test_the_precision_of_floating_images_is_kept():
    images = pictures().double()
    for kind in (Brightness(), Contrast()):
        assert kind.apply(images, drawn_for(kind, images)).dtype == torch.float64
