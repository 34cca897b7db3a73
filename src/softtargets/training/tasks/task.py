"""The seam between the engine and what is trained on: images, sequences, or whatever comes next.

The engine knows recipes, nets, steps and runs. What a split is, how batches are made of it, what is measured and what
is kept belongs to a `Task`: one object for each dataset on a device, made by `Task.prepare`. Whatever shares a pack
shares the task but for labels of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError, RunError
from softtargets.losses import CSKD, REGULARISERS, BetaSmoothing, SoftTargetLoss
from softtargets.models import Classifier
from softtargets.recipes import Clean, Dataset, Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets

# Losses that want to hear more than a teacher: what a net, or an average of it, says of other examples or of the same.
ASKING: tuple[type[SoftTargetLoss], ...] = (CSKD, BetaSmoothing)
# Under which name manifests and checkpoints have what a task has learnt before any training.
LEARNT = "tokeniser"


class Epoch(NamedTuple):
    """The steps of one epoch, place by place.

    shapes:  steps of one shape are one computation, such as a number of images, or (rows, length) of a bucket; on a GPU
             each shape is recorded once.
    units:   how many labels count in each step: the weight of its loss, and the work that people are shown.
    """

    shapes: tuple[Hashable, ...]
    units: tuple[int, ...]


@dataclass(frozen=True)
class Shown:
    """What the nets are shown in a step, the runs first: what they are called with, and labels (runs, rows).

    A label of -100 does not count: padding.
    """

    inputs: tuple[Tensor, ...]
    labels: Tensor


class Feed(ABC):
    """The data of one pack: tables on the device, always at the same addresses, and the batches made of them.

    Nothing here may ask the device for a value: steps and measurements are recorded once and replayed.
    """

    @abstractmethod
    def open(self, epochs: Tensor) -> None:
        """Draw all that an epoch draws; `epochs` (runs,), counted from 0, is on the device."""

    @abstractmethod
    def batch(self, place: Tensor, shape: Any) -> Shown:
        """The batch at a place (1,) of the epoch, for a step of this shape."""

    @abstractmethod
    def score(self, nets: Nets) -> dict[str, Tensor]:
        """What is measured on all splits but the training set, such as ``test_loss``: (runs,) each, on the device."""

    # Data that are not on the device as a whole are brought there piece by piece, between what is recorded.

    def bring(self, epochs: Sequence[int], place: int) -> None:
        """Have there what the step at this place of each run's epoch reads; called by the host before each step."""
        return None

    def pieces(self) -> Iterable[Hashable]:
        """Bring the other splits piece by piece, each to be looked at before the next is asked for; then `score`."""
        return ()

    def look(self, nets: Nets, piece: Any) -> None:
        """Note what nets make of the piece that was brought; may be recorded, like a step."""
        return None

    def waited(self) -> float | None:
        """Seconds since this was asked last in which the device waited for data; None if they are always there."""
        return None


@dataclass
class Teacher:
    """A finished net that gives targets, and what it was trained on: its own recipe and task.

    Of a run without weights only `kept` is there: the logits that it stored for its training examples.
    """

    recipe: Recipe
    model: Classifier | None
    task: Any
    kept: Tensor | None = None

    def network(self) -> Classifier:
        """The net itself; refused where the run has no weights."""
        if self.model is None:
            raise RunError(
                f"run {self.recipe.id} has no weights, so it cannot predict augmented images; train it again, or "
                "give its students regulariser.view: stored"
            )
        return self.model


Teachers = Sequence[Teacher | None]  # one for each run of a pack that has one


@dataclass(frozen=True)
class Moment:
    """A net in the middle of its training, as an instrument sees it: in evaluation mode, to be looked at only.

    `kept` is what instruments keep from one look to the next, by names of their own; the model is then the same object
    with other weights.
    """

    recipe: Recipe
    step: int
    model: Classifier
    task: Any
    kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def predictions(self, split: str) -> dict[str, Tensor]:
        """Logits, labels and penultimate activations on a split, without augmentation."""
        said: dict[str, Tensor] = self.task.predict(self.recipe, self.model, split)
        return said


class Adviser(Protocol):
    """Somebody with an opinion on what the nets are shown."""

    def ask(self, shown: Any, steps: Tensor, epochs: Tensor) -> Tensor:
        """Logits (runs, rows, classes), without gradient; `steps` and `epochs` (runs,) say where each run is."""


