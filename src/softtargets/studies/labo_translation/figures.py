"""Pictures that several of LABO's translation studies have: what each method gains, printed and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softtargets.report import Curve, Panel
from softtargets.report.drawing import BLUE, GREY, RED
from softtargets.studies.labo_translation.telling import NAMES, SHORT
from softtargets.studies.results import Results, Row


@dataclass(frozen=True)
class Gains:
    """Gains of methods over one of them in one measure, and those that the paper printed, as far as it did."""

    title: str
    measure: str
    labels: Mapping[str, Any]
    over: str
    methods: Sequence[str]
    printed: Mapping[str, float | None]

    def rows(self, results: Results) -> list[Row]:
        """A row for each method."""
        other = {**self.labels, "method": self.over}
        return [
            {
                **self.labels,
                "method": method,
                "over": self.over,
                "printed": _printed(self.printed, method, self.over),
                "gain": results.gain(self.measure, [({**self.labels, "method": method}, other)]),
            }
            for method in self.methods
        ]

    def panel(self, results: Results, y: str = "BLEU gained") -> Panel:
        """Circles are ours, squares the paper's."""
        rows = self.rows(results)
        places = range(len(rows))
        ends = (-0.5, len(rows) - 0.5)
        curves = [
            Curve.level(NAMES[self.over], GREY, 0.0, ends),
            Curve.of("ours", BLUE, places, [row["gain"] for row in rows], line="none"),
        ]
        if any(row["printed"] is not None for row in rows):
            beside, values = [place + 0.2 for place in places], [row["printed"] for row in rows]
            curves.append(Curve("paper", RED, beside, values, line="none", marker="square"))
        ticks = [(place, SHORT[row["method"]]) for place, row in enumerate(rows)]
        return Panel(self.title, "method", y, curves, ticks=ticks, xlimits=ends, digits=2)


def _printed(values: Mapping[str, float | None], method: str, over: str) -> float | None:
    own, other = values.get(method), values.get(over)
    return None if own is None or other is None else round(own - other, 2)
