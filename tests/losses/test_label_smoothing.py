from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from softtargets.losses import REGULARISERS, LabelSmoothing, alpha_from_p, convert_alpha, p_from_alpha
from softtargets.losses.batch import Batch

from .making import (
    batch,
    by_rows,
    cross_entropy,
    distribution,
    log_softmax,
    matrix,
    mixed,
    one_hot,
    rows,
    shaped,
    smoothed_target,
    value_and_gradient,
    weighted_cross_entropy,
    weighted_cross_entropy_gradient,
    without_label,
)


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


# --- a prior or a matrix ---


def smoothed(label_target, alpha, spread, prior=None, table=None):
    """The target by the definition: every class y moves alpha of its mass t_y to its own q."""
    classes = len(label_target)
    moved = [0.0] * classes
    for y, t in enumerate(label_target):
        q = table[y] if table else prior or [1 / classes] * classes
        if spread == "others":
            q = without_label(q, y)
        for k in range(classes):
            moved[k] += t * q[k]
    return mixed(label_target, moved, alpha)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("source", ["uniform", "prior", "matrix"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_value_and_gradient_against_loops(alpha, spread, source, kind, weight, reduction):
    logits, labels, probabilities = shaped((3, 2), 4, seed=3)
    labels[1, 1] = -100
    target = labels if kind == "indices" else probabilities
    prior, table = distribution(4), matrix(4)
    options = {"prior": prior} if source == "prior" else {"matrix": table} if source == "matrix" else {}
    given = (
        prior.tolist() if source == "prior" else None,
        table.tolist() if source == "matrix" else None,
    )
    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    loss = LabelSmoothing(alpha, spread, weight=tensor, reduction=reduction, **options)
    found, slope = value_and_gradient(loss, logits, target)

    def one(row, t, taught, label):
        return weighted_cross_entropy(smoothed(t, alpha, spread, *given), row, weight)

    expected = by_rows(one, logits, target, reduction, weight)
    assert found.reshape(-1).tolist() == pytest.approx(
        expected if reduction == "none" else [expected], rel=1e-12
    )

    listed = labels.reshape(-1).tolist()
    total = sum(weight[y] if weight else 1.0 for y in listed if y != -100) if kind == "indices" else 6
    targets = rows(probabilities) if kind == "probabilities" else [one_hot(y, 4) for y in listed]
    for place, (row, t) in enumerate(zip(rows(logits), targets, strict=True)):
        hand = weighted_cross_entropy_gradient(smoothed(t, alpha, spread, *given), row, weight)
        hand = [value / (total if reduction == "mean" else 1) for value in hand]
        if kind == "indices" and listed[place] == -100:
            hand = [0.0] * 4
        assert rows(slope)[place] == pytest.approx(hand, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("spread", ["all", "others"])
def test_a_uniform_prior_or_matrix_is_uniform_smoothing(spread):
    logits, labels, probabilities = shaped((6,), 5)
    flat = torch.full((5,), 0.2, dtype=torch.float64)
    for target in (labels, probabilities):
        expected = LabelSmoothing(0.3, spread)(logits, target).item()
        assert LabelSmoothing(0.3, spread, prior=flat)(logits, target).item() == pytest.approx(expected)
        table = flat.expand(5, 5)
        assert LabelSmoothing(0.3, spread, matrix=table)(logits, target).item() == pytest.approx(expected)


def test_with_all_mass_moved_the_target_is_the_row_of_the_matrix():
    logits, labels = batch(6, 4)
    table = matrix(4)
    losses = [
        cross_entropy(table.tolist()[y], row) for row, y in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    found = LabelSmoothing(1.0, matrix=table)(logits, labels).item()
    assert found == pytest.approx(sum(losses) / 6, rel=1e-12)
    turned = LabelSmoothing(1.0, matrix=table.T / table.T.sum(-1, keepdim=True))(logits, labels).item()
    assert turned != pytest.approx(found, rel=1e-3)  # rows, not columns


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("source", ["uniform", "prior", "matrix"])
def test_a_target_of_certainty_is_the_label(spread, source):
    logits, labels = batch(6, 4)
    options = {"prior": distribution(4)} if source == "prior" else {}
    options = {"matrix": matrix(4)} if source == "matrix" else options
    loss = LabelSmoothing(0.3, spread, **options)
    certain = nn.functional.one_hot(labels, 4).double()
    assert loss(logits, certain).item() == pytest.approx(loss(logits, labels).item(), rel=1e-13)


@pytest.mark.parametrize("source", ["uniform", "prior", "matrix"])
def test_spread_over_the_others_leaves_exactly_1_minus_alpha_on_the_label(source):
    """Seen from outside: the gradient of the loss is the prediction minus the target."""
    logits, labels = batch(5, 4)
    options = {"prior": distribution(4)} if source == "prior" else {}
    options = {"matrix": matrix(4)} if source == "matrix" else options
    loss = LabelSmoothing(0.3, "others", reduction="sum", **options)
    _, slope = value_and_gradient(loss, logits, labels)
    target = torch.softmax(logits, -1) - slope
    assert target.sum(-1).tolist() == pytest.approx([1.0] * 5)
    assert target[range(5), labels].tolist() == pytest.approx([0.7] * 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tables_in_double_precision_fit_logits_of_any(dtype):
    logits, labels = batch(6, 4, dtype)
    for options in ({"prior": distribution(4)}, {"matrix": matrix(4)}):
        for spread in ("all", "others"):
            found = LabelSmoothing(0.3, spread, **options)(logits, labels)
            assert found.dtype == dtype
            expected = LabelSmoothing(0.3, spread, **options)(logits.double(), labels)
            assert found.item() == pytest.approx(
                expected.item(), rel=1e-2 if dtype == torch.bfloat16 else 1e-5
            )


def test_tables_may_be_lists_and_are_held_constant():
    logits, labels = batch(4, 2)
    prior = torch.tensor([0.25, 0.75], requires_grad=True)
    loss = LabelSmoothing(0.3, prior=prior)
    assert not loss.prior.requires_grad
    assert loss(logits, labels).item() == LabelSmoothing(0.3, prior=[0.25, 0.75])(logits, labels).item()
    table = [[0.5, 0.5], [0.25, 0.75]]
    assert LabelSmoothing(0.3, matrix=table).matrix.tolist() == table


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_two_classes_where_the_conventions_differ_by_a_factor_of_two(alpha):
    logits, labels = batch(6, 2)
    over_all = LabelSmoothing(2 * alpha)(logits, labels).item()
    assert LabelSmoothing(alpha, "others")(logits, labels).item() == pytest.approx(over_all, rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_conventions_agree_after_conversion(classes):
    logits, labels = batch(6, classes)
    alpha = 0.4
    over_others = LabelSmoothing(alpha, "others")(logits, labels).item()
    converted = convert_alpha(alpha, classes, "others", "all")
    assert LabelSmoothing(converted, "all")(logits, labels).item() == pytest.approx(over_others, rel=1e-12)
    p = p_from_alpha(alpha, classes, "others")
    for spread in ("all", "others"):
        found = LabelSmoothing(alpha_from_p(p, classes, spread), spread)(logits, labels).item()
        assert found == pytest.approx(over_others, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"prior": torch.tensor([0.5, 0.4])},
            ValueError,
            "prior must sum to 1, not 0.9; divide it by its sum",
        ),
        ({"prior": torch.tensor([0.5, 0.5002])}, ValueError, "prior must sum to 1"),
        (
            {"prior": torch.tensor([1.5, -0.5])},
            ValueError,
            "prior must hold probabilities, at least 0, but class 1 has -0.5",
        ),
        ({"prior": torch.tensor([math.nan, 1.0])}, ValueError, "class 0 has nan"),
        ({"prior": torch.tensor([math.inf, 0.0])}, ValueError, "prior must sum to 1, not inf"),
        (
            {"prior": torch.tensor([1, 0])},
            TypeError,
            "prior must have floating-point numbers, not torch.int64",
        ),
        (
            {"prior": torch.ones(1, 1)},
            ValueError,
            r"prior must be 1-D \(one probability per class\).*\(1, 1\)",
        ),
        ({"prior": torch.ones(0)}, ValueError, r"prior must be 1-D .*\(0,\)"),
        ({"matrix": torch.ones(2)}, ValueError, r"matrix must be 2-D .*\(2,\)"),
        ({"matrix": torch.full((2, 3), 1 / 3)}, ValueError, r"matrix must be square.*\(2, 3\)"),
        (
            {"matrix": torch.tensor([[1.0, 0.0], [0.5, 0.6]])},
            ValueError,
            "but row 1 sums to 1.1; divide each row",
        ),
        (
            {"matrix": torch.tensor([[1.0, 0.0], [-0.5, 1.5]])},
            ValueError,
            "row 1, column 0 has -0.5",
        ),
        (
            {"prior": torch.tensor([0.5, 0.5]), "matrix": torch.eye(2)},
            ValueError,
            "prior and matrix cannot be given together",
        ),
        (
            {"prior": torch.tensor([0.0, 1.0]), "spread": "others"},
            ValueError,
            "spread='others' needs mass on other classes, but prior puts all of it on class 1",
        ),
        (
            {"matrix": torch.tensor([[0.5, 0.5], [0.0, 1.0]]), "spread": "others"},
            ValueError,
            "matrix puts all of it on class 1",
        ),
    ],
)
def test_impossible_tables_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        LabelSmoothing(0.1, **options)


def test_tables_that_are_almost_right_are_accepted():
    LabelSmoothing(prior=torch.tensor([0.5, 0.50005]))
    LabelSmoothing(matrix=torch.eye(3))
    LabelSmoothing(prior=torch.tensor([1.0, 0.0]))
    LabelSmoothing(spread="others", matrix=torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


@pytest.mark.parametrize("name", ["prior", "matrix"])
def test_tables_for_another_number_of_classes_are_refused(name):
    logits, labels = batch(3, 4)
    table = distribution(5) if name == "prior" else matrix(5)
    with pytest.raises(ValueError, match=f"{name} is for 5 classes, but the logits have 4"):
        LabelSmoothing(0.1, **{name: table})(logits, labels)


def test_one_class_has_no_others():
    with pytest.raises(ValueError, match="needs at least two classes"):
        LabelSmoothing(0.1, "others")(torch.zeros(3, 1), torch.zeros(3).long())


def test_it_prints_its_tables():
    assert repr(LabelSmoothing(0.2, prior=torch.tensor([0.5, 0.5]))) == (
        "LabelSmoothing(alpha=0.2, spread='all', prior=<2 classes>)"
    )
    assert repr(LabelSmoothing(0.2, matrix=torch.eye(3))) == (
        "LabelSmoothing(alpha=0.2, spread='all', matrix=<3 classes>)"
    )


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("source", ["uniform", "prior", "matrix"])
def test_a_kernel_is_told_the_same_target(spread, source):
    """The rule for a fused kernel, (hard mass, soft mass) and a table, spelt out as a target."""
    logits, labels = batch(5, 4)
    options = {"prior": distribution(4)} if source == "prior" else {}
    options = {"matrix": matrix(4)} if source == "matrix" else options
    rule = LabelSmoothing(0.3, spread, **options).rule(Batch(logits, labels, None, -100), None)
    assert rule.kind == "mixture"
    assert rule.teacher is None
    given = (
        options["prior"].tolist() if source == "prior" else None,
        options["matrix"].tolist() if source == "matrix" else None,
    )
    for place, y in enumerate(labels.tolist()):
        hard, soft = (n[place].item() if isinstance(n, torch.Tensor) else n for n in rule.values)
        q = [0.25] * 4 if rule.table is None else rule.table.tolist()
        q = q[y] if source == "matrix" else q
        told = [hard * t + soft * value for t, value in zip(one_hot(y, 4), q, strict=True)]
        assert told == pytest.approx(smoothed(one_hot(y, 4), 0.3, spread, *given))


def test_an_impossible_class_that_has_no_weight_costs_nothing():
    """Unlike in torch, where no weight times an infinite loss is no number."""
    logits, labels = torch.tensor([[0.5, -1.0, -math.inf]]), torch.tensor([0])
    weight = torch.tensor([1.0, 2.0, 0.0])
    found, gradient = value_and_gradient(LabelSmoothing(0.3, weight=weight), logits, labels)
    assert torch.isnan(torch.nn.functional.cross_entropy(logits, labels, weight, label_smoothing=0.3))
    log_p = log_softmax([0.5, -1.0])
    assert found.item() == pytest.approx(-(0.7 + 0.1) * log_p[0] - 0.1 * 2 * log_p[1], rel=1e-6)
    assert gradient.isfinite().all()
