from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inspection.cases import rare_class
from inspection.made import net, saved
from softtargets.inspection.calibrate.changed_classes import (
    keeping_code,
    recall_exhibits,
    recall_sentences,
    recall_table,
    recall_words,
)
from softtargets.inspection.calibrate.corrections import Corrections
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.page import calibrate_page
from softtargets.inspection.calibrate.words import correction_line, verdict_on
from softtargets.inspection.shared.recalls import recalls_of
from softtargets.report import write_page


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A model that finds a rare class, and would not after the correction that is recommended."""
    logits, labels = rare_class()
    return inspect(saved(tmp_path_factory.mktemp("rare") / "a.npz", logits, labels))


def test_the_verdict_names_the_class_that_loses_most(rare):
    verdict = verdict_on(rare)
    worst = min(rare.recommended.recalls.classes, key=lambda one: one.after.value - one.before.value)
    assert worst.name == "class 2"
    assert verdict.headline.endswith("; the correction costs recall")
    ends = f"falls from {100 * worst.before.value:.1f} % to {100 * worst.after.value:.1f} %"
    told = next(one for one in verdict.sentences if "which class is predicted" in one)
    assert f"the recall of class 2 {ends}" in told
    assert f"on {worst.examples} held-out examples of that class" in told
    low, high = re.search(r"points \(−(.*) to −(.*)\)", told).groups()
    assert float(low) > -100 * worst.change.value > float(high)
    assert any(
        "the recall of other classes falls" in one.lower() and "class 1" in one for one in verdict.sentences
    )
    assert correction_line(rare).endswith(f"(recall of class 2: {ends.removeprefix('falls from ')})")


def test_precision_is_told_with_it(rare):
    worst = rare.recommended.recalls.falling[0]
    told = next(one for one in recall_sentences(rare) if one.startswith("Predictions of class 2"))
    assert f"{100 * worst.precision_after:.1f} % instead of {100 * worst.precision_before:.1f} %" in told


def test_scaling_is_no_way_out_where_it_leaves_the_probabilities_of_classes_wrong(rare):
    assert rare.after.classwise_calibration_error > 5 * rare.remaining.after.classwise_calibration_error
    assert "temperature scaling" not in recall_sentences(rare)[-1]
    as_good = replace(rare.remaining, after=rare.after)
    assert "or use temperature scaling" in recall_sentences(replace(rare, remaining=as_good))[-1]


def test_the_page_has_a_table_and_lines_that_keep_the_predictions(rare, tmp_path):
    html = write_page(calibrate_page(rare), tmp_path / "out").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["tables"][
        "recall_by_class"
    ]
    assert [row["class"] for row in rows] == ["class 2", "class 1", "class 0"]
    assert all(row["before_low"] <= row["before"] <= row["before_high"] for row in rows)
    code = keeping_code(rare.recommended).text
    assert code.splitlines()[0] in html
    names = {"logits": torch.tensor([[1.0, 2.0]]), "probabilities": torch.tensor([[0.6, 0.4]])}
    exec(code, names)
    assert names["confidence"].tolist() == pytest.approx([0.4])


def with_recalls(found, before, after, labels):
    """The same with other predictions before and after its correction."""
    best = replace(found.recommended, recalls=recalls_of(before, after, labels, 3))
    return replace(found, corrections=Corrections((best,)))


def test_where_nothing_happens_the_verdict_says_nothing(rare):
    labels = torch.arange(300) % 3
    same = with_recalls(rare, labels, labels, labels)
    assert recall_sentences(same) == []
    assert recall_words(same) == ["On held-out examples the correction changes no prediction."]
    assert "recall" not in correction_line(same)
    assert not any("recall" in one for one in verdict_on(same).sentences)
    assert list(recall_exhibits(same)) == []


def test_a_change_within_chance_is_said_beside_the_table_only(rare):
    labels = torch.arange(300) % 3
    before, after = labels.clone(), labels.clone()
    before[0], after[3] = 1, 2
    found = with_recalls(rare, before, after, labels)
    assert recall_sentences(found) == []
    assert recall_words(found)[0].endswith(
        "2 predictions of 3,000. No class is found less often by more than chance."
    )
    assert "costs recall" not in verdict_on(found).headline


def test_a_class_that_disappears_is_told_with_how_few_examples_it_had(rare):
    labels = torch.cat([torch.zeros(100), torch.ones(100), torch.full((4,), 2)]).long()
    after = torch.where(labels == 2, 0, labels)
    told = recall_sentences(with_recalls(rare, labels, after, labels))
    assert told[0].startswith("After the correction no example is predicted as class 2 (recall 100 % of 4);")


def test_of_many_classes_the_table_has_those_that_lose_most():
    random = torch.Generator().manual_seed(0)
    labels, before, after = (torch.randint(30, (900,), generator=random) for _ in range(3))
    found = recalls_of(before, after, labels, 30)
    table = recall_table(found)
    assert len(table.rows) == 10
    assert table.caption.startswith("The 10 of 30 classes with the largest falls.")
    changes = sorted(one.change.value for one in found.classes)
    assert [row["change"] for row in table.rows] == changes[:10]


def test_without_biases_nothing_is_said(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(600, 3, sharpness=2.0)))
    assert found.recommended.name == "temperature"
    assert recall_words(found) == []


@pytest.mark.realdata
def test_the_shirts_of_the_documentation(tmp_path):
    """What docs/calibration.md says of a model of a rare class."""
    from sklearn.linear_model import LogisticRegression

    from softtargets.data import load

    root = os.environ.get("SOFTTARGETS_DATA")
    if root is None or not (Path(root) / "FashionMNIST").exists():
        pytest.skip("SOFTTARGETS_DATA is not set or has no Fashion-MNIST")

    def rare_shirts(split, most):
        """Every eleventh shirt and all other clothes, of every second pixel each way."""
        read = load("fashion-mnist", split, root)
        shirts = np.flatnonzero(read.labels == 6)
        chosen = np.sort(np.concatenate([np.flatnonzero(read.labels != 6), shirts[::11]]))[:most]
        pixels = read.images[chosen].reshape(-1, 28, 28)[:, ::2, ::2].reshape(len(chosen), -1) / 255
        return pixels, (read.labels[chosen] == 6).astype(int)

    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(*rare_shirts("train", 12_000))
    pixels, labels = rare_shirts("test", None)
    margins = torch.from_numpy(model.decision_function(pixels))
    logits = torch.stack([torch.zeros_like(margins), margins], 1)
    found = inspect(saved(tmp_path / "a.npz", logits, torch.from_numpy(labels)))
    best, (shirts,) = found.recommended, found.recommended.recalls.falling
    assert labels.mean() == pytest.approx(0.010, abs=5e-4)
    assert found.before.accuracy == pytest.approx(0.877, abs=0.003)
    assert found.before.accuracy + best.accuracy.value == pytest.approx(0.990, abs=0.002)
    assert (shirts.before.value, shirts.after.value) == pytest.approx((0.604, 0.0), abs=0.03)
    assert found.before.expected_calibration_error == pytest.approx(0.047, abs=0.003)
    assert found.remaining.ece.value < 0.01
    assert float(margins.sigmoid().mean()) == pytest.approx(0.147, abs=0.003)
