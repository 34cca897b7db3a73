"""Files with confidences alone: what is found by name, what is told apart, what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from softtargets.predictions import PredictionFileError, find_confidences, open_arrays, open_confidences

P, LABELS, PREDICTED = [0.9, 0.25, 0.6, 0.5], [4, 7, 9, 2], [4, 8, 9, 1]
RIGHT = [True, False, True, False]


def values(found):
    parts = list(found.chunks())
    return torch.cat([p for p, _ in parts]).tolist(), torch.cat([right for _, right in parts]).tolist()


def csv(path, **columns):
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize(
    "columns",
    [
        {"confidence": P, "correct": [1, 0, 1, 0]},
        {"confidence": P, "correct": RIGHT},
        {"sentence": [0, 0, 1, 1], "Confidence": P, "is-correct": RIGHT},
        {"confidence": P, "label": LABELS, "predicted": PREDICTED},
        {"log_prob": [math.log(p) for p in P], "label": LABELS, "prediction": PREDICTED},
        {"prob": P, "correct": RIGHT},
        {"confidence": P, "log_prob": [math.log(p) for p in P], "label": LABELS, "predicted": PREDICTED},
        {"logprob": [math.log(p) for p in P], "correct": RIGHT, "label": LABELS},
    ],
)
def test_usual_names_in_tables(tmp_path, columns):
    path = csv(tmp_path / "a.csv", **columns)
    assert find_confidences(open_arrays(path)) is not None
    found = open_confidences(path)
    p, right = values(found)
    assert p == pytest.approx(P)
    assert right == RIGHT
    assert found.examples == 4
    assert ("logarithm" in found.reason) == next(iter(columns)).startswith("log")


@pytest.mark.parametrize(
    "columns",
    [
        {"prob": P, "label": [0, 1, 0, 1]},  # of class 1
        {"prob": P, "label": [0, 1, 0, 1], "pred": [1, 0, 1, 1]},
        {"prob_0": P, "prob_1": P, "confidence": P, "correct": [1, 0, 1, 0]},  # scores are better
        {"prob": P, "confidence": P, "correct": [1, 0, 1, 0], "label": [0, 1, 0, 1]},
        {"confidence": P, "label": LABELS},  # right or wrong is not known
        {"correct": [1, 0, 1, 0], "loss": P},
    ],
)
def test_what_is_something_else_stays_that(tmp_path, columns):
    assert find_confidences(open_arrays(csv(tmp_path / "a.csv", **columns))) is None


def test_arrays_with_scores_stay_scores(tmp_path):
    np.savez(
        tmp_path / "a.npz", logits=np.zeros((4, 3)), labels=np.zeros(4, int), confidence=P, correct=RIGHT
    )
    assert find_confidences(open_arrays(tmp_path / "a.npz")) is None
    np.savez(
        tmp_path / "b.npz", log_probs=np.zeros((4, 3)), labels=np.zeros(4, int), predicted=np.zeros(4, int)
    )
    assert find_confidences(open_arrays(tmp_path / "b.npz")) is None


def test_sentences_with_padding(tmp_path):
    path = tmp_path / "a.npz"
    confidence = np.array([[0.9, 0.25, math.nan], [0.6, 0.5, 7.0]], dtype=np.float32)
    labels, predicted = np.array([[4, 7, -100], [9, 2, -100]]), np.array([[4, 8, 0], [9, 1, 0]])
    np.savez(path, confidence=confidence, labels=labels, predicted=predicted)
    with pytest.raises(PredictionFileError, match=r"label -100 in row 0, position 2.*ignore_index=-100"):
        values(open_confidences(str(path)))
    found = open_confidences(str(path), ignore_index=-100)
    assert found.examples == 4
    assert found.sequences == 2
    p, right = values(found)
    assert p == pytest.approx(P)
    assert right == RIGHT
    np.savez(path, confidence=confidence, labels=np.full((2, 3), -1), predicted=predicted)
    with pytest.raises(PredictionFileError, match="no example left"):
        open_confidences(str(path), ignore_index=-1)


def test_lines_of_json_with_a_list_per_sentence(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        {"text": "x", "logprobs": [math.log(0.9), math.log(0.25)], "labels": [4, 7], "predicted": [4, 8]},
        {"text": "y", "logprobs": [math.log(0.6), math.log(0.5)], "labels": [9, 2], "predicted": [9, 1]},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    p, right = values(open_confidences(str(path)))
    assert p == pytest.approx(P)
    assert right == RIGHT


def test_names_can_be_said(tmp_path):
    path = csv(tmp_path / "a.csv", a=P, b=[1, 0, 1, 0], c=PREDICTED, d=LABELS)
    assert values(open_confidences(path, confidence_name="a", correct_name="b")) == (P, RIGHT)
    found = open_confidences(path, confidence_name="a", prediction_name="c", labels_name="d", ignore_index=9)
    assert values(found) == ([0.9, 0.25, 0.5], [True, False, False])


def test_a_file_is_read_in_pieces(tmp_path, monkeypatch):
    from softtargets.predictions import confidences

    monkeypatch.setattr(confidences, "ROWS", 3)
    path = tmp_path / "a.npz"
    p = np.linspace(0, 1, 50)
    np.savez(path, confidence=p.reshape(10, 5), correct=(p > 0.5).reshape(10, 5))
    found = open_confidences(str(path))
    assert max(len(part) for part, _ in found.chunks()) <= 3
    assert values(found) == (p.tolist(), (p > 0.5).tolist())


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ({"confidence": [0.5, 1.2], "correct": [1, 0]}, {}, "neither probabilities"),
        (
            {"confidence": [0.5] * 5000 + [1.2], "correct": [1] * 5001},
            {},
            "has 1.2 as 'confidence' in line 5002",
        ),
        (
            {"log_prob": [-0.5] * 5000 + [0.2], "correct": [1] * 5001},
            {},
            "in line 5002; it must be a logarithm",
        ),
        ({"confidence": [0.5, "nan"], "correct": [1, 0]}, {}, "has nan as 'confidence' in line 3"),
        ({"confidence": [0.5, 0.6], "correct": [1, 2]}, {}, "has 2 in line 3; a prediction is right"),
        ({"confidence": [0.5, 0.6], "correct": ["True", "maybe"]}, {}, "'maybe' in line 3"),
        ({"confidence": [0.5], "predicted": ["cat"], "label": ["dog"]}, {}, "has texts in 'predicted'"),
        ({"confidence": [0.5], "x": [1]}, {}, "does not show which predictions are right"),
        ({"x": [0.5], "correct": [1]}, {}, "no confidence under a usual name.*confidence_name"),
        (
            {"confidence": [0.5], "correct": [1]},
            {"confidence_name": "confidense"},
            "did you mean 'confidence'",
        ),
        ({"confidence": [0.5], "correct": [1]}, {"ignore_index": -100}, "has no labels"),
    ],
)
def test_refusals(tmp_path, columns, more, words):
    path = csv(tmp_path / "a.csv", **columns)
    with pytest.raises(PredictionFileError, match=words):
        values(open_confidences(path, **more))


def test_arrays_of_different_sizes_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", confidence=np.array([0.5, 0.6]), correct=np.array([1]))
    with pytest.raises(PredictionFileError, match=r"'correct' \(1,\).*but 'confidence' \(2,\)"):
        open_confidences(str(tmp_path / "a.npz"))
