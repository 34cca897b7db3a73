"""Every loss in the training loop: what it is given, what it is told, and that its state survives a power cut."""

from __future__ import annotations

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.data import Examples
from softtargets.exceptions import RecipeError
from softtargets.losses import CSKD, REGULARISERS, BetaSmoothing, OnlineLabelSmoothing
from softtargets.models import MODELS, Classifier
from softtargets.randomness import key_words, words
from softtargets.recipes import Distillation
from softtargets.runs import RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere
from softtargets.training.building import build_loss

from .making import advanced, finished, same, started, states

train = partial(train_anywhere, device="cpu")

WITH_STATE_OR_DRAWS = [
    {"name": "labo", "warmup_steps": 8},
    {"name": "online_label_smoothing"},
    {"name": "online_label_smoothing", "freeze": 0.2},
    {"name": "knowledge_refinery"},
    {"name": "beta_smoothing", "decay": 0.9},
    {"name": "disturb_label", "alpha": 0.5},
    {"name": "cs_kd"},
]


class NormalisingNet(Classifier):
    """A net with batch normalisation, in the place of the MLP."""

    def __init__(self, shape, classes, hidden=(16,), dropout=0.0, init_std=None):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(math.prod(shape), 16), nn.BatchNorm1d(16), nn.ReLU()
        )
        self.head = nn.Linear(16, classes)

    def features(self, images):
        return self.body(images)


@pytest.fixture
def normalising(monkeypatch):
    monkeypatch.setitem(MODELS, "mlp", NormalisingNet)


@pytest.fixture
def plain(recipe):
    """Without dropout, augmentation or noise, so that what the net says can be computed again."""
    return recipe.replace({"model.dropout": 0.0, "augmentation": [], "noise": "none"})


def spied(monkeypatch, kind):
    """Write down every call of a loss."""
    calls, forward = [], kind.forward

    def noting(self, *call):
        calls.append(call)
        return forward(self, *call)

    monkeypatch.setattr(kind, "forward", noting)
    return calls


# --- resuming ---


@pytest.mark.parametrize("regulariser", WITH_STATE_OR_DRAWS, ids=str)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_training_saved_in_the_middle_of_an_epoch_goes_on_exactly(recipe, regulariser, device, normalising):
    varied, device = recipe.replace({"regulariser": regulariser}), torch.device(device)
    whole = finished(started(varied, device=device))
    for moment in (3, 5, 7):  # of five steps an epoch: in the first, at its end, in the second
        saved = copy.deepcopy(advanced(started(varied, device=device), moment).save(0))
        second = finished(started(varied, device=device, checkpoints=[saved]))
        assert same(states(second), states(whole))
        assert second.slots[0].history == whole.slots[0].history


@pytest.mark.parametrize("regulariser", WITH_STATE_OR_DRAWS, ids=str)
def test_a_run_cut_in_its_second_epoch_equals_one_that_was_not(recipe, regulariser, tmp_path):
    varied = recipe.replace({"regulariser": regulariser})
    (whole,) = train([varied], RunStore(tmp_path / "whole"))

    class Stop(Watcher):
        def epoch(self, recipe, row):
            if row["epoch"] == 2:
                raise RuntimeError("power cut")  # the checkpoint on disk is that of the step before

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError, match="power cut"):
        train([varied], store, watcher=Stop(), checkpoint_seconds=0)
    (resumed,) = train([varied], store)
    assert resumed.provenance["resumed"] == 1
    assert same(resumed.weights(), whole.weights())
    assert resumed.history() == whole.history()


def test_the_state_matters(recipe):
    """Were it lost, the resumed training would differ: so the two tests above can fail."""
    for regulariser in WITH_STATE_OR_DRAWS[:5]:
        varied = recipe.replace({"regulariser": regulariser})
        whole = finished(started(varied))
        saved = copy.deepcopy(advanced(started(varied), 7).save(0))
        saved.tensors.update(
            {f"loss.{name}": value for name, value in started(varied).on_device.loss.state(0).items()}
        )
        second = finished(started(varied, checkpoints=[saved]))
        assert not same(states(second), states(whole)), regulariser


