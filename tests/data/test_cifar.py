from __future__ import annotations

import pickle

import numpy as np
import pytest

from softtargets.data import cifar, load
from softtargets.exceptions import DataError

from .making import python2_array, python2_batch, python2_string

N = 5


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(cifar, "CIFAR10_BATCH", N)
    monkeypatch.setattr(cifar, "CIFAR100_RECORDS", {"train": N, "test": N})


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (N, cifar.PIXELS), dtype=np.uint8)


def labels_opcodes(labels) -> bytes:
    return b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"


def names_opcodes(names) -> bytes:
    return b"](" + b"".join(python2_string(name.encode()) for name in names) + b"e"


@pytest.fixture
def binary10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        labels = np.full((N, 1), i, np.uint8)
        (folder / f"{name}.bin").write_bytes(np.hstack([labels, pixels(i)]).tobytes())
    return tmp_path


@pytest.fixture
def python10(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        batch = python2_batch(data=python2_array(pixels(i)), labels=labels_opcodes([i] * N))
        (folder / name).write_bytes(batch)
    (folder / "batches.meta").write_bytes(python2_batch(label_names=names_opcodes("abcdefghij")))
    return tmp_path


@pytest.mark.parametrize("layout", ["binary10", "python10"])
def test_both_layouts_of_cifar10_give_the_same_examples(request, layout):
    root = request.getfixturevalue(layout)
    train, test = load("cifar10", "train", root), load("cifar10", "test", root)
    assert train.labels.tolist() == [i for i in range(5) for _ in range(N)]
    np.testing.assert_array_equal(
        train.images.reshape(5 * N, -1), np.concatenate([pixels(i) for i in range(5)])
    )
    np.testing.assert_array_equal(test.images[:, 1, 0, 0], pixels(5)[:, 1024])  # green follows red
    assert test.labels.tolist() == [5] * N
    assert train.classes == (cifar.CIFAR10_CLASSES if layout == "binary10" else tuple("abcdefghij"))


def test_the_binary_layout_is_preferred(binary10, python10):
    assert load("cifar10", "train", binary10).classes == cifar.CIFAR10_CLASSES


def test_class_names_come_from_the_meta_file(binary10):
    (binary10 / "cifar-10-batches-bin" / "batches.meta.txt").write_text("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n")
    assert load("cifar10", "test", binary10).classes == tuple("abcdefghij")
    (binary10 / "cifar-10-batches-bin" / "batches.meta.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match="names 2 classes, expected 10"):
        load("cifar10", "test", binary10)


@pytest.mark.parametrize("change", [-1, -3073, 1, 3073])
def test_a_binary_file_of_another_length_is_refused(binary10, change):
    path = binary10 / "cifar-10-batches-bin" / "data_batch_3.bin"
    data = path.read_bytes()
    path.write_bytes(data[:change] if change < 0 else data + bytes(change))
    with pytest.raises(
        DataError, match=rf"data_batch_3.bin has {N * 3073 + change} bytes, expected {N * 3073}"
    ):
        load("cifar10", "train", binary10)


def test_a_missing_batch_is_named_with_the_command_that_brings_it(binary10):
    (binary10 / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(DataError) as caught:
        load("cifar10", "train", binary10)
    assert str(caught.value) == (
        f"CIFAR-10 is missing 'data_batch_4.bin' in {binary10}/cifar-10-batches-bin; "
        f"get it with: softtargets data fetch cifar10 --to {binary10}"
    )


def test_a_label_out_of_range_is_refused(binary10):
    path = binary10 / "cifar-10-batches-bin" / "test_batch.bin"
    path.write_bytes(b"\x0b" + path.read_bytes()[1:])
    with pytest.raises(DataError, match="to 11, but there are 10 classes"):
        load("cifar10", "test", binary10)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"data": np.zeros((N, 7), np.uint8), "labels": [0] * N}, "no array 'data'"),
        ({"data": np.zeros((N, 3072), np.float32), "labels": [0] * N}, "no array 'data'"),
        ({"labels": [0] * N}, "no array 'data'"),
        ({"data": np.zeros((N, 3072), np.uint8), "labels": [0]}, "no list 'labels'"),
        ({"data": np.zeros((N, 3072), np.uint8), "labels": ["a"] * N}, "not whole numbers"),
        ({"data": np.zeros((N, 3072), np.uint8), "labels": [10**30] * N}, "not whole numbers from 0 to 255"),
        ({"data": np.zeros((3, 3072), np.uint8), "labels": [0] * 3}, "has 3 images, expected 5"),
        ([1, 2], "holds a list, expected a dictionary"),
    ],
)
def test_a_pickle_that_is_no_batch_is_refused(python10, batch, message):
    (python10 / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(batch, 2))
    with pytest.raises(DataError, match=message):
        load("cifar10", "test", python10)


