from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch

from inspection.advise.images import blobs
from softtargets.inspection.advise.cnn import cnn_out_of_fold, one_cycle, schedule, shrunk, survives_mirroring
from softtargets.inspection.advise.network import SmallResNet


def test_the_same_seed_gives_the_same_numbers_however_many_cores_there_are():
    images, labels = blobs(90)
    before = torch.get_num_threads()
    state = torch.random.get_rng_state()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(cnn_out_of_fold(images, labels, 3, folds=3, seed=4, device="cpu", epochs=3))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found[0], found[1])
    assert torch.equal(torch.random.get_rng_state(), state)
    other = cnn_out_of_fold(images, labels, 3, folds=3, seed=5, device="cpu", epochs=3)
    assert not np.array_equal(found[0], other)


def test_labels_of_chance_are_predicted_by_chance_although_networks_memorise_theirs():
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (96, 1, 8, 8), dtype=np.uint8), random.integers(0, 2, 96)
    found = cnn_out_of_fold(images, labels, 2, folds=2, device="cpu", epochs=40)
    assert 0.3 < (found.argmax(1) == labels).mean() < 0.7


def test_ctrl_c_stops_all_folds():
    images, labels = blobs(300)

    def interrupt(what, done, total):
        if done:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cnn_out_of_fold(images, labels, 3, folds=3, device="cpu", epochs=100_000, told=interrupt)
    assert time.monotonic() - began < 60
    assert not [one for one in threading.enumerate() if one.name.startswith("advise-fold")]


def test_what_fails_in_one_fold_is_raised_and_ends_the_others(monkeypatch):
    usual, failing = SmallResNet.forward, []

    def forward(self, images):
        if not failing:
            failing.append(threading.get_ident())
        elif failing[0] != threading.get_ident():
            raise ZeroDivisionError  # in all folds but the one that began first, which has very long to go
        return usual(self, images)

    monkeypatch.setattr(SmallResNet, "forward", forward)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    images, labels = blobs(60)
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        cnn_out_of_fold(images, labels, 3, folds=2, device="cpu", epochs=100_000)
    assert time.monotonic() - began < 60


def test_progress_names_fold_epoch_and_speed_and_ends_at_the_total():
    told = []
    images, labels = blobs(300)
    cnn_out_of_fold(images, labels, 3, folds=2, device="cpu", epochs=4, told=lambda *one: told.append(one))
    what, done, total = told[-1]
    assert what.startswith("training: fold ")
    assert "epoch" in what
    assert what.endswith(" images/s")
    assert 0 <= done <= total == 2 * 4 * (150 // 16) * 16


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 40), (1, 28, 28), (3, 32, 32), (4, 96, 64)])
def test_networks_take_images_of_any_size(shape):
    network = SmallResNet(shape[0], max(shape[1:]), 7, 4).eval()
    assert network(torch.zeros(2, *shape)).shape == (2, 7)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 40, 5)])
def test_odd_images_are_trained_on(shape):
    random = np.random.default_rng(0)
    labels = np.arange(24) % 2
    images = (random.integers(0, 100, (24, *shape)) + 120 * labels[:, None, None, None]).astype(np.uint8)
    found = cnn_out_of_fold(images, labels, 2, folds=2, device="cpu", epochs=2)
    assert found.sum(1) == pytest.approx(np.ones(24))


def test_large_images_are_averaged_over_squares():
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 65, 66), dtype=np.uint8)
    found = shrunk(images, 32)
    assert found.shape == (2, 3, 21, 22)
    for y, x in ((0, 0), (3, 7), (20, 21)):
        square = images[1, 2, 3 * y : 3 * y + 3, 3 * x : 3 * x + 3]
        assert abs(float(found[1, 2, y, x]) - square.mean()) <= 0.5
    thin = np.arange(3 * 100, dtype=np.uint8).reshape(1, 1, 3, 100)
    assert shrunk(thin, 32).shape == (1, 1, 1, 25)


def test_images_of_the_size_asked_for_keep_every_pixel():
    images = np.random.default_rng(0).integers(0, 256, (4, 1, 8, 8), dtype=np.uint8)
    assert np.array_equal(shrunk(images, 8), images)


def test_digits_are_not_mirrored_and_symmetric_shapes_are():
    from softtargets.data import load

    digits = load("digits", "train")
    assert not survives_mirroring(digits.images, digits.labels)
    images, labels = blobs(600)
    assert survives_mirroring(images, labels)
    random = np.random.default_rng(0)
    noisy = np.where(random.random(1297) < 0.3, random.integers(0, 10, 1297), digits.labels)
    assert not survives_mirroring(digits.images, noisy)


def test_the_rate_rises_once_and_falls_to_nearly_nothing():
    rates = [one_cycle(100)(update) for update in range(100)]
    top = int(np.argmax(rates))
    assert rates[top] == 1
    assert top == 24
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert 0 < rates[-1] < 0.02
    assert one_cycle(1)(0) == 1


@pytest.mark.parametrize("examples", [2, 30, 1000, 40_000, 10**6])
def test_schedules_fit_their_examples(examples):
    for device in ("cpu", "cuda"):
        plan = schedule(examples, torch.device(device))
        assert 1 <= plan.batch <= examples
        assert 10 <= plan.epochs <= 60
        assert schedule(examples, torch.device(device), epochs=3).epochs == 3


@pytest.mark.cuda
def test_a_gpu_gives_the_same_numbers_again():
    images, labels = blobs(300, channels=3)
    found = [cnn_out_of_fold(images, labels, 3, folds=2, device="cuda", epochs=4) for _ in range(2)]
    assert np.array_equal(found[0], found[1])
    assert (found[0].argmax(1) == labels).mean() > 0.95
