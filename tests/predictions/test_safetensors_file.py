from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from softtargets.predictions import PredictionFileError, open_arrays, open_predictions

from .making import logits, refusal, same


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_a_run_directory_holds(tmp_path, dtype):
    scores, labels = logits()
    scores = torch.tensor(scores).to(dtype)
    tensors = {"logits": scores, "labels": torch.tensor(labels), "activations": torch.randn(40, 7)}
    save_file(tensors, tmp_path / "test.safetensors")
    found = same(tmp_path / "test.safetensors", scores.double(), labels)
    assert next(found.chunks())[0].dtype == dtype


def test_arrays_are_those_of_the_library(tmp_path):
    kinds = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.bfloat16]
    tensors = {str(kind): torch.arange(24).reshape(2, 3, 4).to(kind) for kind in kinds}
    save_file(tensors, tmp_path / "a.safetensors", metadata={"made": "by hand"})
    found = open_arrays(tmp_path / "a.safetensors")
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert found[name].shape == (2, 3, 4)
        assert torch.equal(found[name].load(), tensor)
        assert found[name].load().dtype == tensor.dtype


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [4, 4]},
        {"shape": [10**15, 3]},
        {"shape": [-4, -3]},
        {"shape": "ab"},
        {"data_offsets": [0, 480]},
        {"data_offsets": [-48, 0]},
        {"data_offsets": [48, 96]},
        {"data_offsets": None},
        {"dtype": "F64"},
    ],
)
def test_a_header_that_is_not_true(tmp_path, change):
    entry = {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]} | change
    text = json.dumps({"logits": entry}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 48)
    refusal(tmp_path / "a.safetensors", "is damaged", "'logits'")


@pytest.mark.parametrize("text", [b"{", b"{" + b'"a":[' * 100_000, b"{\xff}"])
def test_a_header_that_is_no_json(tmp_path, text):
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    refusal(tmp_path / "a.safetensors", "its header is not JSON")


def test_every_cut_is_refused(tmp_path):
    scores, labels = logits(rows=4)
    save_file({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, tmp_path / "a.safetensors")
    whole = (tmp_path / "a.safetensors").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "b.safetensors").write_bytes(whole[:length])
        with pytest.raises(PredictionFileError):
            open_predictions(tmp_path / "b.safetensors")


def test_types_that_are_not_read_are_listed(tmp_path):
    tensors = {
        "logits": torch.zeros(4, 3).to(torch.float8_e4m3fn),
        "labels": torch.zeros(4, dtype=torch.int64),
    }
    save_file(tensors, tmp_path / "a.safetensors")
    refusal(tmp_path / "a.safetensors", "'logits' (4, 3) other")


def test_scores_that_are_whole_numbers(tmp_path):
    scores = np.arange(12).reshape(4, 3) * 7
    save_file({"scores": torch.tensor(scores), "y": torch.tensor([0, 1, 2, 2])}, tmp_path / "a.safetensors")
    same(tmp_path / "a.safetensors", scores, [0, 1, 2, 2])


def test_a_header_of_more_than_16_mib_is_read(tmp_path):
    scores, labels = logits()
    tensors = {"logits": torch.tensor(scores), "labels": torch.tensor(labels)}
    save_file(tensors, tmp_path / "a.safetensors", {"note": "x" * (17 << 20)})
    same(tmp_path / "a.safetensors", scores, labels)
