from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import CNN, Adam, Distillation, LabelSmoothing
from softtargets.runs import RunStore, RunWriter
from softtargets.training import Watcher, train
from softtargets.training import engine as engine_module
from softtargets.training import stepping as stepping_module
from softtargets.training.packing import CPU_RUNS, CPU_WEIGHTS, GPU_STREAMS, arrangement, kind_of_run

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 3},
        {"epochs": 9},
        {"regulariser": LabelSmoothing(alpha=0.4)},
        {"regulariser": "labo"},
        {"noise": "pair"},
        {"optimiser.lr": 0.7},
        {"optimiser.momentum": 0.3},
        {"schedule": "cosine"},
        {"multiplier": 3.0},
        {"measure_every": 2},
    ],
    ids=str,
)
def test_runs_that_train_together(recipe, changes):
    assert kind_of_run(recipe) == kind_of_run(recipe.replace(changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"model.hidden": [16]},
        {"model": CNN()},
        {"data.limit": 100},
        {"data.standardise": "image"},
        {"batch": 16},
        {"augmentation": []},
        {"precision": "bf16"},
        {"optimiser": Adam()},
        {"optimiser.nesterov": True, "optimiser.dampening": 0.0},
        {"clip": 1.0},
        {"average": 0.9},
        {"regulariser": "cs_kd"},
        {"regulariser": "disturb_label"},
    ],
    ids=str,
)
def test_runs_that_do_not(recipe, changes):
    assert kind_of_run(recipe) != kind_of_run(recipe.replace(changes))


def test_students_shown_augmented_images_need_teachers_of_one_shape(recipe):
    def student(**changes):
        return recipe.replace({"regulariser": Distillation(teacher=recipe.replace({"seed": 5, **changes}))})

    assert kind_of_run(student()) == kind_of_run(student(epochs=7))
    assert kind_of_run(student()) != kind_of_run(student(**{"model.hidden": [16]}))
    assert kind_of_run(student()) != kind_of_run(recipe)
    bare = student().replace({"augmentation": []})
    assert kind_of_run(bare) == kind_of_run(recipe.replace({"augmentation": []}))


def test_how_many_at_a_time(recipe):
    assert arrangement(recipe, 1000, CPU) == (CPU_RUNS, True)
    assert arrangement(recipe, CPU_WEIGHTS + 1, CPU) == (1, False)
    assert arrangement(recipe.replace({"model": CNN()}), 1000, CPU) == (1, False)
    assert arrangement(recipe.replace({"regulariser": "cs_kd"}), 1000, CPU) == (1, False)
    assert arrangement(recipe, 1_000_000, CUDA).runs > arrangement(recipe, 10_000_000, CUDA).runs > 1
    assert arrangement(recipe.replace({"model": "resnet18"}), 11_000_000, CUDA) == (GPU_STREAMS, False)
    assert arrangement(recipe.replace({"regulariser": "cs_kd"}), 1000, CUDA) == (GPU_STREAMS, False)
    assert arrangement(recipe.replace({"regulariser": "disturb_label"}), 1000, CUDA) == (1, False)


# --- the engine ---


class Noting(Watcher):
    def __init__(self):
        self.starts, self.ends, self.at = [], [], {}

    def started(self, recipe, step, total_steps):
        self.starts.append((recipe.id, step))

    def progressed(self, recipe, step, images):
        self.at[recipe.id] = step

    def finished(self, run):
        self.ends.append(run.id)


def packs_of(monkeypatch):
    """The sizes of all packs that are made."""
    sizes = []

    class Counted(engine_module.Pack):
        def __init__(self, starts, *rest):
            sizes.append(len(starts))
            super().__init__(starts, *rest)

    monkeypatch.setattr(engine_module, "Pack", Counted)
    return sizes


def test_runs_of_one_kind_are_one_pack_and_equal_runs_alone(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "regulariser.alpha": 0.1 * seed}) for seed in range(5)]
    recipes += [recipe.replace({"model.hidden": [16], "seed": seed}) for seed in range(2)]
    together = train(recipes, RunStore(tmp_path / "together"), device="cpu")
    assert sizes == [5, 2]
    assert {run.provenance["runs_together"] for run in together} == {5, 2}
    for each, run in zip(recipes, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"), device="cpu")
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())
        assert alone.history() == run.history()
        assert torch.equal(alone.predictions("test").logits, run.predictions("test").logits)


