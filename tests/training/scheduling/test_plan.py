from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from softtargets.data import Examples
from softtargets.exceptions import RecipeError
from softtargets.recipes import Crop, Digits, Distillation, TinyImageNet
from softtargets.runs import RunStore
from softtargets.training import Plan
from softtargets.training import train as train_anywhere
from softtargets.training.scheduling.plan import with_teachers
from softtargets.training.tasks.images import task as image_task

from ..noting import Noting

train = partial(train_anywhere, device="cpu")


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def test_teachers_come_before_their_students_and_everything_once(recipe):
    first = recipe.replace({"seed": 1})
    second = recipe.replace({"seed": 2, "regulariser": Distillation(teacher=first)})
    third = recipe.replace({"seed": 3, "regulariser": Distillation(teacher=second)})
    assert list(with_teachers([recipe, third, second, recipe])) == [
        recipe.id, first.id, second.id, third.id,
    ]  # fmt: skip


def test_finished_runs_are_never_recomputed(recipe, store):
    train([recipe], store)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}
    watcher = Noting()
    train([recipe, recipe], store, watcher=watcher)
    assert watcher.plans == [Plan(runs=1, reused=1)]
    assert watcher.starts == []
    assert before == {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 151}, "batch: 151 is larger than the training set of 150 examples"),
        ({"data": Digits(validation=1297)}, "data.validation: 1297 leaves nothing to train on"),
        ({"augmentation": [Crop(size=9)]}, "augmentation.0.size: 9 is larger than the image of 8 x 8"),
        ({"augmentation": [Crop(size=3)], "model": "cnn"}, "model: images of 3 x 3 are too small"),
        (
            {"augmentation": [{"name": "shift", "pixels": 8}]},
            "augmentation.0.pixels: 8 is too large for images",
        ),
        (
            {"augmentation": ["flip", {"name": "crop", "padding": 99}]},
            "augmentation.1.padding: 99 is too large",
        ),
        ({"data.limit": 5000}, "data.limit: 5000 is more than the 1197 training examples"),
    ],
)
def test_recipes_that_cannot_run_are_refused_before_anything_is_trained(recipe, changes, message, store):
    with pytest.raises(RecipeError, match=message.replace(".", r"\.")):
        train([recipe, recipe.replace(changes)], store)
    assert store.entries() == []


@pytest.mark.parametrize(
    ("batch", "told", "better"),
    [(50, "the last batch of an epoch has a single one", 49), (1, "every batch has a single one", 4)],
)
def test_a_single_image_in_a_batch_is_refused_where_batch_norm_cannot_have_it(
    recipe, store, batch, told, better
):
    """ResNet-18 makes one pixel of 8 x 8, so that a channel of one image is one value."""
    deep = recipe.replace({"model": "resnet18", "data.limit": 151, "batch": batch})
    with pytest.raises(
        RecipeError, match=f"batch: of 151 training examples in batches of {batch}, {told}"
    ) as caught:
        train([deep], store)
    assert f"; a batch of {better} leaves more" in str(caught.value)
    assert store.entries() == []


def test_a_single_image_in_a_batch_is_no_matter_without_batch_norm(recipe, store):
    train([recipe.replace({"data.limit": 151, "batch": 50, "epochs": 1})], store)
    assert len(store.entries()) == 1


@pytest.mark.parametrize("augmentation", [[], ["flip"]])
def test_a_student_shown_other_shapes_than_its_teacher_is_refused(recipe, augmentation, store, monkeypatch):
    def pictures(name, split, data_dir, size, **how):
        return Examples(np.zeros((200, 3, size, size), np.uint8), np.arange(200) % 4, tuple("abcd"))

    monkeypatch.setattr(image_task, "image_files", lambda *given, **options: None)
    monkeypatch.setattr(image_task, "load", pictures)
    teacher = recipe.replace({"data": TinyImageNet(size=8), "augmentation": augmentation})
    student = teacher.replace({"data.size": 16, "regulariser": Distillation(teacher=teacher)})
    with pytest.raises(
        RecipeError, match="sees images of 16 x 16 with 3 channels, but its teacher learnt on 8 x 8"
    ):
        train([student], store)
    assert store.entries() == []


def test_layers_that_are_not_there_are_refused_before_anything_is_trained(recipe, store):
    wrong = recipe.replace({"seed": 1, "optimiser.rates": {"hed.*": 0.1}})
    with pytest.raises(RecipeError, match=r"optimiser: .*hed\.\*"):
        train([recipe, wrong], store)
    assert store.entries() == []