class Task(ABC):
    """A dataset on a device, and all that depends on what its examples are."""

    splits: Mapping[str, Any]  # whatever a split is, it has a length
    classes: Sequence[str]
    takes: ClassVar[frozenset[str]] = frozenset()  # by name, such parts of recipes as not every task knows
    shapes_vary: ClassVar[bool] = False  # from step to step: nets are then compiled for all of them at once

    # --- what there is ---

    @classmethod
    @abstractmethod
    def prepare(cls, data: Dataset, device: torch.device, data_dir: Path | None = None) -> Task:
        """Read a dataset, cut its splits and move it to the device."""

    @abstractmethod
    def net_arguments(self, recipe: Recipe) -> dict[str, Any]:
        """What the net is built with, besides the options of the recipe's model."""

    def with_noise(self, recipe: Recipe) -> Task:
        """The same data with the labels that this recipe trains on."""
        return self

    def check(self, recipe: Recipe, taught: Task | None) -> None:
        """Refuse what cannot be trained on this; `taught` is the task of the teacher, where there is one.

        A task takes neither augmentation, label noise, probes nor losses that want advice but those that it `takes`.
        """
        loss = REGULARISERS[recipe.regulariser.name]
        refused = {
            "augmentation": recipe.augmentation,
            "noise": () if isinstance(recipe.noise, Clean) else (recipe.noise,),
            "probes": recipe.probes,
            "regulariser": (recipe.regulariser,) if loss.needs or issubclass(loss, ASKING) else (),
        }
        for part_of_recipe, parts in refused.items():
            for part in (part for part in parts if part.name not in self.takes):
                raise RecipeError(
                    f"{part.name} is for images, but {recipe.data.name} has {recipe.data.unit}; leave it out",
                    part_of_recipe,
                )

    def frequencies(self) -> Tensor | None:
        """How often each class is a label of the training set, as shares; None where nobody counts."""
        return None

    # --- how it is trained on ---

    @abstractmethod
    def epoch(self, recipe: Recipe, epoch: int) -> Epoch:
        """The steps of an epoch: as many, and in all as many units, in every one.

        Runs whose nets are stacked must have the same shapes at the same places.
        """

    @abstractmethod
    def feed(self, recipes: Sequence[Recipe], tasks: Sequence[Any], machinery: Machinery) -> Feed:
        """The data of a pack of these recipes; `tasks` are this one with each run's own labels."""

    def adviser(
        self, recipes: Sequence[Recipe], nets: Nets, loss: SoftTargetLoss | None, teachers: Teachers
    ) -> Adviser | None:
        """Whom the losses of a pack want to be asked, if anybody; `loss` is that of a run alone."""
        return None

    def compiles(self, recipe: Recipe, shape: torch.Size) -> bool:
        """Whether training on batches whose first input has this shape, runs left out, is worth compiling."""
        return True

    def fuses_head(self, recipe: Recipe) -> bool:
        """Whether nets in training give penultimate activations, and the loss itself multiplies them by the head.

        For many classes: logits are never there as a whole (`LinearLoss`), nor is the accuracy on the training set.
        Such nets train side by side and are not stacked.
        """
        return False

    # --- what is kept ---

    @abstractmethod
    def predict(self, recipe: Recipe, model: Classifier, split: str) -> dict[str, Tensor]:
        """What a finished net says of a split, by name, as it is kept with the run."""

    @property
    def learnt(self) -> str:
        """A digest of what was learnt from the data before any training and weights are made for, if anything was."""
        return ""

    def refuse_foreign(self, learnt: str | None, called: str) -> None:
        """Refuse weights that were made for something else than `learnt`; None where that was not kept."""
        if learnt is not None and learnt != self.learnt:
            raise RunError(
                f"{called} was trained with the {LEARNT} {learnt}, but the text now gives {self.learnt}: the package "
                "tokenizers or the text has changed, and the run's weights cannot be used with it. Go back to the "
                "earlier version and text, or delete the run with `softtargets runs delete` and train it again"
            )

    def about_weights(self) -> dict[str, str]:
        """Texts that finished weights are of no use without, by name; they are kept in the same file."""
        return {}

    def provenance(self) -> dict[str, Any]:
        """What a run's manifest says of its data."""
        return {
            "examples": {name: len(split) for name, split in self.splits.items()},
            "classes": list(self.classes),
        }

    def examples(self, shape: Any) -> int:
        """The examples in a batch for a step of this shape, which processes may share among them; empty ones too."""
        return self.rows(shape)

    # --- memory ---

    @abstractmethod
    def rows(self, shape: Any) -> int:
        """The labels in a batch for a step of this shape, padding included."""

    @abstractmethod
    def blank(self, recipe: Recipe, shape: Any, device: torch.device) -> tuple[Tensor, ...]:
        """Inputs of one net for a step of this shape, without content."""

    @abstractmethod
    def measured_at_a_time(self, runs: int, on_gpu: bool) -> int:
        """The most examples that so many runs, computed as one, are shown at a time when they are measured."""

    @abstractmethod
    def table_bytes(self, recipe: Recipe) -> int:
        """What the tables of an epoch take for each run."""

    def advice_bytes(self, recipe: Recipe, shown: int) -> int:
        """What it takes to ask for advice, for each run; `shown` is what a net takes for a batch without gradient."""
        return 0
