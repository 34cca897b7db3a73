"""This machine: the engine itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from softtargets.executors.executor import Executor
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training import train


@dataclass
class LocalExecutor(Executor):
    """`softtargets.training.train`, on this machine, with as many processes as its `workers` says."""

    def __call__(self, recipes: Iterable[Recipe], store: RunStore, **how: Any) -> list[Run]:
        """As `softtargets.training.train`."""
        return train(recipes, store, **how)
