from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from inspection.advise.cases import advised, given, next_class, noisy, uniform
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise import finding
from softtargets.inspection.advise.finding import Outlook, advise, rate_of, rescaled
from softtargets.inspection.shared.numbers import Estimate
from softtargets.losses import LabelSmoothing
from softtargets.noise import assess_noise


@pytest.fixture(scope="module")
def clean_tests():
    return advised(uniform(0.8, 5), 2000)


@pytest.fixture(scope="module")
def noisy_tests():
    return advised(uniform(0.8, 5), 2000, test_labels="noisy")


def test_known_noise_is_found_within_its_interval(clean_tests):
    assert clean_tests.clean_rate.low <= 0.8 <= clean_tests.clean_rate.high
    assert clean_tests.clean_rate.high - clean_tests.clean_rate.low < 0.1
    assert np.abs(clean_tests.matrix - uniform(0.8, 5)).max() < 0.08
    assert clean_tests.uniformity.is_uniform


def test_clean_test_labels_ask_for_the_clean_rate(clean_tests):
    found = clean_tests
    assert found.kind == "alpha"
    assert found.p.value == pytest.approx(found.clean_rate.value)
    assert found.error_rate.value == pytest.approx(found.assessment.error_rate)
    assert (found.p.low, found.p.high) == pytest.approx((found.clean_rate.low, found.clean_rate.high))
    assert found.p.low <= 0.8 <= found.p.high
    assert found.alpha_others.value == pytest.approx(1 - found.p.value)
    assert found.alpha_all.value == pytest.approx((1 - found.p.value) * 5 / 4)
    assert found.alpha_all.low <= 0.25 <= found.alpha_all.high


def test_noisy_test_labels_ask_for_the_squares(noisy_tests):
    found = noisy_tests
    assert found.kind == "beta"
    a = found.clean_rate.value
    assert found.p.value == pytest.approx(a**2 + (1 - a) ** 2 / 4)
    truth = 0.8**2 + 0.2**2 / 4
    assert found.p.low <= truth <= found.p.high


def test_a_line_with_the_recommended_alpha_puts_p_on_the_label(clean_tests):
    loss = LabelSmoothing(alpha=clean_tests.alpha_all.value, spread="all")
    logits = torch.zeros(1, 5, dtype=torch.float64, requires_grad=True)
    loss(logits, torch.tensor([2])).backward()
    target = 1 / 5 - logits.grad[0]  # the gradient is the output less the target
    assert float(target[2]) == pytest.approx(clean_tests.p.value)
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=clean_tests.alpha_all.value)
    scores = torch.arange(5.0, dtype=torch.float64)[None]
    assert float(theirs(scores, torch.tensor([2]))) == pytest.approx(float(loss(scores, torch.tensor([2]))))


def loop_losses(p, T, shares, kind):
    """Both expected losses, event by event."""
    classes = len(T)
    S = uniform(p, classes)
    tested = np.eye(classes) if kind == "alpha" else T
    heart = average = 0.0
    for i in range(classes):
        output = sum(T[i, k] * S[k] for k in range(classes))
        for c in range(classes):
            if shares[i] * tested[i, c] > 0:
                average -= shares[i] * tested[i, c] * math.log(output[c])
            for k in range(classes):
                chance = shares[i] * T[i, k] * tested[i, c]
                heart -= chance * math.log(S[k, c]) if chance > 0 else 0.0
    return heart, average


@pytest.mark.parametrize("case", ["clean_tests", "noisy_tests"])
def test_expected_losses_are_those_of_every_event(case, request):
    found = request.getfixturevalue(case)
    for name, p in (("recommended", found.p.value), ("usual", 0.92)):
        heart, average = loop_losses(p, found.assumed, found.estimate.shares, found.kind)
        one = found.expected[name]
        assert one.p == pytest.approx(p)
        assert one.by_heart.value == pytest.approx(heart)
        assert one.averaged.value == pytest.approx(average)
        assert one.by_heart.low <= one.by_heart.value <= one.by_heart.high
    best = found.expected["recommended"].by_heart.value
    for p in np.linspace(0.05, 0.99, 95):
        assert loop_losses(p, found.assumed, found.estimate.shares, found.kind)[0] >= best - 1e-12


