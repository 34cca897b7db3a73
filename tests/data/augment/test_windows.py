from __future__ import annotations

import pytest
import torch
from scipy.stats import binomtest, chisquare

from softtargets.data.augment import Crop, Flip, Shift, centre

from .making import drawn_for, many, numbers, pictures, window


@pytest.mark.parametrize(
    ("padding", "size"), [(4, None), (2, None), (0, None), (2, 4), (0, 3), (0, 5), (3, 5), (1, 1), (2, 7)]
)
def test_every_crop_is_the_window_drawn(padding, size):
    images = pictures()
    crop = Crop(padding=padding, size=size)
    rows, columns = size or 6, size or 5
    drawn = drawn_for(crop, images)
    found = crop.apply(images, drawn)
    assert found.dtype == torch.uint8
    assert tuple(found.shape[1:]) == crop.output_shape((3, 6, 5)) == (3, rows, columns)
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        start = numbers(drawn, place)
        assert -padding <= start["top"] <= 6 + padding - rows
        assert -padding <= start["left"] <= 5 + padding - columns
        assert after.equal(window(before, start["top"], start["left"], rows, columns))


@pytest.mark.parametrize("pixels", [1, 2, 3, 7])
def test_every_shift_moves_by_what_was_drawn(pixels):
    images = pictures()
    drawn = drawn_for(Shift(pixels=pixels), images)
    found = Shift(pixels=pixels).apply(images, drawn)
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        start = numbers(drawn, place)
        assert max(abs(start["top"]), abs(start["left"])) <= pixels
        assert after.equal(window(before, start["top"], start["left"], 6, 5))


@pytest.mark.parametrize(
    ("kind", "tops", "lefts"),
    [
        (Shift(pixels=1), range(-1, 2), range(-1, 2)),
        (Crop(padding=1), range(-1, 2), range(-1, 2)),
        (Crop(padding=0, size=4), range(3), range(2)),
        (Crop(padding=1, size=5), range(-1, 3), range(-1, 2)),
    ],
)
def test_every_window_is_equally_likely(kind, tops, lefts):
    drawn = many(kind, 9000)
    counts = torch.zeros(len(tops), len(lefts))
    for top, left in zip(drawn["top"].tolist(), drawn["left"].tolist(), strict=True):
        counts[tops.index(top), lefts.index(left)] += 1
    assert chisquare(counts.flatten().numpy()).pvalue > 0.001


@pytest.mark.parametrize("kind", [Crop(padding=0), Crop(padding=0, size=5)])
def test_a_crop_without_padding_of_full_size_is_the_image(kind):
    images = pictures(height=5)
    assert kind.apply(images, drawn_for(kind, images)).equal(images)


def test_channels_move_together():
    plane = pictures(8, 1, 6, 6)
    found = Crop(padding=2).apply(plane.expand(-1, 3, -1, -1), drawn_for(Crop(padding=2), plane))
    assert found[:, 0].equal(found[:, 1])
    assert found[:, 0].equal(found[:, 2])


@pytest.mark.parametrize(("padding", "size"), [(0, 6), (1, 8), (0, 7)])
def test_a_window_larger_than_the_padded_image_is_refused(padding, size):
    crop = Crop(padding=padding, size=size)
    with pytest.raises(ValueError, match=f"cannot cut {size} x {size} from 6 x 5 padded by {padding}"):
        many(crop, 2)
    with pytest.raises(ValueError, match="cannot cut"):
        crop.output_shape((3, 6, 5))


@pytest.mark.parametrize(
    ("height", "width", "size", "top", "left"),
    [(6, 6, 4, 1, 1), (7, 5, 3, 2, 1), (6, 6, 6, 0, 0), (6, 6, 3, 1, 1), (9, 6, 6, 1, 0), (1, 1, 1, 0, 0)],
)
def test_the_centre_is_the_middle_window(height, width, size, top, left):
    images = pictures(2, 3, height, width)
    found = centre(images, size)
    assert found.shape == (2, 3, size, size)
    for after, before in zip(found, images, strict=True):
        assert after.equal(window(before, top, left, size, size))


def test_a_centre_larger_than_the_image_is_refused():
    with pytest.raises(ValueError, match="cannot cut 6 x 6 from 7 x 5"):
        centre(pictures(1, 1, 7, 5), 6)


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
