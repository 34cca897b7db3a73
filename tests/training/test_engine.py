from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from softtargets.data import Examples
from softtargets.exceptions import RecipeError, RunError, SofttargetsError
from softtargets.recipes import CNN, Adam, Crop, CrossEntropy, Digits, Distillation, Flip, TinyImageNet
from softtargets.runs import RunStore
from softtargets.training import Plan, Watcher, choose_device
from softtargets.training import train as train_anywhere

from .making import finished, started

# These tests compare bits, and fork; both are for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


class Recording(Watcher):
    def __init__(self):
        self.plans, self.starts, self.ends, self.rows = [], [], [], []

    def planned(self, plan):
        self.plans.append(plan)

    def started(self, recipe, step, total_steps):
        self.starts.append((recipe.id, step, total_steps))

    def epoch(self, recipe, row):
        self.rows.append(row)

    def finished(self, run):
        self.ends.append(run.id)


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def test_a_run_holds_recipe_metrics_weights_predictions_and_provenance(recipe, store):
    (run,) = train([recipe], store)
    assert run.id == recipe.id
    assert run.recipe == recipe
    assert [row["epoch"] for row in run.history()] == [1, 2, 3, 4]
    assert run.history()[-1] == run.summary
    assert run.weights()["head.weight"].shape == (10, 32)
    test = run.predictions("test")
    assert test.logits.shape == (500, 10)
    assert test.features.shape == (500, 32)
    torch.testing.assert_close(
        test.logits, test.features @ run.weights()["head.weight"].T + run.weights()["head.bias"]
    )
    assert run.summary["test_loss"] == pytest.approx(
        float(F.cross_entropy(test.logits, test.labels)), rel=1e-6
    )
    accuracy = (test.logits.argmax(-1) == test.labels).double().mean()
    assert run.summary["test_accuracy"] == pytest.approx(float(accuracy))
    provenance = run.provenance
    assert provenance["images"] == 4 * 150
    assert provenance["steps"] == 4 * 5
    assert provenance["seconds"] > 0
    assert provenance["device"] == "cpu"
    assert {"softtargets", "commit", "torch", "python", "started", "finished"} <= provenance.keys()


def test_finished_runs_are_never_recomputed(recipe, store):
    train([recipe], store)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}
    watcher = Recording()
    train([recipe, recipe], store, watcher=watcher)
    assert watcher.plans == [Plan(runs=1, reused=1)]
    assert watcher.starts == []
    assert before == {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}


def test_training_learns(recipe, store):
    easy = recipe.replace({"epochs": 15, "noise": "none", "augmentation": [], "data.limit": None})
    (run,) = train([easy], store)
    assert run.summary["test_accuracy"] > 0.93
    assert run.summary["train_loss"] < run.history()[0]["train_loss"]


def test_a_step_is_what_plain_pytorch_would_do(recipe, store):
    """One epoch re-derived with nothing of ours but the data, the initial weights and the order."""
    from softtargets.data import load
    from softtargets.randomness import key_words, permutation
    from softtargets.training.building import build_model

    plain = recipe.replace({"epochs": 1, "noise": "none", "augmentation": [], "model.dropout": 0.0})
    (run,) = train([plain], store)
    train_set = load("digits", "train").take(range(150))
    images = torch.from_numpy(train_set.images).float() / 255
    labels = torch.from_numpy(train_set.labels)
    model = build_model(plain, (1, 8, 8), 10)
    order = permutation(key_words(0, "order"), 150, 0)
    momentum = [torch.zeros_like(p) for p in model.parameters()]
    for step in range(5):
        chosen = order[32 * step : 32 * step + 32]
        target = 0.9 * F.one_hot(labels[chosen], 10) + 0.1 / 10
        loss = -(target * F.log_softmax(model(images[chosen]), -1)).sum(-1).mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for velocity, weight, gradient in zip(momentum, model.parameters(), gradients, strict=True):
                velocity.mul_(0.9).add_(gradient + 1e-4 * weight)
                weight.sub_(0.1 * (1 - step / 5) * velocity)
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(run.weights()[name], weight, rtol=1e-4, atol=1e-6)


def test_seeds_differ_and_repeat(recipe, tmp_path):
    one, again = (train([recipe], RunStore(tmp_path / name))[0] for name in ("a", "b"))
    (other,) = train([recipe.replace({"seed": 1})], RunStore(tmp_path / "a"))
    assert torch.equal(one.weights()["head.weight"], again.weights()["head.weight"])
    assert not torch.equal(one.weights()["head.weight"], other.weights()["head.weight"])


def test_training_leaves_the_users_random_numbers_and_settings_alone(recipe, store):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    settings = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.get_num_threads()
    train([recipe.replace({"precision": "tf32"})], store)
    assert torch.equal(torch.rand(3), expected)
    now = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.get_num_threads()
    assert now == settings


