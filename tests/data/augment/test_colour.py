from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from softtargets.data.augment import Brightness, Colour, Contrast

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


def test_colours_are_mixed_as_pillow_mixes_them():
    """Up to a shade for each of three times, since Pillow cuts fractions off where we round."""
    from PIL import Image, ImageEnhance

    images = pictures(20, 3, 9, 9)
    drawn = drawn_for(Colour(), images)
    found = Colour().apply(images, drawn)
    for place in range(20):
        picture = Image.fromarray(images[place].permute(1, 2, 0).numpy())
        for change, name in (
            (ImageEnhance.Brightness, "brightness"),
            (ImageEnhance.Contrast, "contrast"),
            (ImageEnhance.Color, "saturation"),
        ):
            picture = change(picture).enhance(int(drawn[name][place]) / 4096)
        theirs = torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1).int()
        assert (found[place].int() - theirs).abs().max() <= 3
        assert (found[place].int() - theirs).abs().float().mean() < 2


def test_factors_of_colours_are_drawn_from_their_ranges():
    drawn = many(Colour(brightness=0.5, contrast=1.5, saturation=0), 20_000)
    for name, (low, high) in {
        "brightness": (0.5, 1.5),
        "contrast": (0.0, 2.5),
        "saturation": (1.0, 1.0),
    }.items():
        factors = drawn[name].double() / 4096
        assert low <= factors.min() <= low + 0.001
        assert high - 0.001 <= factors.max() <= high
        assert abs(factors.mean() - (low + high) / 2) < 0.02


def test_grey_images_have_no_saturation():
    images = pictures(5, 1)
    drawn = drawn_for(Colour(brightness=0, contrast=0, saturation=0.9), images)
    assert Colour().apply(images, drawn).equal(images)


def grey(own):
    return ((299 * own[0] + 587 * own[1] + 114 * own[2]) / 1000 + 0.5).floor()


def test_colours_are_mixed_as_the_docstring_says():
    images = pictures(6, 3, 4, 5)
    drawn = drawn_for(Colour(), images)
    found = Colour().apply(images, drawn)
    for place in range(6):
        factor = {name: value / 4096 for name, value in numbers(drawn, place).items()}
        shades = images[place].double()
        for name, other in (
            ("brightness", lambda own: 0 * own),
            ("contrast", lambda own: (grey(own).mean() + 0.5).floor()),
            ("saturation", grey),
        ):
            mixed = factor[name] * shades + (1 - factor[name]) * other(shades)
            shades = (mixed + 0.5).floor().clamp(0, 255)
        assert found[place].double().equal(shades)
