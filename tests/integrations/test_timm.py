"""Criteria for timm's training script: by its formulas, derived here again, and by timm itself where it is there."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch

from integrations.torchvision_shim import timm as real_timm
from softtargets.integrations.timm import SplitDivergence, create_criterion
from softtargets.losses import REGULARISERS, CrossEntropy, Distillation, ForwardCorrection, LabelSmoothing

CLASSES = 7


def some(count=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, CLASSES, generator=generator, dtype=torch.float64)
    return logits, torch.randint(CLASSES, (count,), generator=generator)


def mixed(labels, share, smoothing=0.0):
    """What timm's mixup makes of labels: smoothed over all classes, then mixed with the batch in reverse."""
    hard = torch.zeros(len(labels), CLASSES, dtype=torch.float64)
    hard[torch.arange(len(labels)), labels] = 1
    smooth = (1 - smoothing) * hard + smoothing / CLASSES
    return share * smooth + (1 - share) * smooth.flip(0)


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def args(**given):
    usual = {
        "smoothing": 0.1,
        "mixup": 0.0,
        "cutmix": 0.0,
        "cutmix_minmax": None,
        "bce_loss": False,
        "jsd_loss": False,
    }
    return Namespace(**(usual | {"aug_splits": 0, "num_classes": CLASSES} | given))


def test_the_choice_of_the_script():
    logits, labels = some()
    log_p = logits.log_softmax(-1)
    own, mean = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1), -log_p.mean(-1)
    torch.testing.assert_close(create_criterion(args())(logits, labels), (0.9 * own + 0.1 * mean).mean())
    torch.testing.assert_close(create_criterion(args(smoothing=0.0))(logits, labels), own.mean())
    for active in ({"mixup": 0.8}, {"cutmix": 1.0}, {"cutmix_minmax": [0.2, 0.8]}):
        target = mixed(labels, 0.7, 0.1)
        found = create_criterion(args(**active))(logits, target)
        torch.testing.assert_close(found, soft_cross_entropy(logits, target))


def test_smoothed_mixup_of_nothing_is_label_smoothing():
    logits, labels = some()
    target = mixed(labels, 1.0, 0.1)
    ours = create_criterion(args(), "label_smoothing")(logits, labels)
    torch.testing.assert_close(create_criterion(args(mixup=0.2))(logits, target), ours)


def made(name):
    if name == "forward_correction":
        return ForwardCorrection(torch.eye(CLASSES) * 0.8 + 0.2 / CLASSES)
    return create_criterion(args(smoothing=0.0), name)


TAKES = [name for name in REGULARISERS if name not in ("distillation", "cs_kd")]


@pytest.mark.parametrize("name", TAKES)
def test_every_loss_that_can_takes_mixed_targets(name):
    """With all of the mass on one class it is what it is for labels, and a mixture has gradients of its own."""
    logits, labels = some()
    logits.requires_grad_()
    target = mixed(labels, 0.7)
    torch.manual_seed(0)
    loss = made(name)(logits, target)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient.abs().sum() > 0
    values = []
    for given in (labels, mixed(labels, 1.0)):
        torch.manual_seed(0)
        values.append(made(name)(logits, given).item())
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("name", TAKES)
def test_mixed_targets_in_bf16_as_amp_gives_them(name):
    logits, labels = some()
    target = mixed(labels, 0.7).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = made(name)(logits.bfloat16().requires_grad_(), target)
    assert loss.dtype == torch.float32
    assert loss.isfinite()


def test_what_cannot_take_them_says_why():
    logits, labels = some()
    with pytest.raises(ValueError, match="of the same class"):
        create_criterion(args(mixup=0.2, smoothing=0), "cs_kd")
    with pytest.raises(ValueError, match="partners of the same class cannot be found"):
        made("cs_kd")(logits, mixed(labels, 0.7))
    assert made("cs_kd")(logits, labels) > 0
    with pytest.raises(ValueError, match="teacher"):
        create_criterion(args(), "distillation")
    with pytest.raises(ValueError, match="give matrix="):
        create_criterion(args(), "forward_correction")
    teacher = some(seed=1)[0]
    assert Distillation(beta=0.5)(logits, mixed(labels, 0.7), teacher) > 0  # with a teacher it can


