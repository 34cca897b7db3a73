"""The figures of the study of selective prediction, with the numbers they show."""

from __future__ import annotations

from softtargets.claims import Sample
from softtargets.report import Curve, Figure, Line, Panel, Table, lines
from softtargets.report.drawing import BLUE, ORANGE, RED
from softtargets.studies.beyond import ALPHA, HARD, networks_of, rows_of
from softtargets.studies.results import Results, Row, matching

_MEASURES = ("accuracy", "aurc", "excess_aurc", "excess_aurc_normalised", "accuracy_at_80",
             "accuracy_at_80_normalised", "accuracy_at_90", "accuracy_at_90_normalised")  # fmt: skip
# Which risks are shown: smoothing, key, colour, line and name.
_RISKS: tuple[tuple[float, str, str, Line, str], ...] = (
    (HARD, "risk", BLUE, "solid", "hard targets"),
    (ALPHA, "risk", RED, "solid", f"smoothing {ALPHA:g}"),
    (ALPHA, "risk_normalised", ORANGE, "dashed", f"smoothing {ALPHA:g}, normalised logits"),
)


def excess(results: Results) -> Figure:
    """Excess AURC over the smoothing, by the maximum probability and by normalised logits; a panel for each network."""
    rows, names = rows_of(results, *_MEASURES), networks_of(results)
    panels = [_panel(names[key], matching(rows, network=key)) for key in names if matching(rows, network=key)]
    return lines(
        "excess",
        "How badly confidence orders mistakes, by smoothing.",
        panels,
        Table.of(
            "selection",
            "Selective prediction in numbers.",
            "name: network | alpha .2f: smoothing | accuracy .2% | aurc .3%: AURC | excess_aurc .3%: excess AURC | "
            "excess_aurc_normalised .3%: excess AURC, normalised logits | accuracy_at_80 .2%: accuracy of 80 % | "
            "accuracy_at_80_normalised .2%: the same, normalised logits",
            rows,
            "AURC: mean error rate of the most confident predictions, over all shares of them. Excess: less the "
            "smallest that so many mistakes allow. Lower is better.",
        ),
        "Excess AURC: the area under error rate over coverage, less the least that so many mistakes allow. Lower is "
        "better. Mean and standard deviation over seeds; faint dots are seeds.",
        "Excess AURC over the smoothing, by maximum probability and by normalised logits, a panel for each network.",
    )


def _panel(name: str, rows: list[Row]) -> Panel:
    places = [row["alpha"] for row in rows]
    looks = (
        ("excess_aurc", "maximum probability", BLUE),
        ("excess_aurc_normalised", "normalised logits", ORANGE),
    )
    curves = [
        Curve.of(label, colour, places, [row[key] for row in rows], scale=100) for key, label, colour in looks
    ]
    return Panel(name, "smoothing", "excess AURC, %", curves)


def risk_over_coverage(results: Results) -> Figure | str:
    """Error rate of the most confident share; a panel for each network; from what is kept with each run."""
    names, panels, rows = networks_of(results), [], []
    for key in names:
        curves = []
        for alpha, what, colour, line, name in _RISKS:
            kept = [o.details for o in results.where(network=key, alpha=alpha).outcomes if what in o.details]
            if not kept:
                continue
            places = kept[0]["coverages"]
            found = [Sample.of(values) for values in zip(*(one[what] for one in kept), strict=True)]
            y = [100 * one.mean for one in found]
            curves.append(Curve(name, colour, [100 * place for place in places], y, line=line))
            rows += [
                {"network": key, "what": name, "coverage": place, "risk": one}
                for place, one in zip(places, found, strict=True)
            ]
        if curves:
            panels.append(
                Panel(names[key], "coverage, %", "error rate, %", curves, limits=(0, None), digits=2)
            )
    if not panels:
        return "Error rate over coverage: not stored with these runs."
    return lines(
        "risk_over_coverage",
        "Error rate of the most confident predictions.",
        panels,
        rows,
        "At a coverage of 100 % every prediction is used. A confidence that tells mistakes well has a low error rate "
        "where little is used. Means over seeds.",
        "Error rate over coverage with hard targets, with smoothing, and with normalised logits, for each network.",
    )
