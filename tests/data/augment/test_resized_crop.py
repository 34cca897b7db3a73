"""Parts of random size: where torchvision's are, and resized as Pillow resizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image

from softtargets.data.augment import ResizedCrop, View, resized_crop
from softtargets.randomness import key_words

from .making import many

PIXEL = 4096  # parts


def smooth(count, height, width):
    """Pictures with large and small features, as photographs have them."""
    draw = np.random.default_rng(5)
    steps = draw.normal(size=(count, 3, height, width)).cumsum(2).cumsum(3)
    return (128 + 60 * steps / np.abs(steps).max((2, 3), keepdims=True)).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("size", [9, 16, 24, 40])
def test_parts_are_those_that_pillow_crops_and_resizes(size):
    images = smooth(30, 24, 24)
    kind = ResizedCrop(size=size)
    drawn = many(kind, 30, (3, 24, 24))
    found = kind.apply(torch.from_numpy(images), drawn).numpy().astype(int)
    for place, image in enumerate(images):
        top, left, rows, columns = (
            int(drawn[name][place]) // PIXEL for name in ("top", "left", "rows", "columns")
        )
        part = Image.fromarray(image.transpose(1, 2, 0)).crop((left, top, left + columns, top + rows))
        theirs = (
            np.asarray(part.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1).astype(int)
        )
        assert np.abs(found[place] - theirs).max() <= 2
        assert np.abs(found[place] - theirs).mean() < 0.25


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
    drawn = kind.draw(words, (3, 16, 16), sizes)
    for place in range(200):
        uniform = ((words[place].view(10, 4) >> 8).double() / 2**24).tolist()
        exact = (words[place].view(10, 4).double() / 2**32).tolist()
        tries = [(a, b, c, d) for (a, b, _, _), (_, _, c, d) in zip(uniform, exact, strict=True)]
        top, left, rows, columns = textbook(tries, height, width, kind.scale, kind.ratio)
        expected = {
            "top": top * 16 * PIXEL // height,
            "left": left * 16 * PIXEL // width,
            "rows": rows * 16 * PIXEL // height,
            "columns": columns * 16 * PIXEL // width,
        }
        assert {name: int(values[place]) for name, values in drawn.items()} == expected


def test_a_part_of_a_squeezed_picture_is_that_part_of_the_picture():
    """A bright disc in a wide photograph is round again, wherever the squeezed square has it."""
    y, x = np.mgrid[:60, :120]
    disc = (255 * ((y - 30) ** 2 + (x - 60) ** 2 < 20**2)).astype(np.uint8)
    squeezed = np.asarray(Image.fromarray(disc).resize((60, 60), Image.Resampling.BILINEAR))
    images = torch.from_numpy(squeezed.copy())[None, None].expand(1, 3, -1, -1)
    found = ResizedCrop(size=60, middle=1.0).centred(images, torch.tensor([[60, 120]]))[0, 0].int()
    whole = torch.from_numpy(disc[:, 30:90].copy()).int()
    assert (found - whole).abs().float().mean() < 8
    high, wide = (int((found > 128).any(dim).sum()) for dim in (1, 0))
    assert abs(high - wide) <= 1


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


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_rows_and_gathered_pixels_are_the_same(dtype):
    """A CPU copies rows, and a GPU gathers pixels."""
    images = torch.from_numpy(smooth(9, 20, 26)).to(dtype)
    drawn = many(ResizedCrop(), 9, (3, 20, 26))
    for dim, begin, extent in ((3, "left", "columns"), (2, "top", "rows")):
        for count in (5, 13, 40):
            taps = resized_crop._taps(drawn[begin], drawn[extent], count, images.shape[dim])
            one = resized_crop._row_by_row(images, dim, *taps)
            assert one.equal(resized_crop._gathered(images, dim, *taps))
            assert one.shape[dim] == count


def test_a_flat_picture_stays_flat():
    """Weights add up to the whole, however they are rounded."""
    for shade in (1, 127, 254, 255):
        images = torch.full((50, 3, 33, 33), shade, dtype=torch.uint8)
        for size in (5, 17, 50):
            kind = ResizedCrop(size=size)
            assert (kind.apply(images, many(kind, 50, (3, 33, 33))) == shade).all()


def test_a_part_narrower_than_a_pixel_is_what_lies_there():
    images = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8)
    drawn = {name: torch.tensor([value]) for name, value in (("top", 4196), ("left", 8292))}
    drawn |= {name: torch.tensor([300]) for name in ("rows", "columns")}
    found = ResizedCrop(size=3).apply(images, drawn)
    # Its centre is at (1.06, 2.06), between the centres of pixels: 8 * 0.56 + 1.56.
    assert ((found == 6) | (found == 7)).all()


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