def test_the_seconds_of_a_pack_are_shared_out(recipe, tmp_path):
    import time

    begun = time.monotonic()
    runs = train([recipe.replace({"seed": seed}) for seed in range(6)], RunStore(tmp_path), device="cpu")
    assert 0 < sum(run.provenance["seconds"] for run in runs) < time.monotonic() - begun


def test_runs_that_end_make_room_for_others(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 3)
    sizes = packs_of(monkeypatch)
    lengths = [1, 2, 4, 3, 1, 2]
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in enumerate(lengths)]
    watcher = Noting()
    store = RunStore(tmp_path / "refilled")
    together = train(recipes, store, device="cpu", watcher=watcher)
    assert [run.status for run in together] == ["finished"] * 6
    assert sizes[0] == 3
    assert len(sizes) > 2, "others joined when some had ended"
    assert sorted(watcher.starts) == sorted((recipe.id, 0) for recipe in recipes), "each starts once"
    for each, run in zip(recipes, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"), device="cpu")
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())
        assert alone.history() == run.history()
        assert not store.is_claimed(each)


def test_too_little_memory_halves_the_pack(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    step = stepping_module.Stepping._step

    def greedy(self, size):
        if len(self.courses) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self, size)

    monkeypatch.setattr(stepping_module.Stepping, "_step", greedy)
    recipes = [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(6)]
    runs = train(recipes, RunStore(tmp_path), device="cpu")
    assert [run.status for run in runs] == ["finished"] * 6
    assert sizes == [6, 3, 1, 1, 1, 1, 1, 1] or sizes[:2] == [6, 3]
    assert max(sizes[2:]) <= 2


def test_a_single_run_that_does_not_fit_is_said(recipe, tmp_path, monkeypatch):
    def never(self, size):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(stepping_module.Stepping, "_step", never)
    with pytest.raises(SofttargetsError, match=f"run {recipe.id} does not fit into the memory of cpu"):
        train([recipe], RunStore(tmp_path), device="cpu")


def test_ctrl_c_saves_every_run_of_a_pack(recipe, tmp_path):
    import os
    import signal

    recipes = [recipe.replace({"seed": seed}) for seed in range(3)]
    whole = train(recipes, RunStore(tmp_path / "whole"), device="cpu")

    class Interrupting(Watcher):
        def epoch(self, recipe, row):
            if row["epoch"] == 2 and recipe.seed == 1:
                os.kill(os.getpid(), signal.SIGINT)

    store = RunStore(tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        train(recipes, store, device="cpu", watcher=Interrupting())
    assert [entry.status for entry in store.entries()] == ["interrupted"] * 3
    watcher = Noting()
    resumed = train(recipes, store, device="cpu", watcher=watcher)
    assert [step for _, step in watcher.starts] == [10] * 3
    for one, other in zip(whole, resumed, strict=True):
        assert all(torch.equal(value, other.weights()[name]) for name, value in one.weights().items())
        assert one.history() == other.history()


def test_runs_cut_at_different_places_go_on_in_packs_of_their_own(recipe, tmp_path, monkeypatch):
    recipes = [recipe.replace({"seed": seed}) for seed in range(3)]
    store = RunStore(tmp_path / "cut")

    class Stop(Watcher):
        def progressed(self, recipe, step, images):
            if step >= self.until:
                raise RuntimeError("power cut")

    monkeypatch.setattr(engine_module, "_REPORT_SECONDS", 0)
    for until, part in ((3, recipes[:2]), (4, recipes[2:])):
        watcher = Stop()
        watcher.until = until
        with pytest.raises(RuntimeError):
            train(part, store, device="cpu", watcher=watcher, checkpoint_seconds=0)
    sizes = packs_of(monkeypatch)
    resumed = train(recipes, store, device="cpu")
    assert sizes == [2, 1]
    for each, run in zip(recipes, resumed, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"), device="cpu")
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())


def test_layers_that_are_not_there_are_refused_before_anything_is_trained(recipe, tmp_path):
    from softtargets.exceptions import RecipeError

    store = RunStore(tmp_path)
    wrong = recipe.replace({"seed": 1, "optimiser.rates": {"hed.*": 0.1}})
    with pytest.raises(RecipeError, match=r"optimiser: .*hed\.\*"):
        train([recipe, wrong], store, device="cpu")
    assert store.entries() == []


def test_a_pack_too_large_is_halved_by_its_size_not_by_what_is_left(recipe, tmp_path, monkeypatch):
    """One of two has ended; the other was never tried alone."""
    sizes = packs_of(monkeypatch)
    step = stepping_module.Stepping._step

    def greedy(self, size):
        if len(self.courses) > 1 and int(self._steps[1]) >= 6:
            raise RuntimeError("CUDA error: out of memory")
        step(self, size)

    monkeypatch.setattr(stepping_module.Stepping, "_step", greedy)
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in ((0, 1), (1, 3))]
    runs = train(recipes, RunStore(tmp_path), device="cpu")
    assert [run.status for run in runs] == ["finished"] * 2
    assert sizes == [2, 1]


