from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import torch

from inspection.advise.cases import given, noisy, uniform
from inspection.advise.images import blobs
from softtargets.inspection.advise.suspects import PICTURES, suspects_in
from softtargets.inspection.advise.training import Training, train_out_of_fold


def test_wrong_labels_come_first_by_their_rows():
    logits, labels, clean = noisy(uniform(0.9, 4), 800, sharpness=6.0)
    rows = torch.arange(800) * 3 + 5
    found = suspects_in(replace(given(logits, labels, names=("a", "b", "c", "d")), rows=rows))
    wrong = set((np.flatnonzero(labels != clean) * 3 + 5).tolist())
    first = found.row[: len(wrong)].tolist()
    assert len(wrong & set(first)) > 0.9 * len(wrong)
    assert (np.diff(found.score) <= 0).all()
    for one in list(found.rows(20)):
        place = (one["row"] - 5) // 3
        assert one["given"] == labels[place]
        assert one["likely"] == logits[place].argmax()
        assert one["given_name"] == "abcd"[one["given"]]


def test_only_labels_that_the_model_does_not_predict_are_listed():
    logits, labels, _ = noisy(uniform(0.8, 4), 400)
    found = suspects_in(given(logits, labels))
    assert sorted(found.row.tolist()) == np.flatnonzero(logits.argmax(1) != labels).tolist()


def test_the_file_has_all_of_them(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 400)
    found = suspects_in(given(logits, labels, names=("a,b", 'quote"', "c", "d")))
    found.write(tmp_path)
    with open(tmp_path / found.numbers()["file"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found.numbers()["count"] == len(found)
    assert [int(row["row"]) for row in rows] == found.row.tolist()
    assert {row["given_name"] for row in rows} == {"a,b", 'quote"', "c", "d"}


def test_images_are_those_of_the_rows_also_with_a_limit():
    images, labels = blobs(600)
    wrong = np.random.default_rng(1).permutation(600)[:90]
    labels[wrong] = (labels[wrong] + 1) % 3
    found = suspects_in(
        train_out_of_fold("blobs", images, labels, ("a", "b", "c"), Training("logistic", limit=300))
    )
    assert found.images is not None
    assert len(found.images) == min(PICTURES, len(found))
    assert set(found.row.tolist()) <= set(wrong.tolist())
    for row, given_label, image in zip(found.row, found.given, found.images, strict=False):
        assert np.array_equal(images[row], image)
        assert labels[row] == given_label


def test_a_model_that_agrees_with_everything_suspects_nothing():
    logits, _, clean = noisy(uniform(1.0, 3), 300, sharpness=30.0)
    found = suspects_in(given(logits, clean))
    assert len(found) == 0
    assert list(found.rows()) == []
