"""Estimates: from runs, from a table, or guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from softtargets.campaign.speeds import Speed, Speeds, read_table
from softtargets.exceptions import CampaignError
from softtargets.recipes import CIFAR10, MLP, MNIST, PreActResNet, Recipe, ResNet18

BASE = Recipe(data=MNIST(), model=MLP(), epochs=1)
TABLE = """
GPU:
  - {model: mlp, images_per_second: {1: 100, 16: 400}, setup_seconds: 30}
  - {model: {name: resnet18, width: 64}, images_per_second: {4: 20}, setup_seconds: 60}
  - {model: {name: preact_resnet}, images_per_second: {4: 20}, setup_seconds: 60}
  - {model: {name: preact_resnet, stages: [32, 64, 128]}, images_per_second: {4: 10}, setup_seconds: 90}
  - {model: {name: preact_resnet}, data: mnist, images_per_second: {4: 50}, setup_seconds: 60}
"""


class Told:
    """A finished run as speeds look at it."""

    def __init__(self, recipe, units, seconds, together=1, device="GPU", **more):
        self.recipe, self.units, self.status = recipe, units, "finished"
        self.provenance = {"seconds": seconds, "runs_together": together, "device_name": device, **more}


@pytest.fixture
def speeds(tmp_path):
    path = tmp_path / "speeds.yaml"
    path.write_text(TABLE)
    return Speeds("GPU", "cuda", read_table(path)["GPU"])


def test_between_two_widths_in_proportion_and_narrower_packs_are_slower():
    speed = Speed({4: 100.0, 16: 400.0}, setup=5.0, source="table")
    assert speed.per_second(8) == pytest.approx(200.0)
    assert speed.per_second(64) == speed.per_second(16) == 400.0
    assert 25.0 < speed.per_second(1) < 100.0
    assert speed.seconds([100.0] * 8, most_together=16) == pytest.approx(5 + 800 / 200)
    assert speed.seconds([100.0] * 8, most_together=4, ready=True) == pytest.approx(800 / 100)
    assert speed.seconds([], 4) == 0.0


def test_the_line_of_the_table_that_says_most_decides(speeds):
    net = BASE.replace({"data": CIFAR10(), "model": PreActResNet(depth=20)})
    assert speeds.of(BASE).points == {1: 100.0, 16: 400.0}
    assert speeds.of(net).points == {4: 20.0}
    assert speeds.of(net.replace({"model.stages": [32, 64, 128]})).points == {4: 10.0}
    assert speeds.of(net.replace({"data": MNIST()})).points == {4: 50.0}
    assert speeds.of(net).source == "table"


def test_what_nobody_has_measured_is_guessed(speeds):
    assert speeds.of(BASE.replace({"model": ResNet18(width=19)})).source == "guessed"
    assert Speeds("x86_64", "cpu").of(BASE).source == "guessed"


def test_runs_teach_by_their_kind_their_width_and_without_their_set_up(speeds):
    wide = [Told(BASE.replace({"seed": seed}), 6000, 20.0, 8, setup_seconds=10.0) for seed in range(8)]
    speeds.learn([*wide, Told(BASE, 1000, 10.0), Told(BASE, 99, 99.0, device="another")])
    found = speeds.of(BASE.replace({"seed": 9, "epochs": 50}))
    assert (found.points, found.source) == ({8: 600.0, 1: 100.0}, "measured")
    assert found.setup == 80.0, "each of eight runs has its share of it"
    assert speeds.of(BASE.replace({"batch": 64})).source == "table"


def test_runs_that_are_almost_alike_teach_too(speeds):
    speeds.learn([Told(BASE, 1000, 10.0)])
    assert speeds.of(BASE.replace({"clip": 1.0})).source == "measured", (
        "another kind, the same network and batch"
    )
    assert speeds.of(BASE).setup == 30.0, "runs that do not say it leave that of the table"


def test_runs_that_say_nothing_teach_nothing(speeds):
    speeds.learn([Told(BASE, 0, 0.0), Told(BASE, 10, 0.0)])
    assert speeds.of(BASE).source == "table"


@pytest.mark.parametrize(
    "row",
    [
        "{model: mlp}",
        "{model: mlp, images_per_second: {1: 0}, setup_seconds: 3}",
        "mlp",
        "{model: mlp, speed: 3}",
    ],
)
def test_a_table_that_says_no_speed_is_refused(tmp_path, row):
    path = tmp_path / "speeds.yaml"
    path.write_text(f"GPU: [{row}]")
    with pytest.raises(CampaignError, match="says no speed"):
        read_table(path)


def test_no_table_is_an_empty_one_and_ours_can_be_read(tmp_path):
    assert read_table(tmp_path / "speeds.yaml") == {}
    ours = read_table(Path(__file__).parents[2] / "results" / "speeds.yaml")
    assert len(ours["NVIDIA H200"]) >= 7
