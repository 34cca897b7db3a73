"""The task seam, proven with a task that is not images: trained, killed, resumed and packed like the first."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial

import pytest
import torch
from torch.nn import functional as F
from typer.testing import CliRunner

from forking import finish, start
from softtargets.exceptions import RecipeError, RunError
from softtargets.recipes import (
    SGD,
    Adam,
    Calibration,
    Distillation,
    LabelSmoothing,
    Linear,
    Recipe,
    Shift,
    Symmetric,
)
from softtargets.runs import Run, RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere
from softtargets.training.building import build_model
from softtargets.training.course import Course
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Start
from softtargets.training.sizing import footprint
from softtargets.training.tasks import prepare

from ..making import CPU, advanced, finished, same, started, states
from ..test_crash import step_on_disk
from .characters import BUCKETS, PADDING, Characters, Window, _epoch, registered

train = partial(train_anywhere, device="cpu")
KEPT = ("log_probability", "confidence", "correct", "lengths")


@pytest.fixture(autouse=True)
def _registered():
    with registered():
        yield


@pytest.fixture
def recipe():
    """With all that could break a resume: momentum, dropout, a schedule, batches of several shapes."""
    return Recipe(
        data=Characters(validation=20, limit=100),
        model=Window(dropout=0.1),
        regulariser=LabelSmoothing(alpha=0.1),
        optimiser=SGD(lr=0.5, momentum=0.9),
        schedule=Linear(),
        epochs=3,
        batch=300,
    )


@pytest.fixture
def stacking(monkeypatch):
    """Nets of products of matrices only: as those of the engine's table, they may be stacked."""
    monkeypatch.setattr("softtargets.training.packing.CPU_MODELS", ("window",))
    monkeypatch.setattr("softtargets.training.packing.GPU_MODELS", ("window",))


def identical(one: Run, other: Run) -> bool:
    weights, others = one.weights(), other.weights()
    assert weights.keys() == others.keys()
    equal = all(torch.equal(weights[name], others[name]) for name in weights)
    for split in ("validation", "test"):
        equal &= all(torch.equal(one.kept(split)[name], other.kept(split)[name]) for name in KEPT)
    return equal and one.history() == other.history()


# --- what it computes ---


