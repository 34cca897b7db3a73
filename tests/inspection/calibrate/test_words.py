from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inspection.made import net, saved
from softtargets.calibration import measure_calibration
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.words import temperature_advice, training_hint, verdict_on
from softtargets.inspection.shared.measured import Scaled
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.two_passes import FOLDS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return inspect(saved(tmp_path_factory.mktemp("v") / "a.npz", *net(2000, sharpness=1.5)))


def judged(found, low, high, lean=(0.0, -0.01, 0.01)):
    intervals = {**found.before.intervals, "smooth_calibration_error": (low, high)}
    before = replace(found.before, intervals=intervals)
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
    assert "cannot be told from perfect calibration with 2,000 examples" in verdict.sentences[0]


def test_an_interval_from_zero_claims_nothing(found):
    verdict = judged(found, 0.0, 0.08)
    assert (verdict.tone, verdict.headline) == ("care", "Too few examples to tell")
    assert "cannot be told from perfectly calibrated with 2,000 examples" in verdict.sentences[0]
    assert "8.0 %" in verdict.sentences[0]


@pytest.mark.parametrize(
    ("low", "tone", "headline"), [(0.03, "care", "Overconfident"), (0.05, "bad", "Strongly overconfident")]
)
def test_confidence_above_accuracy(found, low, tone, headline):
    verdict = judged(found, low, 0.1, (0.06, 0.04, 0.08))
    assert (verdict.tone, verdict.headline) == (tone, headline)
    assert "+6.0 % (+4.0 to +8.0 %)" in verdict.sentences[0]


@pytest.mark.parametrize(("low", "headline"), [(0.03, "Underconfident"), (0.06, "Strongly underconfident")])
def test_confidence_below_accuracy(found, low, headline):
    assert judged(found, low, 0.1, (-0.06, -0.08, -0.04)).headline == headline


def test_errors_both_ways(found):
    assert judged(found, 0.03, 0.1).headline == "Confident in the wrong places"


def test_a_needed_temperature_is_recommended(found):
    sentence = temperature_advice(found.scaled, found.before)
    assert sentence.startswith(f"Divide the logits by T = {found.scaled.fit.temperature:.2f}")
    assert f"{100 * found.scaled.after.expected_calibration_error:.1f} %" in sentence


def test_a_close_interval_is_told_with_a_third_decimal(found):
    for error, told in ((0.05, "1.37 (1.28 to 1.47)"), (0.002, "1.370 (1.366 to 1.374)")):
        fit = replace(found.scaled.fit, temperature=1.37, standard_error=error)
        assert replace(found.scaled, fit=fit).shown == told


def test_a_temperature_of_one_is_not(found):
    fit = replace(found.scaled.fit, temperature=1.01, standard_error=0.02)
    sentence = temperature_advice(replace(found.scaled, fit=fit), found.before)
    assert sentence.startswith("No temperature is recommended")


def test_a_temperature_without_gain_is_not(found):
    scaled = replace(found.scaled, gain=Estimate(0.001, -0.001, 0.003))
    sentence = temperature_advice(scaled, found.before)
    assert "no gain that can be told from chance" in sentence


def test_a_gain_in_likelihood_alone_is_said(found):
    after = replace(found.scaled.after, smooth_calibration_error=1.0)
    sentence = temperature_advice(replace(found.scaled, after=after), found.before)
    assert "the calibration error does not" in sentence


@pytest.mark.parametrize("ending", ["lowest", "highest", "flat"])
def test_the_end_of_the_range_is_no_recommendation(found, ending):
    fit = replace(found.scaled.fit, ending=ending)
    sentence = temperature_advice(replace(found.scaled, fit=fit), found.before)
    assert sentence == f"No temperature can be recommended. {fit.note}"


def test_without_enough_examples_there_is_no_advice_but_more(found):
    assert "fewer than 20 examples" in verdict_on(replace(found, scaled=None)).sentences[1]


def test_more_numbers_are_recommended_where_they_help(found):
    gains = {
        "few": Estimate(0.1, 0.05, 0.15),
        "many": Estimate(0.2, 0.1, 0.3),
        "none": Estimate(0.3, -1.0, 1.6),
    }
    verdict = verdict_on(replace(found, richer=replace(found.richer, gains=gains)))
    assert verdict.sentences[-2].startswith("More numbers help: many lower the NLL by a further 0.2000")


def test_predictions_on_training_data_are_noticed():
    labels = torch.arange(300) % 3
    perfect = measure_calibration(12.0 * torch.eye(3)[labels], labels, from_logits=True)
    assert "training data" in training_hint(perfect)
    assert not training_hint(replace(perfect, examples=199))
    assert not training_hint(replace(perfect, accuracy=0.998))
    assert not training_hint(replace(perfect, expected_calibration_error=0.02))


def test_training_data_are_never_good_news(found, tmp_path):
    labels = torch.arange(300) % 3
    verdict = verdict_on(inspect(saved(tmp_path / "t.npz", 12.0 * torch.eye(3)[labels], labels)))
    assert verdict.tone == "care"
    assert "training data" in verdict.sentences[-1]


def test_scaled_is_known_only_if_the_fit_converged(found):
    assert isinstance(found.scaled, Scaled)
    assert len(found.scaled.temperatures) == FOLDS
    assert found.scaled.is_known
