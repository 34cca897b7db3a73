from __future__ import annotations

from dataclasses import replace

import pytest

from inspection.cases import wrong_way_round
from inspection.made import net, saved
from softtargets.calibration import measure_calibration
from softtargets.inspection.calibrate.corrections import Corrections
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.not_enough import not_enough_code, what_else
from softtargets.inspection.calibrate.page import calibrate_page
from softtargets.inspection.calibrate.words import advice, verdict_on
from softtargets.report import write_page


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return inspect(saved(tmp_path_factory.mktemp("bad") / "a.npz", *wrong_way_round()))


def test_the_first_sentences_say_that_and_by_how_much(bad):
    verdict = verdict_on(bad)
    error = bad.remaining.ece
    assert verdict.tone == "bad"
    assert verdict.headline.endswith("; scaling is not enough")
    assert verdict.sentences[0].startswith(
        "Even after the best scaling, confidence and accuracy do not agree"
    )
    assert f"differ by {100 * error.value:.1f} points" in verdict.sentences[0]
    assert f"95 % interval {100 * error.low:.1f} to {100 * error.high:.1f} %" in verdict.sentences[1]
    assert "do not use the confidence as a probability" in verdict.sentences[1]
    assert advice(bad)[0].startswith("Divide the logits by T")  # it helps all the same


def test_a_method_that_helps_is_named_with_lines_that_run(bad):
    better = bad.remaining.better
    assert f"{100 * better.ece.value:.1f} %" in what_else(bad)[0]
    code = not_enough_code(bad)[0]
    logits, labels = wrong_way_round(3000, seed=1)
    names = {"logits": logits, "labels": labels}
    exec(code.text, names)
    after = measure_calibration(names["probabilities"], labels, from_logits=False)
    assert after.expected_calibration_error < bad.remaining.ece.low


def test_lines_for_probabilities_say_so(bad):
    read = replace(bad.understood, kind="probabilities")
    assert (
        "(probabilities, labels, from_logits=False)" in not_enough_code(replace(bad, understood=read))[0].text
    )


def test_if_no_method_helps_groups_are_what_is_left(bad):
    others = tuple(replace(one, helps=False) for one in bad.remaining.others)
    found = replace(bad, remaining=replace(bad.remaining, others=others))
    told = what_else(found)
    assert told[0].startswith(
        "Fitting each class by itself does not make up for it either: histogram binning ("
    )
    assert "several groups" in told[1]
    assert not_enough_code(found) == []


def test_too_few_examples_for_each_class_are_asked_for(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *wrong_way_round(400, classes=30)))
    told = what_else(found)[0]
    assert "400 examples are fewer than 20 for each of the 30 classes" in told
    assert told.endswith("Save at least 600 held-out examples.")


def test_a_model_without_a_recommendation_is_not_left_as_it_is_without_a_word(bad):
    none = replace(
        bad, corrections=Corrections(), remaining=replace(bad.remaining, after=bad.before, others=())
    )
    verdict = verdict_on(none)
    assert verdict.sentences[0].startswith(
        "The model's confidence and its accuracy do not agree, and scaling does not"
    )
    assert "None of the corrections is recommended." in verdict.sentences
    assert "Leave the model as it is." not in verdict.sentences


def test_where_scaling_is_enough_nothing_is_said(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(2000, sharpness=2.0)))
    assert found.before.expected_calibration_error > 0.05
    verdict = verdict_on(found)
    assert "not enough" not in verdict.headline
    assert verdict.sentences[0] == "The model is right less often than it says."


def test_a_handful_of_examples_asks_for_more_and_says_no_more(tmp_path):
    logits, labels = wrong_way_round(19)
    verdict = verdict_on(inspect(saved(tmp_path / "a.npz", logits, labels)))
    assert "not enough" not in verdict.headline


def test_the_page_says_from_when_on(bad, tmp_path):
    html = write_page(calibrate_page(bad), tmp_path / "out").read_text(encoding="utf-8")
    assert "interval of the held-out ECE, corrected for scatter, is above 5\N{NO-BREAK SPACE}%" in html


def test_more_examples_are_not_asked_for_where_they_would_not_help(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *wrong_way_round(300, classes=257)))
    told = what_else(found)[0]
    assert "257 classes, more than 256" in told
    assert "Save" not in told