def test_batches_hold_every_character_once_and_are_of_few_shapes(recipe):
    task = prepare(recipe.data, CPU)
    course = Course(recipe, task)
    epochs = [course.epoch(number) for number in range(3)]
    characters = sum(task.splits["train"].lengths)
    assert len({epoch.shapes for epoch in epochs}) == 1, "the same order of shapes in every epoch"
    assert {shape for epoch in epochs for shape in epoch.shapes} == {
        (300 // length, length) for length in BUCKETS
    }
    assert [sum(epoch.units) for epoch in epochs] == [characters] * 3
    assert len({epoch.units for epoch in epochs}) == 3, "but other clauses in each batch"
    assert course.total_units == 3 * characters
    cut = Course(recipe.replace({"steps": course.steps_per_epoch + 4}), task)
    assert cut.total_units == characters + sum(epochs[1].units[:4])


@pytest.mark.parametrize("stacked", [False, True])
def test_training_is_what_plain_pytorch_would_do(recipe, stacked):
    """An epoch re-derived clause by clause without padding: nothing of ours but initial weights and the order."""
    plain = recipe.replace(
        {"model.dropout": 0.0, "epochs": 1, "optimiser": SGD(lr=0.5), "schedule": "constant"}
    )
    task = prepare(plain.data, CPU)
    model = build_model(plain, task)
    pack = finished(started(plain, stacked=stacked))
    feed, train_set = pack.on_device.feed, task.splits["train"]
    epoch, begins = task.epoch(plain, 0), feed._begins.tolist()
    seen, lost = [], []
    for (rows, _), begin in zip(epoch.shapes, begins, strict=True):
        losses = []
        for row in feed._rows[0, begin : begin + rows].tolist():
            if row < len(train_set):
                seen.append(row)
                length = train_set.lengths[row]
                log = model(train_set.tokens[row : row + 1, :length])[0].log_softmax(-1)
                label = train_set.labels[row, :length]
                losses.append(0.9 * F.nll_loss(log, label, reduction="none") - 0.1 * log.mean(-1))
        loss = torch.cat(losses).mean()
        lost.append(loss.item() * len(torch.cat(losses)))
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= 0.5 * gradient
    assert sorted(seen) == list(range(len(train_set)))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(pack.weights(0)[name], value, rtol=1e-4, atol=1e-5)
    (row,) = pack.slots[0].history
    assert row["train_loss"] == pytest.approx(sum(lost) / sum(train_set.lengths), rel=1e-5)


def test_it_learns_and_keeps_a_few_numbers_for_each_character(recipe, tmp_path):
    (run,) = train([recipe.replace({"epochs": 8, "data.limit": None})], RunStore(tmp_path))
    task = prepare(recipe.data, CPU)
    labels = task.splits["test"].labels
    labels = labels[labels != PADDING]
    shares = labels.bincount(minlength=len(task.classes)) / len(labels)
    unigram = -float(torch.xlogy(shares, shares).sum())
    assert run.summary["test_loss"] < unigram - 0.5
    assert run.summary["train_accuracy"] > 0.3
    kept = run.kept("test")
    assert tuple(sorted(kept)) == tuple(sorted(KEPT))
    assert len(kept["log_probability"]) == sum(task.splits["test"].lengths) == int(kept["lengths"].sum())
    assert run.summary["test_loss"] == pytest.approx(
        -float(kept["log_probability"].double().mean()), rel=1e-6
    )
    with pytest.raises(
        RunError, match=r"has confidence, correct, lengths, log_probability on 'test', not logits"
    ):
        run.predictions("test")


def test_work_is_counted_in_characters(recipe, tmp_path):
    class Counting(Watcher):
        plan, done = None, 0

        def planned(self, plan):
            self.plan = plan

        def progressed(self, recipe, step, characters):
            self.done += characters

    watcher = Counting()
    (run,) = train([recipe], RunStore(tmp_path), watcher=watcher)
    expected = 3 * sum(prepare(recipe.data, CPU).splits["train"].lengths)
    assert watcher.plan.units == watcher.plan.images == {recipe.id: expected}
    assert run.units == run.provenance["characters"] == watcher.done == expected
    assert "images" not in run.provenance
    assert run.provenance["alphabet"] > 50
    assert "classes" not in run.provenance


def test_the_listing_shows_it_like_any_other(recipe, tmp_path):
    from softtargets.cli.app import app

    train([recipe], RunStore(tmp_path))
    listed = CliRunner().invoke(app, ["runs", "list", "--runs-dir", str(tmp_path)])
    assert listed.exit_code == 0, listed.output
    assert recipe.id[:8] in listed.output
    assert "characters" in listed.output


# --- killed and resumed ---


def save_every_step(recipe, root):
    with registered():
        train([recipe], RunStore(root), checkpoint_seconds=0)


def test_kill_9_in_the_middle_of_an_epoch_changes_nothing(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 6})
    (whole,) = train([recipe], RunStore(tmp_path / "whole"))
    per_epoch = Course(recipe, prepare(recipe.data, CPU)).steps_per_epoch
    store = RunStore(tmp_path / "killed")
    for target in (3, per_epoch + 5):
        child = start(save_every_step, recipe, store.root)
        while step_on_disk(store, recipe) < target:
            assert child.is_alive()
            time.sleep(0.001)
        child.kill()
        assert finish(child) == -signal.SIGKILL
    assert step_on_disk(store, recipe) < 6 * per_epoch
    (resumed,) = train([recipe], store)
    assert resumed.provenance["resumed"] == 2
    assert resumed.units == whole.units
    assert identical(whole, resumed)


class Interrupting(Watcher):
    """Asks to stop when so much of the training is done, as Ctrl-C does."""

    def __init__(self, step):
        self.step = step

    def progressed(self, recipe, step, units):
        if step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("stacked", [False, True])
def test_ctrl_c_in_the_middle_of_an_epoch_changes_nothing(recipe, stacked, tmp_path, monkeypatch, request):
    if stacked:
        request.getfixturevalue("stacking")
    monkeypatch.setattr("softtargets.training.scheduling.loop._REPORT_SECONDS", 0)
    (whole,) = train([recipe], RunStore(tmp_path / "whole"))
    store = RunStore(tmp_path / "stopped")
    for step in (2, Course(recipe, prepare(recipe.data, CPU)).steps_per_epoch + 3):
        with pytest.raises(KeyboardInterrupt):
            train([recipe], store, watcher=Interrupting(step))
        path = store.root / recipe.id / "checkpoint.safetensors"
        assert step_on_disk(store, recipe) == step
        assert b'"characters": ' in path.read_bytes()[:2000].replace(b"\\", b"")
    assert identical(whole, train([recipe], store)[0])