def test_nothing_is_smoothed_twice():
    assert isinstance(create_criterion(args(mixup=0.2), "label_smoothing"), CrossEntropy)
    with pytest.raises(ValueError, match="set smoothing to 0"):
        create_criterion(args(mixup=0.2), "label_smoothing", alpha=0.2)
    with pytest.warns(UserWarning, match="labo comes on top of that"):
        create_criterion(args(mixup=0.2), "labo")
    alone = create_criterion(args(mixup=0.2, smoothing=0), "label_smoothing", alpha=0.2)
    assert alone.alpha == 0.2
    assert create_criterion(args(smoothing=0.3), "label_smoothing").alpha == 0.3


@pytest.mark.parametrize(
    "given", [{"bce_loss": True}, {"loss": "bce"}, {"loss": "asl"}, {"multi_label": True}]
)
def test_sigmoid_losses_are_refused(given):
    with pytest.raises(ValueError, match="softmax over classes"):
        create_criterion(args(**given))


def test_a_name_that_is_none():
    with pytest.raises(ValueError, match=r"'labbo' .did you mean 'labo'"):
        create_criterion(args(), "labbo")
    with pytest.raises(ValueError, match="num_classes"):
        create_criterion({}, "knowledge_refinery")


def jensen_shannon(parts):
    p = [part.softmax(-1) for part in parts]
    mean = sum(p) / len(p)
    return sum((each * (each / mean).log()).sum(-1).mean() for each in p) / len(p)


@pytest.mark.parametrize("spelling", [{"jsd_loss": True}, {"loss": "jsd"}])
def test_the_divergence_of_augmented_splits(spelling):
    logits, labels = some()
    labels = labels[:8].repeat(3)
    criterion = create_criterion(args(**spelling, aug_splits=3))
    wanted = LabelSmoothing(0.1)(logits[:8], labels[:8]) + 12 * jensen_shannon(logits.chunk(3))
    torch.testing.assert_close(criterion(logits, labels), wanted)
    other = create_criterion(args(**spelling, aug_splits=3), "focal")
    torch.testing.assert_close(
        other(logits, labels),
        REGULARISERS["focal"]()(logits[:8], labels[:8]) + 12 * jensen_shannon(logits.chunk(3)),
    )
    with pytest.raises(ValueError, match="cannot be divided into 3"):
        criterion(logits[:23], labels[:23])
    with pytest.raises(ValueError, match="aug_splits"):
        create_criterion(args(**spelling))
    with pytest.raises(ValueError, match="class indices"):
        create_criterion(args(**spelling, aug_splits=3, mixup=0.2))
    with pytest.raises(ValueError, match="at least 2"):
        SplitDivergence(CrossEntropy(), 1)


def test_by_timm_itself():
    real_timm()
    import timm.data
    import timm.loss

    logits, labels = some()
    target = timm.data.mixup.mixup_target(labels, CLASSES, 0.7, 0.1)
    torch.testing.assert_close(target.double(), mixed(labels, 0.7, 0.1))
    pairs = (
        (timm.loss.LabelSmoothingCrossEntropy(0.1), create_criterion(args()), labels),
        (timm.loss.SoftTargetCrossEntropy(), create_criterion(args(mixup=0.2)), target.double()),
        (
            timm.loss.JsdCrossEntropy(3, smoothing=0.1),
            create_criterion(args(jsd_loss=True, aug_splits=3)),
            labels,
        ),
    )
    for theirs, ours, given in pairs:
        torch.testing.assert_close(ours(logits, given), theirs(logits, given), rtol=1e-12, atol=1e-12)