# --- every regulariser ---


@pytest.mark.parametrize(
    ("regulariser", "precision"),
    [(name, "fp32") for name in REGULARISERS if name != "distillation"]
    + [
        (name, "bf16") for name in ("cs_kd", "beta_smoothing", "online_label_smoothing", "knowledge_refinery")
    ],
)
def test_every_regulariser_trains(recipe, regulariser, precision):
    easy = {"epochs": 5, "augmentation": [], "data.limit": None, "noise.rate": 0.05}
    changes = {"regulariser": regulariser, "precision": precision}
    training = finished(started(recipe.replace(easy | changes)))
    assert training.slots[0].history[-1]["test_accuracy"] > 0.8
    assert not any(parameter.requires_grad for parameter in training.on_device.loss.loss.parameters())


def test_a_distillation_may_match_logits_or_scale_its_gradients(recipe):
    losses = set()
    for options in ({}, {"match": "logits"}, {"scale_gradients": True}):
        taught = Distillation(teacher=recipe, temperature=3.0, **options)
        losses.add(
            finished(started(recipe.replace({"regulariser": taught}))).slots[0].history[-1]["train_loss"]
        )
    assert len(losses) == 3


# --- CS-KD ---


@pytest.mark.parametrize("augmentation", [[], ["shift"]])
def test_partners_are_training_images_of_the_same_class(plain, augmentation, monkeypatch, normalising):
    calls = spied(monkeypatch, CSKD)
    training = started(plain.replace({"regulariser": "cs_kd", "seed": 5, "augmentation": augmentation}))
    images = training.on_device.task.splits["train"].images
    labels = training.on_device.task.splits["train"].labels
    key = key_words(5, "partners")
    for step in range(3):
        model = training.on_device.nets.model
        before = {name: value.clone() for name, value in model.state_dict().items()}
        advanced(training, 1)
        _, shown_labels, partner_logits = calls[-1]
        chosen = training.on_device.feed._order[0, 32 * step : 32 * step + 32]
        assert torch.equal(labels[chosen], shown_labels)
        partners = []
        for index, label in zip(chosen.tolist(), shown_labels.tolist(), strict=True):
            members = [place for place in range(150) if int(labels[place]) == label]
            partners.append(members[int(words(key, index, 0)[0]) * len(members) >> 32])
        pictures = images[partners]
        if augmentation:
            view = training.on_device.feed._view
            drawn = view.draw(key_words(5, "partners' augmentation"), chosen, 0)
            pictures = view.apply(pictures, drawn)
        after = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(before)
        with torch.no_grad():
            expected = model.train()(training.on_device.task.standardise(pictures))
        model.load_state_dict(after)
        torch.testing.assert_close(partner_logits, expected)
        assert not partner_logits.requires_grad
        assert model.body[2].num_batches_tracked == 2 * (step + 1), "the second forward pass counts too"


def one_of_each(name, split, data_dir):
    images = np.random.default_rng(0).integers(0, 256, (110, 1, 8, 8), np.uint8)
    return Examples(images, np.arange(110) % 10, tuple("abcdefghij"))


def test_partners_are_augmented_on_their_own(plain, monkeypatch):
    calls = spied(monkeypatch, CSKD)
    for augmentation in ([], ["shift"]):
        changes = {"regulariser": "cs_kd", "augmentation": augmentation, "data.limit": 10, "batch": 10}
        monkeypatch.setattr(
            "softtargets.training.tasks.images.task.load", one_of_each
        )  # so each is its own partner
        advanced(started(plain.replace(changes)), 1)
        own, _, partners = calls[-1]
        assert torch.allclose(own, partners) == (not augmentation)


