"""Parts of random size: where torchvision's are, and resized as Pillow resizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image

from softtargets.data.augment import ResizedCrop, View, resized_crop
from softtargets.data.boxes import box
from softtargets.randomness import key_words

from .making import many


def smooth(count, height, width):
    """Pictures with large and small features, as photographs have them."""
    draw = np.random.default_rng(5)
    steps = draw.normal(size=(count, 3, height, width)).cumsum(2).cumsum(3)
    return (128 + 60 * steps / np.abs(steps).max((2, 3), keepdims=True)).clip(0, 255).astype(np.uint8)


def by_numbers(kind, images, drawn):
    """As a GPU makes them: by whole numbers, of shades that are no bytes."""
    return kind.apply(images.int(), drawn).to(images.dtype)


@pytest.mark.parametrize("size", [9, 16, 24, 40])
@pytest.mark.parametrize("way", [ResizedCrop.apply, by_numbers])
def test_parts_are_those_that_pillow_crops_and_resizes(size, way):
    """Pixel by pixel, on a CPU and as a GPU does it: noise shows every shade that is off by one."""
    noise = np.random.default_rng(1).integers(0, 256, (30, 3, 24, 24), np.uint8)
    for images in (smooth(30, 24, 24), noise):
        kind = ResizedCrop(size=size)
        drawn = many(kind, 30, (3, 24, 24))
        found = way(kind, torch.from_numpy(images), drawn).numpy()
        for place, image in enumerate(images):
            top, left, rows, columns = (
                int(drawn[name][place]) for name in ("top", "left", "rows", "columns")
            )
            part = Image.fromarray(image.transpose(1, 2, 0)).crop((left, top, left + columns, top + rows))
            theirs = part.resize((size, rows), Image.Resampling.BILINEAR)
            theirs = theirs.resize((size, size), Image.Resampling.BILINEAR)
            assert np.array_equal(found[place], np.asarray(theirs).transpose(2, 0, 1))


@pytest.mark.parametrize(("length", "size"), [(512, 224), (512, 299), (333, 64), (1000, 31), (40, 97)])
def test_weights_are_pillows_for_parts_of_every_length(length, size):
    """Of an image that is noise, at the sizes that are trained with."""
    draw = np.random.default_rng(length)
    image = draw.integers(0, 256, (1, 1, 3, length), np.uint8)
    for extent in {1, 2, min(size, length), *draw.integers(1, length + 1, 12).tolist(), length}:
        drawn = {"top": torch.tensor([0]), "rows": torch.tensor([3])}
        drawn |= {"left": torch.tensor([length - extent]), "columns": torch.tensor([extent])}
        narrow = resized_crop._resized(torch.from_numpy(image), 3, drawn["left"], drawn["columns"], size)
        theirs = Image.fromarray(image[0, 0, :, length - extent :].copy())
        theirs = theirs.resize((size, 3), Image.Resampling.BILINEAR)
        assert np.array_equal(narrow[0, 0].numpy(), np.asarray(theirs)), extent


def textbook(draws, height, width, scale, ratio):
    """torchvision's ``get_params`` with given draws: ten tries of four uniform numbers each."""
    area = height * width
    for share, shape, down, right in draws:
        target = area * (scale[0] + share * (scale[1] - scale[0]))
        aspect = math.exp(math.log(ratio[0]) + shape * (math.log(ratio[1]) - math.log(ratio[0])))
        columns, rows = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < columns <= width and 0 < rows <= height:
            return int(down * (height - rows + 1)), int(right * (width - columns + 1)), rows, columns
    inside = width / height
    if inside < ratio[0]:
        rows, columns = round(width / ratio[0]), width
    elif inside > ratio[1]:
        rows, columns = height, round(height * ratio[1])
    else:
        rows, columns = height, width
    return (height - rows) // 2, (width - columns) // 2, rows, columns


@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 375), (40, 2000), (2000, 40), (64, 64)])
def test_boxes_are_torchvisions(height, width):
    """Also where no try fits, as in long strips."""
    kind = ResizedCrop(size=8)
    words = torch.randint(0, 2**32, (200, 40), generator=torch.Generator().manual_seed(4))
    sizes = torch.tensor([[height, width]]).expand(200, -1)
    drawn = kind.draw(words, (3, 2000, 2000), sizes)
    unsized = kind.tries(words)
    for place in range(200):
        uniform = ((words[place].view(10, 4) >> 8).double() / 2**24).tolist()
        exact = (words[place].view(10, 4).double() / 2**32).tolist()
        tries = [(a, b, c, d) for (a, b, _, _), (_, _, c, d) in zip(uniform, exact, strict=True)]
        expected = textbook(tries, height, width, kind.scale, kind.ratio)
        assert tuple(int(drawn[name][place]) for name in ("top", "left", "rows", "columns")) == expected
        assert (
            box(unsized[place], height, width) == expected
        )  # as decoders find them, who know the size later


