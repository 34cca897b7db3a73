from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.losses import Distillation, LabelSmoothing, TopLogits, top_logits
from softtargets.losses.batch import Batch

from .making import (
    batch,
    by_rows,
    cross_entropy,
    log_softmax,
    one_hot,
    rows,
    shaped,
    softmax,
    value_and_gradient,
    weight_of,
    weighted_cross_entropy,
    weighted_cross_entropy_gradient,
)


def by_loops(logits, labels, teacher, temperature, beta, student_temperature):
    total = 0.0
    for row, label, taught in zip(logits.tolist(), labels.tolist(), teacher.tolist(), strict=True):
        soft = softmax([value / temperature for value in taught])
        own = [value / temperature for value in row] if student_temperature else row
        hard = cross_entropy(one_hot(label, len(row)), row)
        total += (1 - beta) * hard + beta * cross_entropy(soft, own)
    return total / len(labels)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("student_temperature", [False, True])
def test_the_loss_against_loops(beta, temperature, student_temperature):
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    expected = by_loops(logits, labels, teacher, temperature, beta, student_temperature)
    loss = Distillation(temperature, beta, student_temperature)
    assert loss(logits, labels, teacher).item() == pytest.approx(expected, rel=1e-13)


def test_the_loss_in_single_precision():
    logits, labels = batch(6, 5, torch.float32)
    teacher, _ = batch(6, 5, torch.float32, seed=1)
    expected = by_loops(logits.double(), labels, teacher.double(), 3.0, 0.3, True)
    found = Distillation(3.0, 0.3, True)(logits, labels, teacher)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("student_temperature", [False, True])
def test_without_weight_on_the_teacher_it_is_cross_entropy(student_temperature):
    logits, labels = batch()
    teacher, _ = batch(seed=1)
    found = Distillation(5.0, 0.0, student_temperature)(logits, labels, teacher)
    torch.testing.assert_close(found, F.cross_entropy(logits, labels))


def test_with_all_weight_on_the_teacher_the_labels_do_not_matter():
    logits, labels = batch(6, 4)
    teacher, _ = batch(6, 4, seed=1)
    loss = Distillation(2.0, 1.0)
    assert torch.equal(loss(logits, labels, teacher), loss(logits, (labels + 1) % 4, teacher))
    blended = Distillation(2.0, 0.5)
    assert not torch.equal(blended(logits, labels, teacher), blended(logits, (labels + 1) % 4, teacher))


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_it_is_the_divergence_from_the_teacher_plus_the_teachers_entropy(temperature):
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    divergence = entropy = 0.0
    for row, taught in zip(logits.tolist(), teacher.tolist(), strict=True):
        q = softmax([value / temperature for value in taught])
        p = softmax([value / temperature for value in row])
        divergence += sum(a * math.log(a / b) for a, b in zip(q, p, strict=True)) / 6
        entropy -= sum(a * math.log(a) for a in q) / 6
    found = Distillation(temperature, 1.0, True)(logits, labels, teacher).item()
    assert found == pytest.approx(divergence + entropy, rel=1e-12)


def test_it_has_the_gradient_of_torchs_divergence():
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    Distillation(3.0, 1.0, True)(ours, labels, teacher).backward()
    F.kl_div(
        F.log_softmax(theirs / 3, -1), F.log_softmax(teacher / 3, -1), reduction="batchmean", log_target=True
    ).backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("beta", "own"), [(1.0, False), (0.3, True), (0.0, False)])
def test_gradients_flow_to_the_student(beta, own):
    logits, labels = batch(3, 4)
    teacher, _ = batch(3, 4, seed=1)
    loss = Distillation(2.0, beta, own)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels, teacher), logits.requires_grad_())


def test_a_student_that_agrees_with_its_teacher_cannot_do_better():
    teacher, labels = batch(4, 5, seed=1)
    student = teacher.clone().requires_grad_()
    Distillation(3.0, 1.0, True)(student, labels, teacher).backward()
    assert student.grad.abs().max().item() < 1e-15


def test_an_infinitely_hot_teacher_says_nothing():
    logits, labels = batch(4, 5)
    found = Distillation(1e9)(logits, labels, batch(4, 5, seed=1)[0]).item()
    uniform = sum(cross_entropy([0.2] * 5, row) for row in logits.tolist()) / 4
    assert found == pytest.approx(uniform, rel=1e-8)


