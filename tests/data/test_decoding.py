"""From image files to pixels: every kind of file that turns up in folders, right or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from softtargets.data import Decoding, Tries, decode_file
from softtargets.data.boxes import box
from softtargets.data.decoding import put
from softtargets.exceptions import DataError


def gradient(width=40, height=30):
    """Red grows to the right, green downwards: turned or cut, it shows."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack((x * 255 // width, y * 255 // height, 0 * x + 60), 2).astype(np.uint8)


def saved(path, image, **options):
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
    return path


def pixels(path, size=8, **how):
    return decode_file(path, Decoding(size, **how)).astype(int)


@pytest.mark.parametrize(
    ("width", "height"), [(40, 30), (30, 40), (33, 33), (8, 8), (5, 3), (100, 13), (9, 8)]
)
def test_the_middle_is_what_pillow_resizes_and_crops(tmp_path, width, height):
    path = saved(tmp_path / "one.png", gradient(width, height))
    image = Image.open(path).convert("RGB")
    shorter = min(width, height)
    image = across_and_down(image, round(width * 8 / shorter), round(height * 8 / shorter))
    left, top = (image.width - 8) // 2, (image.height - 8) // 2
    found = decode_file(path, Decoding(8))
    assert np.array_equal(found, np.asarray(image.crop((left, top, left + 8, top + 8))))
    assert found.shape == (8, 8, 3)


def across_and_down(image, width, height):
    for size in ((width, image.height), (width, height)):
        image = image.resize(size, Image.Resampling.BILINEAR)
    return image


def test_a_picture_is_kept_as_it_is_or_made_to_fit(tmp_path):
    path = saved(tmp_path / "one.png", gradient())
    for size in (40, 64):
        assert np.array_equal(pixels(path, size, keep="picture"), gradient())
    for size, width, height in ((39, 39, 29), (8, 8, 6)):
        expected = np.asarray(across_and_down(Image.fromarray(gradient()), width, height))
        assert np.array_equal(pixels(path, size, keep="picture"), expected)


def test_what_lies_beside_a_picture_is_black():
    square = np.full((6, 5, 3), 200, np.uint8)
    assert put(gradient(3, 4) + 1, square) == (4, 3)
    assert np.array_equal(square[:4, :3], gradient(3, 4) + 1)
    assert not square[4:].any()
    assert not square[:, 3:].any()


@pytest.mark.parametrize("keep", ["middle", "picture"])
def test_a_part_is_cut_from_what_is_kept(tmp_path, keep):
    path = saved(tmp_path / "one.png", np.random.default_rng(3).integers(0, 256, (30, 40, 3), np.uint8))
    whole = Image.fromarray(decode_file(path, Decoding(32, keep=keep)))
    tries = Tries([(9.0, 1.0, 0, 0), (0.3, 1.2, 1 << 31, 3 << 30)], (0.75, 4 / 3))
    top, left, rows, columns = box(tries, whole.height, whole.width)
    part = whole.crop((left, top, left + columns, top + rows))
    found = decode_file(path, Decoding(32, keep=keep, cut=12), tries)
    assert np.array_equal(found, np.asarray(across_and_down(part, 12, 12)))
    assert min(top, left) > 0


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "P", "LA", "RGBA", "1"])
def test_every_way_to_store_colours_becomes_three(tmp_path, mode):
    plain = Image.fromarray(gradient()).convert(mode)
    path = saved(tmp_path / f"one.{'tif' if mode == 'CMYK' else 'png'}", plain)
    assert np.array_equal(pixels(path, 30), np.asarray(plain.convert("RGB"))[:, 5:35].astype(int))


def test_sixteen_bits_are_made_eight_and_not_cut_off(tmp_path):
    values = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    found = pixels(saved(tmp_path / "deep.png", values))
    assert np.array_equal(found, np.repeat((values // 257)[..., None], 3, 2))
    assert 0 < (found == 255).mean() < 0.1  # Pillow's own conversion makes nearly all of it white


def test_shades_that_are_no_shades_are_refused(tmp_path):
    path = saved(tmp_path / "float.tiff", np.random.default_rng(0).random((4, 4)).astype(np.float32))
    with pytest.raises(DataError, match=r"float\.tiff has floating-point pixels"):
        pixels(path)
    path = saved(tmp_path / "long.tiff", np.full((4, 4), 70_000, np.int32))
    with pytest.raises(DataError, match=r"long\.tiff has values beyond sixteen bits"):
        pixels(path)


def test_of_moving_pictures_the_first_is_taken(tmp_path):
    first, second = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    path = saved(tmp_path / "moving.gif", first, save_all=True, append_images=[second])
    assert pixels(path)[4, 4].tolist() == [255, 0, 0]


@pytest.mark.parametrize("way", range(1, 9))
def test_photographs_are_turned_as_exif_says_if_wanted(tmp_path, way):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = way
    path = saved(tmp_path / "turned.png", gradient(), exif=exif)
    upright = ImageOps.exif_transpose(Image.open(path))
    found = decode_file(path, Decoding(64, keep="picture", upright=True))
    assert found.shape == ((40, 30, 3) if way >= 5 else (30, 40, 3))
    assert np.array_equal(found, np.asarray(upright))
    assert np.array_equal(pixels(path, 64, keep="picture"), gradient())


@pytest.mark.parametrize("keep", ["middle", "picture"])
@pytest.mark.parametrize("size", [(1, 1), (1, 4000), (3000, 1), (2, 3)])
def test_tiny_pictures_and_strips_are_pictures(tmp_path, size, keep):
    path = saved(tmp_path / "strip.png", Image.new("RGB", size, (10, 200, 30)))
    assert (pixels(path, 16, keep=keep) == [10, 200, 30]).all()


@pytest.mark.parametrize("keep", ["middle", "picture"])
def test_a_draft_is_smaller_to_decode_and_nearly_the_same(tmp_path, keep):
    path = saved(tmp_path / "large.jpg", gradient(800, 600), quality=95)
    plain, drafted = (pixels(path, 64, keep=keep, draft=draft) for draft in (False, True))
    assert 0 < np.abs(plain - drafted).mean() < 2
    assert drafted.shape == plain.shape == ((64, 64, 3) if keep == "middle" else (48, 64, 3))


def test_damage_is_refused_by_name(tmp_path):
    whole = saved(tmp_path / "whole.jpg", np.random.default_rng(0).integers(0, 255, (60, 60, 3), np.uint8))
    content = whole.read_bytes()
    for name, part in (
        ("half.jpg", content[: len(content) // 2]),
        ("empty.jpg", b""),
        ("text.jpg", b"no image at all"),
    ):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(DataError, match=rf"{name} could not be decoded as an image"):
            pixels(tmp_path / name)
    with pytest.raises(DataError, match=r"gone\.jpg is in the list of images but does not exist"):
        pixels(tmp_path / "gone.jpg")


def test_a_picture_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    path = saved(tmp_path / "bomb.png", Image.new("L", (300, 300)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"bomb\.png could not be decoded .*decompression bomb"):
        pixels(path)


def test_a_size_is_at_least_one_pixel():
    with pytest.raises(DataError, match="size must be at least 1, not 0"):
        Decoding(0)
