from __future__ import annotations

import numpy as np
import pytest
import torch

from inspection.advise.images import blobs
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.training import LIMITS, Training, train_out_of_fold

NAMES = ("a", "b", "c")


@pytest.mark.parametrize("plan", [Training("logistic", folds=3), Training(folds=2, epochs=8, device="cpu")])
def test_no_example_is_predicted_by_a_model_that_saw_its_label(plan):
    images, labels = blobs()
    labels[7] = (labels[7] + 1) % 3  # wrong, and alone: only a model that saw it would believe it
    found = train_out_of_fold("blobs", images, labels, NAMES, plan)
    said = found.probabilities.numpy()
    assert said.sum(1) == pytest.approx(np.ones(300))
    assert said[7].argmax() != labels[7]
    assert (said.argmax(1) == labels).mean() > 0.98
    assert found.understood.examples == 300
    assert not found.is_sample
    assert found.trained.startswith(f"{plan.folds} ")


def test_rows_and_images_are_those_of_the_dataset_with_a_limit():
    images, labels = blobs(500)
    found = train_out_of_fold("blobs", images, labels, NAMES, Training("logistic", limit=60))
    rows = found.rows.numpy()
    assert len(rows) == 60
    assert (np.diff(rows) > 0).all()
    assert rows.max() > 300  # from all over, so that a dataset in the order of its classes has all of them
    assert found.labels.tolist() == labels[rows].tolist()
    assert np.array_equal(found.images, images[rows])
    assert found.understood.source == "60 of 500 training examples"
    assert found.is_sample


def test_a_sorted_dataset_is_sampled_from_all_classes():
    images, labels = blobs(500)
    order = np.argsort(labels, kind="stable")
    found = train_out_of_fold("blobs", images[order], labels[order], NAMES, Training("logistic", limit=90))
    assert np.bincount(found.labels.numpy()).min() > 15


def test_defaults_suit_the_device_and_the_number_of_examples():
    cpu, gpu = Training(device="cpu"), Training()
    assert len(cpu.chosen(10**5)) == LIMITS["cpu"]
    assert len(Training("logistic").chosen(10**5)) == LIMITS["logistic"]
    assert len(Training(limit=7).chosen(10)) == 7
    assert [cpu.fold_count(n) for n in (3, 1000, 5001, 30_000)] == [3, 5, 3, 2]
    assert Training("logistic").fold_count(30_000) == 5
    assert gpu.where() == torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (0, {"model": "forest"}, "model must be cnn or logistic, not forest"),
        (0, {"folds": 1}, "folds must be at least 2 folds, not 1"),
        (0, {"folds": 61}, "folds must lie between 2 and the number of examples, 60, not 61"),
        (0, {"epochs": 0}, "epochs must be at least 1 epoch, not 0"),
        (0, {"epochs": 3, "model": "logistic"}, "epochs is only for --model cnn"),
        (0, {"device": "tpu"}, "device must be auto, cpu or cuda, not tpu"),
        (0, {"device": "cuda:99"}, "device must be auto, cpu or cuda, not cuda:99"),
        (3, {}, r"class 'd' has no label among 60 examples; .* Raise --limit"),
        (4, {}, r"class 'd' has only 1 label among 60 examples"),
    ],
)
def test_what_cannot_be_trained_is_refused(change, options, sentence):
    images, labels = blobs(60)
    names = NAMES if change == 0 else (*NAMES, "d")
    if change == 4:
        labels[5] = 3
    with pytest.raises(SofttargetsError, match=sentence):
        train_out_of_fold("blobs", images, labels, names, Training(**options))
    with pytest.raises(SofttargetsError, match="method must be"):
        train_out_of_fold("blobs", images, labels, names, method="guess")
