from __future__ import annotations

import sys

import numpy as np
import pytest

from softtargets.predictions import PredictionFileError, open_arrays, open_predictions

from .making import logits, probabilities, refusal, same

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("group", [3, 17, 100])
def test_a_column_for_each_class(tmp_path, group):
    scores, labels = logits(classes=3)
    columns = {"id": range(40), "label": labels} | {f"logit_{k}": scores[:, k] for k in range(3)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=group)
    found = same(tmp_path / "a.parquet", scores, labels)
    assert found.class_names == ("0", "1", "2")
    assert "not used: id" in found.source


@pytest.mark.parametrize("group", [3, 100])
@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_of_lists(tmp_path, group, kind, dtype):
    scores, labels = logits(dtype=dtype)
    number = pa.from_numpy_dtype(np.dtype(dtype))
    kinds = {"list": pa.list_(number), "large": pa.large_list(number), "fixed": pa.list_(number, 5)}
    lists = pa.array(scores.tolist(), type=kinds[kind])
    pq.write_table(pa.table({"logits": lists, "label": labels}), tmp_path / "a.parquet", row_group_size=group)
    same(tmp_path / "a.parquet", scores, labels)
    array = open_arrays(tmp_path / "a.parquet")["logits"]
    assert array.shape == (40, 5)
    assert np.array_equal(np.concatenate([b.numpy() for b in array.blocks(4, 11)]), scores[11:])


@pytest.mark.parametrize("coded", [False, True])
def test_labels_by_the_names_of_classes(tmp_path, coded):
    scores, labels = probabilities(classes=3)
    texts = pa.array([["cat", "dog", "cow"][label] for label in labels])
    columns = {name: scores[:, k] for k, name in enumerate(["cat", "dog", "cow"])}
    table = pa.table(columns | {"label": texts.dictionary_encode() if coded else texts})
    pq.write_table(table, tmp_path / "a.parquet")
    same(tmp_path / "a.parquet", scores, labels)
    wrong = pa.array(["cat"] * 39 + ["horse"])
    pq.write_table(pa.table(columns | {"label": wrong}), tmp_path / "b.parquet")
    refusal(tmp_path / "b.parquet", "'horse' in row 39", "cat, dog, cow")


def test_missing_values_are_refused(tmp_path):
    table = pa.table({"a": [1.0, 2.0, None], "b": [0.0, 1.0, 5.0], "label": [0, 1, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "no value in row 2 of 'a'")
    table = pa.table({"logits": [[1.0, 2.0], None], "label": [0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "no value in row 1 of 'logits'")
    table = pa.table({"logits": [[1.0, 2.0], [1.0, None]], "label": [0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "no value in row 1 of 'logits'")
    table = pa.table({"logits": [[1.0, 2.0], [1.0]], "label": [0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "1 numbers in row 1 of 'logits', but 2")


def test_cuts_are_refused(tmp_path):
    scores, labels = logits()
    pq.write_table(pa.table({"logits": scores.tolist(), "label": labels}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for length in range(0, len(whole), 23):
        (tmp_path / "b.parquet").write_bytes(whole[:length])
        with pytest.raises(PredictionFileError):
            open_predictions(tmp_path / "b.parquet").load()


def test_a_file_without_rows(tmp_path):
    pq.write_table(
        pa.table({"score": pa.array([], pa.float64()), "label": pa.array([], pa.int64())}),
        tmp_path / "a.parquet",
    )
    refusal(tmp_path / "a.parquet", "no examples")
    pq.write_table(
        pa.table({"logits": pa.array([], pa.list_(pa.float64())), "label": pa.array([], pa.int64())}),
        tmp_path / "a.parquet",
    )
    refusal(tmp_path / "a.parquet", "no examples")


def test_without_pyarrow_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1.0], "label": [0]}), tmp_path / "a.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(pa, "__version__", "14.0.0")
        refusal(tmp_path / "a.parquet", "executes code from files")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refusal(tmp_path / "a.parquet", "pip install pyarrow")


def test_metadata_without_end_is_not_read(tmp_path):
    scores, labels = logits(classes=2)
    table = pa.table({"a": scores[:, 0], "b": scores[:, 1], "label": labels})
    pq.write_table(table.replace_schema_metadata({"x": "y" * (1 << 24)}), tmp_path / "a.parquet")
    refusal(tmp_path / "a.parquet", "MiB of metadata", "larger row groups")
    pq.write_table(table.replace_schema_metadata({"x": "y" * (1 << 20)}), tmp_path / "b.parquet")
    same(tmp_path / "b.parquet", scores, labels)
