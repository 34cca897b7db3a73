"""Estimates: from runs, from a table, or guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from softtargets.campaign.speeds import Speed, Speeds, read_table
from softtargets.campaign.token_work import token_work
from softtargets.exceptions import CampaignError
from softtargets.models import transformer
from softtargets.recipes import (
    CIFAR10,
    MLP,
    MNIST,
    Distillation,
    MobileNetV2,
    Multi30k,
    PreActResNet,
    Recipe,
    ResNet18,
    Shift,
    Transformer,
)

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


def test_the_line_of_the_table_that_says_most_decides(speeds):
    net = BASE.replace({"data": CIFAR10(), "model": PreActResNet(depth=20)})
    assert speeds.of(BASE).points == {1: 100.0, 16: 400.0}
    assert speeds.of(net).points == {4: 20.0}
    assert speeds.of(net.replace({"model.stages": [32, 64, 128]})).points == {4: 10.0}
    assert speeds.of(net.replace({"data": MNIST()})).points == {4: 50.0}
    assert speeds.of(net).source == "table"


TRANSLATION = """
GPU:
  - model: {name: transformer, width: 512, inner: 512, encoder_layers: 3, decoder_layers: 3}
    tokens_per_second: {1: 900, 8: 1000}
    setup_seconds: 15
  - model: {name: transformer, width: 512, inner: 1024, encoder_layers: 6, decoder_layers: 6}
    tokens_per_second: {1: 450}
    setup_seconds: 16
