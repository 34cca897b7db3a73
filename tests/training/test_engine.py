from __future__ import annotations

import math
import time
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import CNN, Adam, Crop, Distillation, Flip
from softtargets.runs import RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere
from softtargets.training.device_state import DeviceState
from tests.default_device import default_device

from .making import finished, started
from .noting import Noting, packs_of

# These tests compare bits, and fork; both are for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


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
    from softtargets.training.tasks import prepare

    plain = recipe.replace({"epochs": 1, "noise": "none", "augmentation": [], "model.dropout": 0.0})
    (run,) = train([plain], store)
    train_set = load("digits", "train").take(range(150))
    images = torch.from_numpy(train_set.images).float() / 255
    labels = torch.from_numpy(train_set.labels)
    model = build_model(plain, prepare(plain.data, torch.device("cpu")))
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
    watcher = Noting()
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

    monkeypatch.setattr("softtargets.training.scheduling.loop.time.sleep", nap)
    train([recipe], store, watcher=Listening())
    assert said == [recipe.id]


def test_too_little_memory_is_said_in_one_sentence(recipe, store):
    with pytest.raises(
        SofttargetsError, match="does not fit into the memory of cpu; use a smaller batch or net"
    ):
        train([recipe.replace({"model.hidden": [10**12]})], store)


def test_too_little_memory_halves_the_pack(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    step = DeviceState._step

    def greedy(self, size):
        if len(self.courses) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self, size)

    monkeypatch.setattr(DeviceState, "_step", greedy)
    recipes = [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(6)]
    runs = train(recipes, RunStore(tmp_path))
    assert [run.status for run in runs] == ["finished"] * 6
    assert sizes == [6, 3, 1, 1, 1, 1, 1, 1] or sizes[:2] == [6, 3]
    assert max(sizes[2:]) <= 2


def test_a_single_run_that_does_not_fit_is_said(recipe, tmp_path, monkeypatch):
    def never(self, size):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(DeviceState, "_step", never)
    with pytest.raises(SofttargetsError, match=f"run {recipe.id} does not fit into the memory of cpu"):
        train([recipe], RunStore(tmp_path))


def test_a_pack_too_large_is_halved_by_its_size_not_by_what_is_left(recipe, tmp_path, monkeypatch):
    """One of two has ended; the other was never tried alone."""
    sizes = packs_of(monkeypatch)
    step = DeviceState._step

    def greedy(self, size):
        if len(self.courses) > 1 and int(self._steps[1]) >= 6:
            raise RuntimeError("CUDA error: out of memory")
        step(self, size)

    monkeypatch.setattr(DeviceState, "_step", greedy)
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in ((0, 1), (1, 3))]
    runs = train(recipes, RunStore(tmp_path))
    assert [run.status for run in runs] == ["finished"] * 2
    assert sizes == [2, 1]


def test_helpers_share_the_work_and_change_nothing_but_the_time(recipe, tmp_path):
    recipes = [recipe.replace({"seed": seed}) for seed in range(4)]
    store = RunStore(tmp_path / "two")

    class WaitingForHelp(Noting):
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


@pytest.mark.cuda
@pytest.mark.parametrize(
    "model",
    [
        {"name": "cnn", "dropout": 0.3},
        {"name": "alexnet"},
        {"name": "preact_resnet", "depth": 8},
        {"name": "resnet18"},  # as wide as it is, so with NVIDIA's convolutions
        {"name": "mobilenet_v2"},
        {"name": "resnext29", "cardinality": 2},
    ],
    ids=lambda model: model["name"],
)
def test_on_a_gpu_every_net_resumes_exactly_and_is_the_same_in_company(recipe, model, tmp_path):
    varied = recipe.replace({"precision": "bf16", "model": model, "optimiser.lr": 0.01, "epochs": 2})
    others = [varied.replace({"seed": seed}) for seed in (1, 2)]
    (whole, *_) = train([varied, *others], RunStore(tmp_path / "whole"), device="cuda")
    (again, *_) = train([varied, *others], RunStore(tmp_path / "again"), device="cuda")

    class Stop(Watcher):
        def epoch(self, recipe, row):
            raise RuntimeError("power cut")

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError):
        train([varied, *others], store, device="cuda", watcher=Stop(), checkpoint_seconds=0)
    (resumed, *_) = train([varied, *others], store, device="cuda")
    (alone,) = train([varied], RunStore(tmp_path / "alone"), device="cuda")
    for name, value in whole.weights().items():
        assert torch.equal(again.weights()[name], value), name
        assert torch.equal(resumed.weights()[name], value), name
        assert torch.equal(alone.weights()[name], value), name


def test_the_default_device_of_a_program_does_not_matter(recipe, tmp_path):
    (expected,) = train([recipe], RunStore(tmp_path / "a"))
    with default_device("meta"):
        (run,) = train([recipe], RunStore(tmp_path / "b"))
        assert torch.get_default_device() == torch.device("meta")
    assert all(torch.equal(tensor, run.weights()[name]) for name, tensor in expected.weights().items())
