from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from inspection.cases import rare_class
from inspection.made import net, saved
from softtargets.errors import error_overlap
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.compare import page, words
from softtargets.inspection.compare.finding import compare, together
from softtargets.inspection.compare.page import compare_page, difference_lines
from softtargets.inspection.compare.paired import Differences
from softtargets.inspection.compare.words import verdict_on_two
from softtargets.inspection.shared.numbers import Estimate
from softtargets.predictions import open_predictions
from softtargets.selection import aurc_difference, risk_coverage


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pair")
    a, labels = net(2000, 6)
    b = 1.6 * (a + 0.5 * torch.randn(a.shape, generator=torch.Generator().manual_seed(1)))
    one, two = (
        saved(directory / "a.npz", a, labels),
        saved(directory / "b.npz", b.softmax(1), labels, "probs"),
    )
    return one, two, (a, b, labels), compare(one, two)


def test_each_side_is_what_it_is_alone(pair):
    one, two, _, found = pair
    for side, alone in ((found.a, inspect(one)), (found.b, inspect(two))):
        assert side.before.scalars() == pytest.approx(alone.before.scalars())
        assert side.scaled.after.scalars() == pytest.approx(alone.scaled.after.scalars())
        assert side.best == pytest.approx(alone.scaled.fit.temperature)


def test_areas_over_coverage_are_compared_on_the_same_examples(pair):
    _, _, (a, b, labels), found = pair
    curves = [risk_coverage(z.double().softmax(1).amax(1), z.argmax(1) == labels) for z in (a, b)]
    value, low, high = aurc_difference(*curves)
    assert found.aurc.value == pytest.approx(value, rel=1e-3)
    assert (found.aurc.low, found.aurc.high) == pytest.approx((low, high), rel=1e-2)
    assert found.aurc.above_zero
    assert found.numbers()["aurc_difference"] == vars(found.aurc)
    assert found.numbers()["b"]["selection"]["aurc"] == found.b.selection.aurc


def test_who_makes_fewer_mistakes_where_uncertain_cases_are_rejected_is_said(pair):
    _, _, _, found = pair
    said = "a.npz makes fewer mistakes where uncertain cases are rejected: AURC b.npz − a.npz = +"
    assert verdict_on_two(found).sentences[-1].startswith(said)
    row = next(row for row in difference_lines(found) if row[0] == "AURC")
    assert row[-1] == "a.npz"
    titles = {section.title: section for section in compare_page(found).sections}
    section = titles["Rejecting uncertain cases"]
    assert "hands its 20 % least confident cases to a person" in section.paragraphs[0]
    assert section.exhibits[0].widget.data["best"] is None
    few = replace(found.a, selection=replace(found.a.selection, examples=19))
    assert "rejected" not in verdict_on_two(replace(found, a=few)).sentences[-1]


def test_shared_mistakes_are_counted(pair):
    _, _, (a, b, labels), found = pair
    assert found.overlap == error_overlap(a.argmax(1), b.argmax(1), labels)
    assert found.agreement == pytest.approx(float((a.argmax(1) == b.argmax(1)).double().mean()))


def test_both_curves_have_both_fitted_temperatures(pair):
    _, _, _, found = pair
    for side in (found.a, found.b):
        assert {found.a.best, found.b.best} <= set(side.curves)


def test_each_curve_has_its_own_likelihood_at_the_temperature_of_the_other(pair):
    _, _, (a, b, labels), found = pair
    for side, logits in ((found.a, a), (found.b, b)):
        for temperature in (found.a.best, found.b.best):
            expected = torch.nn.functional.cross_entropy(logits.double() / temperature, labels)
            assert side.curves[temperature][0] == pytest.approx(float(expected), abs=1e-4)


def test_scaled_differences_are_those_of_scaled_predictions(pair):
    _, _, _, found = pair
    a, b = found.a.scaled.after, found.b.scaled.after
    assert found.scaled.nll.value == pytest.approx(
        b.negative_log_likelihood - a.negative_log_likelihood, abs=1e-6
    )
    assert found.scaled.brier.value == pytest.approx(b.brier_score - a.brier_score, abs=1e-6)


def test_the_better_one_is_named(pair):
    _, _, _, found = pair
    verdict = verdict_on_two(found)
    assert verdict.headline == "a.npz is more accurate, better calibrated and better by likelihood"
    page = compare_page(found)
    assert page.kind == "compare"


