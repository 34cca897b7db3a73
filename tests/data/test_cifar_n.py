from __future__ import annotations

import hashlib
import os
import pickle
import zipfile

import numpy as np
import pytest

from softtargets.data import cifar, cifar_n, load, load_human_labels
from softtargets.data.cifar_n import read_human_labels
from softtargets.data.reading import HUMAN_LABELS
from softtargets.exceptions import DataError
from softtargets.noise import observed_transitions

KEYS = list(cifar_n.PINNED["cifar10n"])
# Shares of right labels, counted in the released files when they were pinned.
RELEASED = {
    ("cifar10", "aggregate"): 0.910,
    ("cifar10", "random1"): 0.828,
    ("cifar10", "random2"): 0.819,
    ("cifar10", "random3"): 0.824,
    ("cifar10", "worse"): 0.598,
    ("cifar100", "noisy"): 0.598,
}


def sets() -> dict[str, np.ndarray]:
    return {key: (np.arange(50) + i) % 10 for i, key in enumerate(KEYS)}


@pytest.fixture
def pinned(monkeypatch):
    pins = {
        key: hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest() for key, labels in sets().items()
    }
    monkeypatch.setitem(cifar_n.PINNED, "cifar10n", pins)


def write_pt(path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, 2))
        archive.writestr("archive/version", "3\n")


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32])
def test_pt_and_npz_give_the_same_labels(tmp_path, pinned, dtype):
    stored = {key: labels.astype(dtype) for key, labels in sets().items()}
    write_pt(tmp_path / "x.pt", stored)
    np.savez(tmp_path / "x.npz", **stored)
    for file in ("x.pt", "x.npz"):
        read = read_human_labels(tmp_path / file, "cifar10n")
        assert read.keys() == stored.keys()
        for key, labels in sets().items():
            np.testing.assert_array_equal(read[key], labels)
            assert read[key].dtype == np.int64


def test_one_changed_label_is_noticed(tmp_path, pinned):
    stored = sets()
    stored["worse_label"][17] = (stored["worse_label"][17] + 1) % 10
    write_pt(tmp_path / "x.pt", stored)
    with pytest.raises(DataError, match=r"'worse_label' in .* are not the published ones"):
        read_human_labels(tmp_path / "x.pt", "cifar10n")


@pytest.mark.parametrize("value", [256, -1])
def test_labels_that_would_wrap_round_are_noticed(tmp_path, pinned, value):
    stored = sets()
    stored["clean_label"] = stored["clean_label"] + (256 if value > 0 else -256)  # equal as uint8
    write_pt(tmp_path / "x.pt", stored)
    with pytest.raises(DataError, match="outside 0 to 255"):
        read_human_labels(tmp_path / "x.pt", "cifar10n")


def test_a_missing_set_is_named(tmp_path, pinned):
    stored = sets()
    del stored["random_label2"]
    write_pt(tmp_path / "x.pt", stored)
    with pytest.raises(DataError, match="no list of labels 'random_label2'"):
        read_human_labels(tmp_path / "x.pt", "cifar10n")


def test_a_malicious_pt_is_refused_unexecuted(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'executed'}",)

    write_pt(tmp_path / "x.pt", Evil())
    with pytest.raises(DataError, match=r"asks for '.*system'"):
        read_human_labels(tmp_path / "x.pt", "cifar10n")
    assert not (tmp_path / "executed").exists()


def test_an_npz_with_pickled_objects_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", clean_label=np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"not a readable \.npz"):
        read_human_labels(tmp_path / "x.npz", "cifar10n")


def test_a_file_that_is_no_zip_is_refused(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"not a readable \.pt or \.npz"):
        read_human_labels(tmp_path / "x.pt", "cifar10n")


@pytest.fixture
def small_cifar(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, "CIFAR10_BATCH", 10)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    labels = sets()["clean_label"].astype(np.uint8).reshape(5, 10, 1)
    for i in range(5):
        table = np.hstack([labels[i], np.zeros((10, cifar.PIXELS), np.uint8)])
        (folder / f"data_batch_{i + 1}.bin").write_bytes(table.tobytes())
    (folder / "test_batch.bin").write_bytes((folder / "data_batch_1.bin").read_bytes())
    return tmp_path


def test_load_puts_human_labels_on_the_train_split_only(small_cifar, pinned):
    write_pt(small_cifar / "cifar-n" / "CIFAR-10_human.pt", sets())
    for option, key in [("worse", "worse_label"), ("aggregate", "aggre_label"), ("random3", "random_label3")]:
        loaded = load("cifar10", "train", small_cifar, labels=option)
        assert loaded.labels.tolist() == sets()[key].tolist()
        test = load("cifar10", "test", small_cifar, labels=option)
        assert test.labels.tolist() == sets()["clean_label"][:10].tolist()


