"""A file of any size is read in the same memory: sparse files of half a GiB, which take no room on the disk."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process is read from /proc")

SIZE = 1 << 29
# Not resource.getrusage: its peak includes that of the process that started this one.
CODE = """
import re, sys, torch
from softtargets.predictions import open_predictions
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) >> 10
torch.zeros(10, 10).softmax(1).argmax(1)
before = peak()
found = open_predictions(sys.argv[1], kind="logits", **({"labels": sys.argv[2]} if len(sys.argv) > 2 else {}))
rows = sum(len(labels) for _, labels in found.chunks())
assert rows == found.examples
grown = peak() - before
if "pyarrow" in sys.modules:  # which takes much for itself; what it has allocated at most says more
    grown = sys.modules["pyarrow"].default_memory_pool().max_memory() >> 20
print(rows, grown)
"""


def read(*paths, most: int = 256) -> int:
    """How many rows a process of its own read, if that took fewer than `most` megabytes: half a file.

    It takes 60 to 170, with what is loaded late.
    """
    done = subprocess.run([sys.executable, "-c", CODE, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, grown = map(int, done.stdout.split())
    assert grown < most, f"{grown} MB"
    return rows


def sparse(path, beginning: bytes) -> None:
    with open(path, "wb") as file:
        file.write(beginning)
        file.truncate(len(beginning) + SIZE)


@pytest.fixture(autouse=True)
def _room(tmp_path):
    sparse(tmp_path / "probe", b"")
    if (tmp_path / "probe").stat().st_blocks > 1000:
        pytest.skip("no sparse files here")


@pytest.mark.parametrize("order", [False, True])
def test_a_numpy_file(tmp_path, order):
    rows = SIZE // 4000
    text = f"{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({rows}, 1000), }}".ljust(117) + "\n"
    with open(tmp_path / "a.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        file.truncate(10 + len(text) + rows * 4000)
    np.save(tmp_path / "y.npy", np.zeros(rows, np.uint8))
    assert read(tmp_path / "a.npy", tmp_path / "y.npy") == rows


def test_a_safetensors_file(tmp_path):
    rows = SIZE // 4008
    logits, labels = f"[0,{rows * 4000}]", f"[{rows * 4000},{rows * 4008}]"
    text = (
        f'{{"logits":{{"dtype":"F32","shape":[{rows},1000],"data_offsets":{logits}}},'
        f'"labels":{{"dtype":"I64","shape":[{rows}],"data_offsets":{labels}}}}}'
    ).encode()
    with open(tmp_path / "a.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + rows * 4008)
    assert read(tmp_path / "a.safetensors") == rows


def test_a_compressed_archive(tmp_path):
    """A quarter of a MB that becomes a quarter of a GB: a bomb for whoever unpacks it whole."""
    rows = SIZE // 4000
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 1000), }}".ljust(117) + "\n"
    path = tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("logits.npy", "w", force_zip64=True) as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        for first in range(0, rows, 1000):
            file.write(bytes(4000 * min(1000, rows - first)))
    np.save(tmp_path / "y.npy", np.zeros(rows, np.uint8))
    assert read(tmp_path / "a.npz", tmp_path / "y.npy") == rows


def test_a_text_file(tmp_path):
    lines = (b"0," + b",".join([b"-1.2345678"] * 20) + b"\n") * 10_000
    with open(tmp_path / "a.csv", "wb") as file:
        file.write(b"label," + b",".join(b"logit_%d" % k for k in range(20)) + b"\n")
        for _ in range(40):
            file.write(lines)
    assert (tmp_path / "a.csv").stat().st_size > 80 << 20
    assert read(tmp_path / "a.csv", most=150) == 400_000


def test_a_parquet_file_with_one_row_group(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = 200_000
    values = pa.array(np.zeros(rows * 100, np.float32))
    lists = pa.FixedSizeListArray.from_arrays(values, 100)
    table = pa.table({"logits": lists, "label": np.zeros(rows, np.int8)})
    pq.write_table(
        table, tmp_path / "a.parquet", row_group_size=rows, use_dictionary=False, compression="none"
    )
    assert read(tmp_path / "a.parquet", most=40) == rows


def test_a_torch_file(tmp_path):
    rows = 70_000
    tensors = {"logits": torch.zeros(rows, 1000), "labels": torch.zeros(rows, dtype=torch.uint8)}
    torch.save(tensors, tmp_path / "a.pt")
    assert read(tmp_path / "a.pt") == rows
