"""What is trained: the recipe of a run of a study, on random images or its corpus, packed as the engine packs it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.training.contestants import prepared_for
from benchmarks.training.images import Images
from benchmarks.training.nets import ENDLESS
from benchmarks.words import one
from softtargets.exceptions import SofttargetsError, nearest
from softtargets.recipes import ImageDataset, ImageFiles, Recipe
from softtargets.studies import Study, Trial
from softtargets.training.building import build_model
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.packing import Arrangement, arrangement
from softtargets.training.sizing import outline
from softtargets.training.tasks import Task, Teacher, prepare

# Channels, height and width of images, and how many classes; images in files are as large as the recipe keeps them.
_GREY, _COLOUR = (1, 28, 28), (3, 32, 32)
_IMAGES = {
    "digits": ((1, 8, 8), 10),
    "mnist": (_GREY, 10),
    "fashion-mnist": (_GREY, 10),
    "emnist": (_GREY, 47),
    "cifar10": (_COLOUR, 10),
    "cifar100": (_COLOUR, 100),
    "cub200": (_COLOUR, 200),
    "tiny-imagenet": (_COLOUR, 200),
    "imagenet": (_COLOUR, 1000),
}
_TESTED = 10  # images that nobody looks at
# Nothing is measured or kept between the steps, and they do not end.
_UNDISTURBED: dict[str, Any] = {
    "steps": None,
    "epochs": ENDLESS,
    "measure_epochs": ENDLESS,
    "measure_every": None,
    "probes": [],
    "average_last": None,
    "best_by": None,
}
# Steps before the clock starts, at least: on a GPU caches fill, and clocks settle.
_WARM_UP, _WARM_UP_CPU = 50, 1


class Ready(NamedTuple):
    """A pack of so many runs whose steps are compiled and recorded; in how many seconds, unless others had done it."""

    runs: int
    pack: Pack | Fleet
    set_up: float | None


def matching(study: Study, size: str | None, only: Mapping[str, str]) -> list[Trial]:
    """The runs of a study that have all these labels, each with one seed; at least one, or an error."""
    if size and not study.sizes:
        raise SofttargetsError(f"--size: the study '{study.name}' has only one size; leave the option out")
    changes = {"size": one("--size", size, study.sizes, study.sizes[0])} if study.sizes else {}
    trials = study.trials(study.settings(1, changes))
    if not trials:
        raise SofttargetsError(f"the study '{study.name}' trains nothing, so there are no steps to profile")
    found = trials
    for key, value in only.items():
        labels = list(dict.fromkeys(label for trial in trials for label in trial.labels))
        values = list(dict.fromkeys(str(trial.labels[key]) for trial in trials if key in trial.labels))
        what, word, allowed = (f"{key}=", value, values) if values else ("label ", key, labels)
        if word not in allowed:
            raise SofttargetsError(
                f"--only: no run of '{study.name}' has {what}{word}{nearest(word, allowed)}; allowed: "
                f"{', '.join(allowed)}"
            )
        found = [trial for trial in found if str(trial.labels.get(key)) == value]
    if not found:
        asked = ", ".join(f"{key}={value}" for key, value in only.items())
        raise SofttargetsError(f"--only: no run of '{study.name}' has all of {asked}")
    return found


def undisturbed(recipe: Recipe) -> Recipe:
    """The same steps without an end, and without evaluation after their epochs."""
    return recipe.replace(_UNDISTURBED)


def material(
    recipe: Recipe, steps: int, device: torch.device, data_dir: Path | None = None
) -> tuple[Task, Teacher | None]:
    """Random images for an epoch of so many steps, or the real corpus; and an untrained teacher if the recipe has one.

    How fast a step is depends on the sizes of images, not on what they show, but sentences have lengths.
    """
    data, taught = recipe.data, recipe.teacher
    images = None
    if isinstance(data, ImageDataset):
        shape, classes = _IMAGES[data.name]
        if isinstance(data, ImageFiles):
            side: int = getattr(data, "size")  # noqa: B009
            shape = (3, side, side)
        images = Images.random(shape, steps * recipe.batch, _TESTED, classes, device)

    def of(asked: Recipe) -> Task:
        return prepare(asked.data, device, data_dir) if images is None else prepared_for(asked, images)

    task = of(recipe)
    if taught is None:
        return task, None
    theirs = task if taught.data == data else of(taught)
    return task, Teacher(taught, build_model(taught, theirs).to(device), theirs)


def arranged(recipe: Recipe, task: Task, device: torch.device) -> Arrangement:
    """How the engine would train runs of this recipe together."""
    weights = sum(weight.numel() for weight in outline(recipe, task).parameters())
    return arrangement(recipe, weights, device, task.fuses_head(recipe))


def packs(
    recipe: Recipe, task: Task, teacher: Teacher | None, device: torch.device, sizes: Sequence[int]
) -> Iterator[Ready]:
    """Packs of so many runs with seeds 0, 1, ..., the largest first, since smaller fleets go on with its runs."""
    stacked = arranged(recipe, task, device).stacked
    machinery = Machinery(recipe, task, device, stacked)
    starts = [Start(recipe.replace({"seed": seed}), task, teacher) for seed in range(max(sizes))]
    fleet: Fleet | None = None
    for runs in sorted(sizes, reverse=True):
        if fleet is not None:
            fleet = Fleet([], machinery, fleet.still(range(runs)))
            yield Ready(runs, fleet, None)
            continue
        began = time.perf_counter()
        pack = Pack(starts[:runs], machinery) if stacked else Fleet(starts, machinery)
        fleet = pack if isinstance(pack, Fleet) else None
        for _ in range(_warm_up(pack, machinery.recorded)):
            pack.advance()
        wait_for(device)
        yield Ready(runs, pack, time.perf_counter() - began)


def _warm_up(pack: Pack | Fleet, recorded: bool) -> int:
    """After so many steps every run has seen a batch of every shape, which on a GPU is then recorded."""
    if not recorded:
        return _WARM_UP_CPU
    orders = [slot.course.epoch(0).shapes for slot in pack.slots]
    return max(_WARM_UP, *(1 + max(map(shapes.index, set(shapes))) for shapes in orders))


def step_within_an_epoch(pack: Pack | Fleet, steps: int) -> None:
    """Go on until so many further steps neither open nor close an epoch, where epochs are as long as that."""
    epoch = pack.slots[0].course.steps_per_epoch
    while steps < epoch - 1 and not 0 < pack.place < epoch - steps:
        pack.advance()


def check_numbers(pack: Pack | Fleet) -> None:
    """Refuse times of runs whose losses are no longer numbers: what is computed is not what they trained on."""
    for part in [pack] if isinstance(pack, Pack) else pack.still(range(len(pack.slots))):
        seen = part.on_device.seen()
        if seen.broken or not seen.losses.isfinite().all():
            raise SofttargetsError(
                "the loss of a run is no longer a number, so its times mean nothing; take fewer --steps"
            )


def wait_for(device: torch.device) -> None:
    """Until a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
