"""Trainings without an engine around them."""

from __future__ import annotations

import torch

from softtargets.training.machinery import Machinery
from softtargets.training.pack import Pack, Start
from softtargets.training.tasks import Teacher, prepare

CPU = torch.device("cpu")


def start_of(recipe, device=CPU, checkpoint=None):
    prepared = prepare(recipe.data, device).with_noise(recipe)
    teacher = None
    if recipe.teacher is not None:
        teacher = Teacher(
            recipe.teacher, started(recipe.teacher, device=device).on_device.nets.model, prepared
        )
    return Start(recipe, prepared, teacher, checkpoint)


def started(*recipes, device=CPU, checkpoints=None, stacked=None):
    """A pack of these recipes, before its first step or where checkpoints say; one alone is not stacked."""
    checkpoints = checkpoints or [None] * len(recipes)
    starts = [start_of(recipe, device, saved) for recipe, saved in zip(recipes, checkpoints, strict=True)]
    stacked = len(recipes) > 1 if stacked is None else stacked
    return Pack(starts, Machinery(recipes[0], starts[0].task, device, stacked))


def advanced(pack, steps):
    """The pack so many steps further, measured where it is due."""
    for _ in range(steps):
        if due := pack.advance():
            pack.measure(due)
    return pack


def finished(pack):
    while not all(slot.done for slot in pack.slots):
        advanced(pack, 1)
    return pack


def states(pack, run=0):
    """All that a run has come to, by name."""
    return {
        **{f"model.{name}": value for name, value in pack.on_device.nets.state(run).items()},
        **{f"loss.{name}": value for name, value in pack.on_device.loss.state(run).items()},
    }


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(value, other[name]) for name, value in one.items())
