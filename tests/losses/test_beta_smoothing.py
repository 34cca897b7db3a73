from __future__ import annotations

import copy
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.losses import BetaSmoothing, LabelSmoothing

from .checking import check_edges, check_every_form, check_nothing_moved, check_pack, check_precisions
from .making import batch, mixed, shaped, softmax, weighted_cross_entropy


def oracle(alpha, beta):
    def losses_of(rows, targets, weight, judged=None):
        classes = len(rows[0])
        draws = (torch.rand(len(rows), dtype=torch.float64) ** (1 / beta)).tolist()
        counted = [place for place, target in enumerate(targets) if target is not None]

        def confidence(place):
            p = softmax((judged or rows)[place])
            return sum(a * b for a, b in zip(p, targets[place], strict=True))

        largest_first = sorted((draws[place] for place in counted), reverse=True)
        surest_first = sorted(counted, key=confidence, reverse=True)
        on_label = dict(zip(surest_first, largest_first, strict=True))
        losses = [0.0] * len(rows)
        for place in counted:
            b = on_label[place]
            target = [b * t + (1 - b) / (classes - 1) * (1 - t) for t in targets[place]]
            losses[place] = weighted_cross_entropy(mixed(targets[place], target, alpha), rows[place], weight)
        return losses

    return losses_of


@pytest.mark.parametrize("options", [(0.6, 3.0), (1.0, 0.5), (0.0, 3.0), (0.3, 50.0)])
def test_every_form_of_call_against_loops(options):
    def make(**more):
        return BetaSmoothing(*options, **more)

    check_every_form(make, oracle(*options))
    check_every_form(make, oracle(*options), given=lambda logits: torch.sin(7 * logits))


def test_draws_follow_the_beta_distribution():
    """P(b < x) = x ** beta: read off from the losses, in the order of the draws."""
    torch.manual_seed(0)
    count, beta = 50_000, 3.0
    logits = torch.tensor([4.0, 0.0]).expand(count, 2).double()
    losses = BetaSmoothing(1.0, beta, reduction="none")(logits, torch.zeros(count, dtype=torch.int64))
    low, high = F.cross_entropy(logits[0], torch.tensor(0)), F.cross_entropy(logits[0], torch.tensor(1))
    drawn = (high - losses) / (high - low)
    assert drawn.mean().item() == pytest.approx(beta / (beta + 1), abs=0.005)
    for x in (0.3, 0.5, 0.9):
        assert (drawn < x).double().mean().item() == pytest.approx(x**beta, abs=0.01)


def test_the_surest_example_keeps_the_most():
    torch.manual_seed(0)
    logits = torch.zeros(5, 3, dtype=torch.float64)
    logits[:, 0] = 1  # all rows the same to the net
    averaged = torch.tensor([[1.0, 0, 0], [5.0, 0, 0], [0.0, 0, 0], [3.0, 0, 0], [-2.0, 0, 0]])
    losses = BetaSmoothing(reduction="none")(logits, torch.zeros(5, dtype=torch.int64), averaged.double())
    assert losses.argsort().tolist() == [1, 3, 0, 2, 4]


def test_without_averaged_logits_the_net_judges_itself():
    logits, labels = batch(20, 4)
    torch.manual_seed(0)
    alone = BetaSmoothing()(logits, labels)
    torch.manual_seed(0)
    assert torch.equal(alone, BetaSmoothing()(logits, labels, logits))


def test_a_very_large_beta_is_cross_entropy_and_one_is_uniform_on_average():
    logits, labels = batch(6, 4)
    torch.testing.assert_close(
        BetaSmoothing(1.0, 1e9)(logits, labels), F.cross_entropy(logits, labels), rtol=1e-6, atol=0
    )
    torch.manual_seed(0)
    same = logits[:1].repeat(50_000, 1)
    found = BetaSmoothing(1.0, 1.0)(same, labels[:1].repeat(50_000))
    expected = LabelSmoothing(0.5, "others")(logits[:1], labels[:1])  # the mean of b is one half
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)


def test_evaluation_is_cross_entropy_and_draws_nothing():
    logits, labels, soft = shaped((6,), 4)
    loss = BetaSmoothing().eval()
    torch.manual_seed(0)
    for target in (labels, soft):
        torch.testing.assert_close(loss(logits, target), F.cross_entropy(logits, target))
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3), drawn)


def test_gradients_reach_the_logits_and_not_what_they_are_sorted_by():
    logits, labels, soft = shaped((3,), 4)
    judged = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    loss = BetaSmoothing()

    def seeded(z, target):
        torch.manual_seed(1)
        return loss(z, target, judged)

    for target in (labels, soft):
        assert torch.autograd.gradcheck(lambda z, t=target: seeded(z, t), logits.clone().requires_grad_())
    seeded(logits.requires_grad_(), labels).backward()
    assert judged.grad is None