def test_partners_draw_dropout_of_their_own(plain, monkeypatch):
    """Each is its own partner here, and shown as it is: what the net says of it differs by dropout alone."""
    calls = spied(monkeypatch, CSKD)
    monkeypatch.setattr("softtargets.training.tasks.images.task.load", one_of_each)
    changes = {"regulariser": "cs_kd", "augmentation": [], "data.limit": 10, "batch": 10}
    for dropout in (0.0, 0.5):
        advanced(started(plain.replace(changes | {"model.dropout": dropout})), 1)
        own, _, partners = calls[-1]
        assert torch.allclose(own, partners) == (dropout == 0)


# --- Beta smoothing ---


def test_the_averaged_net_is_asked_about_the_same_images_and_follows_the_net(plain, monkeypatch, normalising):
    calls = spied(monkeypatch, BetaSmoothing)
    training = started(plain.replace({"regulariser": {"name": "beta_smoothing", "decay": 0.6}}))
    model, loss = training.on_device.nets.model, training.on_device.loss.loss
    average = [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(1, 6):
        advanced(training, 1)
        if step == 1:
            # The average starts as the net itself, and says the same of the first batch.
            torch.testing.assert_close(calls[0][2], calls[0][0])
        else:
            assert not torch.allclose(calls[-1][2], calls[-1][0])
        decay = min(1 - 1 / (step + 1), 0.6)
        average = [
            decay * old + (1 - decay) * new.detach()
            for old, new in zip(average, model.parameters(), strict=True)
        ]
        for found, expected in zip(loss.averaged.parameters(), average, strict=True):
            torch.testing.assert_close(found, expected)
        assert loss.averaged.body[2].num_batches_tracked == step
        assert model.body[2].num_batches_tracked == step
    assert loss.averaged.training


# --- online label smoothing ---


def test_the_table_is_made_when_an_epoch_is_complete_and_only_then(plain, monkeypatch):
    calls = spied(monkeypatch, OnlineLabelSmoothing)
    changes = {"regulariser": "online_label_smoothing", "epochs": None, "steps": 12}
    training = started(plain.replace(changes))
    finished(training)
    rows = torch.full((10, 10), 0.1)
    for k in range(10):
        said = [
            F.softmax(z, -1)
            for logits, labels in calls[5:10]  # the second of two complete epochs
            for z, y in zip(logits.detach(), labels, strict=True)
            if int(y) == k == int(z.argmax())
        ]
        if said:
            rows[k] = torch.stack(said).mean(0)
    torch.testing.assert_close(training.on_device.loss.loss.table, rows)
    assert training.on_device.loss.loss.counts.sum() > 0, (
        "what the last, incomplete epoch said is still being collected"
    )


# --- building ---


@pytest.mark.parametrize("noise", ["symmetric", "pair"])
def test_forward_correction_takes_its_matrix_from_the_noise(recipe, noise):
    varied = recipe.replace({"regulariser": "forward_correction", "noise": {"name": noise, "rate": 0.3}})
    loss = build_loss(varied, classes=4)
    expected = torch.eye(4) * 0.7
    for clean in range(4):
        for other in range(4):
            if noise == "pair" and other == (clean + 1) % 4:
                expected[clean, other] = 0.3
            if noise == "symmetric" and other != clean:
                expected[clean, other] = 0.1
    torch.testing.assert_close(loss.matrix, expected)


def test_a_loss_that_the_data_makes_impossible_is_a_mistake_of_the_recipe(recipe, tmp_path, monkeypatch):
    from softtargets.training.tasks.images import task

    def one_class(name, split, data_dir):
        return Examples(np.zeros((400, 1, 8, 8), np.uint8), np.zeros(400, np.int64), ("only",))

    monkeypatch.setattr(task, "load", one_class)
    varied = recipe.replace({"regulariser": "knowledge_refinery", "noise": "none"})
    with pytest.raises(RecipeError, match="regulariser: classes must be at least 2, not 1"):
        train([varied], RunStore(tmp_path))
