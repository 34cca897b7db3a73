"""Files with bytes changed at random: read or refused in one sentence, never anything else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from softtargets.predictions import PredictionFileError, open_predictions

from .making import logits


def write(path, scores, labels) -> None:
    """Predictions in the format of a file's ending."""
    if path.suffix == ".npz":
        save = np.savez_compressed if "compressed" in path.name else np.savez
        save(path, logits=scores, labels=labels)
    elif path.suffix == ".npy":
        records = np.zeros(len(labels), dtype=[("logits", "<f4", scores.shape[1:]), ("label", "<i2")])
        records["logits"], records["label"] = scores, labels
        np.save(path, records)
    elif path.suffix == ".safetensors":
        save_file({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, path)
    elif path.suffix == ".pt":
        torch.save({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, path)
    elif path.suffix == ".csv":
        rows = [
            f"{label},{','.join(map(str, row))}\n" for row, label in zip(scores.tolist(), labels, strict=True)
        ]
        path.write_text("label,a,b,c\n" + "".join(rows))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"logits": scores.tolist(), "label": labels}), path)


@pytest.mark.parametrize(
    "name", ["a.npz", "compressed.npz", "a.npy", "a.safetensors", "a.pt", "a.csv", "a.parquet"]
)
@pytest.mark.parametrize("most", [1, 30])
def test_changed_bytes(tmp_path, name, most):
    scores, labels = logits(rows=6, classes=3)
    write(tmp_path / name, scores, labels)
    whole = (tmp_path / name).read_bytes()
    random = np.random.default_rng(most)
    read = refused = 0
    for _ in range(150):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), random.integers(1, most + 1)):
            content[place] = random.integers(0, 256)
        (tmp_path / name).write_bytes(content)
        try:
            found, _ = open_predictions(tmp_path / name).load()
        except PredictionFileError:
            refused += 1
        else:
            assert torch.isfinite(found).all()
            read += 1
    assert refused > 0
    assert read > 0 or most > 1 or name == "a.npz"
