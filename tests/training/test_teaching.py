"""Which images a teacher is asked about: the student's, its own views of them, or all of them once."""

from __future__ import annotations

import copy
import json
from functools import partial
from itertools import pairwise

import pytest
import torch

from softtargets.exceptions import RecipeError, RunError
from softtargets.losses import Distillation as Loss
from softtargets.randomness import below, key_words, words
from softtargets.recipes import CNN, MLP, Crop, Distillation, PreActResNet
from softtargets.runs import RunStore
from softtargets.runs.run import sealed
from softtargets.training import train as train_anywhere
from softtargets.training.packing import kind_of_run
from softtargets.training.teaching import asked_through

from .making import advanced, finished, same, started, states

train = partial(train_anywhere, device="cpu")
VIEWS = ("student", "teacher", "stored")


@pytest.fixture
def teacher(recipe):
    """Sees windows of 6 x 6, as its students of other sizes do not."""
    return recipe.replace({"seed": 9, "epochs": 1, "augmentation": [Crop(padding=1, size=6)]})


def student_of(teacher, view, **changes):
    learning = {
        "augmentation": ["flip"],
        "seed": 1,
        "epochs": 2,
        "regulariser": Distillation(teacher=teacher, view=view),
    }
    return teacher.replace(learning | changes)


@pytest.fixture
def given(monkeypatch):
    """What the loss was given by the teacher, call by call."""
    calls = []
    original = Loss.forward

    def forward(self, logits, target, teacher_logits=None):
        calls.append(teacher_logits.detach().clone())
        return original(self, logits, target, teacher_logits)

    monkeypatch.setattr(Loss, "forward", forward)
    return calls


def test_a_teacher_sees_its_own_window_of_the_same_image(teacher, given):
    pack = started(student_of(teacher, "teacher"))
    images = pack.on_device.task.splits["train"].images
    net, standardise = pack.on_device.adviser._nets[0].model, pack.on_device.task.standardise
    key = key_words(1, "teacher's augmentation")
    for step in range(6):  # of five an epoch
        advanced(pack, 1)
        epoch, place = divmod(step, 5)
        order = pack.on_device.feed._order[0]
        for row, index in enumerate(order[32 * place : 32 * place + 32].tolist()):
            drawn = words(key, torch.tensor([index]), torch.tensor(epoch), torch.tensor(0))[0]
            top, left = (int(below(drawn[which], 5)) - 1 for which in (0, 1))
            padded = torch.nn.functional.pad(images[index], (1, 1, 1, 1))
            window = padded[None, :, top + 1 : top + 7, left + 1 : left + 7]
            with torch.no_grad():
                expected = net.eval()(standardise(window))[0]
            torch.testing.assert_close(given[-1][row], expected)


def test_stored_logits_are_those_of_images_without_augmentation(teacher, given):
    pack = started(student_of(teacher, "stored"))
    images = pack.on_device.task.splits["train"].images
    net = started(teacher).on_device.nets.model.eval()
    with torch.no_grad():
        said = net(pack.on_device.task.standardise(images[:, :, 1:7, 1:7]))
    for step in range(6):
        advanced(pack, 1)
        place = step % 5
        chosen = pack.on_device.feed._order[0, 32 * place : 32 * place + 32]
        torch.testing.assert_close(given[-1], said[chosen])


def test_a_teacher_without_augmentation_has_one_view_and_is_asked_once(recipe):
    bare = recipe.replace({"augmentation": []})
    assert asked_through(student_of(bare, "teacher")) is None
    assert asked_through(student_of(bare, "stored")) is None
    own, stored = (states(finished(started(student_of(bare, view)))) for view in ("teacher", "stored"))
    assert same(own, stored)


def test_the_three_views_are_three_trainings_and_the_first_is_what_there_always_was(recipe):
    found = {view: student_of(recipe, view, augmentation=["shift"]) for view in VIEWS}
    assert len({each.id for each in found.values()}) == 3
    assert found["student"].id == found["student"].replace({"regulariser": Distillation(teacher=recipe)}).id
    weights = [states(finished(started(each))) for each in found.values()]
    assert not any(same(one, other) for one, other in pairwise(weights))


