from __future__ import annotations

import csv
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.predictions import open_arrays, open_predictions, text

from .making import logits, probabilities, refusal, same


def write(path, header, rows, delimiter=",", **options):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, **options)
        writer.writerows([header] if header else [])
        writer.writerows(rows)


def table(scores, labels):
    return [[label, *map(float, row)] for row, label in zip(scores, labels, strict=True)]


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t")]
)
def test_a_column_for_each_class(tmp_path, name, delimiter):
    scores, labels = logits(classes=3)
    write(tmp_path / name, ["label", "cat", "dog", "cow"], table(scores, labels), delimiter)
    found = same(tmp_path / name, scores, labels)
    assert found.class_names == ("cat", "dog", "cow")
    assert found.kind == "logits"


def test_labels_by_the_names_of_classes(tmp_path):
    scores, labels = probabilities(classes=3)
    names = ["cat", "dog", "cow"]
    rows = [
        [f"image {n}.png", *map(float, row), names[k]]
        for n, (row, k) in enumerate(zip(scores, labels, strict=True))
    ]
    write(tmp_path / "a.csv", ["file", *(f"prob_{name}" for name in names), "target"], rows)
    found = same(tmp_path / "a.csv", scores, labels)
    assert found.class_names == tuple(names)
    assert "not used: file" in found.source
    assert "by the names of classes" in found.source
    rows[17][-1] = "horse"
    write(tmp_path / "b.csv", ["file", *(f"prob_{name}" for name in names), "target"], rows)
    refusal(tmp_path / "b.csv", "'horse' in line 19, column 'target'", "cat, dog, cow")


def test_names_that_are_sorted_as_texts(tmp_path):
    scores, labels = logits(classes=12)
    order = sorted(range(12), key=str)
    write(tmp_path / "a.csv", ["y", *(f"logit_{k}" for k in order)], table(scores[:, order], labels))
    assert same(tmp_path / "a.csv", scores, labels).class_names == tuple(map(str, range(12)))


def test_classes_that_count_from_one(tmp_path):
    scores, labels = logits(classes=4)
    write(tmp_path / "a.csv", ["label", "1", "2", "3", "4"], table(scores, labels + 1))
    assert "names of columns" in same(tmp_path / "a.csv", scores, labels).source
    write(tmp_path / "b.csv", ["label", "1", "2", "3", "4"], table(scores, labels))
    refusal(tmp_path / "b.csv", "label 0", "columns are named 1, 2, 3, 4")


def test_columns_that_are_no_classes(tmp_path):
    scores, labels = logits(classes=3)
    rows = [[n, 0.5, *row] for n, row in enumerate(table(scores, labels))]
    write(tmp_path / "a.csv", ["", "image_id", "label", "cat", "dog", "cow"], rows)
    found = same(tmp_path / "a.csv", scores, labels)
    assert "not used: , image_id" in found.source


def test_a_group_of_columns_leaves_others_out(tmp_path):
    scores, labels = probabilities(classes=3)
    rows = [[*row, 3.0, int(np.argmax(row[1:]))] for row in table(scores, labels)]
    write(tmp_path / "a.csv", ["label", "p_a", "p_b", "p_c", "age", "prediction"], rows)
    assert "not used: age, prediction" in same(tmp_path / "a.csv", scores, labels).source


def test_logits_are_taken_where_there_are_both(tmp_path):
    scores, labels = logits(classes=2)
    others, _ = probabilities(classes=2)
    rows = [[*row, *map(float, other)] for row, other in zip(table(scores, labels), others, strict=True)]
    write(tmp_path / "a.csv", ["label", "logit_a", "logit_b", "prob_a", "prob_b"], rows)
    same(tmp_path / "a.csv", scores, labels)
    same(tmp_path / "a.csv", others, labels, kind="probabilities")
    same(tmp_path / "a.csv", others, labels, scores_name="prob_")
    same(tmp_path / "a.csv", others[:, ::-1], labels, scores_name=["prob_b", "prob_a"])
    refusal(tmp_path / "a.csv", "no column 'prob_x'", "did you mean", scores_name="prob_x")


