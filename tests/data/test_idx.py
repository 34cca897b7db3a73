from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softtargets.data.idx import check_idx, read_idx
from softtargets.exceptions import DataError

from .making import CODES, idx_bytes


@settings(max_examples=60, deadline=None)
@given(
    array=st.sampled_from(sorted(CODES)).flatmap(
        lambda code: hnp.arrays(
            np.dtype(code), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
        )
    ),
    zipped=st.booleans(),
)
def test_what_is_written_is_read(array, zipped):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("x.gz" if zipped else "x")
        path.write_bytes(gzip.compress(idx_bytes(array)) if zipped else idx_bytes(array))
        check_idx(path)
        read = read_idx(path)
    assert read.dtype == array.dtype
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, array)


@settings(max_examples=40, deadline=None)
@given(keep=st.integers(0, 39))
def test_every_truncation_is_refused(keep):
    whole = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    assert len(whole) == 40
    with tempfile.TemporaryDirectory() as folder:
        for path, data in (
            (Path(folder) / "x", whole[:keep]),
            (Path(folder) / "x.gz", gzip.compress(whole[:keep])),
        ):
            path.write_bytes(data)
            for read in (read_idx, check_idx):
                with pytest.raises(DataError, match=r"truncated|not an IDX"):
                    read(path)


@pytest.mark.parametrize("read", [read_idx, check_idx])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x01\x00\x08\x01" + bytes(4), "not an IDX file: it begins with 01 00 08 01"),
        (b"\x00\x00\x07\x01" + bytes(4), "not an IDX"),
        (b"\x00\x00\x08\x00", "not an IDX"),
        (idx_bytes(np.zeros(3, np.uint8)) + b"\x00", "bytes after the 3 values"),
        # A header that promises 16 exabytes must cost nothing, one of a gigabyte no more than what is there.
        (b"\x00\x00\x0e\x02" + b"\xff" * 8 + b"abc", "bytes in 2 dimensions; it is damaged"),
        (b"\x00\x00\x08\x01\x20\x00\x00\x00" + b"abc", "truncated"),
        (b"\x00\x00\x08\xc8" + b"\x00\x00\x00\x01" * 200 + b"a", "1 bytes in 200 dimensions"),
    ],
)
def test_damage_is_named(tmp_path, read, data, message):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "x")


def test_damaged_gzip_is_named(tmp_path):
    whole = gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8)))
    for data in (whole[:-20], whole[:-6] + b"\x00" * 6, b"not gzip at all"):
        (tmp_path / "x.gz").write_bytes(data)
        with pytest.raises(DataError, match=r"x\.gz is not a complete gzip file"):
            read_idx(tmp_path / "x.gz")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="nothing does not exist"):
        read_idx(tmp_path / "nothing")
