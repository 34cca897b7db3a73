"""What holds for every kind."""

from __future__ import annotations

import pytest
import torch

from softtargets.data.augment import AUGMENTATIONS
from softtargets.randomness import key_words, words

from .making import GEOMETRIC, KINDS, drawn_for, pictures

DTYPES = (torch.float16, torch.float32, torch.float64)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_draws_have_the_leading_shape_of_the_words(kind):
    place = torch.arange(24).reshape(2, 3, 4)[..., None], torch.arange(kind.blocks)
    found = words(key_words(0, "test"), *place).flatten(-2)
    drawn = kind.draw(found, (3, 6, 5))
    alone = kind.draw(found[1, 2, 3], (3, 6, 5))
    assert drawn.keys() == alone.keys()
    for name, values in drawn.items():
        assert values.shape == (2, 3, 4)
        assert values.element_size() <= 4
        assert alone[name] == values[1, 2, 3]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_result_has_the_shape_that_was_announced(kind):
    images = pictures()
    assert tuple(kind.apply(images, drawn_for(kind, images)).shape[1:]) == kind.output_shape((3, 6, 5))


@pytest.mark.parametrize("kind", GEOMETRIC, ids=str)
@pytest.mark.parametrize("dtype", [torch.uint8, *DTYPES])
def test_moving_pixels_keeps_their_type_and_values(kind, dtype):
    images = pictures()
    drawn = drawn_for(kind, images)
    found = kind.apply(images.to(dtype), drawn)
    assert found.dtype == dtype
    assert found.equal(kind.apply(images, drawn).to(dtype))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_floating_images_are_changed_as_bytes_are(kind):
    images = pictures()
    drawn = drawn_for(kind, images)
    assert kind.apply(images.float(), drawn).equal(kind.apply(images, drawn).float())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_image_alone_is_as_in_a_batch_in_any_order(kind):
    images = pictures(20)
    drawn = drawn_for(kind, images)
    together = kind.apply(images, drawn)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(2))
    shuffled = kind.apply(images[order], {name: values[order] for name, values in drawn.items()})
    assert shuffled.equal(together[order])
    for one in range(20):
        alone = kind.apply(images[one : one + 1], {n: values[one : one + 1] for n, values in drawn.items()})
        assert alone[0].equal(together[one])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_images_passed_in_are_left_alone(kind):
    for images in (pictures(), pictures().float()):
        before = images.clone()
        kind.apply(images, drawn_for(kind, images))
        assert images.equal(before)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_empty_batch_stays_empty(kind):
    images = pictures()[:0]
    assert kind.apply(images, drawn_for(kind, images)).shape == (0, *kind.output_shape((3, 6, 5)))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if getattr(kind, "size", None) is None], ids=str)
def test_an_image_of_one_pixel_is_an_image(kind):
    images = pictures(10, 3, 1, 1)
    assert kind.apply(images, drawn_for(kind, images)).shape == images.shape


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_shapes_do_not_depend_on_values(kind):
    """On the meta device there are no values: whatever waited for one would fail here."""
    images = pictures()
    drawn = {name: values.to("meta") for name, values in drawn_for(kind, images).items()}
    found = kind.apply(images.to("meta"), drawn)
    assert found.is_meta
    assert found.shape == (12, *kind.output_shape((3, 6, 5)))
    drawn = kind.draw(torch.zeros(7, 4 * kind.blocks, dtype=torch.int64, device="meta"), (3, 6, 5))
    assert {values.shape for values in drawn.values()} == {(7,)}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_every_kind_can_be_made_without_options_and_compared(name):
    assert AUGMENTATIONS[name]() == AUGMENTATIONS[name]()
    assert hash(AUGMENTATIONS[name]()) == hash(AUGMENTATIONS[name]())


@pytest.mark.cuda
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_device_makes_the_same_images(kind):
    images = pictures(200)
    found = words(key_words(3, "test"), torch.arange(200)[:, None], torch.arange(kind.blocks)).flatten(-2)
    drawn, on_gpu = kind.draw(found, (3, 6, 5)), kind.draw(found.cuda(), (3, 6, 5))
    for name, values in drawn.items():
        assert on_gpu[name].cpu().equal(values)
    there = images.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        changed = kind.apply(there, on_gpu)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = kind.apply(images, drawn)
    assert changed.dtype == expected.dtype
    assert torch.allclose(
        changed.cpu().float(), expected.float(), atol=1e-4 if expected.is_floating_point() else 0
    )