def test_packs_are_gone_when_they_are_done_with(recipe):
    import gc
    import weakref

    from .making import advanced, started

    gc.collect()
    gc.disable()
    try:
        pack = advanced(started(recipe, recipe.replace({"seed": 1})), 6)
        gone = weakref.ref(pack.stepping)
        del pack
        assert gone() is None, "a circle of references keeps the memory of a pack"
    finally:
        gc.enable()


def test_a_run_among_many_short_ones_is_saved_in_time(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 2)
    writes = []
    checkpoint = RunWriter.checkpoint

    def noting(self, saved):
        writes.append((self.recipe.seed, saved.progress["step"]))
        checkpoint(self, saved)

    monkeypatch.setattr(RunWriter, "checkpoint", noting)
    clock = iter(range(10**9))
    monkeypatch.setattr(engine_module.time, "monotonic", lambda: next(clock) / 100)
    recipes = [recipe.replace({"seed": 0, "epochs": 12})]
    recipes += [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(1, 8)]
    train(recipes, RunStore(tmp_path), device="cpu", checkpoint_seconds=0.3)
    steps = [step for seed, step in writes if seed == 0]
    assert steps, "never saved"
    assert steps[0] < 25, "while the short ones come and go"


def test_interrupted_between_two_packs_nothing_is_lost(recipe, tmp_path, monkeypatch):
    import os
    import signal

    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 2)
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in ((0, 6), (1, 1), (2, 1))]
    store = RunStore(tmp_path / "cut")
    claim = engine_module._Engine._claim

    def interrupted(self, todo, claims, joining=()):
        if joining:
            os.kill(os.getpid(), signal.SIGINT)
        return claim(self, todo, claims, joining)

    monkeypatch.setattr(engine_module._Engine, "_claim", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(recipes, store, device="cpu")
    monkeypatch.setattr(engine_module._Engine, "_claim", claim)
    watcher = Noting()
    (resumed, *_) = train(recipes, store, device="cpu", watcher=watcher)
    assert (recipes[0].id, 5) in watcher.starts
    (alone,) = train(recipes[:1], RunStore(tmp_path / "alone"), device="cpu")
    assert all(torch.equal(value, resumed.weights()[name]) for name, value in alone.weights().items())
    assert not any(store.is_claimed(each) for each in recipes)


def test_runs_that_could_not_join_are_not_asked_again_and_again(recipe, tmp_path, monkeypatch):
    """Waiting runs that another process holds must not make packs be built anew for nothing."""
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 3)
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "epochs": 1 + seed}) for seed in range(3)]
    waiting = recipe.replace({"seed": 9, "epochs": 1})
    store = RunStore(tmp_path)
    monkeypatch.setattr(RunStore, "is_claimed", lambda self, recipe: False)  # it looks free, but is not
    held = store.claim(waiting)
    ended = []

    class Releasing(Watcher):
        def finished(self, run):
            ended.append(run.id)
            if len(ended) == 3:
                held.release()

    train([*recipes, waiting], store, device="cpu", watcher=Releasing())
    assert sizes == [3, 2, 1]


def test_processes_take_their_share(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(8)]
    train(recipes, RunStore(tmp_path), device="cpu", sharing=4)
    assert sizes == [2, 2, 1, 1, 1, 1]
