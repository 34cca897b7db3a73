"""A recipe: everything that decides how one training turns out, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from softtargets.exceptions import RecipeError, nearest
from softtargets.recipes.augmentation import Augmentation
from softtargets.recipes.datasets import Dataset, TranslationDataset
from softtargets.recipes.models import Model
from softtargets.recipes.noise import Clean, Noise
from softtargets.recipes.optimisation import SGD, Constant, Optimiser, Schedule
from softtargets.recipes.probes import BLEU, Information, Probe
from softtargets.recipes.regularisers import CrossEntropy, Distillation, ForwardCorrection, Regulariser
from softtargets.recipes.schema import Count, Index, Part, Positive, ProperFraction, build, field_types
from softtargets.recipes.yaml import parse_yaml, read_text

__all__ = ["Recipe"]

# Part of what is hashed. Raise it only when old recipes must not share runs with new ones.
FORMAT = 2
# Noise that forward correction can do nothing about.
_NOT_CORRECTED = {
    "none": "forward_correction corrects the label noise of the recipe, but the recipe has none; give noise: symmetric "
    "or pair, or another regulariser",
    "instance": "forward_correction corrects label noise with a single matrix, but instance noise has a "
    "different one for each image; give noise: symmetric, pair or class_conditional, or another regulariser",
}


class Recipe(Part):
    """One training. Two recipes with the same `id` are the same training, and share one run.

    `multiplier` is what the loss is multiplied by, `clip` the largest norm of the gradient, `average` the decay of an
    exponential moving average of the weights, with which the model is then measured. The model is measured at the end
    of each epoch, or with `measure_epochs` of every so many, and always at the end of the training; with
    `measure_every` also whenever so many steps are done, and with probes when they are due. Measuring changes nothing
    in the training. What is kept in the end are the last weights; with `average_last` the mean of those at the ends of
    the last so many epochs, which are then all measured, and with `best_by` those of the measurement with the best
    number of that name.

    >>> from softtargets.recipes import Digits, LabelSmoothing, MLP
    >>> smoothing = LabelSmoothing(alpha=0.1)
    >>> recipe = Recipe(data=Digits(), model=MLP(hidden=[64]), regulariser=smoothing, epochs=5)
    >>> recipe.replace({"regulariser.alpha": 0.2}).regulariser.alpha
    0.2
    >>> recipe.replace({"regulariser.alhpa": 0.2})
    Traceback (most recent call last):
    softtargets.exceptions.RecipeError: regulariser.alhpa: no such field of 'label_smoothing' (did you mean
    'alpha'?); allowed: alpha, spread, matrix, prior
    """

    data: Dataset
    model: Model
    regulariser: Regulariser = CrossEntropy()
    optimiser: Optimiser = SGD()
    schedule: Schedule = Constant()
    epochs: Count | None = None
    steps: Count | None = None
    batch: Count = 128
    augmentation: tuple[Augmentation, ...] = ()
    noise: Noise = Clean()
    seed: Index = 0
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"
    multiplier: Positive = 1.0
    clip: Positive | None = None
    average: ProperFraction | None = None
    measure_every: Count | None = None
    probes: tuple[Probe, ...] = ()
    average_last: Count | None = None
    best_by: Literal["validation_loss", "validation_accuracy", "validation_bleu"] | None = None
    measure_epochs: Count = 1

    def check(self) -> None:
        """One length, a teacher of the same classes, known noise to be corrected, probes that see something."""
        if (self.epochs is None) == (self.steps is None):
            given = "both are given" if self.epochs else "neither is given"
            raise RecipeError(f"give either epochs or steps; {given}", "epochs")
        if isinstance(self.regulariser, Distillation):
            taught, learnt = self.regulariser.teacher.data, self.data
            if _classes_of(taught) != _classes_of(learnt):
                raise RecipeError(
                    f"the teacher's classes ({taught.name}) are not the student's ({learnt.name}); "
                    "train both on the same dataset",
                    "regulariser.teacher.data",
                )
        self._check_probes()
        self._check_what_is_kept()
        if isinstance(self.regulariser, ForwardCorrection) and self.noise.name in _NOT_CORRECTED:
            raise RecipeError(_NOT_CORRECTED[self.noise.name], "regulariser")

    def _check_what_is_kept(self) -> None:
        if self.average_last is not None:
            for other in ("average", "best_by"):
                if getattr(self, other) is not None:
                    raise RecipeError(
                        f"{self.average_last} and {other} both decide which weights are kept; leave one out",
                        "average_last",
                    )
            if self.epochs is not None and self.average_last > self.epochs:
                raise RecipeError(
                    f"{self.average_last} is more than the recipe's {self.epochs} epochs", "average_last"
                )
        if self.best_by is None:
            return
        between = self.measure_every is not None or self.probes
        if not between and self.epochs is not None and 1 < self.epochs <= self.measure_epochs:
            raise RecipeError(
                f"{self.measure_epochs} with {self.epochs} epochs measures the model only at the end, so that best_by "
                f"has nothing to choose from; give less than {self.epochs}, or leave best_by out",
                "measure_epochs",
            )
        if "validation" not in self.data.splits:
            raise RecipeError(
                "there is no validation split to choose by; give data.validation, or leave best_by out",
                "best_by",
            )
        if self.best_by == "validation_bleu" and not any(
            isinstance(probe, BLEU) and probe.split == "validation" for probe in self.probes
        ):
            raise RecipeError(
                "validation_bleu needs a probe that measures it; give probes: [{name: bleu, every: 1000}]",
                "best_by",
            )

    def _check_probes(self) -> None:
        looked: dict[tuple[str, tuple[int, int], str], int] = {}
        translated: dict[str, int] = {}
        for position, probe in enumerate(self.probes):
            if getattr(probe, "split", None) == "validation" and "validation" not in self.data.splits:
                raise RecipeError(
                    "there is no validation split to look at; give data.validation, or look at test",
                    f"probes.{position}.split",
                )
            if (
                isinstance(probe, BLEU)
                and (first := translated.setdefault(probe.split, position)) != position
            ):
                raise RecipeError(
                    f"probes.{first} already measures translations of {probe.split}, and both would write under the "
                    "same name; leave one out",
                    f"probes.{position}.split",
                )
            if not isinstance(probe, Information):
                continue
            if not self.augmentation:
                raise RecipeError(
                    "the recipe has no augmentation, so the logit difference has no noise, which the information "
                    "needs; give augmentation, such as shift, or leave the probe out",
                    f"probes.{position}",
                )
            first = looked.setdefault((probe.split, probe.classes, probe.inner), position)
            if first != position:
                raise RecipeError(
                    f"probes.{first} already measures {list(probe.classes)} on {probe.split}, and both would write "
                    "under the same names; leave one out",
                    f"probes.{position}.classes",
                )

    @cached_property
    def id(self) -> str:
        """The canonical hash: sixteen hexadecimal digits."""
        text = json.dumps({"format": FORMAT, **self.canonical()}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def teacher(self) -> Recipe | None:
        """The recipe whose run must be finished before this one can start, if there is one."""
        return self.regulariser.teacher if isinstance(self.regulariser, Distillation) else None

    @property
    def units(self) -> int | None:
        """How many images (or about how many tokens) the training sees; None where that is not known beforehand.

        >>> from softtargets.recipes import MNIST, MLP
        >>> Recipe(data=MNIST(validation=10_000), model=MLP(), epochs=2).units
        100000
        """
        if self.steps:
            return self.steps * self.data.step_units(self.batch)
        each = self.data.epoch_units
        return None if each is None else (self.epochs or 0) * each

    def replace(self, changes: Mapping[str, Any]) -> Recipe:
        """A new recipe with dotted fields changed: ``{"optimiser.lr": 0.05, "model": "cnn"}``."""
        tree = self.to_dict()
        # The length is given in one way; giving it in the other replaces it.
        for given, other in (("epochs", "steps"), ("steps", "epochs")):
            if changes.get(given) is not None and other not in changes:
                tree[other] = None
        for path, value in changes.items():
            _set(tree, path, value)
        return Recipe.from_dict(tree)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Recipe:
        """Build and validate a recipe from plain values."""
        try:
            return build(cls, tree)
        except RecursionError:
            raise RecipeError("is nested without end; a recipe cannot be its own teacher") from None

    @classmethod
    def from_yaml(cls, text: str, source: str = "recipe") -> Recipe:
        """Read a recipe from YAML text; `source` names it in errors."""
        tree = parse_yaml(text, source)
        try:
            return cls.from_dict(tree)
        except RecipeError as error:
            located = RecipeError(f"{source}: {error}")
            located.field = error.field
            raise located from None

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe from a YAML file."""
        return cls.from_yaml(read_text(path), str(path))


