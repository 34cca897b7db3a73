from __future__ import annotations

import io
import time
import zipfile

import numpy as np
import pytest

from softtargets.predictions import PredictionFileError, open_arrays, open_predictions

from .making import bomb, logits, probabilities, refusal, same

SAVE = [np.savez, np.savez_compressed]


@pytest.mark.parametrize("save", SAVE)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_stored_and_compressed_arrays(tmp_path, save, order, dtype):
    scores, labels = logits(dtype=dtype)
    save(tmp_path / "a.npz", logits=np.asarray(scores, dtype=dtype, order=order), labels=labels)
    found = same(tmp_path / "a.npz", scores, labels)
    assert found.kind == "logits"


@pytest.mark.parametrize("save", SAVE)
def test_arrays_without_names(tmp_path, save):
    scores, labels = probabilities()
    save(tmp_path / "a.npz", labels, scores)
    assert same(tmp_path / "a.npz", scores, labels).kind == "probabilities"


def test_a_compressed_array_from_any_row_on(tmp_path):
    scores, _ = logits(rows=100)
    np.savez_compressed(tmp_path / "a.npz", x=scores.reshape(20, 5, 5))
    array = open_arrays(tmp_path / "a.npz")["x"]
    for start in (0, 1, 6, 19):
        assert np.array_equal(
            np.concatenate([b.numpy() for b in array.blocks(6, start)]), scores.reshape(20, 5, 5)[start:]
        )
    assert np.array_equal(np.concatenate([b.numpy() for b in array.merged().blocks(7)]), scores)


@pytest.mark.parametrize("save", SAVE)
def test_a_pickle_is_not_executed(tmp_path, save):
    harm, marker = bomb(tmp_path)
    save(tmp_path / "a.npz", logits=np.array([harm]), labels=np.arange(3))
    refusal(tmp_path / "a.npz", "'logits' has Python objects")
    assert not marker.exists()


def with_header(path, shape: tuple[int, ...], content: bytes, compression: int) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("logits.npy", file.getvalue() + content)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_header_that_claims_more_than_there_is(tmp_path, compression):
    with_header(tmp_path / "a.npz", (10**13, 10), b"\0" * 400, compression)
    refusal(tmp_path / "a.npz", "400000000000000 bytes", "there are 400")


def test_a_directory_that_claims_more_than_deflate_can_do(tmp_path):
    with_header(tmp_path / "a.npz", (10, 10), b"\0" * 400, zipfile.ZIP_DEFLATED)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    place = content.rindex(b"PK\x01\x02") + 24  # the size of the only member, in the directory
    content[place : place + 4] = (4_000_000_000).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(content)
    refusal(tmp_path / "a.npz", "claims 4000000000 bytes", "exhaust memory")


@pytest.mark.parametrize("save", SAVE)
def test_every_cut_is_refused(tmp_path, save):
    scores, labels = logits(rows=4)
    save(tmp_path / "a.npz", logits=scores, labels=labels)
    whole = (tmp_path / "a.npz").read_bytes()
    for length in range(0, len(whole), 3):
        (tmp_path / "b.npz").write_bytes(whole[:length])
        with pytest.raises(PredictionFileError):
            open_predictions(tmp_path / "b.npz").load()


def test_a_changed_byte_of_a_compressed_array_is_noticed(tmp_path):
    scores, labels = logits(rows=400)
    np.savez_compressed(tmp_path / "a.npz", logits=scores, labels=labels)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[4000] ^= 255
    (tmp_path / "a.npz").write_bytes(content)
    refusal(tmp_path / "a.npz", "damaged or cut off", kind="logits")


def test_an_archive_without_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    refusal(tmp_path / "a.npz", "no arrays")


def test_an_unusual_compression(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("logits.npy", b"x")
    refusal(tmp_path / "a.npz", "unusual compression")


def test_thousands_of_arrays_are_listed_in_linear_time(tmp_path):
    arrays = {f"layer{n}": np.zeros(2, np.float32) for n in range(2000)}
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", **arrays, logits=scores, labels=labels)
    started = time.perf_counter()
    same(tmp_path / "a.npz", scores, labels)
    # Opening the archive for each of them, and looking at all names for each of them, took a minute.
    assert time.perf_counter() - started < 8