def differences(accuracy=0, nll=0, smooth=0):
    def of(sign):
        return Estimate(0.1 * sign, 0.1 * sign - 0.05, 0.1 * sign + 0.05)

    return Differences(of(accuracy), 1.0, of(nll), of(nll), of(smooth), of(smooth))


def spoken(pair, before, after):
    none = Estimate(0.0, -0.01, 0.01)
    return verdict_on_two(replace(pair[3], differences=before, scaled=after, aurc=none))


def test_nothing_is_claimed_where_intervals_include_zero(pair):
    verdict = spoken(pair, differences(), differences())
    assert verdict.headline == "These examples show no difference between the two models"
    assert sum("as far as these examples show" in sentence for sentence in verdict.sentences) == 4
    assert "these examples show no difference in calibration:" in verdict.sentences[2]


def test_an_advantage_may_change_sides_after_scaling(pair):
    verdict = spoken(pair, differences(smooth=-1), differences(smooth=1))
    assert verdict.headline == "b.npz is better calibrated"
    assert "scaled by its own temperature, a.npz is better calibrated instead:" in verdict.sentences[2]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (-1, 0, "these examples show no difference in calibration any more:"),
        (1, 1, "a.npz is still better calibrated:"),
        (0, -1, "b.npz is better calibrated:"),
    ],
)
def test_what_scaling_does_to_an_advantage(pair, before, after, words):
    verdict = spoken(pair, differences(smooth=before), differences(smooth=after))
    assert f"After each is scaled by its own temperature, {words}" in verdict.sentences[2]


def test_models_may_be_better_at_different_things(pair):
    verdict = spoken(pair, differences(accuracy=1, smooth=1), None)
    assert verdict.tone == "plain"
    assert verdict.headline == "a.npz is better calibrated, b.npz is more accurate"


def test_other_labels_are_refused_with_their_place(tmp_path):
    logits, labels = net(50, 3)
    other = labels.clone()
    other[17] = (other[17] + 1) % 3
    with pytest.raises(SofttargetsError, match="first at example 17"):
        compare(saved(tmp_path / "a.npz", logits, labels), saved(tmp_path / "b.npz", logits, other))


def test_other_numbers_of_examples_and_classes_are_refused(tmp_path):
    one = saved(tmp_path / "a.npz", *net(50, 3))
    with pytest.raises(SofttargetsError, match=r"50 examples .* has 49"):
        compare(one, saved(tmp_path / "b.npz", *net(49, 3)))
    with pytest.raises(SofttargetsError, match=r"3 classes .* has 4"):
        compare(one, saved(tmp_path / "c.npz", *net(50, 4)))


def test_classes_in_another_order_are_refused(tmp_path):
    for name, header in (("a", "prob_cat,prob_dog,label"), ("b", "prob_dog,prob_cat,label")):
        (tmp_path / f"{name}.csv").write_text(header + "\n0.3,0.7,cat\n0.6,0.4,dog\n")
    one, two = (open_predictions(tmp_path / f"{name}.csv") for name in "ab")
    with pytest.raises(SofttargetsError, match=r"class 0 is 'cat' .* 'dog'"):
        compare(one, two)


def test_files_with_chunks_of_other_lengths_stay_together(tmp_path, monkeypatch):
    logits, labels = net(100, 3)
    one, two = saved(tmp_path / "a.npz", logits, labels), saved(tmp_path / "b.npz", 2 * logits, labels)
    cut, uncut = one.chunks, two.chunks
    monkeypatch.setattr(one, "chunks", lambda: cut(7))
    monkeypatch.setattr(two, "chunks", lambda: uncut(30))
    pieces = list(together(one, two, "x"))
    assert torch.equal(torch.cat([y for _, y in pieces]), labels)
    assert all(torch.equal(2 * a, b) for (a, b), _ in pieces)


def test_few_examples_are_compared_without_scaling(tmp_path):
    logits, labels = net(10, 3)
    found = compare(saved(tmp_path / "a.npz", logits, labels), saved(tmp_path / "b.npz", 2 * logits, labels))
    assert found.scaled is None
    assert found.numbers()["differences_scaled"] is None
    assert np.isclose(found.agreement, 1.0)
    compare_page(found)