@pytest.mark.parametrize("positive", ["1", "True", "true"])
def test_one_score_is_the_probability_of_class_one(tmp_path, positive):
    values = [0.9, 0.2, 0.5]
    negative = {"1": "0", "True": "False", "true": "false"}[positive]
    rows = [[7, p, y] for p, y in zip(values, [positive, negative, positive], strict=True)]
    write(tmp_path / "a.csv", ["id", "score", "label"], rows)
    found = open_predictions(tmp_path / "a.csv")
    scores, labels = found.load()
    assert np.allclose(scores, [[1 - p, p] for p in values])
    assert labels.tolist() == [1, 0, 1]
    assert "probability of class 1" in found.reason
    assert (found.kind, found.classes, found.class_names) == ("probabilities", 2, None)


def test_a_predicted_class_beside_the_score_is_no_class(tmp_path):
    write(tmp_path / "a.csv", ["prob", "pred", "label"], [[0.9, 1, 1], [0.4, 0, 1]])
    assert open_predictions(tmp_path / "a.csv").load()[0][:, 1].tolist() == [0.9, 0.4]


def test_without_a_header(tmp_path):
    scores, labels = logits(classes=3)
    write(tmp_path / "a.csv", None, table(scores, labels))
    refusal(tmp_path / "a.csv", "no column of labels", "without a header", "labels_name")
    found = same(tmp_path / "a.csv", scores, labels, labels_name="0")
    assert found.class_names is None
    write(tmp_path / "s.csv", None, [row[1:] for row in table(scores, labels)])
    write(tmp_path / "y.csv", None, [[label] for label in labels])
    same(tmp_path / "s.csv", scores, labels, labels=tmp_path / "y.csv")
    write(tmp_path / "n.csv", [0, 1, 2], [row[1:] for row in table(scores, labels)])  # as pandas writes it
    same(tmp_path / "n.csv", scores, labels, labels=tmp_path / "y.csv")


def test_labels_from_another_table(tmp_path):
    scores, labels = logits(classes=3)
    write(tmp_path / "s.csv", list("abc"), [row[1:] for row in table(scores, labels)])
    write(tmp_path / "y.csv", ["file", "label"], [["x.png", "abc"[label]] for label in labels])
    same(tmp_path / "s.csv", scores, labels, labels=tmp_path / "y.csv")
    np.save(tmp_path / "y.npy", labels)
    same(tmp_path / "s.csv", scores, labels, labels=tmp_path / "y.npy")


@pytest.mark.parametrize("block", [40, 97, 1 << 22])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_blank_lines_quotes_and_marks(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr(text, "BLOCK", block)
    scores, labels = logits(rows=30, classes=2)
    lines = ["\ufefflabel,note,a,b", ""]
    for number, (row, label) in enumerate(zip(scores, labels, strict=True)):
        note = f'"line one{end}, ""and"" {number}"' if number % 3 == 0 else f"plain {number}"
        lines.append(f"{label},{note},{float(row[0])!r},{float(row[1])!r}")
        lines += [""] * (number % 4 == 0)
    (tmp_path / "a.csv").write_bytes(end.join(lines).encode())  # no break at the end
    found = same(tmp_path / "a.csv", scores, labels)
    assert "note" in found.source
    # Row 20 with a number that is none: its line counts breaks in quotes and blank lines.
    (place,) = [n for n, line in enumerate(lines) if "plain 20" in line]
    expected = end.join(lines).encode()[: end.join(lines).encode().index(b"plain 20")].count(b"\n") + 1
    lines[place] = lines[place].rsplit(",", 1)[0] + ",nan"
    (tmp_path / "b.csv").write_bytes(end.join(lines).encode())
    refusal(tmp_path / "b.csv", f"nan in line {expected}, class 1")
    lines[place] = lines[place].rsplit(",", 1)[0] + ",abc"
    (tmp_path / "b.csv").write_bytes(end.join(lines).encode())
    refusal(tmp_path / "b.csv", f"'abc' in line {expected}, column 'b'")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=30),
    st.integers(30, 200),
    st.integers(1, 20),
    st.data(),
)
def test_numbers_are_read_as_python_reads_them(tmp_path_factory, rows, block, chunk, data):
    path = tmp_path_factory.mktemp("a") / "a.csv"
    write(path, ["a", "b", "c"], [[repr(x) for x in row] for row in rows])
    before, text.BLOCK = text.BLOCK, block
    try:
        table = open_arrays(path).table
        start = data.draw(st.integers(0, len(rows) - 1))
        found = np.concatenate([part.numpy() for part in table.blocks(["a", "b", "c"], chunk, start, {})])
    finally:
        text.BLOCK = before
    assert table.rows == len(rows)
    assert found.tolist() == rows[start:]