# --- in company ---


def test_a_stack_of_seeds_and_alphas_is_what_each_is_alone(recipe, stacking, tmp_path):
    recipes = [recipe.replace({"seed": seed, "regulariser.alpha": 0.1 * seed}) for seed in range(3)]
    recipes.append(recipe.replace({"seed": 7, "regulariser": "labo", "epochs": 2}))
    together = train(recipes, RunStore(tmp_path / "together"))
    assert {run.provenance["runs_together"] for run in together} == {4}
    for each, run in zip(recipes, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"))
        assert identical(run, alone)
    assert len({run.summary["test_loss"] for run in together}) == 4


def test_a_fleet_of_seeds_is_what_each_is_alone(recipe):
    recipes = [recipe.replace({"seed": seed, "optimiser": Adam(lr=0.01 * (seed + 1))}) for seed in range(3)]
    task = prepare(recipe.data, CPU)
    fleet = Fleet([Start(each, task) for each in recipes], Machinery(recipe, task, CPU, stacked=False))
    together = finished(fleet)
    for run, each in enumerate(recipes):
        alone = finished(started(each, stacked=False))
        assert same(alone.weights(0), together.weights(run))
        assert alone.slots[0].history == together.slots[run].history


def test_runs_whose_steps_have_other_shapes_are_not_stacked(recipe, monkeypatch):
    def turned(self, recipe, epoch):
        found = _epoch(self.splits["train"].lengths, recipe.batch, recipe.seed, epoch)
        return found._replace(shapes=found.shapes[::-1]) if recipe.seed else found

    monkeypatch.setattr("training.tasks.characters.CharacterTask.epoch", turned)
    with pytest.raises(ValueError, match="steps of the same shapes at the same places"):
        advanced(started(recipe, recipe.replace({"seed": 1}), stacked=True), 1)


def test_a_run_moves_from_a_stack_to_one_of_its_own(recipe):
    """A checkpoint holds one run by the names of its net, whatever it was trained beside."""
    other = recipe.replace({"seed": 1})
    whole = finished(started(recipe, other))
    saved = advanced(started(recipe, other), 5).save(1)
    moved = finished(started(other, checkpoints=[saved], stacked=True))
    assert same(states(moved), states(whole, 1))
    assert moved.slots[0].units == whole.slots[1].units, "the work before counts too"


# --- the last layer and the loss as one ---


def test_the_head_may_be_computed_with_the_loss(recipe, tmp_path):
    """As for large vocabularies: logits of a whole batch are never there."""
    fused, plain = (
        train(
            [recipe.replace({"model.fused": value, "model.dropout": 0.0})], RunStore(tmp_path / str(value))
        )[0]
        for value in (True, False)
    )
    for name, value in plain.weights().items():
        # Where an activation is next to nothing, rounding decides whether it counts.
        assert (fused.weights()[name] - value).norm() <= 1e-3 * value.norm(), name
    assert fused.summary["train_loss"] == pytest.approx(plain.summary["train_loss"], rel=1e-4)
    assert "train_accuracy" not in fused.summary
    assert fused.provenance["runs_together"] == 1


def test_nets_with_a_fused_head_are_not_stacked(recipe, stacking, tmp_path):
    recipes = [recipe.replace({"model.fused": True, "seed": seed, "epochs": 1}) for seed in range(2)]
    assert [run.provenance["runs_together"] for run in train(recipes, RunStore(tmp_path))] == [1, 1]


# --- what is not for it ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"augmentation": [Shift()]},
            "augmentation: shift is for images, but characters has characters",
        ),
        ({"noise": Symmetric()}, "noise: symmetric is for images"),
        ({"probes": [Calibration()]}, "probes: calibration is for images"),
        ({"regulariser": "cs_kd"}, "regulariser: cs_kd is for images"),
        ({"regulariser": "beta_smoothing"}, "regulariser: beta_smoothing is for images"),
        ({"batch": 20}, "batch: 20 characters hold no clause of 60"),
    ],
    ids=str,
)
def test_what_only_makes_sense_for_images_is_refused_before_anything_is_trained(
    recipe, changes, message, tmp_path
):
    with pytest.raises(RecipeError) as caught:
        train([recipe.replace(changes)], RunStore(tmp_path))
    assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())


