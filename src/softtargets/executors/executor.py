"""What an executor is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Any, ClassVar

from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training import choose_device


class Executor(ABC):
    """Trains recipes: called with what `softtargets.training.train` takes, it gives what that gives.

    Subclasses are dataclasses; their fields are the options of the executor, each with a default. What is kept from one
    call to the next (connections, processes) lives while the executor is entered as a context manager, else for one
    call.
    """

    # Whether workers share this machine's processor and device: then `workers` has a default that suits it.
    here: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, recipes: Iterable[Recipe], store: RunStore, **how: Any) -> list[Run]:
        """Train every recipe that has no finished run yet, as `softtargets.training.train` does."""

    def reach(self, device: str, workers: int | None) -> tuple[str, int]:
        """The kind of device that trains, cpu or cuda, and how many calls of the engine it amounts to at a time."""
        return choose_device(device).type, 1

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - not every executor keeps something
        """Give back what is kept between calls; nothing unless a subclass keeps something."""