@pytest.mark.parametrize(("digits", "classes"), [(2, 10), (3, 4), (4, 100)])
def test_rounded_probabilities_are_rescaled(tmp_path, digits, classes):
    scores, labels = probabilities(rows=200, classes=classes, dtype="float64")
    rounded = scores.round(digits)
    assert abs(rounded.sum(1) - 1).max() > 1e-4
    write(tmp_path / "a.csv", ["label", *range(classes)], table(rounded, labels))
    found = open_predictions(tmp_path / "a.csv")
    got, _ = found.load()
    assert f"rounded to {digits} digits" in found.reason
    assert np.allclose(got, rounded / rounded.sum(1, keepdims=True), atol=2e-6)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("label,a,b\n0,1,2\n1,3\n", ["2 cells in line 3, but 3 columns"]),
        ("label,a,b\n0,1,2\n1,3,4,5\n", ["4 cells in line 3"]),
        ("label,a,b\n0,1,2\n1,3,\n", ["'' in line 3, column 'b'"]),
        ("label;a;b\n0;1,5;2\n1;3;4\n", ["'1,5' in line 2, column 'a'", "a point for decimals"]),
        (
            "label;a;b\n0;1,5;2,5\n1;3,5;4,5\n",
            ["no columns of numbers", "'a' has '1,5'", "decimals with a point"],
        ),
        ("label;a;b\n0;x,y;z\n", ["no columns of numbers", "scores_name"]),
        ("label,a,b\n0,1,x\n1,2,y\n", ["one column of numbers", "scores_name"]),
        ("label,a,b\n", ["no rows after its header"]),
        ("label,a,a\n0,1,2\n", ["two columns named 'a'"]),
        ("a,b,c\n0,1,2\n", ["no column of labels under a usual name", "'a', 'b', 'c'", "labels_name"]),
        ("label,target,c\n0,1,2\n", ["several columns that could be labels"]),
        ("label,a,b\n0.5,1,2\n", ["label 0.5 in line 2", "whole numbers"]),
        ("label,a,b\n0,1,2\n2,1,2\n", ["label 2 in line 3", "are counted from 1"]),
        ("label,a,b\n0,1,2\nnan,1,2\n", ["label nan in line 3"]),
        ("label,a,b\n0,1,1e999\n", ["inf in line 2, class 1"]),
        ('label,a,b\n0,1,"2\n1,2,3\n', ["a quote in or after line 2 that is never closed"]),
        ("label,name\n0,x\n1,y\n", ["no columns of numbers"]),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    refusal(tmp_path / "a.csv", *words)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("label,a,b\n0,1,2\n".encode("utf-16"), "zero bytes"),
        (b"label,caf\xe9,b\n0,1,2\n", "byte 0xe9"),
        (b"label,a,b\r0,1,2\r", "carriage returns"),
        (b"\n\n\n", "no"),
    ],
)
def test_what_is_no_text_in_utf8(tmp_path, content, word):
    (tmp_path / "a.csv").write_bytes(content)
    refusal(tmp_path / "a.csv", word)


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 1000)
    monkeypatch.setattr(text, "BLOCK", 100)
    (tmp_path / "a.csv").write_text("label,a,b\n0,1,2\n" + "1" * 3000)
    refusal(tmp_path / "a.csv", "a line of more than")
    (tmp_path / "a.csv").write_text('label,a,b\n0,1,"2\n' + "1,2,3\n" * 3000)
    refusal(tmp_path / "a.csv", "a quote that is never closed")


