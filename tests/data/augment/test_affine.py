from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import chisquare, kstest

from softtargets.data.augment import Affine, Rotation

from .making import drawn_for, many, numbers, pictures, window

OPTIONS = [
    {"degrees": 180},
    {"degrees": 15, "translate": 0.25},
    {"scale": (0.4, 2.5)},
    {"shear": 40},
    {"degrees": 30, "translate": 0.5, "scale": (0.7, 1.3), "shear": 10},
]
SIZES = [(6, 5), (7, 7), (1, 1), (1, 8), (12, 3)]


def forward(height, width, angle, right, down, scale, shear):
    """The map from the original to the result, one matrix after another."""
    turn, slant = math.radians(angle), math.tan(math.radians(shear))
    to_centre = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    sheared = np.array([[1, -slant, 0], [0, 1, 0], [0, 0, 1]])
    turned = np.array([[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    scaled = np.diag([scale, scale, 1])
    back = np.array([[1, 0, width / 2 + right], [0, 1, height / 2 + down], [0, 0, 1]])
    return back @ scaled @ turned @ sheared @ to_centre


def looked_up(image, matrix):
    """Each pixel from where the inverse of `matrix` puts its centre, and which pixels that decides beyond doubt."""
    channels, height, width = image.shape
    inverse = np.linalg.inv(matrix)
    found, sure = torch.zeros_like(image), torch.zeros(height, width, dtype=torch.bool)
    for y in range(height):
        for x in range(width):
            column, row, _ = (inverse @ [x + 0.5, y + 0.5, 1]).tolist()
            sure[y, x] = min(abs(column - round(column)), abs(row - round(row))) > 1e-3
            column, row = math.floor(column), math.floor(row)
            if 0 <= row < height and 0 <= column < width:
                for c in range(channels):
                    found[c, y, x] = image[c, row, column]
    return found, sure


def torchvision_matrix(height, width, angle, right, down, scale, shear):
    """The formula of torchvision's _get_inverse_affine_matrix without shear in y."""
    rot, sx = math.radians(angle), math.radians(shear)
    a, b = math.cos(rot), -math.cos(rot) * math.tan(sx) - math.sin(rot)
    c, d = math.sin(rot), -math.sin(rot) * math.tan(sx) + math.cos(rot)
    m = [d / scale, -b / scale, 0, -c / scale, a / scale, 0]
    cx, cy = width * 0.5, height * 0.5
    m[2] = cx - m[0] * (cx + right) - m[1] * (cy + down)
    m[5] = cy - m[3] * (cx + right) - m[4] * (cy + down)
    return m


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_pixel_is_looked_up_where_the_inverse_map_puts_it(options, height, width):
    images = pictures(20, 2, height, width)
    drawn = drawn_for(Affine(**options), images)
    found = Affine(**options).apply(images, drawn)
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    doubtful = 0
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        expected, sure = looked_up(before, forward(height, width, **numbers(drawn, place)))
        assert after[:, sure].equal(expected[:, sure])
        doubtful += int((~sure).sum())
    assert doubtful <= 0.1 * 20 * height * width


@pytest.mark.parametrize(("height", "width"), [*SIZES, (32, 32)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_very_pixels_of_torchvision_on_pillow_images(options, height, width):
    images = pictures(20, 1, height, width)
    drawn = drawn_for(Affine(**options), images)
    found = Affine(**options).apply(images, drawn)
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        matrix = torchvision_matrix(height, width, **numbers(drawn, place))
        picture = Image.fromarray(before[0].numpy())
        expected = picture.transform(
            (width, height), Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST
        )
        assert after[0].tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize(("height", "width"), [*SIZES, (32, 32)])
@pytest.mark.parametrize("degrees", [15, 180])
def test_a_rotation_is_pillows(degrees, height, width):
    images = pictures(30, 1, height, width)
    drawn = drawn_for(Rotation(degrees=degrees), images)
    found = Rotation(degrees=degrees).apply(images, drawn)
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        expected = Image.fromarray(before[0].numpy()).rotate(numbers(drawn, place)["angle"])
        assert after[0].tolist() == np.asarray(expected).tolist()


def test_right_angles_are_exact_and_positive_ones_anticlockwise():
    image = pictures(1, 2, 5, 5)
    turned = {}
    for angle in (90, 180, -90):
        turned[angle] = Rotation(degrees=180).apply(image, {"angle": torch.tensor([float(angle)])})
        assert turned[angle].equal(torch.rot90(image, angle // 90, (-2, -1)))
    still = {"right": torch.zeros(1), "down": torch.zeros(1), "scale": torch.ones(1), "shear": torch.zeros(1)}
    assert Affine(degrees=180).apply(image, {"angle": torch.tensor([90.0]), **still}).equal(turned[-90])


@pytest.mark.parametrize("options", [{}, {"scale": (1, 1)}], ids=["moved apart", "transformed"])
def test_moves_are_by_whole_pixels_to_the_right_and_down(options):
    images = pictures(30)
    affine = Affine(translate=0.5, **options)
    drawn = drawn_for(affine, images)
    found = affine.apply(images, drawn)
    for place, (after, before) in enumerate(zip(found, images, strict=True)):
        moved = numbers(drawn, place)
        assert after.equal(window(before, -moved["down"], -moved["right"], 6, 5))
    assert len({*zip(drawn["right"].tolist(), drawn["down"].tolist(), strict=True)}) > 12


@pytest.mark.parametrize(
    "kind", [Affine(), Affine(scale=(1, 1)), Affine(degrees=1e-9), Affine(shear=1e-9), Rotation(degrees=0)]
)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_options_that_change_nothing_change_nothing(kind, height, width):
    images = pictures(5, 3, height, width)
    assert kind.apply(images, drawn_for(kind, images)).equal(images)


@pytest.mark.parametrize(
    "kind", [Affine(scale=(1e-30, 1e-20)), Affine(scale=(1e20, 1e30)), Affine(degrees=180, shear=89.999999)]
)
def test_absurd_options_break_nothing(kind):
    images = pictures()
    found = kind.apply(images, drawn_for(kind, images))
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)


def test_angles_scales_and_shears_are_uniform_and_unrelated():
    drawn = many(Affine(degrees=20, translate=0.3, scale=(0.5, 3), shear=10), 20_000, (1, 40, 30))
    for name, low, high in [("angle", -20, 20), ("scale", 0.5, 3), ("shear", -10, 10)]:
        assert drawn[name].dtype == torch.float32
        assert kstest(drawn[name].numpy(), "uniform", args=(low, high - low)).pvalue > 0.001
    correlations = torch.corrcoef(torch.stack([values.float() for values in drawn.values()])) - torch.eye(5)
    assert correlations.abs().max() < 0.03
    angles = many(Rotation(degrees=20), 20_000)["angle"]
    assert kstest(angles.numpy(), "uniform", args=(-20, 40)).pvalue > 0.001


def test_rounding_makes_the_largest_moves_half_as_likely():
    """The replication's MNIST recipe: 0.07143 of 28 pixels."""
    drawn = many(Affine(translate=0.07143), 20_000, (1, 28, 28))
    for name in ("right", "down"):
        counts = torch.bincount(drawn[name] + 2, minlength=5)
        assert len(counts) == 5
        assert chisquare(counts.numpy(), [2500, 5000, 5000, 5000, 2500]).pvalue > 0.001


def test_a_move_is_a_fraction_of_its_own_side():
    drawn = many(Affine(translate=0.1), 5_000, (1, 100, 20))
    assert (drawn["down"].min(), drawn["down"].max()) == (-10, 10)
    assert (drawn["right"].min(), drawn["right"].max()) == (-2, 2)


def test_a_scale_read_from_a_file_is_a_list():
    images = pictures()
    drawn = drawn_for(Affine(scale=[0.5, 2.0]), images)
    assert drawn["scale"].equal(drawn_for(Affine(scale=(0.5, 2.0)), images)["scale"])
