from __future__ import annotations

import pytest
import torch

from softtargets.data.augment import (
    Affine,
    Brightness,
    Colour,
    Contrast,
    Crop,
    Flip,
    ResizedCrop,
    Rotation,
    Shift,
    View,
)
from softtargets.randomness import key_words, words
from softtargets.randomness.draws import stacked_keys

from .making import KINDS, pictures

SHAPE = (3, 6, 5)
LISTS = [
    [Crop(padding=2), Flip()],
    [Crop(padding=0, size=4), Flip(), Brightness(), Contrast()],
    [Affine(degrees=20, translate=0.2, scale=(0.8, 1.2), shear=10), Crop(padding=1, size=5), Flip()],
    [Shift(), Rotation()],
    [Contrast(), Affine(degrees=10), Shift()],
]


def of(drawn, which):
    """The draws of some samples."""
    return [{name: values[which] for name, values in numbers.items()} for numbers in drawn]


def same(drawn, others):
    return all(
        first.keys() == second.keys() and all(first[name].equal(second[name]) for name in first)
        for first, second in zip(drawn, others, strict=True)
    )


@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_words_are_those_of_index_epoch_kind_and_block(kinds):
    key, indices = key_words(7, "augmentation"), torch.tensor([9, 0, 41])
    view = View(kinds, SHAPE)
    drawn = view.draw(key, indices, 5)
    assert len(drawn) == len(kinds)
    for place, index in enumerate(indices.tolist()):
        shape = SHAPE
        for number, kind in enumerate(kinds):
            found = [words(key, index, 5, 16 * number + block) for block in range(kind.blocks)]
            assert same([kind.draw(torch.cat(found), shape)], [of(drawn, place)[number]])
            shape = kind.output_shape(shape)
        assert shape == view.output_shape


@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_kinds_are_applied_in_order(kinds):
    images = pictures()
    view = View(kinds, SHAPE)
    drawn = view.draw(key_words(0, "augmentation"), torch.arange(12), 0)
    expected = images
    for kind, numbers in zip(kinds, drawn, strict=True):
        expected = kind.apply(expected, numbers)
    found = view.apply(images, drawn)
    assert found.equal(expected)
    assert tuple(found.shape[1:]) == view.output_shape


@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_a_sample_alone_is_as_in_any_batch_of_any_order(kinds):
    images, key = pictures(30), key_words(1, "augmentation")
    view = View(kinds, SHAPE)
    everything = view.apply(images, view.draw(key, torch.arange(30), 4))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    for batch in (*order.split(8), *torch.arange(30).split(1)):
        assert view.apply(images[batch], view.draw(key, batch, 4)).equal(everything[batch])


@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_runs_side_by_side_are_as_each_alone(kinds):
    images = pictures(30)
    view = View(kinds, SHAPE)
    seeds, epochs = [3, 8, 3, 0], torch.tensor([0, 2, 7, 2])
    indices = torch.stack(
        [torch.randperm(30, generator=torch.Generator().manual_seed(s))[:6] for s in range(4)]
    )
    drawn = view.draw(stacked_keys(seeds, "augmentation"), indices, epochs)
    assert all(values.shape == (4, 6) for numbers in drawn for values in numbers.values())
    together = view.apply(images[indices.flatten()], drawn).unflatten(0, (4, 6))
    flattened = [{name: values.flatten() for name, values in numbers.items()} for numbers in drawn]
    assert view.apply(images[indices.flatten()], flattened).equal(together.flatten(0, 1))
    for run, seed in enumerate(seeds):
        alone = view.draw(key_words(seed, "augmentation"), indices[run], int(epochs[run]))
        assert same(alone, of(drawn, run))
        assert view.apply(images[indices[run]], alone).equal(together[run])


def test_epochs_and_indices_broadcast_over_runs():
    view = View([Flip(), Crop()], SHAPE)
    keys = stacked_keys([0, 1, 2], "augmentation")
    wide = view.draw(keys, torch.arange(9).expand(3, 9), torch.tensor([6, 6, 6]))
    assert same(wide, view.draw(keys, torch.arange(9), 6))
    assert same(wide, view.draw(keys, torch.arange(9), torch.tensor(6)))
    one_key = view.draw(keys[0], torch.arange(9).expand(2, 9), torch.tensor([6, 7]))
    assert same(of(one_key, 0), of(wide, 0))
    assert same(of(one_key, 1), view.draw(keys[0], torch.arange(9), 7))


