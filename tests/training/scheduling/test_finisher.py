from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from softtargets.data import load
from softtargets.exceptions import RunError
from softtargets.recipes import CrossEntropy, Distillation
from softtargets.runs import RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere

from ..noting import Noting

train = partial(train_anywhere, device="cpu")


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


def test_a_diverged_run_is_marked_failed_and_its_neighbours_go_on(recipe, store):
    wild = recipe.replace({"optimiser.lr": 1e30, "regulariser": CrossEntropy()})
    student = recipe.replace({"regulariser": Distillation(teacher=wild)})
    failed, fine, orphan = train([wild, recipe, student], store)
    assert failed.status == "failed"
    assert "nan" in failed.provenance["reason"] or "inf" in failed.provenance["reason"]
    assert fine.status == "finished"
    assert orphan.status == "failed"
    assert wild.id in orphan.provenance["reason"]
    watcher = Noting()
    train([wild], store, watcher=watcher)
    assert watcher.starts == [], "a failure is a result too: it is not tried again"


def test_predictions_not_kept_before_are_added_from_the_weights(recipe, tmp_path):
    store = RunStore(tmp_path / "later")
    train([recipe], store, keep=("test",))
    (later,) = train([recipe], store, keep=("train", "test"))
    (at_once,) = train([recipe], RunStore(tmp_path / "once"), keep=("train", "test"))
    assert torch.equal(later.predictions("train").logits, at_once.predictions("train").logits)
    assert later.problems() == []
    with pytest.raises(RunError, match="has no predictions on 'validation'; it has: test, train"):
        later.predictions("validation")


def test_scores_may_be_kept_without_activations_and_these_added_when_they_are_asked_for(recipe, store):
    quick = recipe.replace({"epochs": 1})
    (run,) = train([quick], store, keep=("test:scores", "train"))
    assert run.has_only_scores("test")
    assert not run.has_only_scores("train")
    assert run.predictions("test").features.shape == (500, 0)
    scores = run.predictions("test").logits
    (again,) = train([quick], store, keep=("test:scores",))
    assert again.has_only_scores("test")
    (full,) = train([quick], store, keep=("test",))
    assert full.predictions("test").features.shape == (500, 32)
    assert torch.equal(full.predictions("test").logits, scores)
    (kept,) = train([quick], store, keep=("test:scores",))
    assert not kept.has_only_scores("test")
    assert kept.problems() == []


def test_noisy_labels_are_trained_on_and_kept_with_the_predictions(recipe, store):
    (run,) = train([recipe], store, keep=("train", "test"))
    clean = torch.from_numpy(load("digits", "train").labels[:150])
    assert 0.02 < float((run.predictions("train").labels != clean).double().mean()) < 0.25
    assert torch.equal(run.predictions("test").labels, torch.from_numpy(load("digits", "test").labels))


def test_a_last_step_that_blows_up_is_a_failure_too(recipe, store):
    """Its training loss was computed before the update, and is fine."""
    wild = recipe.replace(
        {"optimiser.lr": 1e30, "epochs": 1, "batch": 150, "augmentation": [], "noise": "none"}
    )
    (run,) = train([wild], store)
    assert run.status == "failed"
    assert "validation_loss is nan after step 1" in run.provenance["reason"]


def test_a_run_directory_deleted_under_a_training_is_made_again_or_refused(recipe, store):
    class Deleting(Watcher):
        def epoch(self, recipe, row):
            (store.root / recipe.id / "recipe.json").unlink(missing_ok=True)

    (run,) = train([recipe], store, watcher=Deleting())
    assert run.problems() == []
