from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inspection.advise.cases import advised, given, next_class, noisy, uniform
from softtargets.inspection.advise.finding import advise
from softtargets.inspection.advise.words import (
    NOT_SAID,
    PURPOSE_WARNINGS,
    REJECTING,
    shape_words,
    uniformity_words,
    verdict_on,
    warnings_on,
)
from softtargets.inspection.shared.numbers import Estimate


@pytest.fixture(scope="module")
def plain():
    return advised(uniform(0.8, 4))


def told(found):
    verdict = verdict_on(found)
    return verdict.tone, verdict.headline, " ".join(verdict.sentences)


def test_uniform_noise_gets_a_number(plain):
    tone, headline, words = told(plain)
    assert tone == "good"
    assert headline == (
        f"Smooth with alpha up to {plain.alpha_all.value:.2f}: about {100 * (1 - plain.clean_rate.value):.0f} % "
        "of labels are wrong"
    )
    assert f"alpha = {plain.alpha_all.value:.3f}" in words
    assert f"{plain.alpha_others.value:.3f} if it is shared among the other classes only" in words
    assert f"{plain.expected['recommended'].by_heart.value:.3f} nats" in words
    assert "grows without end" in words
    assert "with clean labels" in words
    assert "softtargets calibrate" in words


def test_noisy_test_labels_are_calibrated_with_noisy_ones(plain):
    _, _, words = told(replace(plain, test_labels="noisy"))
    assert "with labels as noisy as those it will be judged by" in words
    assert "For test labels as noisy as these" in words


def test_a_pattern_is_named():
    found = advised(next_class(0.75, 4), names=("cat", "dog", "cow", "owl"))
    tone, _, words = told(found)
    shape = found.uniformity
    assert tone == "care"
    assert "The noise is not uniform" in words
    names = ("cat", "dog", "cow", "owl")
    assert f"{names[shape.clean]} is labelled {names[shape.label]}" in words
    assert uniformity_words(found).startswith("Noise is not uniform")


def test_a_class_that_stays_right_is_named(plain):
    shape = replace(plain.uniformity, clean=2, label=2)
    assert shape_words(replace(plain, uniformity=shape)).startswith("labels of class 2 stay right in ")


def test_a_contradiction_too_small_to_matter_is_told_as_such(plain):
    shape = replace(plain.uniformity, contradicted=True, distance=0.01)
    assert "close enough to uniform" in uniformity_words(replace(plain, uniformity=shape))
    assert uniformity_words(plain).startswith("Nothing speaks against uniform noise")


@pytest.mark.parametrize(("purpose", "where"), [("teacher", "section 4"), ("transfer", "section 5")])
def test_teachers_and_sources_are_warned(plain, purpose, where):
    found = replace(plain, purpose=purpose)
    tone, headline, words = told(found)
    assert tone == "care"
    assert "without label smoothing" in headline
    assert PURPOSE_WARNINGS[purpose] in words
    assert where in PURPOSE_WARNINGS[purpose]
    assert "forward correction" in words
    assert "Were it not for that" in words
    assert not found.recommends


def test_predictions_learned_by_heart_get_no_advice(plain):
    found = replace(plain, accuracy=1.0)
    tone, headline, words = told(found)
    assert tone == "bad"
    assert "learned by heart" in headline
    assert "100.00 %" in words
    assert "theory recommends" not in words


def test_labels_of_chance_are_to_be_repaired():
    logits, _, clean = noisy(uniform(1.0, 3), 300)
    found = advise(given(logits, (clean + 1) % 3, "naive"), resamples=5)
    tone, headline, words = told(found)
    assert tone == "bad"
    assert "chance" in headline
    assert "repair the labels" in words


def test_hardly_any_wrong_label_asks_for_nothing():
    found = advised(uniform(0.995, 4), 800, sharpness=5.0)
    tone, headline, words = told(found)
    assert (tone, headline) == ("good", "Hardly any label is wrong: noise asks for no smoothing")
    assert "So few can hardly be told from mistakes of the model" in words


def test_warnings_of_the_estimate_are_passed_on(plain):
    noise = replace(plain.estimate, warnings=("the model is weak",))
    found = replace(plain, estimate=noise)
    tone, _, words = told(found)
    assert tone == "care"
    assert "The estimate itself warns" in words
    assert warnings_on(found) == ["The model is weak.", REJECTING]
    few = replace(found, clean_rate=replace(found.clean_rate, value=0.999))
    assert told(few)[:2] == ("care", "Hardly any label is wrong: noise asks for no smoothing")


def test_a_sample_is_told_of_and_a_dataset_is_not(plain):
    larger = replace(plain, understood=replace(plain.understood, examples=10**6))
    assert "sample of 1,200 examples of 1,000,000" in warnings_on(larger)[0]
    assert warnings_on(replace(larger, trained="logistic regression")) == [REJECTING]


def test_whoever_rejects_uncertain_cases_is_warned_where_smoothing_is_recommended(plain):
    assert "reject uncertain cases" in REJECTING
    assert "Xia et al., ICLR 2025" in REJECTING
    assert warnings_on(plain) == [REJECTING]
    assert warnings_on(replace(plain, purpose="teacher")) == []
    assert warnings_on(replace(plain, accuracy=1.0)) == []
    assert warnings_on(replace(plain, clean_rate=Estimate(0.999, 0.99, 1.0))) == []


def test_classes_without_names_are_numbered(plain):
    assert plain.understood.called(3) == "class 3"
    named = replace(plain, understood=replace(plain.understood, class_names=("a", "b", "c", "d")))
    assert named.understood.called(3) == "d"


def test_what_theory_does_not_say_names_its_figures():
    words = " ".join(NOT_SAID)
    for figure in ("figure 8", "figure 10", "figure 9"):
        assert figure in words


def test_without_any_noise_the_loss_without_smoothing_is_a_number():
    found = advised(uniform(0.9, 3), 300, resamples=5)
    none = replace(found.expected["none"], by_heart=found.expected["usual"].by_heart)
    _, _, words = told(replace(found, expected=found.expected | {"none": none}))
    assert f"without any {np.round(none.by_heart.value, 3):.3f}" in words
