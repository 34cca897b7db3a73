"""Copies of weights in low precision, as GPU stacks have them: the same training, with less to read and write."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from softtargets.models import CNN, MLP
from softtargets.randomness import key_words
from softtargets.training.nets import Stacked

KEYS = torch.stack([key_words(seed, "dropout") for seed in range(3)])
NETS = {
    "mlp": (
        lambda: MLP((1, 6, 6), 10, hidden=(24, 16), dropout=0.2),
        {"body.1.weight", "body.4.weight", "head.weight"},
    ),
    "cnn": (lambda: CNN((1, 8, 8), 10, channels=(4, 6), hidden=16), {"body.8.weight", "head.weight"}),
}


def stacked(name, low):
    torch.manual_seed(0)
    return Stacked([NETS[name][0]() for _ in range(3)], KEYS, None, low)


def moved(nets, images, steps=3):
    """A few steps of plain gradient descent; returns the logits and gradients of the last."""
    for step in range(steps):
        nets.set_place(torch.full((3,), step))
        with torch.autocast("cpu", torch.bfloat16):
            logits = nets.train(images)
        loss = F.cross_entropy(logits.float().flatten(0, 1), torch.arange(logits.shape[:2].numel()) % 10)
        gradients = torch.autograd.grad(loss, nets.leaves)
        with torch.no_grad():
            for parameter, shadow, gradient in zip(nets.parameters, nets.shadows, gradients, strict=True):
                parameter -= 0.5 * gradient.float()
                if shadow is not None:
                    shadow.copy_(parameter)
    return logits, gradients


@pytest.mark.parametrize("name", NETS)
def test_training_with_shadows_is_the_same_bit_for_bit(name):
    plain, shadowed = stacked(name, None), stacked(name, torch.bfloat16)
    images = torch.randn(3, 5, *((1, 6, 6) if name == "mlp" else (1, 8, 8)))
    expected, found = moved(plain, images), moved(shadowed, images)
    assert torch.equal(expected[0], found[0])
    for theirs, ours in zip(expected[1], found[1], strict=True):
        assert torch.equal(theirs, ours.float())
    for theirs, ours in zip(plain.parameters, shadowed.parameters, strict=True):
        assert torch.equal(theirs, ours)


@pytest.mark.parametrize("name", NETS)
def test_only_weights_of_linear_layers_have_shadows_and_leaves_are_what_layers_read(name):
    nets = stacked(name, torch.bfloat16)
    kinds = dict(zip(nets.names, nets.shadows, strict=True))
    assert {known for known, shadow in kinds.items() if shadow is not None} == NETS[name][1]
    for leaf, parameter, shadow in zip(nets.leaves, nets.parameters, nets.shadows, strict=True):
        assert leaf is (parameter if shadow is None else shadow)


def test_loading_a_run_moves_its_shadows_and_nobody_elses():
    nets = stacked("mlp", torch.bfloat16)
    before = [shadow if shadow is None else shadow.clone() for shadow in nets.shadows]
    state = {name: value + 1 for name, value in nets.state(1).items()}
    nets.load(1, state)
    for shadow, was, parameter in zip(nets.shadows, before, nets.parameters, strict=True):
        if shadow is None:
            continue
        assert torch.equal(shadow[1], parameter[1].to(torch.bfloat16))
        assert not torch.equal(shadow[1], was[1])
        assert torch.equal(shadow[[0, 2]], was[[0, 2]])
    assert all(value.dtype == torch.float32 for value in nets.state(1).values())


def test_trials_before_a_recording_leave_no_trace_in_shadows():
    nets = stacked("mlp", torch.bfloat16)
    changed = {id(tensor) for tensor in nets.changed()}
    assert all(id(shadow) in changed for shadow in nets.shadows if shadow is not None)


def test_averages_are_looked_at_instead_of_shadows():
    nets = stacked("mlp", torch.bfloat16)
    averages = [torch.zeros_like(parameter) for parameter in nets.parameters]
    seen = nets.swapped(averages).look(torch.randn(3, 5, 1, 6, 6), shared=False)
    assert seen.unique().tolist() == [0]


def test_weights_lie_as_their_gradients_and_memories_do():
    nets = stacked("mlp", torch.bfloat16)
    _, gradients = moved(nets, torch.randn(3, 5, 1, 6, 6), steps=1)
    for parameter, shadow, gradient in zip(nets.parameters, nets.shadows, gradients, strict=True):
        assert parameter.stride() == torch.zeros_like(parameter).stride() == gradient.stride()
        assert shadow is None or shadow.stride() == gradient.stride()


def test_states_are_dense_and_as_the_net_alone_has_them():
    nets = stacked("mlp", torch.bfloat16)
    torch.manual_seed(0)
    alone = [NETS["mlp"][0]() for _ in range(3)][1]
    for name, value in alone.state_dict().items():
        assert torch.equal(nets.state(1)[name], value)
