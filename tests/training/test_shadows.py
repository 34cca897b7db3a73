"""Copies of weights in low precision, as GPU stacks have them: the same training, with less to read and write."""

from __future__ import annotations

import os

import pytest
import torch
from torch.nn import functional as F

from softtargets.models import CNN, MLP, Transformer
from softtargets.randomness import key_words
from softtargets.recipes import Adam
from softtargets.training.nets import Forward, Single, Stacked, inner_linear
from softtargets.training.optimisers import WeightUpdate, make_update

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


# --- a net alone ---


def translating(low, share="all"):
    torch.manual_seed(0)
    sizes = {"width": 16, "heads": 2, "inner": 24, "encoder_layers": 2, "decoder_layers": 1}
    net = Transformer(vocabulary=20, dropout=0.2, share=share, **sizes)
    update = make_update([Adam(lr=0.01)], [name for name, _ in net.named_parameters()], 0)
    nets = Single(net, KEYS[:1], None, update.bucketed(), low)
    return nets, WeightUpdate(update, 1.0, None, 0), update.initial(nets.parameters)


def learned(nets, change, memory, steps):
    """Steps of the engine's own update; losses, and the gradients of the last."""
    source, prefix = torch.randint(3, 20, (2, 1, 4, 6), generator=torch.Generator().manual_seed(1))
    losses = []
    for step in range(steps):
        nets.set_place(torch.tensor([step]))
        with torch.autocast("cpu", torch.bfloat16):
            logits = nets.train((source, prefix))
        loss = F.cross_entropy(logits.float().flatten(0, -2), prefix.flatten())
        collected = nets.collected(torch.autograd.grad(loss, nets.leaves))
        change(nets.parameters, collected, memory, [], nets.shadows, torch.tensor(0.01), torch.tensor(step))
        losses.append(loss.item())
    return losses, [gradient.clone() for gradient in collected]


@pytest.mark.parametrize("share", ["all", "none"])
def test_a_transformer_with_shadows_learns_the_same_bit_for_bit(share):
    plain, shadowed = translating(None, share), translating(torch.bfloat16, share)
    (expected, theirs), (found, ours) = learned(*plain, steps=4), learned(*shadowed, steps=4)
    assert found == expected
    assert found[-1] < found[0]
    for one, other in zip((*theirs, *plain[0].parameters), (*ours, *shadowed[0].parameters), strict=True):
        assert torch.equal(one, other)
    state, wanted = shadowed[0].state(0), plain[0].state(0)
    assert all(torch.equal(state[name], value) for name, value in wanted.items())


def test_the_head_and_what_is_shared_or_no_linear_layer_is_read_as_it_is():
    nets, *_ = translating(torch.bfloat16)
    low = {name for name, leaf in zip(nets.names, nets.leaves, strict=True) if leaf.dtype == torch.bfloat16}
    assert "encoder.0.own.project.weight" in low
    assert "decoder.0.feed_forward.narrow.bias" in low
    assert not any(word in name for name in low for word in ("norm", "embed", "head"))
    alone, *_ = translating(torch.bfloat16, "none")
    assert "head.weight" in alone.names
    assert {
        n for n, leaf in zip(alone.names, alone.leaves, strict=True) if leaf.dtype == torch.bfloat16
    } == low


def test_a_state_that_is_gone_back_to_reaches_the_shadows():
    made = translating(torch.bfloat16)
    nets = made[0]
    before = {name: value.clone() for name, value in nets.state(0).items()}
    (first, *_), _ = learned(*made, steps=2)
    nets.load(0, before)
    for shadow, parameter in zip(nets.shadows, nets.parameters, strict=True):
        assert torch.equal(shadow, parameter.to(torch.bfloat16))
    assert learned(nets, *made[1:], steps=1)[0] == [first]
    assert {id(shadow) for shadow in nets.shadows} <= {id(each) for each in nets.changed()}


# --- a Transformer that kernels compute as a whole ---


