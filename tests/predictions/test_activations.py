from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from softtargets.predictions import PredictionFileError, open_activations


def example(n: int = 30, d: int = 6, k: int = 4):
    random = np.random.default_rng(0)
    activations = random.normal(size=(n, d)).astype(np.float32)
    return activations, random.integers(0, k, n), random.normal(size=(k, d)).astype(np.float32)


def agrees(found, activations, labels, weights, bias=None):
    for rows in (7, None):
        parts = list(found.chunks(rows))
        assert np.array_equal(torch.cat([part for part, _ in parts]), activations)
        assert torch.cat([part for _, part in parts]).tolist() == labels.tolist()
    assert np.array_equal(found.weights, weights)
    assert (found.bias is None) == (bias is None)
    assert bias is None or np.array_equal(found.bias, bias)
    assert (found.examples, found.width, found.classes) == (len(labels), activations.shape[1], len(weights))


@pytest.mark.parametrize("name", ["activations", "features", "penultimate", "test_features"])
@pytest.mark.parametrize(
    "weight", ["weights", "templates", "classifier.weight", "fc.weight", "model.head.weight"]
)
def test_all_in_one_file(tmp_path, name, weight):
    activations, labels, weights = example()
    np.savez(
        tmp_path / "a.npz",
        **{name: activations, "labels": labels, weight: weights, "logits": activations @ weights.T},
    )
    agrees(open_activations(tmp_path / "a.npz"), activations, labels, weights)


def test_a_run_and_the_weights_of_its_net(tmp_path):
    activations, labels, _ = example()
    net = nn.Sequential()
    net.add_module("body", nn.Linear(6, 6))
    net.add_module("head", nn.Linear(6, 4))
    tensors = {
        "logits": torch.zeros(30, 4),
        "labels": torch.tensor(labels),
        "activations": torch.tensor(activations),
    }
    save_file(tensors, tmp_path / "test.safetensors")
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    for name in ("weights.safetensors", "weights.pt"):
        found = open_activations(tmp_path / "test.safetensors", weights=tmp_path / name)
        agrees(found, activations, labels, net.head.weight.detach(), net.head.bias.detach())
        assert "weights 'head.weight'" in found.source


def test_files_of_their_own(tmp_path):
    activations, labels, weights = example()
    np.savez(tmp_path / "a.npz", features=activations)
    np.save(tmp_path / "y.npy", labels)
    np.savez(tmp_path / "w.npz", kernel=weights.T, bias=np.arange(4.0))
    found = open_activations(
        tmp_path / "a.npz", weights=tmp_path / "w.npz", labels=tmp_path / "y.npy", weights_name="kernel"
    )
    agrees(found, activations, labels, weights, np.arange(4.0))
    assert "transposed" in found.source


def test_what_is_missing_or_does_not_fit(tmp_path):
    activations, labels, weights = example()

    def refused(words: str, options=None, **arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(PredictionFileError, match=words):
            list(open_activations(tmp_path / "a.npz", **(options or {})).chunks())

    refused("no array .* that could be activations", logits=activations, labels=labels)
    refused(
        "several arrays that could be activations",
        features=activations,
        activations=activations,
        labels=labels,
    )
    refused("no array that could be the last layer of 6 inputs", features=activations, labels=labels)
    refused(
        "several arrays that could be the last layer",
        features=activations,
        y=labels,
        fc_weight=weights,
        w=weights,
        head_weight=weights,
    )
    refused("has no labels", features=activations, weights=weights)
    refused("do not match the labels", features=activations, labels=labels[:9], weights=weights)
    refused(
        "do not fit activations of 6",
        {"weights_name": "z"},
        features=activations,
        labels=labels,
        z=weights[:, :5],
    )
    refused("no array 'z'", {"activations_name": "z"}, features=activations, labels=labels, weights=weights)
    labels[3] = 4
    refused("label 4 in row 3, but 4 classes", features=activations, labels=labels, weights=weights)
    labels[3] = 0
    activations[5, 2] = np.nan
    refused(
        "nan in row 5, column 2; activations must be finite",
        features=activations,
        labels=labels,
        weights=weights,
    )
    weights[1, 1] = np.inf
    refused("'weights' that are not finite", features=activations, labels=labels, weights=weights)


def test_tables_have_no_activations_unless_in_lists(tmp_path):
    (tmp_path / "a.csv").write_text("label,activations\n0,1\n")
    with pytest.raises(PredictionFileError, match="activations cannot be read from"):
        open_activations(tmp_path / "a.csv")
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    activations, labels, weights = example()
    pq.write_table(pa.table({"features": activations.tolist(), "label": labels}), tmp_path / "a.parquet")
    np.savez(tmp_path / "w.npz", weights=weights)
    agrees(open_activations(tmp_path / "a.parquet", weights=tmp_path / "w.npz"), activations, labels, weights)


def test_padding_is_left_out_and_may_hold_anything(tmp_path):
    random = np.random.default_rng(1)
    activations = random.normal(size=(5, 4, 6)).astype(np.float32)
    labels = random.integers(0, 3, (5, 4))
    labels[:, 2:] = -100
    labels[3] = -100  # a sentence that is all padding
    activations[labels == -100] = np.nan
    weights = random.normal(size=(3, 6)).astype(np.float32)
    np.savez(tmp_path / "a.npz", hidden_states=activations, labels=labels, weights=weights)
    found = open_activations(tmp_path / "a.npz", ignore_index=-100)
    agrees(found, activations[labels != -100], labels[labels != -100], weights)
    with pytest.raises(PredictionFileError, match=r"label -100 .*ignore_index=-100"):
        list(open_activations(tmp_path / "a.npz").chunks())
    np.savez(tmp_path / "b.npz", hidden_states=activations, labels=np.full((5, 4), -1), weights=weights)
    with pytest.raises(PredictionFileError, match="no example left"):
        open_activations(tmp_path / "b.npz", ignore_index=-1)


def test_a_bad_token_is_named_by_its_sentence_and_position(tmp_path):
    activations, labels = np.zeros((2, 3, 6), dtype=np.float32), np.array([[0, 1, -1], [0, 1, 1]])
    activations[1, 2, 4] = np.inf
    np.savez(tmp_path / "a.npz", features=activations, labels=labels, weights=np.eye(3, 6))
    with pytest.raises(PredictionFileError, match=r"row 1.*position 2"):
        list(open_activations(tmp_path / "a.npz", ignore_index=-1).chunks())
