from __future__ import annotations

import gzip
import os
import shutil
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from softtargets.exceptions import SofttargetsError
from softtargets.predictions import PredictionFileError, open_arrays

from .making import logits, refusal


def test_a_file_that_is_not_there(tmp_path):
    refusal(tmp_path / "a.npz", "does not exist")
    refusal(tmp_path / "a.npz" / "b.npz", "does not exist")
    assert issubclass(PredictionFileError, SofttargetsError)


def test_a_directory(tmp_path):
    refusal(tmp_path, "is a directory", "give the file")
    (tmp_path / "predictions").mkdir()
    refusal(tmp_path, "looks like a run", "predictions")


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    refusal(tmp_path / "a.npz", "not a regular file")
    (tmp_path / "b.csv").symlink_to("/dev/zero")
    refusal(tmp_path / "b.csv", "not a regular file")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "a.npy").chmod(0)
    refusal(tmp_path / "a.npy", "permission denied")


def test_a_refusal_of_the_system_is_one_sentence(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(PredictionFileError, match="permission denied"):
        open_arrays(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "name", ["a.npz", "a.npy", "a.csv", "a.tsv", "a.parquet", "a.safetensors", "a.pt", "a.pth"]
)
def test_an_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    refusal(tmp_path / name, "is empty")


def kinds(directory):
    """A file of each kind, by its ending."""
    scores, labels = logits(rows=4)
    np.savez(directory / "a.npz", logits=scores, labels=labels)
    np.save(directory / "a.npy", scores)
    torch.save({"logits": torch.tensor(scores)}, directory / "a.pt")
    save_file({"logits": torch.tensor(scores)}, directory / "a.safetensors")
    (directory / "a.csv").write_text("label,a\n0,1\n")
    parquet = b"PAR1" + bytes(20) + b"PAR1"
    (directory / "a.parquet").write_bytes(parquet)
    return [".npz", ".npy", ".pt", ".safetensors", ".csv", ".parquet"]


def test_a_wrong_ending(tmp_path):
    endings = kinds(tmp_path)
    for right in endings:
        for wrong in endings:
            if right != wrong:
                path = tmp_path / f"b{wrong}"
                shutil.copy(tmp_path / f"a{right}", path)
                message = refusal(path)
                assert (
                    right == ".csv"
                    or f"rename it to end in {right}" in message
                    or (right == ".pt" and ".npz" in message)
                ), message


def test_an_unknown_ending(tmp_path):
    kinds(tmp_path)
    shutil.copy(tmp_path / "a.npy", tmp_path / "a.dat")
    refusal(tmp_path / "a.dat", "ends in '.dat'", "rename it to end in .npy")
    shutil.copy(tmp_path / "a.csv", tmp_path / "scores")
    refusal(tmp_path / "scores", "has no ending", ".npz, .npy, .csv")
    shutil.copy(tmp_path / "a.npz", tmp_path / "A.NPZ")
    assert set(open_arrays(tmp_path / "A.NPZ")) == {"logits", "labels"}


def test_what_must_be_unpacked_first(tmp_path):
    with gzip.open(tmp_path / "a.csv", "wb") as file:
        file.write(b"label,a\n0,1\n")
    refusal(tmp_path / "a.csv", "a gzip file", "unpack it first")


def test_a_name_with_line_breaks_stays_one_line(tmp_path):
    np.savez(tmp_path / "a.npz", **{"x\ny\x1b[31m": np.zeros(3)})
    message = refusal(tmp_path / "a.npz")
    assert message.isprintable()
    np.savez(tmp_path / "a.npz", **{"x" * 9000: np.zeros(3)})
    assert len(refusal(tmp_path / "a.npz")) < 1000