@pytest.mark.parametrize("layout", ["binary", "python"])
def test_cifar100_has_fine_and_coarse_labels(tmp_path, layout):
    fine, coarse = [99, 0, 50, 3, 3], [19, 0, 7, 1, 1]
    if layout == "binary":
        folder = tmp_path / "cifar-100-binary"
        folder.mkdir()
        table = np.hstack([np.array([coarse, fine], np.uint8).T, pixels(9)])
        (folder / "test.bin").write_bytes(table.tobytes())
    else:
        folder = tmp_path / "cifar-100-python"
        folder.mkdir()
        batch = python2_batch(
            data=python2_array(pixels(9)),
            fine_labels=labels_opcodes(fine),
            coarse_labels=labels_opcodes(coarse),
        )
        (folder / "test").write_bytes(batch)
        meta = python2_batch(
            fine_label_names=names_opcodes(cifar.CIFAR100_FINE),
            coarse_label_names=names_opcodes(cifar.CIFAR100_COARSE),
        )
        (folder / "meta").write_bytes(meta)
    examples = load("cifar100", "test", tmp_path)
    assert (examples.labels.tolist(), examples.classes) == (fine, cifar.CIFAR100_FINE)
    grouped = load("cifar100", "test", tmp_path, coarse=True)
    assert (grouped.labels.tolist(), grouped.classes) == (coarse, cifar.CIFAR100_COARSE)
    np.testing.assert_array_equal(grouped.images.reshape(N, -1), pixels(9))


@pytest.mark.realdata
def test_real_cifar10(real):
    root = real("cifar-10-batches-bin/data_batch_1.bin", "cifar-10-batches-bin/test_batch.bin")
    cifar.CIFAR10_BATCH = 10_000  # undone by the fixture
    train, test = load("cifar10", "train", root), load("cifar10", "test", root)
    assert np.bincount(train.labels).tolist() == [5000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10
    assert train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    means = train.images.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(means, [0.49140, 0.48216, 0.44653], atol=5e-6)


@pytest.mark.realdata
def test_real_cifar100(real):
    root = real("cifar-100-binary/train.bin", "cifar-100-binary/test.bin")
    cifar.CIFAR100_RECORDS = {"train": 50_000, "test": 10_000}
    train, test = load("cifar100", "train", root), load("cifar100", "test", root)
    assert np.bincount(train.labels).tolist() == [500] * 100
    assert np.bincount(test.labels).tolist() == [100] * 100
    assert np.bincount(load("cifar100", "train", root, coarse=True).labels).tolist() == [2500] * 20
    assert train.classes == cifar.CIFAR100_FINE
    means = train.images.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(means, [0.50708, 0.48655, 0.44092], atol=5e-6)


@pytest.mark.realdata
def test_the_real_meta_pickle_is_read(real):
    path = real("cifar-100-python/meta") / "cifar-100-python" / "meta"
    assert cifar.read_names(path, "fine_label_names") == cifar.CIFAR100_FINE
    assert cifar.read_names(path, "coarse_label_names") == cifar.CIFAR100_COARSE