def seconds(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def test_twenty_thousand_columns_are_read_in_linear_time(tmp_path):
    classes = 20_000
    scores = np.random.default_rng(0).normal(size=(2, classes)).round(2)
    names = [f"logit_{k + 3}" for k in range(classes)]
    write(tmp_path / "a.csv", [*names, "label"], [[*row, 3 + k] for k, row in enumerate(scores.tolist())])
    # Five times through all names for each of them took 20 s.
    assert seconds(lambda: same(tmp_path / "a.csv", scores, [0, 1])) < 8


def test_the_last_of_many_columns_has_a_name_twice(tmp_path):
    write(tmp_path / "a.csv", [*(f"c{k}" for k in range(60_000)), "c7"], [[0] * 60_001])
    assert seconds(lambda: refusal(tmp_path / "a.csv", "two columns named 'c7'")) < 5


@pytest.mark.parametrize("line", ["a,b,label\n1,2,0\n", ""])
def test_a_quote_that_is_never_closed_is_found_in_linear_time(tmp_path, line):
    (tmp_path / "a.csv").write_text(line + '"' + "1,2,0\n" * 1_500_000)
    assert seconds(lambda: refusal(tmp_path / "a.csv", "never closed")) < 5


@pytest.mark.parametrize(
    "text_", ["", "\n", "a", '"', 'a\n"b\nc"\nd', '"a\n\n"', 'a\n"b\nc', '"\n"\n"\n"\n"']
)
def test_where_lines_are_cut(text_):
    content = text_.encode()
    ends = [n for n in range(1, len(content) + 1) if content[n - 1 : n] == b"\n"]
    assert text._cut(content) == max((n for n in ends if content[:n].count(b'"') % 2 == 0), default=0)


@given(st.text('ab"\n', max_size=60))
def test_where_any_lines_are_cut(text_):
    test_where_lines_are_cut(text_)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_longer_than_python_reads_is_refused(tmp_path, quote):
    rows = f"{quote}{'x' * 140_000}{quote},1,2,0\n"
    (tmp_path / "a.csv").write_text("text,a,b,label\n" + rows)
    refusal(tmp_path / "a.csv", "field larger than field limit", "leave out columns of long texts")


def test_many_digits_are_looked_at_in_linear_time(tmp_path):
    (tmp_path / "a.csv").write_text(f"a,b,label\n{'1' * 60_000}x,2,0\n" + "1.5,2,0\n" * 3)
    assert seconds(lambda: refusal(tmp_path / "a.csv", "'1111")) < 5


def test_columns_of_negative_classes(tmp_path):
    scores, _ = logits(rows=3, classes=3)
    rows = [[*map(float, row), label] for row, label in zip(scores, [-1, 0, 1], strict=True)]
    write(tmp_path / "a.csv", ["logit_-1", "logit_0", "logit_1", "label"], rows)
    assert same(tmp_path / "a.csv", scores, [0, 1, 2]).class_names == ("-1", "0", "1")


def test_a_name_of_thousands_of_digits_is_a_name(tmp_path):
    name = "9" * 5000
    write(tmp_path / "a.csv", [f"logit_{name}", "logit_1", "label"], [[0.5, 2.0, 1]])
    assert open_predictions(tmp_path / "a.csv").class_names == (name, "1")
