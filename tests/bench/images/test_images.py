"""The bench of image files: both sides bring batches of the same files, and the command writes what it measured."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.images import __main__ as command
from benchmarks.images.contestants import Photographs, Setting, ours, theirs
from benchmarks.images.difference import difference
from benchmarks.images.files import make_folder, photograph
from benchmarks.images.measure import Measured, our_training, plain_training


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SOFTTARGETS_DECODERS", "SOFTTARGETS_DECODE_IN"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "streamed")


@pytest.fixture
def setting(tmp_path):
    return Setting(make_folder(tmp_path / "photographs", 24), 48, 32, 8, 2, torch.device("cpu"))


def test_photographs_weigh_what_photographs_weigh(tmp_path):
    photograph(0).save(tmp_path / "one.jpg", quality=90)
    assert 60_000 < (tmp_path / "one.jpg").stat().st_size < 160_000
    pixels = np.asarray(Image.open(tmp_path / "one.jpg"), np.float64)
    assert pixels.shape == (375, 500, 3)
    assert 20 < pixels.std() < 90


def test_both_sides_bring_whole_batches_of_the_same_files(setting):
    mine = list(ours(setting, "threads", 2))
    other = list(theirs(setting, 2))
    for side in (mine, other):
        assert [tuple(images.shape) for images, _ in side] == [(8, 3, 32, 32)] * 6
        assert abs(float(torch.cat([images for images, _ in side]).mean())) < 1
    labels = [sorted(torch.cat([each for _, each in side[:3]]).tolist()) for side in (mine, other)]
    assert labels[0] == labels[1]


def test_their_crops_by_hand_are_crops(setting):
    torch.manual_seed(0)
    image, label = Photographs(setting)[0]
    assert image.shape == (3, 32, 32)
    assert image.dtype == torch.float32
    assert 0 <= label < 10


def test_more_pixels_are_nearer_to_the_file():
    """Up to all of them, which give torchvision's crops: but for Pillow, which may resize down before across."""
    whole, near, far = (difference(size, pictures=2, crops=3).distance for size in (512, 384, 128))
    assert whole < 0.3 < near < far


def test_trainings_are_measured(setting):
    for measured in (
        plain_training(theirs(setting, 3), setting, 10),
        our_training(setting, "threads", 1),
    ):
        assert measured.images_per_second > 0
        assert 0 <= measured.waited <= 1


def test_the_command_writes_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "difference", lambda size: difference(64, pictures=1, crops=1))
    asked = "--images 24 --size 48 --crop 32 --batch 8 --epochs 1 --turns 1 --workers 1 --device cpu"
    command.main([*asked.split(), "--out", str(tmp_path / "out")])
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["about"]["command"].startswith("python -m benchmarks.images --images 24")
    assert set(results["measured"]) == {
        f"input: {way}"
        for way in ("ours, threads", "ours, processes", "ours, processes, drafts of 144", "torchvision")
    }
    host = results["host_milliseconds"]
    sizes = {f"ours, in {size} x {size}" for size in (48, 256)}
    assert set(host) == {*sizes, "ours, drafts in 144 x 144", "ours, crops", "torchvision"}
    assert min(host.values()) > 0
    assert "images/s" in capsys.readouterr().out


def test_with_training_input_and_training_of_both_sides_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "difference", lambda size: difference(64, pictures=1, crops=1))
    asked = "--images 48 --size 48 --crop 32 --batch 8 --epochs 1 --turns 1 --workers 2 --device cpu --train"
    command.main([*asked.split(), "--out", str(tmp_path / "out")])
    ways = ("ours, threads", "ours, processes", "torchvision")
    results = json.loads((tmp_path / "out" / "results.json").read_text())["measured"]
    assert set(results) == {f"{what}: {way}" for what in ("input", "training") for way in ways}
    assert all(0 <= results[f"training: {way}"]["waited"] <= 1 for way in ways)
    assert capsys.readouterr().out.count("the device waited for") == len(ways)


def test_what_was_measured_before_the_time_was_over_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "difference", lambda size: difference(64, pictures=1, crops=1))
    clock = [0.0]
    monkeypatch.setattr(command, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def minutes(batches, device):
        clock[0] += 120
        return Measured(7.0)

    monkeypatch.setattr(command, "input_alone", minutes)
    asked = "--images 24 --size 48 --crop 32 --batch 8 --epochs 1 --workers 1 --device cpu --within 100"
    command.main([*asked.split(), "--out", str(tmp_path / "out")])
    measured = json.loads((tmp_path / "out" / "results.json").read_text())["measured"]
    assert measured == {"input: ours, processes": {"images_per_second": 7.0, "waited": None}}
    assert "input: torchvision is left out: 100 s are over" in capsys.readouterr().out
