from __future__ import annotations

import numpy as np
import pytest

from softtargets.data import cifar_n, load_human_labels
from softtargets.exceptions import DataError
from softtargets.noise import observed_transitions

from .test_cifar_n import pinned, sets, write_pt  # noqa: F401

# Shares of right labels, counted in the released files when they were pinned.
RELEASED = {
    ("cifar10", "aggregate"): 0.910,
    ("cifar10", "random1"): 0.828,
    ("cifar10", "random2"): 0.819,
    ("cifar10", "random3"): 0.824,
    ("cifar10", "worse"): 0.598,
    ("cifar100", "noisy"): 0.598,
}


@pytest.mark.usefixtures("pinned")
def test_human_labels_come_with_the_clean_ones(tmp_path):
    write_pt(tmp_path / "cifar-n" / "CIFAR-10_human.pt", sets())
    found = load_human_labels("cifar10", "worse", tmp_path)
    assert found.clean.tolist() == sets()["clean_label"].tolist()
    assert found.noisy.tolist() == sets()["worse_label"].tolist()
    assert found.classes == 10
    assert found.clean_rate == np.mean(sets()["clean_label"] == sets()["worse_label"])


def test_every_set_of_the_published_files_has_a_name():
    from softtargets.data.reading import HUMAN_LABELS

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
