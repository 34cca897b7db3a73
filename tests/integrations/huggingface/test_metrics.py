"""Metrics for Trainer, against the instruments they come from and numbers counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import EvalPrediction, Trainer

from integrations.huggingface import small
from softtargets.calibration import measure_calibration
from softtargets.integrations.huggingface import Metrics, compute_metrics, loss_function
from softtargets.losses import LabelSmoothing
from softtargets.selection import measure_selection


def wanted(logits, labels):
    """From scores of all classes, whereas ours come from four numbers of each row."""
    counted = labels != -100
    logits, labels = logits[counted].double(), labels[counted]
    whole = measure_calibration(logits, labels, from_logits=True, level=None).scalars()
    selection = measure_selection(logits, labels, from_logits=True).numbers()
    return whole | {name: selection[name] for name in ("aurc", "excess_aurc", "augrc")}


def check(found, logits, labels):
    expected = wanted(torch.as_tensor(logits), torch.as_tensor(labels))
    assert found.keys() >= {
        "accuracy",
        "negative_log_likelihood",
        "smooth_calibration_error",
        "debiased_calibration_error",
        "aurc",
    }
    for name, value in found.items():
        assert type(value) is float
        assert value == pytest.approx(expected[name], rel=1e-5, abs=1e-6), name


def some(shape, classes=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(*shape, classes, generator=generator)
    labels = torch.where(
        torch.rand(shape, generator=generator) < 0.6,
        logits.argmax(-1),
        torch.randint(classes, shape, generator=generator),
    )
    labels[torch.rand(shape, generator=generator) < 0.2] = -100
    return logits, labels


def test_a_classifier_in_numpy():
    logits, labels = some((300,))
    check(compute_metrics(EvalPrediction(logits.numpy(), labels.numpy())), logits, labels)
    check(compute_metrics(EvalPrediction((logits.numpy(), np.zeros(3)), labels.numpy())), logits, labels)


def test_by_hand():
    logits = np.log(np.array([[0.8, 0.2], [0.4, 0.6], [0.9, 0.1], [0.5, 0.5]]))
    found = compute_metrics(EvalPrediction(logits, np.array([0, 0, 0, -100])))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["negative_log_likelihood"] == pytest.approx(
        -(math.log(0.8) + math.log(0.4) + math.log(0.9)) / 3
    )
    assert found["brier_score"] == pytest.approx(2 * (0.04 + 0.36 + 0.01) / 3)
    assert found["expected_calibration_error"] == pytest.approx((0.2 + 0.6 + 0.1) / 3)
    assert found["aurc"] == pytest.approx((0 + 0 + 1 / 3) / 3)


@pytest.mark.parametrize("shift", [True, False])
def test_tokens_whole_or_preprocessed(shift):
    logits, labels = some((40, 11))
    pair = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    check(Metrics(shift=shift)(EvalPrediction(logits.numpy(), labels.numpy())), *pair)
    metrics = Metrics(shift=shift)
    small_ones = metrics.preprocess((logits, logits), labels)
    assert small_ones.shape == (40, 10 if shift else 11, 4)
    check(metrics(EvalPrediction(small_ones.numpy(), labels.numpy())), *pair)


def test_positions_without_a_word_on_shifting_are_refused():
    logits, labels = some((4, 5))
    with pytest.raises(ValueError, match=r"Metrics\(shift=True\) for causal"):
        compute_metrics(EvalPrediction(logits.numpy(), labels.numpy()))
    with pytest.raises(ValueError, match="every label is -100"):
        Metrics(shift=False)(EvalPrediction(logits.numpy(), np.full((4, 5), -100)))
    with pytest.raises(ValueError, match="floating-point"):
        compute_metrics(EvalPrediction(np.zeros((4, 3)), np.zeros((4, 3))))


@pytest.mark.parametrize("by_batch", [True, False])
@pytest.mark.parametrize("preprocessing", [True, False])
def test_a_causal_model_evaluated_by_trainer(by_batch, preprocessing, tmp_path):
    data, model = small.sentences(count=14), small.causal()
    metrics = Metrics(shift=True)
    trainer = Trainer(
        model,
        small.arguments(tmp_path, batch_eval_metrics=by_batch),
        eval_dataset=data,
        compute_loss_func=loss_function(LabelSmoothing(0.1)),
        compute_metrics=metrics,
        preprocess_logits_for_metrics=metrics.preprocess if preprocessing else None,
    )
    for _ in range(2):  # nothing is left over from the first time
        found = trainer.evaluate()
    with torch.no_grad():
        logits = model(data.columns["input_ids"]).logits
    ours = {
        name.removeprefix("eval_"): found[name]
        for name in found
        if "_per_" not in name and "time" not in name
    }
    for name in ("loss", "epoch"):
        ours.pop(name, None)
    check(ours, logits[:, :-1], data.columns["labels"][:, 1:])


def test_logits_are_not_kept(tmp_path):
    seen = []

    class Looking(Metrics):
        def __call__(self, prediction, compute_result=True):
            seen.append(prediction.predictions.shape)
            return super().__call__(prediction, compute_result)

    metrics = Looking(shift=True)
    Trainer(
        small.causal(),
        small.arguments(tmp_path),
        eval_dataset=small.sentences(count=14),
        compute_metrics=metrics,
        preprocess_logits_for_metrics=metrics.preprocess,
    ).evaluate()
    assert seen == [(14, 8, 4)]


def test_generated_tokens_are_no_logits():
    """What Seq2SeqTrainer gives with predict_with_generate."""
    tokens = np.arange(12).reshape(3, 4)
    with pytest.raises(ValueError, match="tokens that were generated"):
        Metrics(shift=False)(EvalPrediction(predictions=tokens, label_ids=tokens))


def test_a_dataset_without_labels_is_predicted(tmp_path):
    unlabelled = small.sentences(6)
    del unlabelled.columns["labels"]
    metrics = Metrics(shift=True)
    trainer = Trainer(
        small.causal(),
        small.arguments(tmp_path),
        compute_metrics=metrics,
        preprocess_logits_for_metrics=metrics.preprocess,
    )
    found = trainer.predict(unlabelled)
    with torch.no_grad():
        logits = small.causal()(unlabelled.columns["input_ids"]).logits
    np.testing.assert_allclose(found.predictions, logits.numpy(), rtol=1e-4, atol=1e-5)
    assert "test_accuracy" not in found.metrics
    assert "test_accuracy" in trainer.predict(small.sentences(6)).metrics


def test_a_tuple_of_which_trainer_left_nothing_is_explained(tmp_path):
    trainer = Trainer(
        small.classifier(return_dict=False),
        small.arguments(tmp_path),
        eval_dataset=small.labelled(),
        compute_loss_func=loss_function(LabelSmoothing(0.1)),
        compute_metrics=compute_metrics,
    )
    with pytest.raises(ValueError, match="return_dict=False"):
        trainer.evaluate()


@pytest.mark.parametrize("label", [6, -1])
def test_labels_that_are_no_classes_are_refused(label):
    logits, labels = some((20,))
    labels[3] = label
    with pytest.raises(
        ValueError, match=f"between 0 and 5, or be -100 to be ignored, but one of them is {label}"
    ):
        compute_metrics(EvalPrediction(logits.numpy(), labels.numpy()))
    with pytest.raises(ValueError, match=f"one of them is {label}"):
        Metrics().preprocess(logits, labels)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_of_a_training_that_diverged_are_refused(value):
    logits, labels = some((20,))
    logits[3], labels[3] = value, 0
    counted = int((labels != -100).sum())
    with pytest.raises(ValueError, match=f"logits of 1 of {counted} examples are not all finite"):
        compute_metrics(EvalPrediction(logits.numpy(), labels.numpy()))
    labels[3] = -100  # what does not count may be anything
    assert math.isfinite(compute_metrics(EvalPrediction(logits.numpy(), labels.numpy()))["brier_score"])