@pytest.mark.parametrize("view", VIEWS[1:])
def test_students_are_the_same_in_any_company_and_after_a_resume(recipe, view, tmp_path):
    """Layers of even widths, so that a stack on a CPU has the bits of a run alone."""
    taught = [recipe.replace({"seed": 7 + place, "epochs": 1}) for place in range(2)]
    students = [student_of(taught[seed % 2], view, seed=seed) for seed in range(3)]
    if view == "stored":  # may sit beside runs without a teacher
        students.insert(1, recipe.replace({"augmentation": ["flip"], "seed": 5, "epochs": 2}))
        assert kind_of_run(students[0]) == kind_of_run(students[1])
    together = train(students, RunStore(tmp_path / "together"))
    for each, run in zip(students, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / each.id))
        assert all(torch.equal(run.weights()[name], value) for name, value in alone.weights().items())
    first = advanced(started(students[0], stacked=True), 7)
    saved = copy.deepcopy(first.save(0))
    resumed = finished(started(students[0], checkpoints=[saved], stacked=True))
    assert same(states(resumed), states(finished(first)))


def test_own_views_need_teachers_of_one_kind(teacher):
    asked = student_of(teacher, "teacher")
    assert kind_of_run(asked) == kind_of_run(student_of(teacher.replace({"seed": 3}), "teacher"))
    others = (
        student_of(teacher.replace({"augmentation": ["flip"]}), "teacher"),
        student_of(teacher.replace({"model.hidden": [16]}), "teacher", model=teacher.model),
        student_of(teacher, "stored"),
        student_of(teacher, "student"),
    )
    assert all(kind_of_run(asked) != kind_of_run(other) for other in others)
    # Stored logits are only numbers: whose they are does not matter.
    wider = teacher.replace({"model.hidden": [16]})
    assert kind_of_run(student_of(teacher, "stored")) == kind_of_run(
        student_of(wider, "stored", model=teacher.model)
    )


def test_images_of_a_size_that_the_teacher_cannot_take_are_refused_with_the_way_out(teacher, tmp_path):
    store = RunStore(tmp_path)
    with pytest.raises(
        RecipeError, match=r"8 x 8 with 1 channel, .* on 6 x 6 .*, mlp, takes no others; .*: stored\)"
    ):
        train([student_of(teacher, "student")], store)
    assert store.entries() == []
    assert [run.status for run in train([student_of(teacher, view) for view in VIEWS[1:]], store)] == [
        "finished"
    ] * 2


def test_a_network_that_pools_all_places_takes_the_students_crops(recipe, tmp_path):
    """As ResNet-56, trained on 32 x 32, would take AlexNet's crops of 24 x 24."""
    teacher = recipe.replace(
        {
            "model": PreActResNet(depth=8, stages=(4, 4, 8)),
            "epochs": 1,
            "augmentation": ["flip"],
            "data.limit": 64,
        }
    )
    cropped = [Crop(padding=0, size=6)]
    student = student_of(teacher, "student", model=MLP(hidden=(16,)), augmentation=cropped, epochs=1)
    assert train([student], RunStore(tmp_path))[0].status == "finished"
    small = teacher.replace({"model": CNN(channels=(4, 4), hidden=16)})
    with pytest.raises(RecipeError, match="takes no others"):
        train([student_of(small, "student", augmentation=cropped)], RunStore(tmp_path))


# --- teachers whose runs have no weights ---


def without_weights(run):
    """The run as it travels: without weights, and with a manifest that does not name them."""
    path = run.directory / "run.json"
    manifest = json.loads(path.read_text())
    del manifest["files"]["weights.safetensors"], manifest["sha256"]
    (run.directory / "weights.safetensors").unlink()
    path.write_text(json.dumps(sealed(manifest)))


def test_stored_predictions_teach_as_well_as_the_weights(teacher, tmp_path):
    student = student_of(teacher.replace({"noise": "none"}), "stored")
    (whole,) = train([student], RunStore(tmp_path / "whole"))
    store = RunStore(tmp_path / "light")
    (taught,) = train([student.teacher], store, keep=("test:scores", "train:scores"))
    without_weights(taught)
    (light,) = train([student], store, keep=("test:scores",))
    assert all(torch.equal(light.weights()[name], value) for name, value in whole.weights().items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"regulariser.view": "teacher"},
            "has no weights, which it needs to predict augmented images; .*view: stored",
        ),
        ({"data.limit": 60}, "its predictions are not for the student's training examples"),
        ({}, None),
    ],
)
def test_what_a_light_run_cannot_teach_is_refused_before_anything_is_trained(
    teacher, changes, message, tmp_path
):
    store = RunStore(tmp_path)
    student = student_of(teacher, "stored")
    keep = () if message is None else ("train:scores",)
    without_weights(train([teacher], store, keep=keep)[0])
    with pytest.raises(
        RunError, match=message or "neither weights nor predictions for its training examples"
    ):
        train([student.replace(changes)], store)
    assert len(store.entries()) == 1