def _classes_of(data: Dataset) -> tuple[Any, ...]:
    if isinstance(data, TranslationDataset):
        return (data,)  # pieces of words are learnt from the training text
    # Human labels and sizes change the examples, not the set of classes.
    return data.name, *(getattr(data, field, None) for field in ("coarse", "part", "arrays", "digest"))


def _set(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    node: Any = tree
    for depth, key in enumerate(parents):
        try:
            inner = node[_key(node, key)]
        except (KeyError, IndexError, TypeError):
            raise RecipeError(_no_such_field(node, key), ".".join(parents[: depth + 1])) from None
        # An earlier change may have put a bare name or a part here: {"data": "cifar10", "data.labels": "worse"}.
        if isinstance(inner, Part) or (isinstance(inner, str) and key in _slots()):
            inner = inner.to_dict() if isinstance(inner, Part) else {"name": inner}
            node[_key(node, key)] = inner
        node = inner
    try:
        node[_key(node, last)] = deepcopy(value)
    except (IndexError, TypeError):
        raise RecipeError(_no_such_field(node, last), path) from None


def _no_such_field(node: Any, key: str) -> str:
    """What to say of a key that is not there, with the nearest of those that are."""
    there = [str(name) for name in node] if isinstance(node, Mapping) else []
    allowed = f"; allowed: {', '.join(there)}" if there else ""
    return f"the recipe has no such field{nearest(key, there)}{allowed}"


def _key(node: Any, key: str) -> Any:
    return int(key) if isinstance(node, list) and key.isdecimal() else key


def _slots() -> set[str]:
    return {
        name
        for name, hint in field_types(Recipe).items()
        if isinstance(hint, type) and issubclass(hint, Part)
    }