@pytest.fixture
def by_kernels(monkeypatch):
    """On a CPU, by Triton's interpreter, which is wrong about bfloat16."""
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("runs in Triton's interpreter, so without a GPU")
    from softtargets.models.kernels import transformer

    monkeypatch.setattr(transformer, "takes", lambda *_: True)


def whole(low, share="all"):
    """As `translating`, with what there is on a GPU: kernels, and gradients that go where updates read them."""
    torch.manual_seed(0)
    sizes = {"width": 16, "heads": 1, "inner": 24, "encoder_layers": 2, "decoder_layers": 1}
    net = Transformer(vocabulary=20, dropout=0.2, share=share, **sizes)
    update = make_update([Adam(lr=0.01)], [name for name, _ in net.named_parameters()], 0)
    forward = None if low is None else Forward(net, False, worth=lambda shape: True, dynamic=True)
    buckets = update.bucketed(inner_linear(net) if low is not None else ())
    nets = Single(net, KEYS[:1], forward, buckets, low)
    return nets, WeightUpdate(update, 1.0, None, 0), update.initial(nets.parameters)


@pytest.mark.parametrize("share", ["all", "none"])
def test_as_a_whole_it_learns_the_same(by_kernels, share):
    plain, kernels = whole(None, share), whole(torch.float16, share)
    (expected, _), (found, gradients) = steps_of(*plain, None), steps_of(*kernels, torch.float16)
    assert found == pytest.approx(expected, abs=5e-3)
    assert found[-1] < found[0] - 0.1
    low = [each for each in gradients if each.dtype == torch.float16]
    assert len(low) == 1
    nets = kernels[0]
    inner = set(inner_linear(nets.model))
    for index, leaf in enumerate(nets.leaves):
        assert (leaf.dtype == torch.float16) == (index in inner)


def steps_of(nets, change, memory, low):
    generator = torch.Generator().manual_seed(1)
    source, prefix = torch.randint(3, 20, (2, 1, 4, 6), generator=generator)
    losses = []
    for step in range(4):
        nets.set_place(torch.tensor([step]))
        with torch.autocast("cpu", low, enabled=low is not None):
            logits = nets.train((source, prefix))
        loss = F.cross_entropy(logits.float().flatten(0, -2), prefix.flatten())
        gradients = torch.autograd.grad(loss, nets.leaves)
        collected = nets.collected(gradients)
        for gradient, there in zip(gradients, nets.apart(collected), strict=True):
            assert torch.equal(gradient.to(there.dtype), there)
        change(nets.parameters, collected, memory, [], nets.shadows, torch.tensor(0.01), torch.tensor(step))
        losses.append(loss.item())
    return losses, collected


def squared(nets):
    """Gradients of some loss."""
    source, prefix = torch.randint(3, 20, (2, 1, 4, 6))
    with torch.autocast("cpu", torch.float16):
        loss = nets.train((source, prefix)).float().square().mean()
    return torch.autograd.grad(loss, nets.leaves)


def test_weights_of_products_are_differentiated_into_what_updates_read(by_kernels):
    nets, _, _ = whole(torch.float16)
    gradients = squared(nets)
    written = {
        name
        for name, leaf, gradient in zip(nets.names, nets.leaves, gradients, strict=True)
        if leaf.dtype == torch.float16 and gradient.data_ptr() == leaf.gradient_goes_to.data_ptr()
    }
    assert "encoder.0.own.project.weight" in written
    assert "decoder.0.feed_forward.narrow.weight" in written
    assert not any(name.endswith("bias") for name in written)
    places = {leaf.gradient_goes_to.data_ptr() for leaf in nets.leaves if leaf.dtype == torch.float16}
    nets.gather_into(2)  # from now on the places are given back, and others exchange what is gathered
    gradients = squared(nets)
    assert not places & {each.data_ptr() for each in gradients}
    collected = nets.collected(gradients)
    assert all(each.dtype == torch.float32 for each in collected)