def test_a_part_of_a_picture_in_a_corner_is_never_of_what_lies_beside_it():
    images = torch.full((40, 3, 32, 32), 255, dtype=torch.uint8)
    sizes = torch.randint(1, 33, (40, 2), generator=torch.Generator().manual_seed(2))
    for image, (height, width) in zip(images, sizes.tolist(), strict=True):
        image[:, :height, :width] = 7
    kind = ResizedCrop(size=12)
    words = torch.randint(0, 2**32, (40, 40), generator=torch.Generator().manual_seed(4))
    drawn = kind.draw(words, (3, 32, 32), sizes)
    for way in (ResizedCrop.apply, by_numbers):
        assert (way(kind, images, drawn) == 7).all()
    assert (kind.centred(images, sizes) == 7).all()


def test_evaluation_sees_the_middle_of_a_picture_in_a_corner():
    y, x = np.mgrid[:60, :120]
    disc = torch.from_numpy((255 * ((y - 30) ** 2 + (x - 60) ** 2 < 20**2)).astype(np.uint8))
    images = torch.zeros(1, 3, 128, 128, dtype=torch.uint8)
    images[:, :, :60, :120] = disc
    found = ResizedCrop(size=60, middle=1.0).centred(images, torch.tensor([[60, 120]]))
    assert found[0, 0].equal(disc[:, 30:90])


def test_evaluation_sees_the_middle():
    images = torch.from_numpy(smooth(3, 32, 32))
    found = ResizedCrop(size=28).centred(images, None)
    assert (found.int() - images[:, :, 2:30, 2:30].int()).abs().max() == 0  # 28 = 0.875 of 32, pixel by pixel
    half = ResizedCrop(size=16, middle=0.5).centred(images, None)
    assert half.equal(images[:, :, 8:24, 8:24])


def test_all_of_a_picture_at_its_own_size_is_the_picture():
    images = torch.from_numpy(smooth(4, 20, 20))
    kind = ResizedCrop(scale=(1, 1), ratio=(1, 1))
    assert kind.apply(images, many(kind, 4, (3, 20, 20))).equal(images)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_may_lie_in_memory_in_any_way(channels):
    images = torch.from_numpy(smooth(2, 20, 26))[:1].repeat(9, 2, 1, 1)[:, :channels]
    drawn = many(ResizedCrop(size=11), 9, (channels, 20, 26))
    by_pixels = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    expected = by_numbers(ResizedCrop(size=11), images, drawn)
    for each in (images.contiguous(), by_pixels, images[:1].expand(9, -1, -1, -1)):
        assert ResizedCrop(size=11).apply(each, drawn).equal(expected)
    floating = ResizedCrop(size=11).apply(images.float(), drawn)
    assert floating.equal(expected.float())
    assert ResizedCrop(size=11).apply(
        images[:0], {name: values[:0] for name, values in drawn.items()}
    ).shape == (
        0,
        channels,
        11,
        11,
    )


def test_a_flat_picture_stays_flat():
    """Weights add up to the whole, however they are rounded."""
    for shade in (1, 127, 254, 255):
        images = torch.full((50, 3, 33, 33), shade, dtype=torch.uint8)
        for size in (5, 17, 50):
            kind = ResizedCrop(size=size)
            assert (kind.apply(images, many(kind, 50, (3, 33, 33))) == shade).all()


def test_lower_precision_around_it_changes_nothing():
    images = torch.from_numpy(smooth(4, 20, 20))
    kind = ResizedCrop(size=11)
    drawn = many(kind, 4, (3, 20, 20))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert kind.apply(images, drawn).equal(kind.apply(images, drawn))
        low = kind.apply(images, drawn)
    assert low.equal(kind.apply(images, drawn))


def test_a_view_gives_the_sizes_to_the_first_that_asks():
    view = View([ResizedCrop(size=8), ResizedCrop(size=4)], (3, 16, 16))
    key, indices = key_words(0, "augmentation"), torch.arange(50)
    plain = view.draw(key, indices, epoch=2)
    wide = view.draw(key, indices, epoch=2, sizes=torch.tensor([[100, 400]]).expand(50, -1))
    assert not all(plain[0][name].equal(wide[0][name]) for name in plain[0])
    assert all(plain[1][name].equal(wide[1][name]) for name in plain[1])
