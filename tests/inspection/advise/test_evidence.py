from __future__ import annotations

import numpy as np
import pytest
import torch

from inspection.advise.cases import noisy, uniform
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.evidence import LIKELIHOOD_WORK, NUMBERS, ROWS, sample_of, sampling
from softtargets.predictions import open_predictions


def saved(path, examples=3000, classes=4, name="logits", order=None):
    logits, labels, _ = noisy(uniform(0.8, classes), examples)
    scores = logits if name == "logits" else torch.tensor(logits).softmax(1).numpy()
    order = np.arange(examples) if order is None else order
    np.savez(path, **{name: scores[order], "labels": labels[order]})
    return scores, labels


def test_a_small_file_is_taken_whole_as_probabilities(tmp_path):
    logits, labels = saved(tmp_path / "a.npz", 300)
    found = sample_of(open_predictions(tmp_path / "a.npz"))
    assert not found.is_sample
    assert found.method == "anchors"
    assert found.rows.tolist() == list(range(300))
    assert found.labels.tolist() == labels.tolist()
    assert torch.allclose(found.probabilities, torch.tensor(logits).softmax(1))


def test_probabilities_stay_what_they_are(tmp_path):
    scores, _ = saved(tmp_path / "a.npz", 300, name="probs")
    assert sample_of(open_predictions(tmp_path / "a.npz")).probabilities.numpy() == pytest.approx(scores)


def test_a_sample_is_reproducible_about_as_large_as_asked_and_of_whole_rows(tmp_path):
    logits, labels = saved(tmp_path / "a.npz")
    first, again = (sample_of(open_predictions(tmp_path / "a.npz"), sample=700) for _ in range(2))
    assert first.is_sample
    assert 600 < len(first.labels) < 800
    assert torch.equal(first.probabilities, again.probabilities)
    known = {
        tuple(np.round(row, 9)): label
        for row, label in zip(torch.tensor(logits).softmax(1).numpy(), labels, strict=True)
    }
    for row, label in zip(first.probabilities.numpy(), first.labels.tolist(), strict=True):
        assert known[tuple(np.round(row, 9))] == label


def test_a_sample_of_a_sorted_file_has_all_of_it(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 4000)
    order = np.argsort(labels, kind="stable")
    np.savez(tmp_path / "a.npz", logits=logits[order], labels=labels[order])
    found = sample_of(open_predictions(tmp_path / "a.npz"), sample=1000)
    shares = np.bincount(found.labels.numpy(), minlength=4) / len(found.labels)
    assert shares == pytest.approx(np.bincount(labels) / 4000, abs=0.04)


def test_rows_are_those_of_the_file_also_in_a_sample_and_with_rows_left_out(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 3000)
    labels[::7] = -100
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels)
    opened = open_predictions(tmp_path / "a.npz", ignore_index=-100)
    for sample in (None, 500):
        found = sample_of(opened, sample=sample)
        rows = found.rows.numpy()
        assert (np.diff(rows) > 0).all()
        assert not (rows % 7 == 0).any()
        assert found.labels.tolist() == labels[rows].tolist()
        assert torch.allclose(found.probabilities, torch.tensor(logits[rows]).softmax(1))
    assert 400 < len(rows) < 600


@pytest.mark.parametrize("classes", [2, 10, 50, 79, 80, 200, 1000, 100_000])
def test_plans_stay_within_time_and_memory(classes):
    chosen = sampling(10**7, classes)
    assert 1 <= chosen.rows <= ROWS
    assert chosen.rows * classes <= max(NUMBERS, classes)
    slow = sampling(10**7, classes, "likelihood")
    assert slow.rows == 1 or slow.rows * classes**2 <= LIKELIHOOD_WORK


def test_a_plan_takes_what_it_is_told():
    assert sampling(1000, 10, "naive").method == "naive"
    assert sampling(10**6, 10, sample=123).rows == 123
    assert sampling(50, 10, sample=123).rows == 50


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "guess"}, "method must be .* naive.* not guess"),
        ({"sample": 0}, "sample must be at least 1 row, not 0"),
    ],
)
def test_a_plan_refuses_what_cannot_be(options, sentence):
    with pytest.raises(SofttargetsError, match=sentence):
        sampling(100, 3, **options)
