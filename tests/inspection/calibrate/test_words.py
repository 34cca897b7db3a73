from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from inspection.made import net, saved
from softtargets.calibration import measure_calibration
from softtargets.inspection.calibrate.corrections import Corrections
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.words import (
    advice,
    correction_line,
    misjudged_class,
    training_hint,
    verdict_on,
    warnings_on,
)
from softtargets.inspection.shared.measured import Scaled
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.two_passes import FOLDS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return inspect(saved(tmp_path_factory.mktemp("v") / "a.npz", *net(2000, sharpness=1.5)))


def judged(found, low, high, lean=(0.0, -0.01, 0.01)):
    intervals = {**found.before.intervals, "smooth_calibration_error": (low, high)}
    corrected = {**found.before.corrected, "smooth_calibration_error": (low + high) / 2}
    before = replace(found.before, intervals=intervals, corrected=corrected)
    return verdict_on(replace(found, before=before, overconfidence=Estimate(*lean)))


def test_an_interval_below_two_percent_is_good(found):
    verdict = judged(found, 0.005, 0.0199)
    assert (verdict.tone, verdict.headline) == ("good", "Well calibrated")
    assert "taken at its word" in verdict.sentences[0]


def test_an_interval_that_reaches_two_percent_is_not(found):
    verdict = judged(found, 0.005, 0.0201)
    assert (verdict.tone, verdict.headline) == ("care", "Confident in the wrong places")


def test_good_may_not_be_told_from_perfect(found):
    verdict = judged(found, 0.0, 0.01)
    assert verdict.tone == "good"
    assert (
        "With 2,000 examples the model is indistinguishable from a perfectly calibrated"
        in verdict.sentences[0]
    )


def test_an_interval_from_zero_claims_nothing(found):
    verdict = judged(found, 0.0, 0.08)
    assert (verdict.tone, verdict.headline) == ("care", "Too few examples to tell")
    assert (
        "With 2,000 examples the model is indistinguishable from a perfectly calibrated"
        in verdict.sentences[0]
    )
    assert "could still be as large as 8.0 %" in verdict.sentences[1]


@pytest.mark.parametrize(
    ("low", "tone", "headline"), [(0.03, "care", "Overconfident"), (0.05, "bad", "Strongly overconfident")]
)
def test_confidence_above_accuracy(found, low, tone, headline):
    verdict = judged(found, low, 0.1, (0.06, 0.04, 0.08))
    assert (verdict.tone, verdict.headline) == (tone, headline)
    assert "+6.0 points (+4.0 to +8.0)" in verdict.sentences[1]


@pytest.mark.parametrize(("low", "headline"), [(0.03, "Underconfident"), (0.06, "Strongly underconfident")])
def test_confidence_below_accuracy(found, low, headline):
    assert judged(found, low, 0.1, (-0.06, -0.08, -0.04)).headline == headline


def test_errors_both_ways(found):
    assert judged(found, 0.03, 0.1).headline == "Confident in the wrong places"


def test_a_needed_temperature_is_recommended(found):
    told = advice(found)
    assert told[0].startswith(f"Divide the logits by T = {found.scaled.fit.temperature:.2f}")
    assert f"to {100 * found.scaled.after.corrected['expected_calibration_error']:.1f} %" in told[1]
    assert "on held-out examples (5-fold)" in told[1]


def test_a_close_interval_is_told_with_a_third_decimal(found):
    for error, told in ((0.05, "1.37 (1.28 to 1.47)"), (0.002, "1.370 (1.366 to 1.374)")):
        fit = replace(found.scaled.fit, temperature=1.37, standard_error=error)
        assert replace(found.scaled, fit=fit).shown == told


def judged_by(found, **changes):
    """The same with other numbers of its temperature, and no correction beyond it."""
    temperature = next(one for one in found.corrections.tried if one.name == "temperature")
    return replace(found, corrections=Corrections((replace(temperature, **changes),)))


def test_a_temperature_without_gain_is_not(found):
    told = advice(judged_by(found, gain=Estimate(0.001, -0.001, 0.003)))
    assert told[0] == "Leave the model as it is."
    assert "no correction lowers the NLL by more than chance" in told[1]


def test_a_gain_in_likelihood_alone_is_not_enough(found):
    changed = judged_by(found, ece_before=0.01, ece_after=0.0101)
    assert advice(changed) == [
        "Leave the model as it is.",
        "On held-out examples temperature scaling would lower the NLL but raise the ECE from 1.00 % to 1.01 %.",
    ]
    assert correction_line(changed) == "correction: none"


def test_a_loss_of_accuracy_is_told(found):
    changed = judged_by(found, accuracy=Estimate(-0.02, -0.03, -0.01))
    assert advice(changed)[1].endswith("would lower the NLL, but also the accuracy.")


@pytest.mark.parametrize("ending", ["lowest", "highest", "flat"])
def test_the_end_of_the_range_is_no_recommendation(found, ending):
    fit = replace(found.scaled.fit, ending=ending)
    changed = replace(judged_by(found, correction=None), scaled=replace(found.scaled, fit=fit))
    assert advice(changed) == ["Leave the model as it is.", f"No temperature fits. {fit.note}"]


