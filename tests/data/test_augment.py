from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator

from softtargets.data.augment import AUGMENTATIONS, centre, crop, flip, shift


def seeded(seed=0):
    return Generator().manual_seed(seed)


def pictures(count=12, channels=3, height=6, width=5):
    """No two neighbourhoods alike, no pixel black."""
    return torch.randint(1, 256, (count, channels, height, width), generator=seeded(9), dtype=torch.uint8)


def padded(image, padding):
    channels, height, width = image.shape
    rows = [[[0] * (width + 2 * padding) for _ in range(height + 2 * padding)] for _ in range(channels)]
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                rows[c][y + padding][x + padding] = int(image[c, y, x])
    return torch.tensor(rows, dtype=torch.uint8)


def window_of(found, image, padding):
    """Where `found` lies in the padded image, by search; None if it is nowhere."""
    around = padded(image, padding)
    _, rows, columns = found.shape
    for top in range(around.shape[1] - rows + 1):
        for left in range(around.shape[2] - columns + 1):
            if torch.equal(around[:, top : top + rows, left : left + columns], found):
                return top, left
    return None


@pytest.mark.parametrize(
    ("padding", "size"), [(4, None), (2, None), (0, None), (2, 4), (0, 3), (3, 5), (1, 1)]
)
def test_every_crop_is_a_window_of_its_padded_image(padding, size):
    images = pictures()
    found = crop(images, seeded(), padding=padding, size=size)
    assert found.dtype == torch.uint8
    assert found.shape == (12, 3, size or 6, size or 5)
    assert all(window_of(after, before, padding) for after, before in zip(found, images, strict=True))


@pytest.mark.parametrize("pixels", [1, 2, 3])
def test_every_shift_moves_by_at_most_so_many_pixels(pixels):
    images = pictures()
    found = shift(images, seeded(), pixels=pixels)
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    for after, before in zip(found, images, strict=True):
        top, left = window_of(after, before, pixels)
        assert abs(top - pixels) <= pixels
        assert abs(left - pixels) <= pixels


def test_every_offset_is_equally_likely():
    image = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    image[0, 0, 4, 4] = 255
    found = shift(image.expand(9000, -1, -1, -1), seeded(), pixels=1)
    places = found.flatten(1).to(torch.int64).argmax(1)
    counts = torch.bincount(places, minlength=64).reshape(8, 8)
    assert counts.sum() == counts[3:6, 3:6].sum() == 9000
    assert chisquare(counts[3:6, 3:6].flatten().numpy()).pvalue > 0.001


def test_images_of_one_batch_move_independently():
    images = pictures(1).expand(50, -1, -1, -1)
    places = {window_of(after, images[0], 2) for after in crop(images, seeded(), padding=2)}
    assert len(places) > 15


def test_without_padding_a_crop_of_full_size_is_the_image():
    images = pictures()
    assert torch.equal(crop(images, seeded(), padding=0), images)


def test_flipping_only_flips():
    images = pictures(200)
    found = flip(images, seeded())
    mirrored = 0
    for after, before in zip(found, images, strict=True):
        mirror = torch.stack([before[:, :, 4 - x] for x in range(5)], dim=-1)
        assert torch.equal(after, before) or torch.equal(after, mirror)
        mirrored += int(torch.equal(after, mirror))
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    assert 70 < mirrored < 130


@pytest.mark.parametrize("probability", [0.0, 0.2, 1.0])
def test_the_share_of_flipped_images_is_the_probability(probability):
    images = torch.zeros(5000, 1, 1, 2, dtype=torch.uint8)
    images[..., 0] = 1
    share = flip(images, seeded(), probability=probability)[..., 1].float().mean().item()
    assert share == pytest.approx(probability, abs=0.025)
    assert probability not in (0, 1) or share == probability


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_the_same_seed_gives_the_same_images_and_another_seed_others(name):
    images = pictures(40)
    first, again, other = (AUGMENTATIONS[name](images, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_all_randomness_comes_from_the_generator_passed_in(name):
    images = pictures(40)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    generator = seeded(1)
    first = AUGMENTATIONS[name](images, generator)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(AUGMENTATIONS[name](images, generator), first)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_the_images_passed_in_are_left_alone(name):
    images = pictures()
    before = images.clone()
    AUGMENTATIONS[name](images, seeded())
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_empty_batch_stays_empty(name):
    assert AUGMENTATIONS[name](pictures()[:0], seeded()).shape == (0, 3, 6, 5)


def test_channels_move_together():
    plane = torch.randint(1, 256, (8, 1, 6, 6), generator=seeded(3), dtype=torch.uint8)
    found = crop(plane.expand(-1, 3, -1, -1), seeded(), padding=2)
    assert torch.equal(found[:, 0], found[:, 1])
    assert torch.equal(found[:, 0], found[:, 2])


@pytest.mark.parametrize(
    ("height", "width", "size", "top", "left"),
    [(6, 6, 4, 1, 1), (7, 5, 3, 2, 1), (6, 6, 6, 0, 0), (6, 6, 3, 1, 1), (9, 6, 6, 1, 0)],
)
def test_the_centre_is_the_middle_window(height, width, size, top, left):
    images = pictures(2, 3, height, width)
    found = centre(images, size)
    assert found.shape == (2, 3, size, size)
    for y in range(size):
        for x in range(size):
            assert torch.equal(found[:, :, y, x], images[:, :, top + y, left + x])


@pytest.mark.cuda
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_every_device_sees_the_same_draws(name):
    images = pictures(40)
    on_gpu = AUGMENTATIONS[name](images.cuda(), seeded(1))
    assert on_gpu.is_cuda
    assert torch.equal(on_gpu.cpu(), AUGMENTATIONS[name](images, seeded(1)))