@pytest.mark.parametrize(
    "changes",
    [
        {"model": CNN(channels=(4, 8), hidden=16)},
        {"optimiser": Adam(lr=0.01)},
        {"optimiser": Adam(lr=0.01, weight_decay=0.1, decoupled=True)},
        {"augmentation": [Crop(padding=1), Flip()]},
        {"augmentation": [Crop(padding=0, size=6)]},
        {"data.standardise": "channel"},
        {"data.standardise": "image"},
        {"epochs": None, "steps": 7},
        {"precision": "bf16"},
        {"noise": "pair"},
        {"schedule": {"name": "cosine", "warmup": 3}},
    ],
    ids=str,
)
def test_every_kind_of_recipe_trains_and_resumes_exactly(recipe, changes, tmp_path):
    varied = recipe.replace(changes)
    (whole,) = train([varied], RunStore(tmp_path / "whole"))
    assert math.isfinite(whole.summary["test_loss"])

    class Stop(Watcher):
        def epoch(self, recipe, row):
            raise RuntimeError("power cut")

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError, match="power cut"):
        train([varied], store, watcher=Stop(), checkpoint_seconds=0)
    (resumed,) = train([varied], store)
    assert all(torch.equal(resumed.weights()[name], value) for name, value in whole.weights().items())
    assert resumed.history() == whole.history()


def test_a_teacher_is_trained_first_and_its_probabilities_are_the_targets(recipe, store):
    student = recipe.replace(
        {"regulariser": Distillation(teacher=recipe.replace({"seed": 3}), temperature=2.0)}
    )
    watcher = Recording()
    train([student], store, watcher=watcher)
    assert watcher.ends == [student.teacher.id, student.id]
    assert store.find(student.teacher) is not None


def test_a_teacher_asked_once_says_the_same_as_one_asked_every_step(recipe, tmp_path):
    """Without augmentation teacher logits are computed once; a crop that changes nothing makes it be asked anew."""
    plain = recipe.replace({"augmentation": [], "noise": "none", "model.dropout": 0.0})
    student = plain.replace({"regulariser": Distillation(teacher=plain)})
    losses = []
    for augmentation in ([], [Crop(padding=0)]):
        losses.append(finished(started(student.replace({"augmentation": augmentation}))).slots[0].history)
    for stored, live in zip(*losses, strict=True):
        assert stored["train_loss"] == pytest.approx(live["train_loss"], rel=1e-6)


def test_a_diverged_run_is_marked_failed_and_its_neighbours_go_on(recipe, store):
    wild = recipe.replace({"optimiser.lr": 1e30, "regulariser": CrossEntropy()})
    student = recipe.replace({"regulariser": Distillation(teacher=wild)})
    failed, fine, orphan = train([wild, recipe, student], store)
    assert failed.status == "failed"
    assert "nan" in failed.provenance["reason"] or "inf" in failed.provenance["reason"]
    assert fine.status == "finished"
    assert orphan.status == "failed"
    assert wild.id in orphan.provenance["reason"]
    watcher = Recording()
    train([wild], store, watcher=watcher)
    assert watcher.starts == [], "a failure is a result too: it is not tried again"


def test_predictions_not_kept_before_are_added_from_the_weights(recipe, tmp_path):
    store = RunStore(tmp_path / "later")
    train([recipe], store, keep=("test",))
    (later,) = train([recipe], store, keep=("train", "test"))
    (at_once,) = train([recipe], RunStore(tmp_path / "once"), keep=("train", "test"))
    assert torch.equal(later.predictions("train").logits, at_once.predictions("train").logits)
    assert later.problems() == []
    with pytest.raises(RunError, match="kept no predictions on 'validation'; kept: test, train"):
        later.predictions("validation")


def test_noisy_labels_are_trained_on_and_kept_with_the_predictions(recipe, store):
    from softtargets.data import load

    (run,) = train([recipe], store, keep=("train", "test"))
    clean = torch.from_numpy(load("digits", "train").labels[:150])
    assert 0.02 < float((run.predictions("train").labels != clean).double().mean()) < 0.25
    assert torch.equal(run.predictions("test").labels, torch.from_numpy(load("digits", "test").labels))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 151}, "batch: 151 is larger than the training set of 150 examples"),
        ({"data": Digits(validation=1297)}, "data.validation: 1297 leaves nothing to train on"),
        ({"augmentation": [Crop(size=9)]}, "augmentation.0.size: 9 is larger than the image of 8 x 8"),
        ({"augmentation": [Crop(size=3)], "model": "cnn"}, "model: images of 3 x 3 are too small"),
        (
            {"augmentation": [{"name": "shift", "pixels": 8}]},
            "augmentation.0.pixels: 8 is as large as the image",
        ),
        (
            {"augmentation": ["flip", {"name": "crop", "padding": 99}]},
            "augmentation.1.padding: 99 is as large",
        ),
        ({"data.limit": 5000}, "data.limit: 5000 is more than the 1197 training examples there are"),
    ],
)
def test_recipes_that_cannot_run_are_refused_before_anything_is_trained(recipe, changes, message, store):
    with pytest.raises(RecipeError, match=message.replace(".", r"\.")):
        train([recipe, recipe.replace(changes)], store)
    assert store.entries() == []


