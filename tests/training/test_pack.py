"""Runs that share a pack: each is exactly what it would be alone."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.losses import REGULARISERS
from softtargets.models import MODELS
from softtargets.recipes import CNN, MLP, SGD, Adam, Distillation, LabelSmoothing
from softtargets.training.course import Course
from softtargets.training.pack_loss import ALONE

from .making import advanced, finished, same, started, states
from .test_losses import NormalisingNet

STACKABLE = [
    name for name, kind in REGULARISERS.items() if not issubclass(kind, ALONE) and name != "distillation"
]


def varied(recipe, count=4, **changes):
    """Runs that differ in all that runs of a pack may differ in."""
    optimisers = [
        SGD(lr=0.1 / (seed + 1), momentum=0.5 + 0.1 * seed, weight_decay=1e-4 * seed) for seed in range(count)
    ]
    return [
        recipe.replace({"seed": seed, "optimiser": optimisers[seed], "noise.rate": 0.1 * seed, **changes})
        for seed in range(count)
    ]


def assert_near(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(
            value, other[name], rtol=1e-4, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}"
        )


MODELS_TO_STACK = [MLP(hidden=(32, 16), dropout=0.2), CNN(channels=(4, 8), hidden=16, dropout=0.1)]


@pytest.mark.parametrize("model", MODELS_TO_STACK, ids=str)
def test_a_run_does_not_depend_on_who_shares_its_pack(recipe, model):
    recipes = varied(recipe, model=model)
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        # A stack of one convolution is not computed as one of several are.
        others = [] if model.name == "mlp" else [recipe.replace({"seed": 9, "model": model})]
        alone = finished(started(each, *others, stacked=True))
        assert same(states(alone), states(together, run))
        assert alone.slots[0].history == together.slots[run].history
    turned = finished(started(*recipes[::-1]))
    assert same(states(turned, 0), states(together, 3))


@pytest.mark.parametrize("model", MODELS_TO_STACK, ids=str)
def test_a_stack_agrees_with_the_nets_as_they_are(recipe, model):
    recipes = varied(recipe, model=model)
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        alone = finished(started(each, stacked=False))
        assert_near(states(alone), states(together, run))
        for one, other in zip(alone.slots[0].history, together.slots[run].history, strict=True):
            assert one["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
            assert one["test_loss"] == pytest.approx(other["test_loss"], rel=1e-5)
            assert one["train_accuracy"] == other["train_accuracy"]


@pytest.mark.parametrize("regulariser", STACKABLE)
def test_every_stackable_loss_agrees_with_itself_alone(recipe, regulariser):
    options = {"name": regulariser}
    if regulariser == "labo":
        options["warmup_steps"] = 6
    recipes = [
        recipe.replace({"regulariser": options, "seed": seed, "noise.rate": 0.1 + 0.1 * seed})
        for seed in range(3)
    ]
    if "alpha" in vars(recipes[0].regulariser):
        recipes = [each.replace({"regulariser.alpha": 0.1 + 0.2 * seed}) for seed, each in enumerate(recipes)]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert_near(states(finished(started(each))), states(together, run))


def test_losses_of_several_kinds_in_one_pack(recipe):
    kinds = [
        "cross_entropy",
        {"name": "label_smoothing", "alpha": 0.3},
        "labo",
        {"name": "focal", "gamma": 1.0},
    ]
    kinds += [LabelSmoothing(alpha=0.2, spread="others"), "cross_entropy", "online_label_smoothing"]
    recipes = [recipe.replace({"regulariser": kind, "seed": seed}) for seed, kind in enumerate(kinds)]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert_near(states(finished(started(each))), states(together, run))


@pytest.mark.parametrize("augmentation", [[], ["shift"]])
def test_students_of_different_teachers_in_one_pack(recipe, augmentation):
    base = recipe.replace({"augmentation": augmentation})
    teachers = [base.replace({"seed": 10 + seed}) for seed in range(2)]
    recipes = [
        base.replace(
            {"seed": seed, "regulariser": Distillation(teacher=teachers[seed % 2], temperature=1.0 + seed)}
        )
        for seed in range(3)
    ]
    if not augmentation:  # those that see fixed images may sit beside runs without a teacher
        recipes.insert(1, base.replace({"seed": 7}))
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert_near(states(finished(started(each))), states(together, run))


def test_batch_normalisation_is_of_each_run(recipe, monkeypatch):
    monkeypatch.setitem(MODELS, "mlp", NormalisingNet)
    recipes = varied(recipe)
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        alone = finished(started(each))
        assert alone.on_device.nets.state(0)["body.2.num_batches_tracked"] == 20
        assert_near(states(alone), states(together, run))
        assert together.slots[run].history[-1]["test_loss"] == pytest.approx(
            alone.slots[0].history[-1]["test_loss"], rel=1e-4
        )


def test_saved_and_resumed_in_another_pack(recipe):
    recipes = varied(recipe)
    whole = finished(started(*recipes))
    first = advanced(started(*recipes), 7)
    saved = [copy.deepcopy(first.save(run)) for run in range(4)]
    second = finished(started(recipes[2], recipes[0], checkpoints=[saved[2], saved[0]]))
    for place, run in enumerate((2, 0)):
        assert same(states(second, place), states(whole, run))
        assert second.slots[place].history == whole.slots[run].history


def test_runs_at_different_places_of_their_epochs_are_refused(recipe):
    recipes = varied(recipe, 2)
    saved = advanced(started(recipes[0], stacked=True), 3).save(0)
    with pytest.raises(ValueError, match="at the same place of their epochs"):
        started(*recipes, checkpoints=[saved, None])


def test_a_run_that_blows_up_leaves_its_neighbours_alone(recipe):
    recipes = varied(recipe)
    recipes[1] = recipes[1].replace({"optimiser.lr": 1e30})
    together = finished(started(*recipes))
    slot = together.slots[1]
    assert slot.failure is not None
    assert "at step 2" in slot.failure, "the first step whose loss is no number"
    assert slot.history == []
    for run in (0, 2, 3):
        assert same(states(finished(started(recipes[run], stacked=True))), states(together, run))


def test_runs_of_different_length(recipe):
    recipes = [recipe.replace({"epochs": None, "steps": steps, "seed": steps}) for steps in (3, 5, 12)]
    pack = started(*recipes)
    ended = {}
    while not all(slot.done for slot in pack.slots):
        due = pack.advance()
        if due:
            pack.measure(due)
        for run in due:
            if pack.slots[run].done:
                ended[run] = copy.deepcopy(pack.weights(run))
    for run, each in enumerate(recipes):
        alone = finished(started(each, stacked=True))
        assert same(alone.weights(0), ended[run])
        assert alone.slots[0].history == pack.slots[run].history
        assert pack.slots[run].step == each.steps


# --- what recipes can ask for ---


def loop_of(recipe, change):
    """A training re-derived with plain PyTorch: the same data, order and initial weights, the rest by `change`."""
    pack = started(recipe, stacked=False)
    model = copy.deepcopy(pack.on_device.nets.model)
    model.draw_from(None)
    train = pack.on_device.task.splits["train"]
    images, labels = pack.on_device.task.standardise(train.images), train.labels
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    for _epoch in range(recipe.epochs):
        pack.on_device.open_epoch(0, [0]) if steps == 0 else None
        for place in range(5):
            chosen = pack.on_device.feed._order[0, 32 * place : 32 * place + 32]
            optimiser.zero_grad()
            change(model, F.cross_entropy(model(images[chosen]), labels[chosen]), optimiser)
            steps += 1
    return model


def plain_recipe(recipe, **changes):
    plain = {
        "model.dropout": 0.0,
        "augmentation": [],
        "noise": "none",
        "regulariser": "cross_entropy",
        "epochs": 1,
    }
    return recipe.replace(plain | {"optimiser": SGD(lr=0.1), "schedule": "constant"} | changes)


def test_the_loss_is_multiplied_and_the_gradient_clipped(recipe):
    wanted = plain_recipe(recipe, multiplier=3.0, clip=0.5)

    def change(model, loss, optimiser):
        (3 * loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()

    expected = loop_of(wanted, change).state_dict()
    assert_near(finished(started(wanted)).on_device.nets.state(0), expected)
    assert_near(finished(started(wanted, wanted.replace({"seed": 4}))).on_device.nets.state(0), expected)


def test_weight_decay_in_the_loss_is_clipped_with_it_and_reported(recipe):
    wanted = plain_recipe(
        recipe, clip=0.5, optimiser=SGD(lr=0.1, weight_decay=0.1, decay_form="loss", decay_on=["head.weight"])
    )
    reported = []

    def change(model, loss, optimiser):
        loss = loss + 0.1 * model.head.weight.square().sum() / 2
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
        reported.append(loss.item())

    expected = loop_of(wanted, change).state_dict()
    pack = finished(started(wanted))
    assert_near(pack.on_device.nets.state(0), expected)
    mean = (sum(32 * value for value in reported[:4]) + 22 * reported[4]) / 150
    assert pack.slots[0].history[0]["train_loss"] == pytest.approx(mean, rel=1e-5)


def test_the_average_of_the_weights_is_what_is_measured_and_kept(recipe):
    wanted = plain_recipe(recipe, average=0.8)
    averages = {name: value.clone() for name, value in started(wanted).on_device.nets.state(0).items()}

    def change(model, loss, optimiser):
        loss.backward()
        optimiser.step()
        for name, value in model.state_dict().items():
            averages[name] = 0.8 * averages[name] + 0.2 * value

    model = loop_of(wanted, change)
    last = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(averages)
    for pack in (finished(started(wanted)), finished(started(wanted, wanted.replace({"seed": 4})))):
        assert_near(pack.on_device.nets.state(0), last)
        assert_near(pack.weights(0), averages)
        test = pack.on_device.task.splits["test"]
        with torch.no_grad():
            loss = F.cross_entropy(model(pack.on_device.task.standardise(test.images)), test.labels)
        assert pack.slots[0].history[-1]["test_loss"] == pytest.approx(float(loss), rel=1e-5)


def test_averages_survive_a_resume(recipe):
    wanted = recipe.replace({"average": 0.8})
    saved = copy.deepcopy(advanced(started(wanted), 7).save(0))
    whole, resumed = finished(started(wanted)), finished(started(wanted, checkpoints=[saved]))
    assert same(resumed.weights(0), whole.weights(0))
    assert resumed.slots[0].history == whole.slots[0].history


def test_layers_may_have_rates_of_their_own(recipe):
    wanted = plain_recipe(recipe, optimiser=SGD(lr=0.1, rates={"head.*": 0.0}))
    pack = finished(started(wanted))
    before = started(wanted).on_device.nets.state(0)
    assert pack.on_device.nets.state(0)["head.weight"].equal(before["head.weight"])
    assert not pack.on_device.nets.state(0)["body.1.weight"].equal(before["body.1.weight"])


def test_measuring_every_few_steps(recipe):
    history = finished(started(recipe.replace({"measure_every": 3, "epochs": 2}))).slots[0].history
    assert [row["step"] for row in history] == [3, 5, 6, 9, 10]
    assert [row["epoch"] for row in history] == [1, 1, 2, 2, 2]
    whole = finished(started(recipe.replace({"epochs": 2}))).slots[0].history
    first = [row for row in history if row["epoch"] == 1]
    mean = (96 * first[0]["train_loss"] + 54 * first[1]["train_loss"]) / 150
    assert mean == pytest.approx(whole[0]["train_loss"], rel=1e-12)
    assert history[1]["test_loss"] == whole[0]["test_loss"]
    saved = copy.deepcopy(advanced(started(recipe.replace({"measure_every": 3, "epochs": 2})), 4).save(0))
    resumed = finished(started(recipe.replace({"measure_every": 3, "epochs": 2}), checkpoints=[saved]))
    assert resumed.slots[0].history == history


def test_adam_in_a_pack(recipe):
    recipes = [
        recipe.replace(
            {"seed": seed, "optimiser": Adam(lr=0.01 * (seed + 1), betas=(0.8, 0.9 + 0.03 * seed))}
        )
        for seed in range(3)
    ]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert_near(states(finished(started(each))), states(together, run))


def test_every_dropout_of_a_stacked_net_draws_its_own_mask(recipe):
    """They share one place in a net alone; in a stack, what is shared would be passed on to the first only."""
    deep = recipe.replace({"model": MLP(hidden=(32, 32, 32), dropout=0.5)})
    together = finished(started(deep, deep.replace({"seed": 1})))
    assert_near(states(finished(started(deep))), states(together))


def test_absent_numbers_make_another_loss(recipe):
    """LABO with a fixed alpha beside LABO without one, and with another warm-up."""
    losses = [
        {"name": "labo"},
        {"name": "labo", "alpha": 0.9},
        {"name": "labo", "alpha": 0.4, "warmup_steps": 6},
        {"name": "labo", "alpha": 0.4, "warmup_steps": 6, "warmup_alpha": 0.8},
        {"name": "labo", "warmup_steps": 6, "warmup": "adaptive"},
        {"name": "labo", "hypergradient": True},
        {"name": "labo", "reading": "reversed"},
    ]
    for order in (losses, losses[::-1]):
        recipes = [recipe.replace({"regulariser": loss, "seed": seed}) for seed, loss in enumerate(order)]
        together = finished(started(*recipes))
        for run, each in enumerate(recipes):
            assert_near(states(finished(started(each))), states(together, run))


def test_resumed_beside_optimisers_with_other_memories(recipe):
    """A run without momentum beside one that has it is given a buffer that it does not need."""
    plain, moving = (
        recipe.replace({"seed": seed, "optimiser": SGD(lr=0.1, momentum=momentum)})
        for seed, momentum in ((0, 0.0), (1, 0.9))
    )
    whole = finished(started(plain, moving))
    half = advanced(started(plain, moving), 7)
    saved = [copy.deepcopy(half.save(run)) for run in range(2)]
    for run, each in enumerate((plain, moving)):
        resumed = finished(started(each, checkpoints=[saved[run]], stacked=True))
        assert same(states(resumed), states(whole, run))
    alone = copy.deepcopy(advanced(started(plain, stacked=True), 7).save(0))
    joined = finished(started(plain, moving, checkpoints=[alone, saved[1]]))
    assert same(states(joined), states(whole))


@pytest.mark.parametrize(
    "optimisers",
    [
        [Adam(lr=0.01, betas=(0.9, 0.99)), Adam(lr=0.01, betas=(0.9, 0.9))],
        [SGD(lr=0.1, weight_decay=decay, decay_form="norm") for decay in (0.01, 0.03)],
        [SGD(lr=0.1, weight_decay=decay, decay_form="loss") for decay in (0.01, 0.03)],
    ],
    ids=["beta2", "norm", "loss"],
)
def test_numbers_of_others_change_no_bit(recipe, optimisers):
    recipes = [recipe.replace({"optimiser": each}) for each in optimisers]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert same(states(finished(started(each, stacked=True))), states(together, run))


def test_students_of_one_teacher_shown_augmented_images(recipe):
    teacher = recipe.replace({"seed": 10})
    recipes = [
        recipe.replace({"seed": seed, "regulariser": Distillation(teacher=teacher, temperature=2.0)})
        for seed in range(3)
    ]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        assert_near(states(finished(started(each))), states(together, run))


def test_packs_are_gone_when_they_are_done_with(recipe):
    gc.collect()
    gc.disable()
    try:
        pack = advanced(started(recipe, recipe.replace({"seed": 1})), 6)
        gone = weakref.ref(pack.on_device)
        del pack
        assert gone() is None, "a circle of references keeps the memory of a pack"
    finally:
        gc.enable()


def test_the_next_epoch_is_drawn_while_the_device_is_busy(recipe, monkeypatch):
    pack = started(recipe)
    asked = []
    original = Course.epoch
    monkeypatch.setattr(
        Course, "epoch", lambda self, number: (asked.append(number), original(self, number))[1]
    )
    steps = pack.slots[0].course.steps_per_epoch
    advanced(pack, steps)
    assert asked[-1] == 1  # asked for before the second epoch is begun
    finished(pack)
    assert max(asked) == 3  # and after the last there is none
