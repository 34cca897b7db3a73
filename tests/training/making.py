"""Trainings without an engine around them."""

from __future__ import annotations

import torch
from softtargets.training.preparation import prepare, with_noise
from softtargets.training.targets import Teacher

from softtargets.training.machinery import Machinery
from softtargets.training.pack import Pack, Start

CPU = torch.device("cpu")


def start_of(recipe, device=CPU, checkpoint=None):
    prepared = with_noise(prepare(recipe.data, device), recipe.noise, recipe.seed)
    teacher = None
    if recipe.teacher is not None:
        teacher = Teacher(
            recipe.teacher, started(recipe.teacher, device=device).stepping.nets.model, prepared
        )
    return Start(recipe, prepared, teacher, checkpoint)


def started(*recipes, device=CPU, checkpoints=None, stacked=None):
    """A pack of these recipes, before its first step or where checkpoints say; one alone is not stacked."""
    checkpoints = checkpoints or [None] * len(recipes)
    starts = [start_of(recipe, device, saved) for recipe, saved in zip(recipes, checkpoints, strict=True)]
    stacked = len(recipes) > 1 if stacked is None else stacked
    return Pack(starts, device, Machinery(recipes[0], starts[0].prepared, device, stacked))


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
        **{f"model.{name}": value for name, value in pack.stepping.nets.state(run).items()},
        **{f"loss.{name}": value for name, value in pack.stepping.loss.state(run).items()},
    }


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(value, other[name]) for name, value in one.items())