def test_seed_epoch_index_and_place_in_the_list_all_count():
    view = View([Brightness(), Brightness()], SHAPE)
    found = []
    for seed in (0, 1):
        for epoch in (0, 1):
            first, second = view.draw(key_words(seed, "augmentation"), torch.arange(50), epoch)
            found += [*first["delta"].tolist(), *second["delta"].tolist()]
    assert len(set(found)) > 390


def test_global_randomness_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    view = View(KINDS[:3], SHAPE)
    view.apply(pictures(), view.draw(key_words(0, "augmentation"), torch.arange(12), 0))
    assert torch.get_rng_state().equal(before)


def test_without_kinds_images_are_left_as_they_are():
    images, view = pictures(), View([], SHAPE)
    drawn = view.draw(key_words(0, "augmentation"), torch.arange(12), 0)
    assert drawn == []
    assert view.apply(images, drawn) is images
    assert view.output_shape == SHAPE


def test_shapes_are_followed_through_the_list():
    view = View([Crop(padding=0, size=4), Crop(padding=1, size=6), Flip()], SHAPE)
    assert view.shapes == [SHAPE, (3, 4, 4), (3, 6, 6), (3, 6, 6)]
    with pytest.raises(ValueError, match="cannot cut 7 x 7 from 4 x 4 padded by 1"):
        View([Crop(padding=0, size=4), Crop(padding=1, size=7)], SHAPE)


def test_draws_of_another_list_are_refused():
    view = View([Flip()], SHAPE)
    with pytest.raises(ValueError, match="shorter"):
        view.apply(pictures(), [])


def test_a_kind_that_takes_more_than_its_share_of_words_is_refused():
    class Greedy(Flip):
        blocks = 17

    with pytest.raises(ValueError, match="17 blocks"):
        View([Greedy()], SHAPE)


@pytest.mark.parametrize("kinds", [*LISTS, KINDS], ids=str)
def test_drawing_and_applying_compile_to_one_graph(kinds):
    torch.compiler.reset()
    images, key, indices = pictures(), key_words(2, "augmentation"), torch.arange(12)
    view = View(kinds, SHAPE)
    drawn = view.draw(key, indices, torch.tensor(3))
    compiled = torch.compile(view.draw, backend="eager", fullgraph=True)
    assert same(compiled(key, indices, torch.tensor(3)), drawn)
    applied = torch.compile(view.apply, backend="eager", fullgraph=True)(images, drawn)
    assert applied.equal(view.apply(images, drawn))


@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_shapes_do_not_depend_on_values(kinds):
    view = View(kinds, SHAPE)
    key = torch.zeros(4, 2, dtype=torch.int64, device="meta")
    indices = torch.zeros(4, 3, dtype=torch.int64, device="meta")
    drawn = view.draw(key, indices, 2)
    found = view.apply(torch.zeros(12, *SHAPE, dtype=torch.uint8, device="meta"), drawn)
    assert found.is_meta
    assert found.shape == (12, *view.output_shape)


@pytest.mark.cuda
@pytest.mark.parametrize("kinds", LISTS, ids=str)
def test_nothing_waits_for_the_device(kinds):
    view = View(kinds, SHAPE)
    images, indices = pictures(), torch.arange(12)
    key = key_words(2, "augmentation")
    on_gpu = images.cuda(), key.cuda(), indices.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        drawn = view.draw(on_gpu[1], on_gpu[2], 3)
        found = view.apply(on_gpu[0], drawn)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = view.draw(key, indices, 3)
    assert same([{name: values.cpu() for name, values in numbers.items()} for numbers in drawn], expected)
    assert torch.allclose(found.cpu().float(), view.apply(images, expected).float(), atol=1e-3)


@pytest.mark.parametrize("kinds", [[], [Colour()], [ResizedCrop(size=5)]])
def test_images_lie_by_channels_afterwards_however_they_lay_before(kinds):
    """Layers add up in an order that goes by that."""
    images = torch.randint(0, 256, (4, 9, 7, 3), dtype=torch.uint8).permute(0, 3, 1, 2)
    view = View(kinds, (3, 9, 7))
    drawn = view.draw(key_words(0, "augmentation"), torch.arange(4), epoch=1)
    found = view.apply(images, drawn)
    assert found.is_contiguous()
    assert found.equal(view.apply(images.contiguous(), drawn))