def test_a_teacher_is_refused_too(recipe, tmp_path):
    with pytest.raises(RecipeError, match="regulariser: distillation is for images"):
        train([recipe.replace({"regulariser": Distillation(teacher=recipe)})], RunStore(tmp_path))


# --- memory ---


def test_memory_is_that_of_the_largest_batch_and_on_a_gpu_twice_that_for_many_shapes(recipe):
    task = prepare(recipe.data, CPU)
    here, there = (footprint(recipe, task, torch.device(kind), stacked=True) for kind in ("cpu", "cuda"))
    rows = [rows * length for rows, length in set(task.epoch(recipe, 0).shapes)]
    assert max(rows) == 300
    remembered = (
        here.run
        - task.table_bytes(recipe)
        - 4 * 6 * sum(w.numel() for w in build_model(recipe, task).parameters())
    )
    grown = there.run - here.run
    assert sum(rows) / max(rows) > 2  # recorded steps share memory, whatever their shapes
    assert grown == pytest.approx(remembered, rel=0.01)


# --- on a GPU ---


@pytest.mark.cuda
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_on_a_gpu_each_shape_is_recorded_once(recipe, stacked, precision):
    recipe = recipe.replace({"precision": precision})
    recipes = [recipe, *([recipe.replace({"seed": 1})] if stacked else [])]
    device = torch.device("cuda")
    pack = finished(started(*recipes, device=device, stacked=stacked))
    assert len(pack.on_device._recorder._graphs) == len(BUCKETS)
    assert len(pack.on_device._looker._graphs) == 1
    task = prepare(recipe.data, device)
    plain = Machinery(recipe, task, device, stacked, plain=True)
    expected = finished(type(pack)([Start(each, task) for each in recipes], plain))
    for name, value in expected.weights(0).items():
        # Rounding grows with every step, in a few weights more than in others.
        assert (pack.weights(0)[name] - value).norm() <= 0.1 * value.norm(), name
    assert pack.slots[0].units == expected.slots[0].units


@pytest.mark.cuda
@pytest.mark.parametrize("stacked", [False, True])
def test_on_a_gpu_it_resumes_exactly_and_is_the_same_in_company(
    recipe, stacked, tmp_path, monkeypatch, request
):
    if stacked:
        request.getfixturevalue("stacking")
    monkeypatch.setattr("softtargets.training.scheduling.loop._REPORT_SECONDS", 0)
    recipes = [recipe.replace({"seed": seed, "regulariser.alpha": 0.1 * seed}) for seed in range(3)]
    on_gpu = partial(train_anywhere, device="cuda")
    whole = on_gpu(recipes, RunStore(tmp_path / "whole"))
    assert {run.provenance["runs_together"] for run in whole} == {3}
    store = RunStore(tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        on_gpu(recipes, store, watcher=Interrupting(5))
    for one, other in zip(whole, on_gpu(recipes, store), strict=True):
        assert identical(one, other)
    if not stacked:
        (alone,) = on_gpu(recipes[:1], RunStore(tmp_path / "alone"))
        assert identical(whole[0], alone)


@pytest.mark.cuda
def test_on_a_gpu_the_head_may_be_computed_with_the_loss(recipe, tmp_path):
    fused, plain = (
        train_anywhere(
            [recipe.replace({"model.fused": value, "model.dropout": 0.0})],
            RunStore(tmp_path / str(value)),
            device="cuda",
        )[0]
        for value in (True, False)
    )
    assert fused.summary["test_loss"] == pytest.approx(plain.summary["test_loss"], rel=1e-2)


def test_the_checkpoint_of_a_run_is_plain_json_beside_tensors(recipe, tmp_path):
    store = RunStore(tmp_path)
    with store.claim(recipe) as writer:
        checkpoint = advanced(started(recipe, stacked=False), 4).save(0)
        writer.checkpoint(checkpoint)
        restored = writer.restore()
    assert json.loads(json.dumps(checkpoint.progress)) == restored.progress
    assert restored.progress["characters"] == sum(prepare(recipe.data, CPU).epoch(recipe, 0).units[:4])
