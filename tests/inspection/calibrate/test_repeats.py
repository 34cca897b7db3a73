from __future__ import annotations

import numpy as np
import pytest
import torch

from inspection.made import net, saved
from softtargets.inspection.calibrate import repeats
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.repeats import RepeatedRows
from softtargets.inspection.calibrate.words import warnings_on


@pytest.mark.parametrize("piece", [7, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_copies_are_counted_wherever_they_are(piece, dtype):
    logits, labels = net(300, classes=20)
    chosen = torch.from_numpy(np.random.default_rng(0).integers(300, size=1000))
    scores, labels = logits.to(dtype)[chosen], labels[chosen]
    expected = 1000 - len({(*row, y) for row, y in zip(scores.tolist(), labels.tolist(), strict=True)})
    rows = RepeatedRows()
    for start in range(0, 1000, piece):
        rows.add(scores[start : start + piece], labels[start : start + piece])
    assert rows.count() == expected > 600


def test_the_same_scores_in_another_order_or_with_another_label_are_no_copy():
    rows = RepeatedRows()
    rows.add(torch.tensor([[0.1, 0.9], [0.9, 0.1], [0.1, 0.9], [0.3, 0.7]]), torch.tensor([0, 0, 1, 0]))
    assert rows.count() == 0


def test_votes_repeat_without_being_copies():
    random = np.random.default_rng(0)
    votes = random.multinomial(20, [0.6, 0.3, 0.1], size=2000) / 20
    rows = RepeatedRows()
    rows.add(torch.from_numpy(votes), torch.zeros(2000, dtype=torch.int64))
    assert len(np.unique(votes, axis=0)) < 1000
    assert rows.count() == 0


def test_of_very_many_rows_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(repeats, "MOST", 10)
    rows = RepeatedRows()
    rows.add(torch.rand(8, 2).repeat(2, 1), torch.zeros(16, dtype=torch.int64))
    assert rows.count() == 0


@pytest.mark.parametrize(("copies", "told"), [(30, True), (5, False)])
def test_a_file_of_copies_is_warned_of(tmp_path, copies, told):
    logits, labels = net(200, classes=4, sharpness=2.0)
    logits, labels = torch.cat([logits, logits[:copies]]), torch.cat([labels, labels[:copies]])
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    assert found.numbers()["repeated_rows"] == found.repeated == copies
    assert (
        any(
            "30 rows of 230 have the same scores and label as an earlier row" in one
            for one in warnings_on(found)
        )
        == told
    )