def test_a_broken_order_is_repaired_and_the_difference_told(tmp_path):
    """B's logits have lengths that mean nothing: normalised, they order as well as A's do."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (2000,), generator=random)
    clear = 8 * torch.rand(2000, 1, generator=random) * torch.eye(10)[labels]
    logits = torch.randn(2000, 10, generator=random) + clear
    broken = logits * torch.exp(torch.randn(2000, 1, generator=random))
    found = compare(saved(tmp_path / "a.npz", logits, labels), saved(tmp_path / "b.npz", broken, labels))
    assert found.normalised[1]
    assert found.aurc.above_zero
    assert abs(found.repaired.value) < 0.25 * found.aurc.value
    told = " ".join(words.rejecting_words(found))
    assert "better than the maximum probability does. With them " in told
    assert found.numbers()["aurc_difference_normalised"]["value"] == found.repaired.value
    rows = [row for row in page._difference_rows(found) if row["metric"] == "AURC"]
    assert [row["predictions"] for row in rows] == ["as they are", "normalised logits"]


def test_nothing_is_said_of_normalised_logits_that_help_neither(tmp_path):
    logits, labels = net(500, 4)
    found = compare(saved(tmp_path / "a.npz", logits, labels), saved(tmp_path / "b.npz", 2 * logits, labels))
    assert found.normalised == (False, False)
    assert found.repaired is None
    assert words.repaired_claim(found) == []


def test_labels_with_probability_0_are_told_and_do_not_decide_the_likelihood(tmp_path):
    logits, labels = net(600, 4)
    p = (logits.softmax(1) * 20).round()
    p = p / p.sum(1, keepdim=True)
    wrong = int((p[torch.arange(600), labels] == 0).sum())
    assert wrong > 0
    smooth = (p + 0.01) / (p + 0.01).sum(1, keepdim=True)
    found = compare(
        saved(tmp_path / "a.npz", p, labels, "probs"), saved(tmp_path / "b.npz", smooth, labels, "probs")
    )
    assert abs(found.differences.nll.value) < 0.1
    assert f"{wrong} labels had a probability of exactly 0 in a.npz" in words.zero_warnings(found)[0]
    rows = {row["metric"]: row for row in page._metrics(found)[0].rows}
    assert rows["NLL"]["a_shown"] == "infinite"
    assert rows["NLL, finite"]["b"] == pytest.approx(found.b.before.negative_log_likelihood)


def test_tables_name_the_models_whatever_they_are_called(tmp_path):
    logits, labels = net(300, 4)
    found = compare(
        saved(tmp_path / "a | b.npz", logits, labels), saved(tmp_path / "c.npz", 2 * logits, labels)
    )
    differences, mistakes = page._differences(found), page._mistakes(found)
    assert [column.heading for column in differences.columns][2:4] == ["a | b.npz", "c.npz"]
    assert [row["case"] for row in mistakes.rows][1:3] == ["only a | b.npz right", "only c.npz right"]


@pytest.fixture(scope="module")
def rare_pair(tmp_path_factory):
    """A model that finds a rare class, and one that is more accurate because it does not."""
    logits, labels = rare_class()
    directory = tmp_path_factory.mktemp("rare")
    cautious = logits + torch.tensor([2.5, 0.0, -1.0])
    files = [
        saved(directory / f"{name}.npz", z, labels) for name, z in (("finds", logits), ("misses", cautious))
    ]
    return logits.argmax(1), cautious.argmax(1), labels, compare(*files), compare(*reversed(files))


def test_who_finds_more_of_a_rare_class_is_said_against_the_accuracy(rare_pair):
    finds, misses, labels, found, turned = rare_pair
    own = labels == 2
    recall = [float((one == labels)[own].double().mean()) for one in (finds, misses)]
    for one, sign in ((found, "−"), (turned, "+")):
        verdict = verdict_on_two(one)
        assert "misses.npz is more accurate" in verdict.headline
        assert "finds.npz finds more of class 2" in verdict.headline
        told = next(sentence for sentence in verdict.sentences if sentence.startswith("finds.npz finds more"))
        ends = f"{100 * recall[0]:.1f} % instead of {100 * recall[1]:.1f} % of its {int(own.sum())} examples"
        assert ends in told
        assert f"= {sign}{100 * (recall[0] - recall[1]):.1f} points" in told
    numbers = found.numbers()["recall"]
    assert [one["name"] for one in numbers["a_finds_more"]] == ["class 2", "class 1"]
    assert [one["name"] for one in numbers["b_finds_more"]] == ["class 0"]


def test_recalls_that_go_with_the_accuracy_are_not_worth_a_sentence(pair):
    found = pair[3]
    assert verdict_on_two(found).headline.startswith("a.npz is more accurate")
    assert not any("finds more" in one for one in verdict_on_two(found).sentences)
