from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from inspection.advise.cases import advised, given, next_class, noisy, uniform
from softtargets.inspection.advise.finding import advise
from softtargets.inspection.advise.words import (
    NOT_SAID,
    PURPOSE_WARNINGS,
    REJECTING,
    bound_words,
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
    wrong = plain.error_rate
    assert headline == f"Between {100 * wrong.low:.0f} and {100 * wrong.high:.0f} % of the labels are wrong"
    wrong = f"{100 * plain.error_rate.value:.1f} %"
    assert words.startswith(f"We estimate that {wrong} of the labels are wrong (95 % interval ")
    alpha = plain.alpha_all
    assert f"alpha = {alpha.value:.3f} (95 % interval {alpha.low:.3f} to {alpha.high:.3f})" in words
    assert f"If it is shared among the other classes only, alpha is {plain.alpha_others.value:.3f}" in words
    assert f"{plain.expected['recommended'].by_heart.value:.3f} nats" in words
    assert "grows without bound" in words
    assert "with clean labels" in words
    assert "softtargets calibrate" in words


def test_an_interval_speaks_where_it_is_wide_and_its_middle_where_it_is_not(plain):
    _, headline, words = told(replace(plain, clean_rate=Estimate(0.83, 0.79, 0.88)))
    assert headline == "About 17 % of the labels are wrong"
    assert "difficult examples" not in words
    _, headline, words = told(replace(plain, clean_rate=Estimate(0.83, 0.73, 0.99)))
    assert headline == "Between 1 and 27 % of the labels are wrong"
    assert "mostly to difficult examples, more are wrong, up to the end of the interval" in words


def test_noisy_test_labels_are_calibrated_with_noisy_ones(plain):
    _, _, words = told(replace(plain, test_labels="noisy"))
    assert "with labels as noisy as those the model will be judged by" in words
    assert "For test labels as noisy as these" in words


def test_a_pattern_is_named():
    found = advised(next_class(0.75, 4), names=("cat", "dog", "cow", "owl"))
    tone, _, words = told(found)
    shape = found.uniformity
    assert tone == "care"
    assert "The noise is not uniform" in words
    names = ("cat", "dog", "cow", "owl")
    assert f"{names[shape.clean]} is labelled {names[shape.label]}" in words
    assert uniformity_words(found).startswith("The noise is not uniform")


def test_a_class_that_stays_right_is_named(plain):
    shape = replace(plain.uniformity, clean=2, label=2)
    assert shape_words(replace(plain, uniformity=shape)).startswith("labels of class 2 are right in ")


def test_a_contradiction_too_small_to_matter_is_told_as_such(plain):
    shape = replace(plain.uniformity, contradicted=True, distance=0.01)
    assert "close enough to uniform" in uniformity_words(replace(plain, uniformity=shape))
    shape = replace(plain.uniformity, contradicted=False, distance=0.01)
    words = uniformity_words(replace(plain, uniformity=shape))
    assert words.startswith("The noise is indistinguishable from uniform noise")


def test_what_looks_different_is_not_called_uniform_because_no_entry_shows_it(plain):
    shape = replace(plain.uniformity, contradicted=False, distance=0.19)
    words = uniformity_words(replace(plain, uniformity=shape))
    assert words.startswith("Nothing shows that the noise is not uniform")
    assert "one alpha is enough" not in words
    shape = replace(shape, contradicted=True, together=True)
    words = uniformity_words(replace(plain, uniformity=shape))
    assert words.startswith("The noise is not uniform")
    assert "all of them together do" in words


@pytest.mark.parametrize("trained", [False, True])
def test_labels_that_a_model_has_seen_look_right(trained):
    found = replace(advised(uniform(1.0, 4)), trained="a small network" if trained else "")
    assert found.is_negligible
    assert ("was not trained on. A model that has seen" in told(found)[2]) == (not trained)


@pytest.mark.parametrize(("purpose", "where"), [("teacher", "section 4"), ("transfer", "section 5")])
def test_teachers_and_sources_are_warned(plain, purpose, where):
    found = replace(plain, purpose=purpose)
    tone, headline, words = told(found)
    assert tone == "care"
    assert "without label smoothing" in headline
    assert PURPOSE_WARNINGS[purpose] in words
    assert where in PURPOSE_WARNINGS[purpose]
    assert "forward correction" in words
    assert "theory recommends" not in words
    assert not found.recommends


@pytest.fixture(scope="module")
def unknown():
    logits, labels, _ = noisy(uniform(0.8, 4), 1200, sharpness=1.0)
    return advise(given(logits, labels), resamples=5)


def test_the_first_sentence_says_that_it_is_unknown_and_the_second_gives_a_bound(unknown):
    verdict = verdict_on(unknown)
    assert (verdict.tone, verdict.headline) == ("care", "We cannot tell how many labels are wrong")
    first = verdict.sentences[0]
    bound = float(re.fullmatch(r"At most (\d+) % of the labels are wrong\.", first)[1])
    assert 100 * unknown.bound <= bound < 100 * unknown.bound + 1
    assert verdict.sentences[1].replace(" %", "%") == unknown.assessment.reason.replace(" %", "%")
    assert not re.search(r"\d%", " ".join(verdict.sentences))
    assert "stronger model" in verdict.sentences[2]
    assert "softtargets.noise.out_of_fold" in verdict.sentences[2]
    assert "alpha" not in " ".join(verdict.sentences)
    assert warnings_on(unknown) == []


def test_a_model_of_ours_can_be_trained_longer(unknown):
    words = told(replace(unknown, trained="2 networks"))[2]
    assert "--epochs" in words
    assert "PREDICTIONS.npz" in words


@pytest.mark.parametrize(
    ("high", "words"), [(1.0, "do not even give"), (0.0312, "At most 3.2 %"), (0.2, "At most 20 %")]
)
def test_bounds_are_rounded_up(unknown, high, words):
    assert words in bound_words(replace(unknown, assessment=replace(unknown.assessment, high=high)))


def test_labels_that_may_all_be_right_are_called_so(plain):
    tone, headline, words = told(replace(plain, clean_rate=Estimate(0.96, 0.9, 1.0)))
    assert (tone, headline) == ("care", "The labels may all be right: we cannot tell whether any are wrong")
    assert "4.0 % of the labels are wrong (95 % interval 0.0 to 10.0 %)" in words
    assert "theory recommends" not in words


def test_whoever_suspects_nothing_says_so(plain):
    nothing = replace(plain.suspects, row=plain.suspects.row[:0])
    assert "no label is suspicious" in told(replace(plain, suspects=nothing))[2]


def test_hardly_any_wrong_label_asks_for_nothing(plain):
    found = replace(plain, clean_rate=Estimate(0.99, 0.97, 0.995))
    tone, headline, words = told(found)
    assert (tone, headline) == (
        "good",
        "We find almost no wrong labels, so label noise is no reason to smooth",
    )
    assert "1.0 % of the labels are wrong (95 % interval 0.5 to 3.0 %)" in words
    assert "held-out examples" in words
    assert "stronger model" not in words
    loose = told(replace(plain, clean_rate=Estimate(0.99, 0.85, 0.995)))
    assert loose[:2] == ("care", "We find almost no wrong labels, but cannot rule out more")
    assert "stronger model" in loose[2]


def test_warnings_of_the_estimate_stand_before_the_advice(plain):
    noise = replace(plain.estimate, warnings=("the model is weak",))
    found = replace(plain, estimate=noise)
    verdict = verdict_on(found)
    assert verdict.tone == "care"
    assert verdict.sentences[1] == "Check some labels by hand before you rely on this. The model is weak."
    assert warnings_on(found) == [REJECTING]


def test_a_sample_is_told_of_and_a_dataset_is_not(plain):
    larger = replace(plain, understood=replace(plain.understood, examples=10**6))
    assert "sample of 1,200 examples of 1,000,000" in warnings_on(larger)[0]
    assert warnings_on(replace(larger, trained="logistic regression")) == [REJECTING]


def test_whoever_rejects_uncertain_cases_is_warned_where_smoothing_is_recommended(plain):
    assert "reject uncertain cases" in REJECTING
    assert "Xia et al., ICLR 2025" in REJECTING
    assert warnings_on(plain) == [REJECTING]
    assert warnings_on(replace(plain, purpose="teacher")) == []
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
    found = advised(uniform(0.9, 3), 1200, resamples=5)
    none = replace(found.expected["none"], by_heart=found.expected["usual"].by_heart)
    _, _, words = told(replace(found, expected=found.expected | {"none": none}))
    assert f"{np.round(none.by_heart.value, 3):.3f} without smoothing" in words
