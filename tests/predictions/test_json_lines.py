"""Lines of JSON as a table: rows, lists, refusals."""

from __future__ import annotations

import json

import pytest
import torch

from softtargets.predictions import PredictionFileError, json_lines, open_arrays, open_predictions


def written(path, *lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def column(arrays, name, rows=100, start=0):
    return torch.cat(list(arrays[name].blocks(rows, start))).tolist()


def test_an_object_per_row(tmp_path):
    path = written(
        tmp_path / "a.jsonl", {"p": 0.5, "ok": True, "t": "x"}, "\n", {"p": 1, "ok": False, "t": "y"}
    )
    arrays = open_arrays(path)
    assert set(arrays) == {"p", "ok", "t"}
    assert column(arrays, "p") == [0.5, 1.0]
    assert column(arrays, "ok") == [1.0, 0.0]
    assert arrays["t"].dtype == "text"
    assert arrays["p"].place(1) == "line 3"


def test_lists_are_rows_and_single_values_are_not_used(tmp_path):
    path = written(
        tmp_path / "a.jsonl",
        {"id": 7, "p": [0.1, 0.2], "y": [4, 5]},
        {"id": 8, "p": [], "y": []},
        {"id": 9, "p": [0.3], "y": [6]},
    )
    arrays = open_arrays(path)
    assert set(arrays) == {"p", "y"}
    assert arrays["p"].shape == (3,)
    assert column(arrays, "y") == [4, 5, 6]
    assert arrays["p"].place(2) == "line 3, element 0"
    assert "not used: id" in arrays.note


def test_a_line_with_one_list_is_an_example_with_its_scores(tmp_path):
    lines = [{"probs": [0.1 * i, 1 - 0.1 * i], "label": i % 2, "id": f"a{i}"} for i in range(5)]
    path = written(tmp_path / "a.jsonl", *lines)
    arrays = open_arrays(path)
    assert set(arrays) == {"probs0", "probs1", "label", "id"}
    assert column(arrays, "probs1") == [one["probs"][1] for one in lines]
    assert arrays["probs0"].place(2) == "line 3"
    predictions = open_predictions(path)
    assert (predictions.examples, predictions.classes) == (5, 2)


def test_sentences_of_one_length_are_no_scores(tmp_path):
    """Padded labels of tokens, and their texts: scores of classes are never all whole numbers."""
    path = written(tmp_path / "a.jsonl", *({"id": i, "labels": [0, 3, -100]} for i in range(5)))
    arrays = open_arrays(path)
    assert set(arrays) == {"labels"}
    assert column(arrays, "labels") == [0, 3, -100] * 5
    lines = [{"id": i, "logits": [[0.1, 0.9], [0.5, 0.5]]} for i in range(5)]
    assert set(open_arrays(written(tmp_path / "b.jsonl", *lines))) == {"logits"}


def test_a_model_that_is_always_certain_may_write_whole_numbers(tmp_path):
    """JavaScript writes 1.0 as 1."""
    lines = ({"id": i, "probs": [int(k == i % 3) for k in range(3)], "label": i % 3} for i in range(6))
    predictions = open_predictions(written(tmp_path / "a.jsonl", *lines))
    assert (predictions.examples, predictions.classes) == (6, 3)


def test_another_number_of_scores_is_refused_with_its_line(tmp_path):
    lines = [{"probs": [0.5, 0.5], "label": 0}] * (json_lines.LOOK + 1)
    path = written(tmp_path / "a.jsonl", *lines, {"probs": [1.0], "label": 0})
    with pytest.raises(
        PredictionFileError, match=rf"has 1 scores in 'probs' of line {len(lines) + 1}, but 2 in"
    ):
        open_arrays(path)
    path = written(tmp_path / "b.jsonl", *lines, {"label": 0})
    with pytest.raises(PredictionFileError, match=rf"has no list in 'probs' of line {len(lines) + 1}"):
        open_arrays(path)


def test_blocks_and_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "BLOCK", 100)
    path = written(tmp_path / "a.jsonl", *({"p": [i, i + 0.5], "y": [0, 1]} for i in range(60)))
    arrays = open_arrays(path)
    whole = [i + j for i in range(60) for j in (0, 0.5)]
    assert column(arrays, "p", rows=7) == whole
    for start in (0, 1, 33, 118):
        assert column(arrays, "p", rows=7, start=start) == whole[start:]
    assert arrays["p"].place(97) == "line 49, element 1"


def test_classes_in_fields_are_predictions_too(tmp_path):
    path = written(tmp_path / "a.jsonl", *({"logit_0": i, "logit_1": 1.0, "label": i % 2} for i in range(4)))
    found = open_predictions(path)
    assert (found.examples, found.classes, found.kind) == (4, 2, "logits")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["{}\n", "[1]\n"], "has a list in line 2, not an object"),
        (['{"p": 1}\n', '{"p": \n'], "in line 2 that is not JSON"),
        ([{"p": 1}, {"q": 1}], "no 'p' in line 2"),
        ([{"p": 1}, {"p": None}], "has null in line 2, field 'p'"),
        ([{"p": [1, 2], "q": [1]}], "lists of different lengths in line 1"),
        ([{"p": [1, 2]}, {"p": 3}], "lists of different lengths in line 2"),
        (["\n\n"], "has no rows"),
        ([{"p": 1}, f'{{"p": {"9" * 400}}}\n'], "too large in line 2"),
    ],
)
def test_refusals(tmp_path, lines, words):
    path = written(tmp_path / "a.jsonl", *lines)
    with pytest.raises(PredictionFileError, match=words):
        column(open_arrays(path), "p")


def test_a_pickle_by_this_name_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\x80\x04abc")
    with pytest.raises(PredictionFileError, match="pickle"):
        open_arrays(path)


def test_an_object_with_a_number_for_each_class(tmp_path):
    lines = [
        {"scores": {"cat": 0.1 * i, "dog": 1 - 0.1 * i}, "label": ("dog", "cat")[i % 2]} for i in range(5)
    ]
    lines[3]["scores"] = dict(reversed(lines[3]["scores"].items()))  # the order in a line does not matter
    found = open_predictions(written(tmp_path / "a.jsonl", *lines))
    assert (found.examples, found.classes, found.class_names) == (5, 2, ("cat", "dog"))
    scores, labels = found.load()
    assert scores[:, 0].tolist() == [0.1 * i for i in range(5)]
    assert labels.tolist() == [1, 0, 1, 0, 1]
    assert "'scores' has the scores of 2 classes by their names" in found.source


def test_an_object_with_other_classes_is_refused_with_its_line(tmp_path):
    lines = [{"probs": {"cat": 0.5, "dog": 0.5}, "label": "cat"}] * (json_lines.LOOK + 1)
    path = written(tmp_path / "a.jsonl", *lines, {"probs": {"cat": 1.0, "cow": 0.0}, "label": "cat"})
    with pytest.raises(PredictionFileError, match=rf"has other classes in 'probs' of line {len(lines) + 1}"):
        open_arrays(path)


def test_objects_that_are_no_scores_are_left_alone(tmp_path):
    path = written(tmp_path / "a.jsonl", {"p": 0.5, "ok": True, "about": {"who": "x", "n": 1}})
    assert set(open_arrays(path)) == {"p", "ok", "about"}