def test_edges():
    check_nothing_moved(BetaSmoothing(0))
    check_edges(BetaSmoothing)
    with pytest.raises(ValueError, match="BetaSmoothing needs logits of at least two classes"):
        BetaSmoothing()(torch.zeros(1, 1), torch.tensor([0]))
    with pytest.raises(
        ValueError, match=r"ema_logits must have the shape of the logits, \(2, 3\), not \(2, 4\)"
    ):
        BetaSmoothing()(torch.zeros(2, 3), torch.tensor([0, 1]), torch.zeros(2, 4))


def test_precisions():
    check_precisions(lambda **more: BetaSmoothing(1.0, 1e6, **more))


def test_a_pack_is_each_of_its_runs():
    options = {"alpha": [0.0, 0.5, 1.0], "beta": [3.0, 1e12, 1e12]}  # draws of practically 1
    check_pack(lambda alpha, beta: BetaSmoothing(alpha, beta), options)
    logits, labels, _ = shaped((2, 500), 4)
    logits, labels = logits.movedim(1, -1), labels.clone()
    logits[1], labels[1] = logits[0], labels[0]
    one, other = BetaSmoothing(torch.tensor([0.5, 0.5]))(logits, labels, logits)
    assert one.item() != other.item(), "runs of a pack have draws of their own"


# --- the averaged net ---


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4))

    def forward(self, inputs):
        return self.body(inputs)


def stepped(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))


def test_the_average_follows_the_formula():
    model = Net().double()
    loss = BetaSmoothing(decay=0.7)
    loss.attach(model)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(1, 7):
        stepped(model, step)
        loss.after_step(model)
        decay = min(1 - 1 / (step + 1), 0.7)
        expected = [
            decay * old + (1 - decay) * new.detach()
            for old, new in zip(expected, model.parameters(), strict=True)
        ]
        for found, wanted in zip(loss.averaged.parameters(), expected, strict=True):
            torch.testing.assert_close(found, wanted)
    assert loss.steps.item() == 6


def test_the_copy_is_frozen_and_leaves_the_net_alone():
    model = Net()
    before = copy.deepcopy(model.state_dict())
    loss = BetaSmoothing()
    loss.attach(model)
    assert all(not parameter.requires_grad for parameter in loss.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters())
    stepped(loss.averaged, 0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    logits = loss.ask(torch.randn(8, 3))
    assert logits.shape == (8, 4)
    assert not logits.requires_grad


def test_buffers_are_not_averaged_and_move_in_training_mode_only():
    model, loss = Net(), BetaSmoothing()
    loss.attach(model)
    inputs = torch.randn(16, 3) + 5
    mean = loss.averaged.body[1].running_mean
    loss.ask(inputs)
    moved = mean.clone()
    assert moved.any(), "in training mode the copy sees its own statistics"
    model(inputs - 10)
    loss.after_step(model)
    assert torch.equal(mean, moved)
    loss.eval()
    loss.ask(inputs)
    assert torch.equal(mean, moved)


def test_the_average_is_part_of_the_state():
    model, loss = Net(), BetaSmoothing()
    loss.attach(model)
    stepped(model, 0)
    loss.after_step(model)
    other = BetaSmoothing()
    other.attach(Net())
    other.load_state_dict(loss.state_dict())
    assert other.steps.item() == 1
    inputs = torch.randn(4, 3)
    assert torch.equal(loss.ask(inputs), other.ask(inputs))
    assert "averaged.body.0.weight" in loss.state_dict()
    assert list(BetaSmoothing().state_dict()) == ["steps"]


def test_attaching_again_begins_anew():
    loss = BetaSmoothing()
    loss.attach(Net())
    loss.after_step(Net())
    loss.attach(Net())
    assert loss.steps.item() == 0


def test_without_an_average_a_step_is_nothing_and_asking_is_refused():
    loss = BetaSmoothing()
    loss.after_step(Net())
    assert loss.steps.item() == 0
    with pytest.raises(RuntimeError, match=r"call loss\.attach\(model\) before the training"):
        loss.ask(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="alpha has one value per run, but the runs of a pack cannot share"):
        BetaSmoothing(torch.tensor([0.1, 0.2])).attach(Net())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "alpha must be between 0 and 1, not 1.5"),
        ({"beta": 0}, "beta must be above 0, not 0"),
        ({"decay": -0.1}, "decay must be between 0 and 1, not -0.1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BetaSmoothing(**options)


def test_it_prints_its_options():
    assert repr(BetaSmoothing()) == "BetaSmoothing(alpha=0.6, beta=3.0, decay=0.999)"
