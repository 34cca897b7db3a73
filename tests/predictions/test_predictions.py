from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from softtargets.predictions import PredictionFileError, open_predictions

from .making import logits, refusal, same


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(2, 5),
    st.integers(1, 50),
    st.booleans(),
    st.sampled_from("CF"),
)
def test_tokens_become_rows(tmp_path_factory, n, t, k, rows, compressed, order):
    path = tmp_path_factory.mktemp("a") / "a.npz"
    scores, labels = logits(n * t, k)
    labels[::3] = -100
    shaped = np.asarray(scores.reshape(n, t, k), order=order)
    (np.savez_compressed if compressed else np.savez)(
        path, logits=shaped, labels=np.asarray(labels.reshape(n, t), order=order)
    )
    kept = labels != -100
    if kept.any():
        same(path, scores[kept], labels[kept], rows=rows, ignore_index=-100)
    else:
        refusal(path, "no example left", ignore_index=-100)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_token_is_named_by_row_and_position(tmp_path, save):
    scores, labels = logits(24, 3)
    scores[13, 1] = np.nan
    save(tmp_path / "a.npz", logits=scores.reshape(4, 6, 3), labels=labels.reshape(4, 6))
    refusal(tmp_path / "a.npz", "nan in row 2, position 1, class 1")
    scores, labels = logits(24, 3)
    labels[23] = 3
    np.savez(tmp_path / "a.npz", logits=scores.reshape(4, 6, 3), labels=labels.reshape(4, 6))
    refusal(tmp_path / "a.npz", "label 3 in row 3, position 5")


def test_chunks_have_the_rows_asked_for(tmp_path):
    scores, labels = logits(100)
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    found = open_predictions(tmp_path / "a.npz")
    assert [len(part) for part, _ in found.chunks(33)] == [33, 33, 33, 1]
    assert [len(part) for part, _ in found.chunks()] == [100]
    with pytest.raises(ValueError, match="rows must be at least 1, not 0"):
        next(found.chunks(0))
    first, second = found.chunks(60), found.chunks(60)  # two passes at a time do not disturb each other
    assert torch.equal(next(first)[0], next(second)[0])
    assert torch.equal(next(first)[0], next(second)[0])


def test_what_is_too_large_is_not_loaded(tmp_path):
    scores, labels = logits(100)
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    found = open_predictions(tmp_path / "a.npz")
    assert torch.equal(found.load(100 * 48)[0], torch.tensor(scores))
    with pytest.raises(PredictionFileError, match=r"too many to load at once; go through them with chunks"):
        found.load(100 * 48 - 1)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,)])
def test_no_examples(tmp_path, shape):
    np.savez(tmp_path / "a.npz", logits=np.zeros(shape), labels=np.zeros(shape[0], int))
    refusal(tmp_path / "a.npz", "no examples")


def test_one_example(tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.array([[1.0, 2.0]]), labels=np.array([1]))
    assert "1 row looked at" in same(tmp_path / "a.npz", [[1.0, 2.0]], [1]).reason


def test_more_classes_than_anyone_has(tmp_path):
    with open(tmp_path / "a.safetensors", "wb") as file:
        text = (
            b'{"logits":{"dtype":"F32","shape":[1,500000000],"data_offsets":[0,2000000000]},'
            b'"labels":{"dtype":"I64","shape":[1],"data_offsets":[2000000000,2000000008]}}'
        )
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 2_000_000_008)
    refusal(tmp_path / "a.safetensors", "500000000 classes", "at most 1000000")


def test_a_file_that_changes_while_it_is_read(tmp_path):
    scores, labels = logits(3000)
    save_file({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, tmp_path / "a.safetensors")
    found = open_predictions(tmp_path / "a.safetensors")
    with open(tmp_path / "a.safetensors", "r+b") as file:
        file.truncate(20000)
    with pytest.raises(PredictionFileError, match="ends within the array"):
        list(found.chunks())
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(PredictionFileError, match="does not exist"):
        list(found.chunks())


def test_it_says_what_it_is(tmp_path):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    found = repr(open_predictions(tmp_path / "a.npz"))
    assert found.startswith(
        "Predictions(40 examples, 5 classes, logits, scores 'logits' (40, 5) float32 of a.npz"
    )


@pytest.mark.parametrize("ending", [".npz", ".csv", ".safetensors"])
@pytest.mark.parametrize("how", ["replaced", "written to"])
def test_another_file_of_the_same_name_is_noticed(tmp_path, ending, how):
    def save(path, seed):
        scores, labels = logits(seed=seed)
        if ending == ".csv":
            lines = [
                ",".join([*(f"{n:9.5f}" for n in row), str(k)]) for row, k in zip(scores, labels, strict=True)
            ]
            path.write_text("\n".join(["a,b,c,d,e,label", *lines, ""]))
        elif ending == ".npz":
            with open(path, "wb") as file:
                np.savez(file, logits=scores, labels=labels)
        else:
            save_file({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, path)

    path, other = tmp_path / f"a{ending}", tmp_path / "other"
    save(path, 0)
    found = open_predictions(path)
    assert len(list(found.chunks(16))) == 3
    save(other, 1)
    assert other.stat().st_size == path.stat().st_size  # so the content alone differs
    half = found.chunks(16)
    next(half)
    if how == "replaced":
        other.replace(path)
    else:
        path.write_bytes(other.read_bytes())
    for chunks in (half, found.chunks()):
        with pytest.raises(PredictionFileError, match="was changed or replaced while it was being read"):
            list(chunks)


def test_labels_that_change_are_noticed_too(tmp_path):
    scores, labels = logits()
    np.save(tmp_path / "a.npy", scores)
    np.save(tmp_path / "labels.npy", labels)
    found = open_predictions(tmp_path / "a.npy", labels=tmp_path / "labels.npy")
    np.save(tmp_path / "labels.npy", labels[::-1].copy())
    with pytest.raises(PredictionFileError, match=r"labels\.npy was changed"):
        list(found.chunks())
