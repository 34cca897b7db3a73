"""The figure of the study of logit smoothing, with the numbers it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softtargets.claims import Sample
from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, GREEN, GREY, RED
from softtargets.studies.chen_logit_smoothing.grid import METHODS
from softtargets.studies.plotting import errorbars
from softtargets.studies.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_LOOKS = dict(zip(METHODS, (BLUE, RED, GREEN, GREY), strict=True))
_MEASURES = {
    "loss": "test loss, nats",
    "loss_trained": "test loss as trained, nats",
    "accuracy": "test accuracy, %",
}


def four_ways(results: Results) -> Figure:
    """Loss and accuracy over p, a row for each clean rate."""
    labels = sorted(
        {(o.trial.labels["a"], o.trial.labels["method"], o.trial.labels["p"]) for o in results.outcomes}
    )
    keys = (*_MEASURES, "early_accuracy", "by_heart")
    rows: tuple[dict[str, Any], ...] = tuple(
        {"a": a, "method": method, "p": p}
        | {key: results.sample(key, a=a, method=method, p=p) for key in keys}
        for a, method, p in labels
    )
    rates = sorted({row["a"] for row in rows})

    def draw() -> Drawing:
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing(figsize=(10.4, 3.0 * len(rates) + 0.4), layout="constrained")
        grid = drawing.subplots(len(rates), len(_MEASURES), squeeze=False)
        for line, a in zip(grid, rates, strict=True):
            for axes, (key, title) in zip(line, _MEASURES.items(), strict=True):
                scale = 100 if key == "accuracy" else 1
                for method, colour in _LOOKS.items():
                    mine = [row for row in rows if (row["a"], row["method"]) == (a, method)]
                    samples: list[Sample] = [row[key] for row in mine]
                    if method.endswith("smoothing"):
                        errorbars(axes, [row["p"] for row in mine], samples, colour, method, scale=scale)
                    elif samples:
                        axes.axhline(scale * samples[0].mean, color=colour, linestyle="--", label=method)
                axes.set(xlabel="p", ylabel=title, title=f"a = {a:g}")
        drawing.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return drawing

    columns = (
        Column("a", "a", 2),
        Column("method", "method"),
        Column("p", "p", 2),
        Column("loss", "test loss"),
        Column("loss_trained", "test loss as trained"),
        Column("accuracy", "accuracy", percent=True),
        Column("early_accuracy", "accuracy, best epoch", percent=True),
        Column("by_heart", "training labels given back", percent=True),
    )
    return Figure(
        "four_ways",
        "Test loss and accuracy with smoothed labels, smoothed logits, corrected outputs and none of these.",
        draw,
        Table("four_ways", "Four ways to meet label noise", columns, rows),
        "Left: what the net says. Middle: what it says through the matrix it was trained with, which for smoothed "
        "labels is the same. p is the diagonal of the matrix; forward correction has the true one, p = a. Mean and "
        "deviation over seeds.",
        "Test loss, test loss as trained, and test accuracy over p for four methods, a row for each clean rate.",
    )
