from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

from softtargets.data import load
from softtargets.data.files import read_all
from softtargets.exceptions import DataError

from .making import idx_bytes


def write_idx(folder, stem, images, labels, *, zipped=True):
    folder.mkdir(parents=True, exist_ok=True)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        data = idx_bytes(np.asarray(array, np.uint8))
        path = folder / f"{stem}-{kind}-ubyte"
        if zipped:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(data))
        else:
            path.write_bytes(data)


IMAGES = np.arange(3 * 28 * 28, dtype=np.int64).reshape(3, 28, 28).astype(np.uint8)


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
@pytest.mark.parametrize("zipped", [True, False])
def test_mnist_and_fashion_are_read_plain_or_zipped(tmp_path, name, folder, zipped, monkeypatch):
    monkeypatch.setattr("softtargets.data.reading.MNIST_EXAMPLES", {"train": 3, "test": 1})
    write_idx(tmp_path / folder / "raw", "train", IMAGES, [0, 9, 4], zipped=zipped)
    write_idx(tmp_path / folder / "raw", "t10k", IMAGES[:1], [7], zipped=zipped)
    train, test = load(name, "train", tmp_path), load(name, "test", tmp_path)
    np.testing.assert_array_equal(train.images, IMAGES[:, None])
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 9, 4], [7])


def test_a_part_of_mnist_is_not_mnist(tmp_path):
    write_idx(tmp_path / "MNIST" / "raw", "train", IMAGES, [0, 9, 4])
    with pytest.raises(
        DataError, match=r"has 3 train images, but mnist has 60000; to use fewer images, set .*limit"
    ):
        load("mnist", "train", tmp_path)


def test_a_pipe_or_a_device_is_no_data(tmp_path):
    folder = tmp_path / "MNIST" / "raw"
    write_idx(folder, "train", IMAGES, [0, 9, 4], zipped=False)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    with pytest.raises(DataError, match="is a pipe or a device"):
        load("mnist", "train", tmp_path)


def test_what_comes_out_of_gzip_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.data.files.LARGEST", 1 << 16)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(1 << 17)))
    with pytest.raises(DataError, match="has more than 0 MiB"):
        read_all(tmp_path / "bomb.gz")


def test_the_whole_message_for_a_missing_file(tmp_path):
    with pytest.raises(DataError) as caught:
        load("mnist", "train", tmp_path / "my sets")
    folder = tmp_path / "my sets"
    assert str(caught.value) == (
        f"MNIST is missing 'train-images-idx3-ubyte.gz' in {folder}/MNIST/raw; "
        f"get it with: softtargets data fetch mnist --to '{folder}'"
    )


def test_the_environment_says_where(tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.data.reading.MNIST_EXAMPLES", {"train": 3, "test": 3})
    write_idx(tmp_path / "MNIST" / "raw", "t10k", IMAGES, [1, 2, 3])
    monkeypatch.setenv("SOFTTARGETS_DATA", str(tmp_path))
    assert load("mnist", "test").labels.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES, [1, 2], "has 3 images but .* has 2 labels"),
        (IMAGES[0], [1] * 28, "expected grey images"),
        (IMAGES, [[1], [2], [3]], "expected labels"),
        (IMAGES, [1, 2, 10], "to 10, but there are 10 classes"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, images, labels, message):
    write_idx(tmp_path / "MNIST" / "raw", "train", images, labels)
    with pytest.raises(DataError, match=message):
        load("mnist", "train", tmp_path)


def test_emnist_is_stood_upright_and_letters_count_from_zero(tmp_path):
    write_idx(tmp_path / "EMNIST" / "raw", "emnist-letters-train", IMAGES, [1, 26, 2])
    write_idx(tmp_path / "EMNIST" / "raw", "emnist-balanced-test", IMAGES, [0, 46, 10])
    letters = load("emnist", "train", tmp_path, part="letters")
    assert [letters.classes[label] for label in letters.labels] == ["a", "z", "b"]
    np.testing.assert_array_equal(letters.images[1, 0], IMAGES[1].T)
    balanced = load("emnist", "test", tmp_path)
    assert len(balanced.classes) == 47
    assert [balanced.classes[label] for label in balanced.labels] == ["0", "t", "A"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("mnsit", "train", {}), r"no dataset 'mnsit' \(did you mean 'mnist'\?\); known: digits, mnist"),
        (("mnist", "val", {}), "no split 'val'; its splits are train and test"),
        (("mnist", "train", {"part": "x"}), "mnist has no option 'part'; it takes none"),
        (("cifar100", "train", {"corse": True}), r"no option 'corse' \(did you mean 'coarse'\?\)"),
        (("emnist", "train", {"part": "leters"}), "did you mean 'letters'"),
        (("cifar100", "train", {"labels": "worse"}), "cifar100 has no labels 'worse'.*clean, noisy"),
        (("cifar10n", "train", {}), "load 'cifar10' with the option labels='worse'"),
        (("multi30k", "train", {}), "use load_pairs"),
    ],
)
def test_mistakes_are_explained(tmp_path, call, message):
    name, split, options = call
    with pytest.raises(DataError, match=message):
        load(name, split, tmp_path, **options)


def test_importing_the_room_loads_nothing_heavy():
    code = (
        "import sys, softtargets.data; "
        "print([m for m in ('torch', 'sklearn', 'PIL', 'http.client') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_functions_win_over_the_modules_of_the_same_name():
    code = (
        "from softtargets.data.verify import check_source; from softtargets.data.fetch import fetch_source; "
        "import softtargets.data as d; print(callable(d.fetch), callable(d.verify))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"


MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.realdata
def test_real_mnist(real):
    root = real("MNIST/raw/train-images-idx3-ubyte.gz", "MNIST/raw/t10k-images-idx3-ubyte.gz")
    train, test = load("mnist", "train", root), load("mnist", "test", root)
    assert np.bincount(train.labels).tolist() == MNIST_COUNTS
    assert np.bincount(test.labels).tolist() == MNIST_TEST_COUNTS
    assert train.images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert train.images.std() / 255 == pytest.approx(0.3081, abs=5e-5)


@pytest.mark.realdata
def test_real_fashion_mnist(real):
    root = real("FashionMNIST/raw/train-images-idx3-ubyte.gz", "FashionMNIST/raw/t10k-labels-idx1-ubyte.gz")
    train, test = load("fashion-mnist", "train", root), load("fashion-mnist", "test", root)
    assert np.bincount(train.labels).tolist() == [6000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10
    assert train.images.mean() / 255 == pytest.approx(0.2860, abs=5e-5)
    assert train.classes[train.labels[0]] == "Ankle boot"
