"""A run that this process is training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softtargets.runs import RunWriter, now
from softtargets.training.pack import Start


@dataclass(kw_only=True)
class Work(Start):
    """A run that this process has claimed, and since when it has been trained (`begun`)."""

    writer: RunWriter
    begun: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.checkpoint is None:
            self.begun = {"started": now(), "seconds": 0.0, "resumed": 0}
        else:
            self.begun = dict(self.checkpoint.progress["begun"])
            self.begun["resumed"] += 1
