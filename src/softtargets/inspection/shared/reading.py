"""Reading: what cannot be asked for, how far it is, what was read, and how it was understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.predictions import Predictions
from softtargets.report import Table

MOST_BINS = 1000  # beyond, a page of 41 diagrams is larger than anyone would open
Told = Callable[[str, int, int], None]  # what is being done, examples so far, examples in all
Piece = tuple[Tensor, Tensor]  # what is known of some examples, and their labels


def check_choice(argument: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of a few.

    >>> check_choice("pick", "near", ("close", "mixed", "far"))
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: pick must be close, mixed or far, not near
    """
    if value not in allowed:
        raise SofttargetsError(
            f"must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {value}", argument=argument
        )


def check_bins(bins: int) -> None:
    """Refuse a number of bins that makes no diagram."""
    if not 1 <= bins <= MOST_BINS:
        raise SofttargetsError(f"must lie between 1 and {MOST_BINS}, not {bins}", argument="bins")


def quiet(what: str, done: int, total: int) -> None:
    """Say nothing."""


def telling(pieces: Iterable[Piece], what: str, told: Told, total: int, done: int = 0) -> Iterator[Piece]:
    """The same pieces, saying after each how many examples are through; `done` were before."""
    for values, labels in pieces:
        yield values, labels
        done += len(labels)
        told(what, done, total)


def reading(predictions: Predictions, what: str, told: Told = quiet) -> Iterator[Piece]:
    """The chunks of predictions, telling how far it is."""
    told(what, 0, predictions.examples)
    yield from telling(predictions.chunks(), what, told, predictions.examples)


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
        return {what: str(self.path), "used": self.source, "read as": self.reason}


def read_table(told: Mapping[str, Mapping[str, str]], title: str = "Input") -> Table:
    """What was read, at the end of a page: of one file under an empty name, of several each under its own."""
    rows = [
        {**({"model": name} if name else {}), "what": what, "value": value}
        for name, words in told.items()
        for what, value in words.items()
    ]
    columns = f"{'model | ' if len(told) > 1 else ''}what | value: understood as"
    return Table.of("read", title, columns, rows)
