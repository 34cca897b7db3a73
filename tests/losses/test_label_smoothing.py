from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from softtargets.losses import REGULARISERS, LabelSmoothing

from .making import batch, cross_entropy, smoothed_target


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
def test_the_loss_is_the_mean_over_the_batch(spread, alpha):
    logits, labels = batch(7, 5)
    losses = [
        cross_entropy(smoothed_target(label, 5, alpha, spread), row)
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    found = LabelSmoothing(alpha, spread)(logits, labels)
    assert found.shape == ()
    assert found.item() == pytest.approx(sum(losses) / 7, rel=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.35, 1.0])
def test_spread_over_all_is_torchs_own_label_smoothing(alpha):
    logits, labels = batch(16, 10, torch.float32)
    theirs = nn.CrossEntropyLoss(label_smoothing=alpha)
    torch.testing.assert_close(LabelSmoothing(alpha)(logits, labels), theirs(logits, labels))


@pytest.mark.parametrize("spread", ["all", "others"])
def test_no_smoothing_is_cross_entropy(spread):
    logits, labels = batch(16, 10)
    torch.testing.assert_close(
        LabelSmoothing(0.0, spread)(logits, labels), REGULARISERS["cross_entropy"]()(logits, labels)
    )


def test_the_defaults_are_those_of_szegedy_and_torch():
    loss = LabelSmoothing()
    assert (loss.alpha, loss.spread) == (0.1, "all")


@pytest.mark.parametrize("spread", ["all", "others"])
def test_gradients_flow(spread):
    logits, labels = batch(3, 4)
    assert torch.autograd.gradcheck(lambda z: LabelSmoothing(0.2, spread)(z, labels), logits.requires_grad_())


def test_the_smallest_loss_is_the_entropy_of_the_target():
    alpha, classes = 0.2, 4
    for spread in ("all", "others"):
        target = smoothed_target(1, classes, alpha, spread)
        logits = torch.tensor([[math.log(q) for q in target]], dtype=torch.float64)
        entropy = -sum(q * math.log(q) for q in target)
        loss = LabelSmoothing(alpha, spread)
        assert loss(logits, torch.tensor([1])).item() == pytest.approx(entropy, rel=1e-13)
        for k in range(classes):
            moved = logits.clone()
            moved[0, k] += 0.1
            assert loss(moved, torch.tensor([1])).item() > entropy


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, math.inf])
def test_an_impossible_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha must be between 0 and 1, not {alpha}"):
        LabelSmoothing(alpha)


@pytest.mark.parametrize("spread", ["other", "ALL", "", None])
def test_an_unknown_spread_is_refused(spread):
    with pytest.raises(ValueError, match=f"spread must be 'all' or 'others', not {spread!r}"):
        LabelSmoothing(0.1, spread)


def test_it_prints_its_options_and_has_no_weights():
    loss = LabelSmoothing(0.2, "others")
    assert repr(loss) == "LabelSmoothing(alpha=0.2, spread='others')"
    assert list(loss.parameters()) == []