def test_labels_for_other_images_are_refused(small_cifar, pinned):
    write_pt(small_cifar / "cifar-n" / "CIFAR-10_human.pt", sets())
    path = small_cifar / "cifar-10-batches-bin" / "data_batch_2.bin"
    path.write_bytes(b"\x09" + path.read_bytes()[1:])
    with pytest.raises(DataError, match="cannot be matched to the images"):
        load("cifar10", "train", small_cifar, labels="worse")


def test_missing_labels_are_named_with_the_command(small_cifar):
    with pytest.raises(
        DataError, match=r"CIFAR-10N is missing 'CIFAR-10_human.pt'.*data fetch cifar10n --to"
    ):
        load("cifar10", "train", small_cifar, labels="worse")
    with pytest.raises(DataError, match=r"no labels 'wrose' \(did you mean 'worse'\?\)"):
        load("cifar10", "train", small_cifar, labels="wrose")


@pytest.mark.realdata
def test_real_agreement_rates(real):
    root = real("cifar-n/cifar10n.npz", "cifar-n/cifar100n.npz")
    ten = read_human_labels(root / "cifar-n/cifar10n.npz", "cifar10n")
    rates = [round(float((ten[key] == ten["clean_label"]).mean()), 3) for key in KEYS[1:]]
    assert rates == [0.910, 0.598, 0.828, 0.819, 0.824]
    hundred = read_human_labels(root / "cifar-n/cifar100n.npz", "cifar100n")
    assert round(float((hundred["noisy_label"] == hundred["clean_label"]).mean()), 3) == 0.598


@pytest.mark.realdata
def test_real_labels_belong_to_the_real_images(real):
    root = real("cifar-n/cifar10n.npz", "cifar-n/cifar100n.npz", "cifar-10-batches-bin", "cifar-100-binary")
    worse = load("cifar10", "train", root, labels="worse")
    assert round(float((worse.labels == load("cifar10", "train", root).labels).mean()), 3) == 0.598
    coarse = load("cifar100", "train", root, labels="noisy", coarse=True)
    clean = load("cifar100", "train", root, coarse=True)
    assert 0.7 < (coarse.labels == clean.labels).mean() < 0.8


@pytest.mark.usefixtures("pinned")
def test_human_labels_come_with_the_clean_ones(tmp_path):
    write_pt(tmp_path / "cifar-n" / "CIFAR-10_human.pt", sets())
    found = load_human_labels("cifar10", "worse", tmp_path)
    assert found.clean.tolist() == sets()["clean_label"].tolist()
    assert found.noisy.tolist() == sets()["worse_label"].tolist()
    assert found.classes == 10
    assert found.clean_rate == np.mean(sets()["clean_label"] == sets()["worse_label"])


def test_every_set_of_the_published_files_has_a_name():
    for name, keys in HUMAN_LABELS.items():
        arrays = [array for pair in keys.values() for array in pair]
        assert set(arrays) == set(cifar_n.PINNED[f"{name}n"])


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("mnist", "worse", "there are no human labels of 'mnist'; there are of cifar10, cifar100"),
        (
            "cifar10",
            "wrose",
            r"no human labels 'wrose' \(did you mean 'worse'\?\); there are aggregate, worse",
        ),
        ("cifar10", "clean", "cifar10 has no human labels 'clean'"),
        ("cifar100", "noisy", r"CIFAR-100N is missing 'CIFAR-100_human.pt'.*data fetch cifar100n --to"),
    ],
)
def test_what_there_is_not_is_named(tmp_path, name, labels, message):
    with pytest.raises(DataError, match=message):
        load_human_labels(name, labels, tmp_path)


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "labels"), RELEASED)
def test_real_clean_rates_are_those_of_the_released_labels(real, name, labels):
    root = real("cifar-n/cifar10n.npz", "cifar-n/cifar100n.npz")
    found = load_human_labels(name, labels, root)
    assert len(found.clean) == len(found.noisy) == 50_000
    assert round(found.clean_rate, 3) == RELEASED[name, labels]
    matrix = observed_transitions(found.clean, found.noisy, found.classes)
    # Every class has as many images, so the clean rate is the mean of the diagonal.
    assert matrix.diagonal().mean() == pytest.approx(found.clean_rate, abs=1e-9)
    assert (matrix.argmax(1) == np.arange(found.classes)).mean() > 0.9


@pytest.mark.realdata
def test_real_coarse_labels_are_wrong_less_often(real):
    root = real("cifar-n/cifar100n.npz")
    coarse, fine = (load_human_labels("cifar100", kind, root) for kind in ("noisy-coarse", "noisy"))
    assert (coarse.classes, fine.classes) == (20, 100)
    assert fine.clean_rate < coarse.clean_rate < 1