@pytest.mark.parametrize("augmentation", [[], ["flip"]])
def test_a_student_shown_other_shapes_than_its_teacher_is_refused(recipe, augmentation, store, monkeypatch):
    from softtargets.training import preparation

    def pictures(name, split, data_dir, size):
        return Examples(np.zeros((200, 3, size, size), np.uint8), np.arange(200) % 4, tuple("abcd"))

    monkeypatch.setattr(preparation, "load", pictures)
    teacher = recipe.replace({"data": TinyImageNet(size=8), "augmentation": augmentation})
    student = teacher.replace({"data.size": 16, "regulariser": Distillation(teacher=teacher)})
    with pytest.raises(
        RecipeError, match="shown images of 16 x 16 with 3 channels, but its teacher learnt on 8 x 8"
    ):
        train([student], store)
    assert store.entries() == []


def test_a_last_step_that_blows_up_is_a_failure_too(recipe, store):
    """Its training loss was computed before the update, and is fine."""
    wild = recipe.replace(
        {"optimiser.lr": 1e30, "epochs": 1, "batch": 150, "augmentation": [], "noise": "none"}
    )
    (run,) = train([wild], store)
    assert run.status == "failed"
    assert "validation_loss is nan after step 1" in run.provenance["reason"]


def test_waiting_is_said_once(recipe, store, monkeypatch):
    said = []

    class Listening(Watcher):
        def waiting(self, recipe):
            said.append(recipe.id)

    writer = store.claim(recipe)
    naps = iter(range(5))

    def nap(_seconds):
        if next(naps, None) is None:
            writer.release()

    monkeypatch.setattr("softtargets.training.engine.time.sleep", nap)
    train([recipe], store, watcher=Listening())
    assert said == [recipe.id]


def test_too_little_memory_is_said_in_one_sentence(recipe, store):
    with pytest.raises(
        SofttargetsError, match="does not fit into the memory of cpu; use a smaller batch or net"
    ):
        train([recipe.replace({"model.hidden": [10**12]})], store)


def test_a_run_directory_deleted_under_a_training_is_made_again_or_refused(recipe, store):
    class Deleting(Watcher):
        def epoch(self, recipe, row):
            (store.root / recipe.id / "recipe.json").unlink(missing_ok=True)

    (run,) = train([recipe], store, watcher=Deleting())
    assert run.problems() == []


@pytest.mark.parametrize(
    ("name", "message"), [("gpu", "no such device: 'gpu'"), ("meta", "is not supported")]
)
def test_unknown_devices_are_refused(name, message):
    with pytest.raises(SofttargetsError, match=message):
        choose_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_here_is_refused():
    with pytest.raises(SofttargetsError, match="torch sees 0 CUDA devices"):
        choose_device("cuda")
    assert choose_device("auto").type == "cpu"


def test_helpers_share_the_work_and_change_nothing_but_the_time(recipe, tmp_path):
    recipes = [recipe.replace({"seed": seed}) for seed in range(4)]
    store = RunStore(tmp_path / "two")

    class WaitingForHelp(Recording):
        def started(self, recipe, step, total_steps):
            super().started(recipe, step, total_steps)
            patience = time.monotonic() + 120
            while time.monotonic() < patience and len(store.entries()) < 3:  # two are in our own pack
                time.sleep(0.05)

    watcher = WaitingForHelp()
    shared = train(recipes, store, watcher=watcher, workers=2)
    assert len(watcher.starts) < 4, "the helper trained nothing"
    assert sorted(watcher.ends) == sorted(recipe.id for recipe in recipes)
    (threads,) = {run.provenance["threads"] for run in shared}
    torch.set_num_threads(threads)  # sums may be ordered by the number of threads
    alone = train(recipes, RunStore(tmp_path / "one"))
    torch.set_num_threads(1)
    for one, other in zip(shared, alone, strict=True):
        assert one.problems() == []
        assert torch.equal(one.weights()["head.weight"], other.weights()["head.weight"])


@pytest.mark.cuda
def test_on_a_gpu_training_starts_from_the_same_weights_and_sees_the_same_batches(recipe, tmp_path):
    (cpu,) = train([recipe], RunStore(tmp_path / "cpu"), device="cpu")
    (gpu,) = train([recipe.replace({"model.dropout": 0.0})], RunStore(tmp_path / "gpu"), device="cuda")
    (plain,) = train([recipe.replace({"model.dropout": 0.0})], RunStore(tmp_path / "plain"), device="cpu")
    assert gpu.provenance["device"].startswith("cuda")
    torch.testing.assert_close(
        gpu.weights()["head.weight"], plain.weights()["head.weight"], rtol=1e-3, atol=1e-4
    )
    assert cpu.status == "finished"


@pytest.mark.cuda
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_on_a_gpu_every_precision_trains_and_resumes_exactly(recipe, precision, tmp_path):
    varied = recipe.replace({"precision": precision})
    (whole,) = train([varied], RunStore(tmp_path / "whole"), device="cuda")

    class Stop(Watcher):
        def epoch(self, recipe, row):
            raise RuntimeError("power cut")

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError):
        train([varied], store, device="cuda", watcher=Stop(), checkpoint_seconds=0)
    (resumed,) = train([varied], store, device="cuda")
    assert all(torch.equal(resumed.weights()[name], value) for name, value in whole.weights().items())
