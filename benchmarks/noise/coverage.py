"""How often the interval of `assess_noise` holds the truth, and its bound where it refuses."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.noise.cases import DATASETS, MODELS, PEOPLE, Case, noises
from benchmarks.noise.predictions import Predicted
from softtargets.noise import assess_noise

# What the numbers in `softtargets.noise.estimation.assessment` were chosen on; naive Bayes led to the check of
# overconfidence, and the rest had no say.
CHOSEN_ON = ("digits", "mnist", "cifar10")
LATE = ("neighbours", "bayes")


@dataclass(frozen=True)
class Row:
    """One case: the share of wrong labels, and what was said of it."""

    dataset: str
    noise: str
    model: str
    examples: int
    agreement: float
    truth: float
    estimate: float | None
    low: float
    high: float
    reason: str

    @property
    def is_covered(self) -> bool:
        """Whether the interval, or the bound, holds the truth."""
        return self.low <= self.truth <= self.high

    @property
    def is_held_out(self) -> bool:
        """Whether this case had no say in the numbers of the method."""
        people = self.noise in PEOPLE.get(self.dataset, ())
        return self.model == "neighbours" or (
            self.model != "bayes" and (people or self.dataset not in CHOSEN_ON)
        )

    def cell(self) -> str:
        """A cell of the table, in per cent; bold where the truth is outside."""
        said = f"≤ {100 * self.high:.0f}"
        if self.estimate is not None:
            said = f"{100 * self.estimate:.1f} ({100 * self.low:.0f}–{100 * self.high:.0f})"
        return said if self.is_covered else f"**{said}**"


def assessed(case: Case, given: Predicted) -> Row:
    """What is said of a case."""
    found = assess_noise(given.given, given.probabilities, resamples=0)
    return Row(
        case.dataset,
        case.noise,
        case.model,
        len(given.given),
        float((given.probabilities.argmax(1) == given.given).mean()),
        float((given.given != given.clean).mean()),
        found.error_rate,
        found.low,
        found.high,
        found.reason,
    )


def table(rows: Iterable[Row]) -> str:
    """Datasets and noise down, models across."""
    by_case = {(row.dataset, row.noise, row.model): row for row in rows}
    lines = [
        f"| labels | wrong, % | {' | '.join(MODELS)} |",
        f"|---|---|{'---|' * len(MODELS)}",
    ]
    for dataset in DATASETS:
        for noise in noises(dataset):
            here = [by_case.get((dataset, noise, model)) for model in MODELS]
            there = [row for row in here if row is not None]
            if there:
                largest = max(there, key=lambda row: row.examples)
                cells = " | ".join(row.cell() if row else "" for row in here)
                lines.append(f"| {dataset}, {noise} | {100 * largest.truth:.1f} | {cells} |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """How often intervals and bounds hold, by who had a say in the method."""
    groups: dict[str, Callable[[Row], bool]] = {
        "all": lambda row: True,
        "had no say in the method": lambda row: row.is_held_out,
        "labels by people": lambda row: row.noise in PEOPLE.get(row.dataset, ()),
        "no wrong labels": lambda row: row.noise == "clean",
        **{model: (lambda row, model=model: row.model == model) for model in MODELS},  # type: ignore[misc]
    }
    lines = [
        "| cases | interval given | holds the truth | median width, points | refused | bound holds |",
        "|---|---|---|---|---|---|",
    ]
    for name, belongs in groups.items():
        own = [row for row in rows if belongs(row)]
        given, refused = ([row for row in own if (row.estimate is None) is none] for none in (False, True))
        width = f"{100 * statistics.median(row.high - row.low for row in given):.0f}" if given else "–"
        lines.append(
            f"| {name} ({len(own)}) | {len(given)} | {_share(given)} | {width} | {len(refused)} | {_share(refused)} |"
        )
    told = max((row.estimate or 0 for row in rows if row.truth == 0), default=0)
    return "\n".join(lines) + f"\n\nThe largest estimate for labels that are all right is {100 * told:.1f} %."


def _share(rows: list[Row]) -> str:
    held = sum(row.is_covered for row in rows)
    return f"{held} ({100 * held / len(rows):.0f} %)" if rows else "–"


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """All rows as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(Row)])
        for row in rows:
            values = [getattr(row, each.name) for each in fields(Row)]
            writer.writerow([round(value, 4) if isinstance(value, float) else value for value in values])