def test_without_smoothing_the_loss_of_memorised_labels_is_infinite_and_the_other_is_not(clean_tests):
    none = clean_tests.expected["none"]
    assert math.isinf(none.by_heart.value)
    assert none.averaged.value == pytest.approx(-math.log(clean_tests.clean_rate.value))


def test_the_matrix_is_at_least_as_good_as_one_number():
    found = advised(next_class(0.75, 4), test_labels="noisy")
    assert found.expected["matrix"].by_heart.value < found.expected["recommended"].by_heart.value - 0.1
    T, shares = found.matrix, found.estimate.shares
    squares = sum(shares[i] * T[i, j] ** 2 for i in range(4) for j in range(4))
    assert found.p.value == pytest.approx(squares)
    assert found.p.low <= 0.75**2 + 0.25**2 <= found.p.high
    together = np.zeros((4, 4))
    for i in range(4):
        for k in range(4):
            for c in range(4):
                together[k, c] += shares[i] * T[i, k] * T[i, c]
    assert found.targets == pytest.approx(together / together.sum(1, keepdims=True))


def test_ends_of_a_loss_are_those_of_the_clean_rate(clean_tests):
    found, p = clean_tests, clean_tests.p.value
    expected = [
        -a * math.log(p) - (1 - a) * math.log((1 - p) / 4)
        for a in (found.clean_rate.high, found.clean_rate.low)
    ]
    one = found.expected["recommended"].by_heart
    assert (one.low, one.high) == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@drawn(seed=st.integers(0, 10**6), classes=st.integers(2, 6), share=st.floats(0.5, 1.0))
def test_rescaled_noise_has_the_rate_asked_for_and_the_same_pattern(seed, classes, share):
    random = np.random.default_rng(seed)
    T = 0.8 * np.eye(classes) + 0.2 * random.dirichlet(np.ones(classes), classes)
    shares = random.dirichlet(np.ones(classes))
    now = float((shares * np.diagonal(T)).sum())
    rate = 1 - share * (1 - now)
    found = rescaled(T, shares, rate)
    assert found.sum(1) == pytest.approx(np.ones(classes))
    assert float((shares * np.diagonal(found)).sum()) == pytest.approx(rate)
    off = ~np.eye(classes, dtype=bool)
    assert found[off] == pytest.approx(share * T[off])


def test_labels_without_a_mistake_may_still_have_some():
    seen = advised(uniform(0.9, 4), 2000).assessment
    clean = replace(seen, error_rate=0.0, low=0.0, high=0.0)
    found = rate_of(clean, 600)
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(1 + math.log(0.05) / 600)


@pytest.mark.parametrize("case", ["memorised", "weak", "chance", "few"])
def test_where_nothing_can_be_told_there_is_a_bound_and_no_smoothing(case):
    examples, sharpness = {"few": (60, 9.0), "weak": (1200, 1.0)}.get(case, (1200, 9.0))
    logits, labels, clean = noisy(uniform(0.8, 4), examples, sharpness=sharpness)
    labels = {"memorised": clean, "chance": (clean + 1) % 4}.get(case, labels)
    found = advise(given(logits, labels), resamples=10)
    assert type(found) is Outlook
    wrong = float((labels != clean).mean())
    assert wrong <= found.bound
    numbers = found.numbers()
    assert numbers["identified"] is False
    assert numbers["reason"] == found.assessment.reason != ""
    assert numbers["alpha"] is None
    assert numbers["error_rate"]["value"] is None
    assert not numbers["recommends_smoothing"]


