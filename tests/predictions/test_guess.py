from __future__ import annotations

import numpy as np
import pytest

from softtargets.predictions import open_predictions

from .making import logits, probabilities, refusal, same

NAMES = [
    "logits",
    "Scores",
    "outputs",
    "predictions",
    "preds",
    "y_score",
    "test_logits",
    "val/logits",
    "anything",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "label", ["labels", "target", "y", "y_true", "Ground-Truth", "test_labels", "whatever"]
)
def test_usual_names_and_the_only_ones(tmp_path, name, label):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", **{name: scores, label: labels})
    same(tmp_path / "a.npz", scores, labels)


def test_other_arrays_are_left_alone(tmp_path):
    scores, labels = logits()
    np.savez(
        tmp_path / "a.npz",
        **{
            "logits": scores,
            "labels": labels,
            "activations": np.ones((40, 9)),
            "predictions": scores.argmax(1),
        },
        **{"indices": np.arange(40), "classes": np.array(list("abcde")), "time": np.float64(3)},
    )
    found = same(tmp_path / "a.npz", scores, labels)
    assert found.source == "scores 'logits' (40, 5) float32 of a.npz, labels 'labels'"


def test_logits_are_taken_where_there_are_both(tmp_path):
    scores, labels = logits()
    others, _ = probabilities()
    np.savez(tmp_path / "a.npz", probs=others, logits=scores, y=labels)
    same(tmp_path / "a.npz", scores, labels)
    same(tmp_path / "a.npz", others, labels, kind="probabilities")
    same(tmp_path / "a.npz", others, labels, scores_name="probs")


def test_nothing_is_guessed(tmp_path):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", first=scores, second=scores, labels=labels)
    refusal(
        tmp_path / "a.npz", "several arrays that could be scores", "'first' (40, 5) float32", "scores_name"
    )
    same(tmp_path / "a.npz", scores, labels, scores_name="second")
    np.savez(tmp_path / "b.npz", logits=scores, first=labels, second=labels)
    refusal(tmp_path / "b.npz", "several arrays that could be labels", "labels_name")
    same(tmp_path / "b.npz", scores, labels, labels_name="second")
    refusal(tmp_path / "b.npz", "no array 'thrid' for the labels", labels_name="thrid")
    refusal(tmp_path / "b.npz", "did you mean 'second'", labels_name="secnod")
    np.savez(tmp_path / "c.npz", logits=scores, other=scores)
    refusal(tmp_path / "c.npz", "has no labels")
    np.savez(tmp_path / "d.npz", labels=labels, other=labels)
    refusal(tmp_path / "d.npz", "no array that could be scores")
    np.savez(tmp_path / "e.npz", test_logits=scores, val_logits=scores, labels=labels)
    refusal(tmp_path / "e.npz", "several arrays that could be scores")


def test_one_column_is_no_guess(tmp_path):
    """An array (N, K + 1) with labels in the last column is not taken apart."""
    scores, labels = logits()
    np.save(tmp_path / "a.npy", np.concatenate([scores, labels[:, None]], 1))
    refusal(tmp_path / "a.npy", "has no labels")


def test_labels_that_are_texts(tmp_path):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", logits=scores, labels=np.array(list("abcde"))[labels])
    refusal(tmp_path / "a.npz", "not numbers", "save the index")


def test_one_name_for_arrays(tmp_path):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    refusal(tmp_path / "a.npz", "arrays, not columns", scores_name=["logits", "labels"])
    assert open_predictions(str(tmp_path / "a.npz")).classes == 5


@pytest.mark.parametrize(
    ("header", "classes"),
    [
        ("label,prob_cat,prob_dog", ("cat", "dog")),
        ("label,P(cat),P(dog)", ("cat", "dog")),
        ("label,class1,class0", ("0", "1")),
        ("label,logits[0],logits[1]", ("0", "1")),
        ("y_true,Score: a,Score: b", ("a", "b")),
        ("target,cat,dog", ("cat", "dog")),
        ("target,y_pred_0,y_pred_1", ("0", "1")),
        ("class,class_a,class_b", ("a", "b")),
    ],
)
def test_names_of_classes(tmp_path, header, classes):
    (tmp_path / "a.csv").write_text(f"{header}\n0,3,-4\n1,5,6\n")
    assert open_predictions(tmp_path / "a.csv").class_names == classes


def test_several_groups_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("label,score_a,score_b,output_a,output_b\n0,3,-4,3,-4\n")
    refusal(tmp_path / "a.csv", "several groups of columns")
    for said in ("output_", ["output_"]):
        assert open_predictions(tmp_path / "a.csv", scores_name=said).class_names == ("a", "b")


def test_names_of_columns_say_what_scores_are(tmp_path):
    rows = "0,0.5,0.9\n1,0.25,0.5\n"
    (tmp_path / "a.csv").write_text(f"label,logit_a,logit_b\n{rows}")
    assert open_predictions(tmp_path / "a.csv").kind == "logits"
    (tmp_path / "a.csv").write_text(f"label,prob_a,prob_b\n{rows}")
    refusal(tmp_path / "a.csv", "line 2 that add up to 1.4")
    (tmp_path / "a.csv").write_text(f"label,a,b\n{rows}")
    refusal(tmp_path / "a.csv", 'use kind="logits"')
    for name, kind in (("logit", "logits"), ("prob", "probabilities"), ("score", "probabilities")):
        (tmp_path / "a.csv").write_text(f"label,{name}\n0,0.5\n1,0.25\n")
        assert open_predictions(tmp_path / "a.csv").kind == kind


def test_several_scores_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("label,output,prediction\n0,3,-4\n")
    refusal(tmp_path / "a.csv", "several columns that could be the score")


def test_one_score_for_each_example_in_a_file_of_its_own(tmp_path):
    scores, labels = probabilities(classes=2, dtype="float64")
    np.save(tmp_path / "p.npy", scores[:, 1])
    np.save(tmp_path / "y.npy", labels)
    expected = np.stack([1 - scores[:, 1], scores[:, 1]], 1)
    found = same(tmp_path / "p.npy", expected, labels, labels=tmp_path / "y.npy")
    assert "probability of class 1" in found.reason


def test_one_score_and_labels_in_words(tmp_path):
    (tmp_path / "a.csv").write_text("y_true,y_prob\nok,0.1\nfraud,0.8\n")
    refusal(tmp_path / "a.csv", "the label 'ok' in line 2", "1 where it applies and 0 where not")