def test_the_defaults_are_those_of_the_cifar_10_experiments():
    loss = Distillation()
    assert (loss.temperature, loss.beta, loss.student_temperature) == (1.0, 1.0, False)


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_an_impossible_temperature_is_refused(temperature):
    with pytest.raises(ValueError, match=f"temperature must be above 0, not {temperature}"):
        Distillation(temperature)


@pytest.mark.parametrize("beta", [-0.1, 1.1, math.nan])
def test_an_impossible_beta_is_refused(beta):
    with pytest.raises(ValueError, match=f"beta must be between 0 and 1, not {beta}"):
        Distillation(1.0, beta)


def test_it_prints_its_options():
    assert repr(Distillation(4.0, 0.5, True)) == (
        "Distillation(temperature=4.0, beta=0.5, student_temperature=True)"
    )


# --- all options ---


def one_row(temperature, beta, own, scale, match, weight):
    def one(row, t, taught, label):
        if match == "logits":
            squares = sum((a - b) ** 2 for a, b in zip(row, taught, strict=True))
            soft = weight_of(t, weight) * squares / 2
        else:
            q = softmax([value / temperature for value in taught])
            soft = weighted_cross_entropy(q, [v / temperature for v in row] if own else row, weight)
            soft *= temperature**2 if scale else 1
        return (1 - beta) * weighted_cross_entropy(t, row, weight) + beta * soft

    return one


def gradient_of_row(row, t, taught, temperature, beta, own, scale, match, weight):
    hard = weighted_cross_entropy_gradient(t, row, weight)
    if match == "logits":
        factor = weight_of(t, weight)
        soft = [factor * (a - b) for a, b in zip(row, taught, strict=True)]
    else:
        q = softmax([value / temperature for value in taught])
        inner = 1 / temperature if own else 1.0
        soft = weighted_cross_entropy_gradient(q, [value * inner for value in row], weight)
        soft = [value * inner * (temperature**2 if scale else 1) for value in soft]
    return [(1 - beta) * h + beta * s for h, s in zip(hard, soft, strict=True)]


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("scale", "match"), [(False, "probabilities"), (True, "probabilities"), (False, "logits")]
)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
def test_value_and_gradient_against_loops(beta, own, scale, match, kind, weight):
    logits, labels, probabilities = shaped((3, 2), 4)
    teacher, _, _ = shaped((3, 2), 4, seed=1)
    labels[2, 0] = 1
    target = labels if kind == "indices" else probabilities
    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    options = (3.0, beta, own, scale, match)
    for reduction in ("mean", "sum", "none"):
        for ignore_index in (-100, 1):
            if kind == "probabilities" and ignore_index == 1:
                continue
            loss = Distillation(*options, ignore_index=ignore_index, weight=tensor, reduction=reduction)
            found = loss(logits, target, teacher)
            expected = by_rows(
                one_row(*options, weight), logits, target, reduction, weight, ignore_index, teacher
            )
            expected = expected if reduction == "none" else [expected]
            assert found.reshape(-1).tolist() == pytest.approx(expected, rel=1e-11)
    loss = Distillation(*options, weight=tensor, reduction="sum")
    _, slope = value_and_gradient(loss, logits, target, teacher)
    targets = (
        rows(probabilities)
        if kind == "probabilities"
        else [one_hot(y, 4) for y in labels.reshape(-1).tolist()]
    )
    for row, t, taught, found in zip(rows(logits), targets, rows(teacher), rows(slope), strict=True):
        expected = gradient_of_row(row, t, taught, *options, weight)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-14)


def test_the_square_of_the_temperature_keeps_gradients_of_the_same_size():
    logits, labels = batch(8, 5, scale=0.5)
    teacher, _ = batch(8, 5, seed=1, scale=0.5)

    def size(temperature, scale):
        loss = Distillation(temperature, 1.0, True, scale)
        return value_and_gradient(loss, logits, labels, teacher)[1].norm().item()

    assert size(100.0, True) == pytest.approx(size(20.0, True), rel=0.05)
    assert size(100.0, False) < size(20.0, False) / 20


