"""The picture of table 3: gains over hard targets, printed and ours."""

from __future__ import annotations

from softtargets.claims import published
from softtargets.report import Curve, Figure, Panel, lines
from softtargets.report.drawing import BLUE, GREY, RED
from softtargets.studies.labo.protocol import ADDED, NAMES, PRINTED
from softtargets.studies.labo.telling import setting_title
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of

SHOWN = (*PRINTED[1:], *ADDED)
# Names that would run into their neighbours below a panel.
_SHORT = {"cp": "CP"}


def gains(results: Results, settings: tuple[tuple[str, str], ...]) -> Figure:
    """Points of accuracy that each method gains over hard targets with the same seed."""
    rows: list[Row] = [
        {
            "data": data,
            "model": model,
            "method": method,
            "printed": _printed(results, data, model, method),
            "gain": results.gain(
                "accuracy",
                [
                    (
                        {"data": data, "model": model, "method": method},
                        {"data": data, "model": model, "method": "hard"},
                    )
                ],
                scale=100,
            ),
        }
        for data, model in settings
        for method in SHOWN
    ]
    return lines(
        "gains",
        "Accuracy gained over hard targets.",
        [_panel(rows, data, model) for data, model in settings],
        rows,
        "CP is the confidence penalty. Circles are means over seeds and bars one standard deviation; small dots are "
        "single seeds. Squares are what the paper printed. Above 0 a method is more accurate than hard targets with "
        "the same seed.",
        "Accuracy gained by each method over hard targets, ours beside the paper's.",
    )


def _printed(results: Results, data: str, model: str, method: str) -> float | None:
    if size_of(results) == "small" or method not in PRINTED:
        return None
    own, hard = (published(f"lu-2023/accuracy/{data}-{model}/{one}").value for one in (method, "hard"))
    return round(100 * ((own or 0.0) - (hard or 0.0)), 2)


def _panel(rows: list[Row], data: str, model: str) -> Panel:
    mine = [row for row in rows if (row["data"], row["model"]) == (data, model)]
    places = range(len(mine))
    curves = [
        Curve.level("hard targets", GREY, 0.0, (-0.5, len(mine) - 0.5)),
        Curve.of("ours", BLUE, places, [row["gain"] for row in mine], line="none"),
    ]
    if any(row["printed"] is not None for row in mine):
        printed = [row["printed"] for row in mine]
        curves.append(
            Curve("paper", RED, [place + 0.2 for place in places], printed, line="none", marker="square")
        )
    ticks = [(place, _SHORT.get(row["method"], NAMES[row["method"]])) for place, row in enumerate(mine)]
    return Panel(
        setting_title(data, model), "method", "points of accuracy gained", curves, ticks=ticks, digits=2
    )
