"""The labels most likely wrong, ranked, by their rows in the user's file or dataset."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.inspection.advise.evidence import Evidence
from softtargets.inspection.shared.reading import Understood
from softtargets.noise import suspicious_examples
from softtargets.storage import write_atomically

FILE = "suspicious.csv"
PICTURES = 24


@dataclass(frozen=True, eq=False)
class Suspects:
    """Examples for which the model finds another label likelier than the one given, the most suspicious first.

    Arrays (n,): `row` in the file or dataset, from 0 and in its order, rows that were left out counted; `given` and
    `likely` label; `score` from 0 to 1. `images` are those of the first ones, where there are images.
    """

    understood: Understood
    row: NDArray[np.int64]
    given: NDArray[np.int64]
    likely: NDArray[np.int64]
    score: NDArray[np.float64]
    images: NDArray[np.uint8] | None = None

    @property
    def file(self) -> str:
        """The name of the file that has all of them, beside the page."""
        return FILE

    def __len__(self) -> int:
        return len(self.row)

    def rows(self, most: int | None = None) -> Iterator[dict[str, Any]]:
        """The first ones, with labels by number and by name."""
        called = self.understood.called
        columns = zip(self.row, self.given, self.likely, self.score, strict=True)
        for place, (row, given, likely, score) in enumerate(columns):
            if place == most:
                return
            yield {
                "row": int(row),
                "given": int(given),
                "given_name": called(int(given)),
                "likely": int(likely),
                "likely_name": called(int(likely)),
                "score": round(float(score), 6),
            }

    def numbers(self) -> dict[str, Any]:
        """How many there are, and the file that has them all."""
        return {"count": len(self), "file": self.file}

    def write(self, directory: Path) -> None:
        """The whole list as CSV."""
        buffer = io.StringIO()
        names = ("row", "given", "given_name", "likely", "likely_name", "score")
        writer = csv.DictWriter(buffer, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        write_atomically(directory / self.file, buffer.getvalue().encode(errors="backslashreplace"))


def suspects_in(given: Evidence) -> Suspects:
    """Rank the labels of some evidence (`softtargets.noise.suspicious_examples`), by rows of where it is from."""
    ranked = suspicious_examples(given.labels, given.probabilities)
    differs = (given.probabilities.argmax(1) != given.labels).numpy()[ranked.index]
    index = ranked.index[differs]
    return Suspects(
        given.understood,
        given.rows.numpy()[index],
        ranked.given[differs],
        ranked.likely[differs],
        ranked.score[differs],
        None if given.images is None else given.images[index[:PICTURES]],
    )