def test_few_wrong_labels_are_no_reason_to_smooth(clean_tests):
    for rate, recommends in (
        (Estimate(0.99, 0.95, 0.995), False),  # so few
        (Estimate(0.95, 0.9, 1.0), False),  # perhaps none
        (Estimate(0.95, 0.9, 0.98), True),
    ):
        assert replace(clean_tests, clean_rate=rate).recommends is recommends
    assert not replace(clean_tests, purpose="teacher").recommends


def test_a_method_asked_for_gives_the_matrix_and_not_the_rate():
    logits, labels, _ = noisy(uniform(0.8, 4), 1200)
    first, other = (
        advise(given(logits, labels, method), resamples=10) for method in ("anchors", "confident")
    )
    assert first.clean_rate == other.clean_rate
    assert other.estimate.method == "confident"
    assert not np.array_equal(first.matrix, other.matrix)


def test_the_same_labels_give_the_same_advice():
    first, again = (advised(uniform(0.9, 3), 300, resamples=5) for _ in range(2))
    assert first.numbers() == again.numbers()


def test_numbers_are_plain_data(clean_tests):
    import json

    text = json.dumps(clean_tests.numbers(), allow_nan=True)
    assert json.loads(text)["p"]["value"] == clean_tests.p.value


def test_labels_that_cannot_be_are_refused_with_the_file():
    logits = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.raises(SofttargetsError, match=r"a.npz: labels must lie between 0 and 2"):
        advise(given(logits, np.array([0, 1, 3] * 10)))


@pytest.mark.parametrize("labels", [[0] * 30, [0, 1], [2]])
def test_labels_that_say_nothing_are_told_so(labels):
    logits = np.random.default_rng(0).standard_normal((len(labels), 3))
    found = advise(given(logits, np.array(labels)), resamples=5)
    assert type(found) is Outlook
    assert len(found.suspects) == int((logits.argmax(1) != labels).sum())


def test_a_class_that_nobody_has_does_not_stand_in_the_way():
    logits, labels, _ = noisy(uniform(0.8, 4), 2000)
    wider = np.concatenate([logits, np.full((2000, 1), -9.0)], 1)
    found, plain = (advise(given(one, labels), resamples=5) for one in (wider, logits))
    assert found.clean_rate.value == pytest.approx(plain.clean_rate.value, abs=5e-3)
    assert found.recommends
    assert np.isfinite(found.alpha_all.high)


def test_what_is_refused_in_a_sample_says_that_it_is_one():
    logits = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.raises(SofttargetsError, match=r"in a sample of 30 rows"):
        advise(given(logits, np.array([0, 3] * 15), examples=1000))


def test_too_many_classes_are_refused_before_anything_is_estimated():
    with pytest.raises(SofttargetsError, match=r"a.npz has 2,001 classes; advise works with at most 2,000"):
        advise(given(np.zeros((3, 2001)), np.arange(3)))


def test_scatter_of_a_matrix_is_not_taken_for_a_pattern(monkeypatch):
    def known(*given, **options):
        found = assess_noise(*given, **options)
        return replace(found, is_identified=True, reason="", error_rate=0.15, low=0.12, high=0.18)

    monkeypatch.setattr(finding, "assess_noise", known)
    # 15 examples of each class: each row of T is mostly chance, and its squares are too large.
    found = advised(uniform(0.85, 60), 900, sharpness=9.0, method="confident", test_labels="noisy")
    assert found.uniformity.is_uniform
    assert found.p.value == pytest.approx(0.85**2 + 0.15**2 / 59)
    squares = float((found.estimate.shares[:, None] * found.matrix**2).sum())
    assert squares > found.p.value + 0.03


@pytest.mark.parametrize("options", [{"purpose": "student"}, {"test_labels": "dirty"}])
def test_choices_that_there_are_not_are_refused(options):
    with pytest.raises(SofttargetsError, match="must be"):
        advised(uniform(0.9, 3), 60, **options)
