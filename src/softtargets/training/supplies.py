"""What runs are trained with, loaded once: data, teachers, and what packs of one kind share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from softtargets.models import Classifier
from softtargets.recipes import Dataset, Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.building import build_model
from softtargets.training.machinery import Machinery
from softtargets.training.packing import Arrangement, arrangement, kind_of_run
from softtargets.training.preparation import Prepared, input_shape, prepare, with_noise
from softtargets.training.sizing import Footprint, footprint
from softtargets.training.targets import Teacher

Kind = tuple[Any, ...]


class Supplies:
    """All that one call of `train` has loaded onto its device; it stays there until the call ends."""

    def __init__(self, store: RunStore, device: torch.device, data_dir: Path | None) -> None:
        self.store = store
        self.device = device
        self._data_dir = data_dir
        self._prepared: dict[Dataset, Prepared] = {}
        self._teachers: dict[str, Teacher] = {}
        self._arrangements: dict[Kind, Arrangement] = {}
        self._footprints: dict[Kind, Footprint | None] = {}
        self._machineries: dict[Kind, Machinery] = {}

    def data(self, data: Dataset) -> Prepared:
        """A dataset as it was read."""
        if data not in self._prepared:
            self._prepared[data] = prepare(data, self.device, self._data_dir)
        return self._prepared[data]

    def noisy(self, recipe: Recipe) -> Prepared:
        """The recipe's data with the labels it trains on."""
        return with_noise(self.data(recipe.data), recipe.noise, recipe.seed)

    def model(self, recipe: Recipe, weights: dict[str, torch.Tensor], prepared: Prepared) -> Classifier:
        """The recipe's net with finished weights."""
        model = build_model(recipe, input_shape(recipe, prepared), len(prepared.classes))
        model.load_state_dict(weights)
        return model.to(self.device)

    def teacher(self, recipe: Recipe) -> Teacher | None:
        """The finished teacher of a recipe that has one."""
        if recipe.teacher is None:
            return None
        key = recipe.teacher.id
        if key not in self._teachers:
            prepared = self.data(recipe.teacher.data)
            weights = Run(self.store.root / key).weights()
            self._teachers[key] = Teacher(
                recipe.teacher, self.model(recipe.teacher, weights, prepared), prepared
            )
        return self._teachers[key]

    def arrangement(self, recipe: Recipe) -> Arrangement:
        """How runs of this kind train together, if there is memory enough."""
        kind = kind_of_run(recipe)
        if kind not in self._arrangements:
            prepared = self.data(recipe.data)
            with torch.device("meta"):  # shapes only: a large net costs nothing here
                model = build_model(recipe, input_shape(recipe, prepared), len(prepared.classes))
            weights = sum(weight.numel() for weight in model.parameters())
            self._arrangements[kind] = arrangement(recipe, weights, self.device)
        return self._arrangements[kind]

    def footprint(self, recipe: Recipe) -> Footprint | None:
        """The memory that runs of this kind take; None if that cannot be told."""
        kind = kind_of_run(recipe)
        if kind not in self._footprints:
            stacked = self.arrangement(recipe).stacked
            self._footprints[kind] = footprint(recipe, self.data(recipe.data), self.device, stacked)
        return self._footprints[kind]

    def machinery(self, recipe: Recipe) -> Machinery:
        """How runs of this kind are computed."""
        kind = kind_of_run(recipe)
        if kind not in self._machineries:
            # Also a pack of one is a stack where larger ones are: so no run depends on who shared its pack.
            stacked = self.arrangement(recipe).stacked
            self._machineries[kind] = Machinery(recipe, self.data(recipe.data), self.device, stacked)
        return self._machineries[kind]
