from __future__ import annotations

import numpy as np
import pytest
import torch

from inspection.cases import rare_class
from inspection.made import net, saved
from softtargets.calibration import fold_of, vector_scaling
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.shared.recalls import ClassRecall, Recalls, recalls_of


def test_counts_are_those_of_plain_loops():
    random = torch.Generator().manual_seed(0)
    labels, before, after = (torch.randint(4, (300,), generator=random) for _ in range(3))
    labels[labels == 2] = 0  # a class without examples
    found = recalls_of(before, after, labels, 4, ["a", "b", "c", "d"])
    assert [one.name for one in found.classes] == ["a", "b", "d"]
    rows = list(zip(before.tolist(), after.tolist(), labels.tolist(), strict=True))
    for one in found.classes:
        own = [(b, a) for b, a, y in rows if y == one.index]
        assert one.examples == len(own)
        assert one.before.value == sum(b == one.index for b, _ in own) / len(own)
        assert one.after.value == sum(a == one.index for _, a in own) / len(own)
        assert one.change.value == pytest.approx(one.after.value - one.before.value)
        assert one.lost == sum(b == one.index != a for b, a in own)
        assert one.predicted_before == sum(b == one.index for b, _, _ in rows)
        assert one.precision_after == one.found_after / sum(a == one.index for _, a, _ in rows)
    assert found.changed == sum(b != a for b, a, _ in rows)


def recall(lost, gained, examples=100, index=0, predicted_after=50):
    """A class of which the model found as many as it loses, and ten more."""
    found = min(lost + 10, examples)
    return ClassRecall(
        index, f"class {index}", examples, found, found - lost + gained, lost, gained, 90, predicted_after
    )


@pytest.mark.parametrize(
    ("lost", "gained", "examples", "told"),
    [
        (5, 0, 5, False),  # all of a handful of examples: mid-p 0.5^5, 1 in 32, and there are two classes
        (6, 0, 6, True),  # 1 in 64
        (30, 25, 100, False),
        (30, 5, 100, True),
        (5, 30, 100, False),  # a rise
        (190, 10, 10_000, False),  # beyond chance, and 1.8 points
        (210, 10, 10_000, True),
    ],
)
def test_a_fall_is_told_if_it_is_large_and_more_than_chance(lost, gained, examples, told):
    assert bool(Recalls((recall(lost, gained, examples), recall(0, 0, index=1)), 1).falling) == told


def test_the_largest_fall_of_many_classes_must_be_more_than_chance_for_all_of_them():
    one = recall(8, 0)  # mid-p 0.0039
    others = [recall(0, 0, index=k) for k in range(1, 14)]
    assert Recalls((one, *others[:11]), 8).falling == (one,)  # 0.05 / 12 = 0.0042
    assert Recalls((one, *others[:12]), 8).falling == ()  # 0.05 / 13 = 0.0038


def test_chance_alone_is_rarely_called_a_fall():
    """Two predictions that are equally often right about every class, and differ in one of five."""
    random = np.random.default_rng(0)
    called = 0
    for _ in range(300):
        labels = torch.from_numpy(random.integers(10, size=400))
        both = [torch.where(torch.from_numpy(random.random(400) < 0.8), labels, 0) for _ in range(2)]
        called += bool(recalls_of(*both, labels, 10).falling)
    assert called <= 300 * 0.05


def test_a_class_that_is_never_predicted_any_more_is_named_however_few_examples_it_has():
    gone = recall(3, 0, 5, predicted_after=0)
    found = Recalls((gone, recall(0, 0, index=1)), 3)
    assert found.falling == ()
    assert found.given_up == (gone,)
    assert gone.precision_after is None
    assert Recalls((recall(30, 0, predicted_after=0),), 30).given_up == ()  # which is a fall, told as such


def test_intervals_of_few_examples_are_wide():
    one = recall(2, 0, 5)
    assert one.before.high - one.before.low > 0.3
    assert one.change.low < -0.7
    assert one.change.high > 0


def test_recalls_of_a_correction_are_those_of_held_out_examples(tmp_path):
    logits, labels = rare_class()
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    candidate = next(one for one in found.corrections.tried if one.name == "vector_scaling")
    fold = fold_of(0, len(labels), 3)
    after = torch.empty_like(labels)
    for part in range(3):
        rows = fold == part
        after[rows] = vector_scaling(logits[~rows], labels[~rows])(logits[rows]).argmax(1)
    expected = recalls_of(logits.argmax(1), after, labels, 3)
    assert candidate.recalls == expected
    told = found.numbers()["corrections"]["tried"][-1]["recall"]
    assert told["falls_beyond_chance"] == ["class 2", "class 1"]
    assert told["classes"][2]["recall_change"]["value"] < -0.2
    assert told["predictions_changed"] == expected.changed
    assert candidate.accuracy.above_zero  # which is why the correction is recommended all the same


def test_a_temperature_changes_no_prediction_and_has_no_recalls(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(400, 3, sharpness=2.0)))
    told = found.numbers()["corrections"]["tried"]
    assert [one["recall"] is None for one in told] == [True, False, False]