def test_hot_and_scaled_it_is_matching_logits():
    """Hinton et al., section 2.1: for T large and logits with mean zero the gradient is (z - v) / K."""
    logits, labels = batch(4, 5)
    teacher, _ = batch(4, 5, seed=1)
    logits, teacher = logits - logits.mean(-1, keepdim=True), teacher - teacher.mean(-1, keepdim=True)
    hot = value_and_gradient(Distillation(1e5, 1.0, True, True), logits, labels, teacher)[1]
    squares = value_and_gradient(Distillation(match="logits"), logits, labels, teacher)[1]
    torch.testing.assert_close(hot, squares / 5, rtol=1e-3, atol=1e-5)


def test_the_temperature_does_not_matter_for_matching_logits():
    logits, labels = batch(4, 5)
    teacher, _ = batch(4, 5, seed=1)
    found = [Distillation(t, 0.5, match="logits")(logits, labels, teacher) for t in (1.0, 7.0)]
    assert torch.equal(*found)
    both = Distillation(7.0, 0.5, True, True, "logits")(logits, labels, teacher)
    assert torch.equal(both, found[0])


def test_no_gradient_reaches_the_teacher():
    logits, labels = batch(4, 5)
    teacher = batch(4, 5, seed=1)[0].requires_grad_()
    for given in (teacher, top_logits(teacher, 3)):
        for match in ("probabilities", "logits"):
            loss = Distillation(2.0, 0.5, match=match)(logits.requires_grad_(), labels, given)
            assert torch.autograd.grad(loss, teacher, allow_unused=True) == (None,)


@pytest.mark.parametrize("student", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("teacher", [torch.float64, torch.float32, torch.float16])
def test_precisions_may_differ(student, teacher):
    logits, labels = batch(6, 5, student)
    taught, _ = batch(6, 5, teacher, seed=1)
    expected = by_loops(logits.double(), labels, taught.double(), 2.0, 0.5, False)
    for given in (taught, top_logits(taught, 5)):
        found = Distillation(2.0, 0.5)(logits, labels, given)
        assert found.dtype == student
        assert found.item() == pytest.approx(expected, rel=5e-3 if student == torch.bfloat16 else 1e-5)


# --- stored top logits ---


def test_the_largest_logits_are_stored_with_their_classes():
    teacher = torch.tensor([[0.1, 3.0, 2.0, -1.0], [5.0, 1.0, 6.0, 0.0]])
    found = top_logits(teacher, 2)
    assert isinstance(found, TopLogits)
    assert found.values.tolist() == [[3.0, 2.0], [6.0, 5.0]]
    assert found.classes.tolist() == [[1, 2], [2, 0]]
    places, _, _ = shaped((2, 3), 4)
    assert top_logits(places, 3).values.shape == (2, 3, 3)
    assert top_logits(places, 2).classes.tolist() == places.argsort(1, descending=True)[:, :2].tolist()
    single = top_logits(teacher[0], 2)
    assert single.classes.tolist() == [1, 2]


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
@pytest.mark.parametrize("match", ["probabilities", "logits"])
@pytest.mark.parametrize("own", [False, True])
def test_storing_all_logits_is_storing_the_teacher(shape, match, own):
    logits, labels, probabilities = shaped(shape, 5)
    teacher, _, _ = shaped(shape, 5, seed=1)
    weight = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0], dtype=torch.float64)
    for target in (labels, probabilities):
        loss = Distillation(2.0, 0.7, own, match=match, weight=weight)
        value, slope = value_and_gradient(loss, logits, target, top_logits(teacher, 5))
        expected, theirs = value_and_gradient(loss, logits, target, teacher)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(slope, theirs)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("match", ["probabilities", "logits"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25, 3.0]])
def test_top_logits_against_loops(k, match, own, weight):
    logits, labels, _ = shaped((2, 3), 5)
    labels[0, 1] = -100
    teacher, _, _ = shaped((2, 3), 5, seed=1)

    def one(row, t, taught, label):
        best = sorted(range(5), key=lambda c: -taught[c])[:k]
        if match == "logits":
            soft = weight_of(t, weight) * sum((row[c] - taught[c]) ** 2 for c in best) / 2
        else:
            q = dict(zip(best, softmax([taught[c] / 2 for c in best]), strict=True))
            log_p = log_softmax([value / 2 for value in row] if own else row)
            soft = -sum((weight[c] if weight else 1) * q[c] * log_p[c] for c in best)
        return 0.3 * weighted_cross_entropy(t, row, weight) + 0.7 * soft

    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    for reduction in ("mean", "none"):
        loss = Distillation(2.0, 0.7, own, match=match, weight=tensor, reduction=reduction)
        found = loss(logits, labels, top_logits(teacher, k))
        expected = by_rows(one, logits, labels, reduction, weight, teacher=teacher)
        expected = expected if reduction == "none" else [expected]
        assert found.reshape(-1).tolist() == pytest.approx(expected, rel=1e-11)


