from __future__ import annotations

import pytest

from softtargets.predictions import open_predictions

from .making import refusal


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
    assert open_predictions(tmp_path / "a.csv", scores_name="output_").class_names == ("a", "b")


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
