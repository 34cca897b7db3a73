"""The executor that gives runs to the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from softtargets.exceptions import SofttargetsError
from softtargets.executors.executor import Executor
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore


@dataclass
class RayExecutor(Executor):
    """Workers of a Ray cluster, one per device."""

    here: ClassVar[bool] = False
    address: str | None = None

    def __call__(self, recipes: Iterable[Recipe], store: RunStore, **how: Any) -> list[Run]:
        """As `softtargets.training.train`."""
        raise SofttargetsError("training on a Ray cluster is under construction; use the executor local")