def test_classes_may_be_stored_in_few_bytes():
    logits, labels = batch(4, 5)
    top = top_logits(batch(4, 5, seed=1)[0], 3)
    small = TopLogits(top.values.half(), top.classes.to(torch.int16))
    loss = Distillation(2.0, 0.7)
    assert loss(logits, labels, small).item() == pytest.approx(loss(logits, labels, top).item(), rel=1e-3)


# --- a live teacher ---


def test_a_live_teacher_is_asked_in_evaluation_mode_without_gradient():
    teacher = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).train()
    inputs = torch.randn(6, 3)
    statistics = teacher[2].running_mean.clone()
    first, second = Distillation.ask(teacher, inputs), Distillation.ask(teacher, inputs)
    assert torch.equal(first, second)
    assert not first.requires_grad
    assert torch.equal(teacher[2].running_mean, statistics)
    assert teacher.training
    teacher.eval()
    assert torch.equal(Distillation.ask(teacher, inputs), teacher(inputs))
    assert not teacher.training


def test_a_teacher_that_fails_is_left_as_it_was():
    teacher = nn.Linear(3, 4).train()
    with pytest.raises(RuntimeError):
        Distillation.ask(teacher, torch.zeros(2, 5))
    assert teacher.training


def test_several_inputs_reach_the_teacher():
    teacher = nn.Bilinear(2, 3, 4)
    left, right = torch.randn(5, 2), torch.randn(5, 3)
    torch.testing.assert_close(Distillation.ask(teacher, left, right), teacher(left, right))


def test_asking_leaves_frozen_parts_frozen():
    teacher = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).train()
    teacher[1].eval()
    Distillation.ask(teacher, torch.randn(6, 3))
    assert teacher.training
    assert teacher[0].training
    assert not teacher[1].training


# --- refusals and edges ---


def test_a_missing_teacher_is_named():
    logits, labels = batch()
    with pytest.raises(
        TypeError, match=r"Distillation needs teacher_logits: loss\(logits, target, teacher_logits\)"
    ):
        Distillation()(logits, labels)
    with pytest.raises(TypeError, match="Distillation needs teacher_logits"):
        Distillation(torch.tensor([1.0]))(logits[None], labels[None])


def test_the_teacher_may_be_given_by_name():
    logits, labels = batch()
    teacher, _ = batch(seed=1)
    loss = Distillation(2.0, 0.5)
    assert torch.equal(loss(logits, labels, teacher_logits=teacher), loss(logits, labels, teacher))


@pytest.mark.parametrize("shape", [(6, 5), (5, 4), (4,), (6, 4, 1)])
@pytest.mark.parametrize("match", ["probabilities", "logits"])
def test_a_teacher_of_another_shape_is_refused(shape, match):
    logits, labels = batch(6, 4)
    with pytest.raises(ValueError, match=r"teacher_logits must have the shape of the logits, \(6, 4\), not"):
        Distillation(match=match)(logits, labels, torch.zeros(shape))


@pytest.mark.parametrize(
    ("values", "classes", "name"),
    [
        ((5, 2), (5, 2), "values"),
        ((6,), (6,), "values"),
        ((6, 2), (6, 3), "classes"),
        ((6, 2, 1), (6, 2), "values"),
    ],
)
def test_stored_logits_of_another_shape_are_refused(values, classes, name):
    logits, labels = batch(6, 4)
    top = TopLogits(torch.zeros(values), torch.zeros(classes).long())
    with pytest.raises(
        ValueError, match=rf"teacher_logits\.{name} must have the shape .*\(6, 4\), but k instead of 4"
    ):
        Distillation()(logits, labels, top)