"""
SMALL = Transformer(width=512, inner=512, encoder_layers=3, decoder_layers=3)
LARGE = Transformer(width=512, inner=1024, encoder_layers=6, decoder_layers=6)


@pytest.fixture
def translating(tmp_path):
    path = tmp_path / "speeds.yaml"
    path.write_text(TRANSLATION)
    return Speeds("GPU", "cuda", read_table(path)["GPU"])


def multiplications(model, vocabulary):
    """Of the layers of a real net, matrix by matrix; embeddings are looked up, and norms are no matrices."""
    shape = {"share": "none", "heads": 8}
    net = transformer.Transformer(
        vocabulary=vocabulary,
        **{**{f: getattr(model, f) for f in ("width", "inner", "encoder_layers", "decoder_layers")}, **shape},
    )
    return sum(part.weight.numel() for part in net.modules() if isinstance(part, torch.nn.Linear))


@pytest.mark.parametrize(
    "model", [SMALL, LARGE, Transformer(width=64, inner=96, encoder_layers=2, decoder_layers=1)]
)
def test_the_work_of_a_token_is_that_of_the_matrices_it_goes_through(model):
    assert token_work(model, 1000) == multiplications(model, 1000)


def test_the_measured_sizes_took_as_much_longer_as_they_have_more_work():
    """On an H200: 958 and 454 thousand tokens a second."""
    assert token_work(LARGE) / token_work(SMALL) == pytest.approx(958 / 454, rel=0.02)


def test_a_translation_that_was_measured_goes_as_fast_as_it_did(translating):
    base = Recipe(data=Multi30k(), model=SMALL, epochs=3, batch=2048)
    found = translating.of(base)
    assert (found.points, found.setup, found.source) == ({1: 900.0, 8: 1000.0}, 15.0, "table")
    assert translating.of(base.replace({"model": LARGE})).points == {1: 450.0}
    # 29,000 pairs of 15.2 tokens, three times.
    assert base.units == pytest.approx(3 * 29_000 * 15.2)
    assert base.replace({"steps": 100}).units == round(2048 * 0.87) * 100
    more = translating.of(base.replace({"data.vocabulary": 32_000}))
    assert more.source == "table"
    assert more.points[1] == pytest.approx(900 * token_work(SMALL) / token_work(SMALL, 32_000))


def test_a_translation_of_another_size_is_guessed_by_its_work(translating):
    for model, nearest, rate in (
        (Transformer(width=256, inner=1024, encoder_layers=4, decoder_layers=4, heads=4), SMALL, 900),
        (Transformer(), LARGE, 450),
    ):
        found = translating.of(Recipe(data=Multi30k(), model=model, epochs=3, batch=2048))
        assert found.source == "guessed"
        assert found.points[1] == pytest.approx(rate * token_work(nearest) / token_work(model))


def test_a_teacher_that_is_asked_in_every_step_takes_its_forward_passes(speeds):
    """A third of what its own training takes, for each image; asked once, it takes nothing."""
    teacher = BASE.replace({"data": CIFAR10(), "model": PreActResNet(), "augmentation": (Shift(),)})
    student = teacher.replace({"model": MLP(), "regulariser": Distillation(teacher=teacher)})
    asking, alone = speeds.of(student), speeds.of(teacher.replace({"model": MLP()}))
    assert alone.points == {1: 100.0, 16: 400.0}
    assert set(asking.points) == {1, 4, 16}
    for width in (1, 4, 16):
        forward = 1 / 3 / speeds.of(teacher).per_second(width)
        assert 1 / asking.points[width] == pytest.approx(1 / alone.per_second(width) + forward)
    assert (asking.setup, asking.source) == (alone.setup, "table")
    assert speeds.of(student.replace({"regulariser.view": "stored"})).points == alone.points
    assert speeds.of(student.replace({"augmentation": ()})).points == alone.points
    guessed = teacher.replace({"model": MobileNetV2()})
    assert speeds.of(student.replace({"regulariser": Distillation(teacher=guessed)})).source == "guessed"


def test_runs_without_a_teacher_beside_them_say_nothing_of_those_with_one(speeds, translating):
    teacher = BASE.replace({"data": CIFAR10(), "model": PreActResNet(), "augmentation": (Shift(),)})
    student = teacher.replace({"model": MLP(), "regulariser": Distillation(teacher=teacher)})
    stored = student.replace({"regulariser.view": "stored"})
    before = speeds.of(student)
    speeds.learn([Told(stored, 1000, 2.0)])
    assert (speeds.of(stored).source, speeds.of(student)) == ("measured", before)
    words = Recipe(data=Multi30k(), model=LARGE, epochs=3, batch=2048)
    alone = words.replace({"model": SMALL})
    asking = alone.replace({"regulariser": Distillation(teacher=words)})
    translating.learn([Told(alone, 1000, 2.0), Told(asking, 1000, 5.0)])
    assert (translating.of(alone).points, translating.of(asking).points) == ({1: 500.0}, {1: 200.0})


def test_a_translation_model_always_asks_its_teacher_as_it_goes(translating):
    teacher = Recipe(data=Multi30k(), model=LARGE, epochs=3, batch=2048)
    student = teacher.replace({"model": SMALL, "regulariser": Distillation(teacher=teacher)})
    assert translating.of(student).points[1] == pytest.approx(1 / (1 / 900 + 1 / 3 / 450))


def test_where_no_translation_was_measured_its_work_is_guessed_with_the_device(speeds):
    """And not that it is as fast as a network for images."""
    base = Recipe(data=Multi30k(), model=SMALL, epochs=3, batch=2048)
    fast, slow = speeds.of(base), Speeds("x86_64", "cpu").of(base)
    assert fast.source == slow.source == "guessed"
    assert fast.points[1] == pytest.approx(958_000, rel=0.01)
    assert (
        slow.points[1]
        < 2000
        < Speeds("x86_64", "cpu")
        .of(base.replace({"model": Transformer(width=16, heads=2, inner=32)}))
        .points[1]
    )


@pytest.mark.parametrize(
    "row",
    [
        "{model: transformer, images_per_second: {1: 7}, setup_seconds: 3}",
        "{model: mlp, tokens_per_second: {1: 7}, setup_seconds: 3}",
        "{model: mlp, images_per_second: {1: 7}, tokens_per_second: {1: 7}, setup_seconds: 3}",
        "{model: {name: transformer, layers: 3}, tokens_per_second: {1: 7}, setup_seconds: 3}",
    ],
)
def test_tokens_are_of_models_that_translate(tmp_path, row):
    path = tmp_path / "speeds.yaml"
    path.write_text(f"GPU:\n  - {row}\n")
    with pytest.raises(CampaignError, match="does not give a speed"):
        read_table(path)


def test_the_table_of_the_papers_campaign_knows_translation():
    path = Path(__file__).parents[2] / "results" / "speeds.yaml"
    recipe = Recipe(data=Multi30k(), model=LARGE, epochs=1, batch=4096)
    models = ((row["model"], row) for row in yaml.safe_load(path.read_text())["NVIDIA H200"])
    of_its_size = [
        row for model, row in models if isinstance(model, dict) and model.get("encoder_layers") == 6
    ]
    found = Speeds("NVIDIA H200", "cuda", read_table(path)["NVIDIA H200"]).of(recipe)
    assert ([found.points], found.source) == ([row["tokens_per_second"] for row in of_its_size], "table")


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
    with pytest.raises(CampaignError, match="does not give a speed"):
        read_table(path)


def test_no_table_is_an_empty_one_and_ours_can_be_read(tmp_path):
    assert read_table(tmp_path / "speeds.yaml") == {}
    ours = read_table(Path(__file__).parents[2] / "results" / "speeds.yaml")
    assert len(ours["NVIDIA H200"]) >= 7
