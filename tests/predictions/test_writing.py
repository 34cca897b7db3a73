from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.predictions import Written, open_predictions, refuse_replacing, write_predictions

ENDINGS = [".npz", ".safetensors", ".csv", ".tsv"]


def made(kind, n=300, k=4, double=False):
    random = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(n, k, generator=random, dtype=torch.float64 if double else torch.float32)
    scores = scores if kind == "logits" else scores.softmax(1)
    return scores, torch.randint(k, (n,), generator=random)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("names", [None, ("cat", 'a "dog", wet', "3", "ü")])
def test_what_is_written_is_what_is_read(tmp_path, ending, kind, double, names):
    scores, labels = made(kind, double=double)
    what = Written(kind, 300, 4, names, double=double, labelled=True)
    pieces = [(scores[some], labels[some]) for some in (slice(0, 7), slice(7, 300))]
    write_predictions(tmp_path / f"a{ending}", what, pieces)
    found = open_predictions(tmp_path / f"a{ending}")
    read, again = found.load()
    assert found.kind == kind
    assert torch.equal(again, labels)
    assert torch.allclose(read.double(), scores.double(), rtol=0, atol=1e-15 if double else 1e-7)
    if names and ending in (".csv", ".tsv"):
        assert found.class_names == names


@pytest.mark.parametrize("ending", ENDINGS)
def test_scores_without_labels_are_read_where_none_are_needed(tmp_path, ending):
    scores, _ = made("logits")
    path = tmp_path / f"a{ending}"
    write_predictions(path, Written("logits", 300, 4, None, double=False, labelled=False), [(scores, None)])
    found = open_predictions(path, labels_needed=False)
    assert not found.labelled
    assert torch.allclose(found.load()[0].float(), scores, atol=1e-6)
    with pytest.raises(SofttargetsError, match="label"):
        open_predictions(path)


def test_tokens_without_labels_are_rows(tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.random.default_rng(0).normal(size=(5, 7, 3)))
    found = open_predictions(tmp_path / "a.npz", labels_needed=False)
    assert found.examples == 35


def test_labels_that_are_there_are_used_where_none_are_needed(tmp_path):
    scores, labels = made("logits")
    np.savez(tmp_path / "a.npz", logits=scores.numpy(), labels=labels.numpy())
    found = open_predictions(tmp_path / "a.npz", labels_needed=False)
    assert found.labelled
    assert torch.equal(found.load()[1], labels)


def test_a_file_is_not_replaced_unless_asked_for_and_never_by_half(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"mine")
    scores, labels = made("logits")
    what = Written("logits", 300, 4, None, double=False, labelled=True)
    with pytest.raises(SofttargetsError, match=r"exists already; choose another name, or use --overwrite"):
        write_predictions(path, what, [(scores, labels)])

    def broken():
        yield scores[:10], labels[:10]
        raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        write_predictions(path, what, broken(), overwrite=True)
    assert path.read_bytes() == b"mine"
    assert [one.name for one in tmp_path.iterdir()] == ["a.npz"]
    write_predictions(path, what, [(scores, labels)], overwrite=True)
    assert open_predictions(path).examples == 300


def test_what_cannot_be_written_is_said(tmp_path):
    what = Written("logits", 0, 4, None, double=False, labelled=True)
    with pytest.raises(SofttargetsError, match=r"ends in '.pt'; predictions are written as one of .npz"):
        write_predictions(tmp_path / "a.pt", what, [])
    with pytest.raises(SofttargetsError, match="is a directory"):
        refuse_replacing(tmp_path, overwrite=True)