def test_a_teacher_that_is_no_tensor_is_refused():
    logits, labels = batch(6, 4)
    with pytest.raises(TypeError, match="teacher_logits"):
        Distillation()(logits, labels, logits.tolist())


def test_an_unknown_match_is_refused():
    with pytest.raises(
        ValueError, match=r"match must be 'probabilities' or 'logits', not 'logit' \(did you mean"
    ):
        Distillation(match="logit")


def test_classes_that_the_teacher_excludes_may_be_impossible():
    logits = torch.tensor([[0.5, -1.0, -math.inf]], dtype=torch.float64)
    teacher = torch.tensor([[1.0, 2.0, -math.inf]], dtype=torch.float64)
    for own in (False, True):
        value, slope = value_and_gradient(Distillation(2.0, 0.5, own), logits, torch.tensor([0]), teacher)
        expected, theirs = value_and_gradient(
            Distillation(2.0, 0.5, own), logits[:, :2], torch.tensor([0]), teacher[:, :2]
        )
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(slope[:, :2], theirs)
        assert slope[0, 2].item() == 0


def test_without_weight_on_the_teacher_impossible_classes_do_no_harm():
    logits = torch.tensor([[0.0, 1.0, -math.inf]])
    found = Distillation(2.0, 0.0)(logits, torch.tensor([0]), torch.zeros(1, 3)).item()
    assert found == pytest.approx(F.cross_entropy(logits, torch.tensor([0])).item())


def test_a_teacher_that_knows_nothing_smooths_labels():
    logits, labels = batch(6, 4)
    weight = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
    found = Distillation(3.0, 0.2, weight=weight)(logits, labels, torch.zeros_like(logits))
    torch.testing.assert_close(found, LabelSmoothing(0.2, weight=weight)(logits, labels))


def test_it_prints_the_rarer_options():
    found = repr(Distillation(2.0, 0.6, scale_gradients=True, match="logits"))
    assert found == (
        "Distillation(temperature=2.0, beta=0.6, student_temperature=False, scale_gradients=True, match='logits')"
    )


def test_a_kernel_is_told_the_same():
    logits, labels = batch(6, 4)
    teacher, _ = batch(6, 4, seed=1)
    rows_ = Batch(logits, labels, None, -100)
    rule = Distillation(4.0, 0.25, True, True).rule(rows_, teacher)
    assert (rule.kind, rule.teacher is teacher) == ("distillation", True)
    assert rule.values == pytest.approx((0.75, 0.25 * 16, 0.25, 0.25))
    assert Distillation(4.0, 0.25).rule(rows_, teacher).values == pytest.approx((0.75, 0.25, 0.25, 1.0))
    assert Distillation(4.0, 0.25, match="logits").rule(rows_, teacher).values == (0.75, 0.25)
    assert Distillation().rule(rows_, top_logits(teacher, 2)) is None
    assert Distillation().rule(rows_, teacher[:, :2]) is None
    assert Distillation(weight=torch.ones(4)).rule(rows_, teacher) is None


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_hintons_loss_is_what_mdistiller_computes(temperature):
    """Its KD.py: weights 0.1 and 0.9, and the divergence of softened probabilities times the square of T."""
    logits, labels = batch(8, 5)
    teacher = batch(8, 5, seed=1)[0]

    def theirs(z):
        log_p, q = F.log_softmax(z / temperature, dim=1), F.softmax(teacher / temperature, dim=1)
        apart = F.kl_div(log_p, q, reduction="none").sum(1).mean() * temperature**2
        return 0.1 * F.cross_entropy(z, labels) + 0.9 * apart

    softened = F.softmax(teacher / temperature, dim=1)
    constant = 0.9 * temperature**2 * -(softened * softened.log()).sum(1).mean()
    value, gradient = value_and_gradient(
        lambda z: Distillation.hinton(temperature)(z, labels, teacher), logits
    )
    expected, wanted = value_and_gradient(theirs, logits)
    torch.testing.assert_close(value - constant, expected)
    torch.testing.assert_close(gradient, wanted)


def test_hintons_options_are_those_of_the_class():
    loss = Distillation.hinton(3.0, 0.5, reduction="sum", ignore_index=-1)
    assert (loss.temperature, loss.beta, loss.reduction, loss.ignore_index) == (3.0, 0.5, "sum", -1)
    assert loss.student_temperature
    assert loss.scale_gradients
