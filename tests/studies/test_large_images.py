"""The recipes for data larger than a device run from files to predictions, on a few files of the same layout.

What is changed is length, batch, precision and how wide or fine the network sees, so that a CPU does it in seconds.
Data, augmentation, loss and optimiser are the recipe's own.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from softtargets.recipes import ResizedCrop, ResNet
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study
from softtargets.studies.protocols import INCEPTION_V4_IMAGENET, held_out
from softtargets.studies.wagner.networks import CUB, TINY
from softtargets.training import train

from . import layouts

SHORT = {"epochs": 1, "batch": 5, "precision": "fp32"}


@pytest.fixture(autouse=True)
def streamed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "streamed")
    monkeypatch.setenv("SOFTTARGETS_DECODERS", "2")


def table_5():
    study = find_study(STUDIES, "labo-table-5")
    trials = study.trials(study.settings(seeds=1, changes={"size": "full"}))
    narrow = {"model.width": 4, "schedule.milestones": ()}
    return {trial.labels["method"]: trial.recipe.replace(SHORT | narrow) for trial in trials[:6]}


def check(runs, tmp_path):
    for run in runs:
        assert run.status == "finished"
        assert run.provenance["images"] == run.provenance["examples"]["train"]
        assert run.provenance["streamed"] == "decoded by 2 threads"
        said = run.predictions("test")
        assert said.logits.shape == (layouts.CLASSES * layouts.TEST, layouts.CLASSES)
        assert torch.isfinite(said.logits).all()


@pytest.mark.parametrize("method", ["hard", "ls", "tf-reg", "beta-ls", "kr-ls", "labo"])
def test_table_5_of_labo(tmp_path, method):
    recipe = table_5()[method]
    if method == "tf-reg":  # its divergence is a mean over classes: three here, and not a thousand
        recipe = recipe.replace({"regulariser.multiplier": float(layouts.CLASSES)})
    check(
        train([recipe], RunStore(tmp_path / "runs"), data_dir=layouts.imagenet(tmp_path), device="cpu"),
        tmp_path,
    )


def test_mullers_inception_v4(tmp_path):
    recipe = held_out(INCEPTION_V4_IMAGENET, 50_000).replace(SHORT | {"data.validation": 5})
    small = tuple(
        ResizedCrop(size=75) if isinstance(part, ResizedCrop) else part for part in recipe.augmentation
    )
    recipe = recipe.replace({"augmentation": small})
    check(
        train([recipe], RunStore(tmp_path / "runs"), data_dir=layouts.imagenet(tmp_path), device="cpu"),
        tmp_path,
    )


def with_our_resnet(recipe, depth):
    """Without weights from elsewhere, which nobody has here."""
    return recipe.replace(SHORT | {"model": ResNet(depth=depth, width=4), "schedule.milestones": (1,)})


@pytest.mark.parametrize(
    ("recipe", "layout", "depth"),
    [(CUB, layouts.cub200, 34), (TINY, layouts.tiny_imagenet, 50)],
    ids=["cub", "tiny"],
)
def test_birds_and_tiny_imagenet(tmp_path, recipe, layout, depth):
    runs = train(
        [with_our_resnet(recipe, depth)], RunStore(tmp_path / "runs"), data_dir=layout(tmp_path), device="cpu"
    )
    check(runs, tmp_path)


@pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
@pytest.mark.parametrize(
    ("recipe", "layout"), [(CUB, layouts.cub200), (TINY, layouts.tiny_imagenet)], ids=["cub", "tiny"]
)
def test_birds_and_tiny_imagenet_with_the_nets_of_timm(tmp_path, recipe, layout):
    try:
        import timm
    except RuntimeError as error:  # torchvision for another torch
        pytest.skip(f"timm cannot be imported: {error}")
    assert timm.is_model(recipe.model.net.partition(".")[0])
    one = recipe.replace(SHORT | {"model.pretrained": False, "schedule.milestones": (1,)})
    check(train([one], RunStore(tmp_path / "runs"), data_dir=layout(tmp_path), device="cpu"), tmp_path)