def test_without_enough_examples_there_is_no_advice_but_more(found):
    assert "fewer than 20 examples" in verdict_on(replace(found, scaled=None)).sentences[2]


def test_an_error_that_scatter_made_larger_is_told_both_ways(found):
    corrected = {**found.before.corrected, "smooth_calibration_error": 0.012}
    intervals = {**found.before.intervals, "smooth_calibration_error": (0.0, 0.0163)}
    before = replace(found.before, corrected=corrected, intervals=intervals, smooth_calibration_error=0.0172)
    told = verdict_on(replace(found, before=before)).sentences[1]
    assert "is 1.2 % (95 % interval 0.0 to 1.6 %), corrected for scatter from 1.7 %." in told


def test_predictions_on_training_data_are_noticed():
    labels = torch.arange(300) % 3
    perfect = measure_calibration(12.0 * torch.eye(3)[labels], labels, from_logits=True)
    assert "training set" in training_hint(perfect)
    assert not training_hint(replace(perfect, examples=199))
    assert not training_hint(replace(perfect, accuracy=0.998))
    assert not training_hint(replace(perfect, expected_calibration_error=0.02))


def test_training_data_are_never_good_news(found, tmp_path):
    labels = torch.arange(300) % 3
    verdict = verdict_on(inspect(saved(tmp_path / "t.npz", 12.0 * torch.eye(3)[labels], labels)))
    assert verdict.tone == "care"
    assert "training set" in verdict.sentences[-1]


def test_scaled_is_known_only_if_the_fit_converged(found):
    assert isinstance(found.scaled, Scaled)
    assert len(found.scaled.temperatures) == FOLDS
    assert found.scaled.is_known


def test_three_examples_that_are_all_right_prove_nothing(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", 9 * torch.eye(3), torch.arange(3)))
    verdict = verdict_on(found)
    assert (verdict.tone, verdict.headline) == ("care", "Too few examples to tell")
    assert "could still be as large as 56.1 %" in verdict.sentences[1]  # Wilson: 3 of 3 may be 43.9 %


@pytest.mark.parametrize(
    ("wrong", "told"), [(0, "0 mistakes"), (1, "1 mistake"), (9, "9 mistakes"), (10, None)]
)
def test_that_few_mistakes_make_normal_intervals_too_narrow_is_said(tmp_path, wrong, told):
    labels = torch.arange(400) % 3
    logits = 5 * torch.eye(3)[labels]
    labels[:wrong] = (labels[:wrong] + 1) % 3
    said = warnings_on(inspect(saved(tmp_path / "a.npz", logits, labels)))
    assert [one.partition(" in ")[0] for one in said] == ([f"With only {told}"] if told else [])


@pytest.fixture(scope="module")
def balanced(tmp_path_factory):
    """A rare class that a model trained as if it were frequent gives far too much probability."""
    random = np.random.default_rng(0)
    labels = (random.random(6000) < 0.02).astype(int)
    score = 1.2 * (2 * labels - 1) + random.normal(0, 1.3, 6000) - 0.9
    path = tmp_path_factory.mktemp("balanced") / "a.npz"
    return inspect(saved(path, torch.from_numpy(np.stack([0 * score, score], 1)), torch.from_numpy(labels)))


def test_the_probability_of_a_class_may_be_wrong_where_that_of_the_predicted_class_is_not(found, balanced):
    one = misjudged_class(balanced)
    assert one.index == 1  # the rarer of two that are wrong by as much
    assert one.excess.low > 0.02
    told = f"The probability of class 1 is {100 * one.mean_probability:.1f} % on average, but {100 * one.share:.1f} %"
    calm = replace(
        balanced.before, intervals={**balanced.before.intervals, "smooth_calibration_error": (0.0, 0.01)}
    )
    verdict = verdict_on(replace(balanced, before=calm))
    assert verdict.tone == "care"
    assert verdict.headline.startswith("Calibrated for the predicted class only")
    assert told in verdict.sentences[0]
    assert any(told in one for one in verdict_on(balanced).sentences)
    assert misjudged_class(found) is None


def test_an_accuracy_that_one_class_alone_would_reach_is_called_that(found, balanced, tmp_path):
    said = warnings_on(balanced)
    share = float(balanced.commonest[1])
    assert said[0].startswith(
        f"Accuracy says little here: always predicting class 0 would be right in {100 * share:.1f} %"
    )
    assert not any("Accuracy says little" in one for one in warnings_on(found))
    constant = torch.tensor([[2.0, 0.0, 0.0]]).repeat(90, 1)
    always = inspect(saved(tmp_path / "b.npz", constant, torch.tensor([0, 0, 1] * 30)))
    assert always.commonest == (0, pytest.approx(2 / 3))
    assert (
        "always predicting class 0 would be right in 66.7 % of cases, and the model is right in 66.7 %."
        in (warnings_on(always)[0])
    )


def test_how_often_a_class_is_predicted_is_told_where_that_was_counted(balanced):
    recalls = balanced.corrections.tried[-1].recalls
    predicted = recalls.classes[0].predicted_before
    assert warnings_on(balanced)[0].endswith(f"It predicts that class for {predicted:,} of 6,000 examples.")
    few = replace(balanced, corrections=Corrections(balanced.corrections.tried[:1]))
    assert "It predicts" not in warnings_on(few)[0]
