from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch.nn import functional

from softtargets.models import Dropout
from softtargets.randomness import key_words, philox

from .looking import check_compiles


def place_of(seed, step):
    return torch.cat((key_words(seed, "dropout"), torch.tensor([step])))


def dropping(p, place=None, layer=0):
    dropout = Dropout(p)
    dropout.place, dropout.layer = place, layer
    return dropout


def kept_by_loops(place, layer, count, p):
    """One element after the other: word i % 4 of block i // 4 at the counter (step, block, 0, layer)."""
    kept = []
    for element in range(count):
        counter = [torch.tensor(value) for value in (place[2].item(), element // 4, 0, layer)]
        word = philox(tuple(counter), (place[0], place[1]))[element % 4].item()
        kept.append((word >> 8) / 2**24 >= p)
    return kept


@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 3, 4, 5), (1,)])
@pytest.mark.parametrize(("p", "layer", "step"), [(0.5, 0, 0), (0.1, 3, 12), (0.9, 1, 2**33)])
def test_the_mask_against_loops(shape, p, layer, step):
    place = place_of(4, step)
    ones = torch.ones(shape, dtype=torch.float64)
    found = dropping(p, place, layer)(ones)
    expected = [1 / (1 - p) if kept else 0.0 for kept in kept_by_loops(place, layer, ones.numel(), p)]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-15)
    assert found.shape == ones.shape


def test_without_a_place_it_is_torchs_own():
    activations = torch.randn(50, 20)
    torch.manual_seed(3)
    expected = functional.dropout(activations, 0.3)
    torch.manual_seed(3)
    assert torch.equal(dropping(0.3)(activations), expected)


@pytest.mark.parametrize("place", [None, place_of(0, 0)])
def test_in_evaluation_and_at_zero_nothing_happens(place):
    activations = torch.randn(7, 3)
    assert dropping(0.5, place).eval()(activations) is activations
    assert dropping(0.0, place)(activations) is activations


def test_a_share_of_p_is_dropped_and_the_mean_stays():
    found = dropping(0.2, place_of(1, 5))(torch.ones(200_000))
    dropped = (found == 0).double().mean().item()
    assert abs(dropped - 0.2) < 5 * (0.2 * 0.8 / 200_000) ** 0.5
    assert found[found > 0].unique().tolist() == pytest.approx([1.25])


def test_key_step_and_layer_each_change_the_mask_and_nothing_else_does():
    ones = torch.ones(100)
    base = dropping(0.5, place_of(0, 0))(ones)
    assert torch.equal(base, dropping(0.5, place_of(0, 0))(3 * ones) / 3)
    others = [(place_of(1, 0), 0), (place_of(0, 1), 0), (place_of(0, 0), 1)]
    for place, layer in others:
        assert not torch.equal(base, dropping(0.5, place, layer)(ones))


@pytest.mark.parametrize("shape", [(6, 5), (3, 2, 3, 3)])
def test_each_run_of_a_stack_gets_exactly_its_own_mask(shape):
    runs = 4
    places = torch.stack([place_of(seed, step) for seed, step in [(0, 0), (0, 9), (5, 0), (5, 9)]])
    activations = torch.randn(runs, *shape)

    def one(place, inputs):
        return torch.func.functional_call(dropout, {"place": place}, (inputs,))

    for held in (None, places[0]):  # the net that is called may have had a place of its own or not
        dropout = dropping(0.4, held, layer=2)
        found = torch.vmap(one)(places, activations)
        for run in range(runs):
            assert torch.equal(found[run], dropping(0.4, places[run], layer=2)(activations[run]))


def test_a_shared_place_gives_every_run_the_same_mask():
    dropout = dropping(0.5, place_of(2, 2))
    found = torch.vmap(dropout)(torch.ones(3, 40))
    assert torch.equal(found, dropout(torch.ones(40)).expand(3, 40))


def test_the_layout_in_memory_does_not_matter():
    images = torch.randn(2, 3, 4, 5)
    dropout = dropping(0.5, place_of(0, 3))
    assert torch.equal(dropout(images), dropout(images.contiguous(memory_format=torch.channels_last)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_precision_stays(dtype):
    dropout = dropping(0.5, place_of(0, 3))
    found = dropout(torch.ones(64, dtype=dtype))
    assert found.dtype == dtype
    assert torch.equal(found.double(), dropout(torch.ones(64)).double())


def test_gradients_pass_where_activations_do_and_infinities_are_dropped():
    activations = torch.full((64,), torch.inf)
    activations[::2] = 1
    activations.requires_grad_()
    dropout = dropping(0.75, place_of(0, 8))
    found = dropout(activations)
    found[found.isfinite()].sum().backward()
    mask = dropout(torch.ones(64))
    assert torch.equal(found == 0, mask == 0)
    assert torch.equal(activations.grad[::2], mask[::2])


def test_the_place_is_no_part_of_a_checkpoint_but_travels_with_copies():
    dropout = dropping(0.5, place_of(0, 8))
    assert dropout.state_dict() == {}
    assert dict(dropout.named_buffers()).keys() == {"place", "position"}
    copy = deepcopy(dropout).double()
    assert torch.equal(copy.place, dropout.place)
    assert copy.place.dtype == torch.int64


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_impossible_probabilities_are_refused(p):
    with pytest.raises(ValueError, match="out of range: must be at least 0 and below 1"):
        Dropout(p)


def test_it_compiles_whole():
    check_compiles(dropping(0.5, place_of(0, 8)), (3,))


@pytest.mark.cuda
def test_a_gpu_draws_the_same_mask():
    dropout = dropping(0.3, place_of(6, 4), layer=1)
    activations = torch.randn(33, 7)
    assert torch.equal(deepcopy(dropout).cuda()(activations.cuda()).cpu(), dropout(activations))


@pytest.mark.parametrize("shape", [(9, 4), (9, 7), (9, 3, 5), (9, 1)], ids=str)
def test_rows_of_a_batch_get_the_mask_that_they_have_in_it(shape):
    dropout, batch = Dropout(0.4), torch.randn(shape)
    dropout.layer = 3
    place = torch.cat((key_words(1, "dropout"), torch.tensor([5])))
    dropout.place = place
    whole = dropout(batch)
    for begin, end in ((0, 9), (0, 4), (4, 9), (3, 5), (8, 9)):
        dropout.place = torch.cat((place, torch.tensor([begin])))
        assert torch.equal(dropout(batch[begin:end]), whole[begin:end])
