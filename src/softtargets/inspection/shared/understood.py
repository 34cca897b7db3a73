"""What was read, and how it was understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softtargets.predictions import Predictions
from softtargets.report import Table


@dataclass(frozen=True)
class Understood:
    """A file, or a dataset, and how it was understood."""

    path: Path
    examples: int
    classes: int
    kind: str
    reason: str
    source: str
    class_names: tuple[str, ...] | None

    @classmethod
    def of(cls, predictions: Predictions) -> Understood:
        """What a file of predictions says about itself."""
        p = predictions
        return cls(Path(p.path), p.examples, p.classes, p.kind, p.reason, p.source, p.class_names)

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        told = {key: value for key, value in vars(self).items() if key not in ("path", "class_names")}
        return {"file": str(self.path), **told}

    def called(self, index: int) -> str:
        """A class by its name."""
        names = self.class_names
        return names[index] if names and index < len(names) else f"class {index}"

    def origin(self, what: str = "file") -> dict[str, str]:
        """Where it is from, in words."""
        return {what: str(self.path), "used": self.source, "taken for": f"{self.kind}: {self.reason}"}


def read_table(told: Mapping[str, Mapping[str, str]], title: str = "Input") -> Table:
    """What was read, at the end of a page: of one file under an empty name, of several each under its own."""
    rows = [
        {**({"model": name} if name else {}), "what": what, "value": value}
        for name, words in told.items()
        for what, value in words.items()
    ]
    return Table.of(
        "read", title, ("model | " if len(told) > 1 else "") + "what | value: understood as", rows
    )
