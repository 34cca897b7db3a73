"""Figures of the advise page: their data, and the ink."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import softtargets.theory as theory
from softtargets.inspection.advise.finding import LISTED, USUAL, Advice
from softtargets.inspection.advise.suspects import Suspects
from softtargets.inspection.advise.words import JUDGED
from softtargets.inspection.shared.numbers import number, percent
from softtargets.report import Figure, Table
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Axes, Drawing, canvas, plain
from softtargets.theory.drawing import draw_landscape, draw_optimum

NUMBERED = 20  # classes for whose matrix numbers are still read
LARGEST = 20  # entries that are listed where there are too many
STEPS = 199
ACROSS = 6  # images beside each other

TESTED = {"alpha": "clean test labels", "beta": "noisy test labels", "gamma": "smoothed test labels"}
COLOURS = dict(zip(TESTED.values(), (BLUE, ORANGE, GREEN), strict=True))
POINT: dict[str, Any] = {"markersize": 7, "clip_on": False}


def matrix_rows(found: Advice, places: list[tuple[int, int]]) -> list[dict[str, float]]:
    """Entries of T with intervals and the best targets, in numbers only so that any program reads it."""
    return [
        {"clean": i, "label": j, **{name: float(one[i, j]) for name, one in found.matrices.items()}}
        for i, j in places
    ]


def matrix_table(found: Advice) -> Table:
    """T entry by entry; with more classes than `LISTED` the largest entries off the diagonal."""
    places = list(np.ndindex(found.matrix.shape)) if found.classes <= LISTED else largest(found)
    columns = "clean|label|share|low|high|target"
    return Table.of("noise_matrix", "Noise", columns, matrix_rows(found, places))


def largest(found: Advice, most: int = LARGEST) -> list[tuple[int, int]]:
    """The entries off the diagonal with the largest shares of their class, from the largest."""
    off = found.matrix - np.diag(np.diagonal(found.matrix))
    off[np.isnan(found.estimate.matrix)] = 0
    order = np.argsort(-off, axis=None, kind="stable")[:most]
    return [divmod(int(place), found.classes) for place in order if off.flat[place] > 0]


def matrix_figure(found: Advice) -> Figure:
    """Which labels classes were given, as colours, with numbers where they can be read."""
    return Figure(
        "noise_matrix",
        "Which labels the classes were given.",
        lambda: _draw_matrix(found),
        matrix_table(found),
        "Left: how often an example of each class (row) was given each label (column), in per cent of the class. "
        "Perfect labels have 100 on the diagonal. Right: the share of right labels in each class with 95 % "
        "intervals, and the mean over all examples as a dashed line.",
        "A matrix of clean classes against given labels.",
    )


def landscape_figure(found: Advice) -> Figure:
    """The plane of clean rate and p, with these labels in it, beside the best p of each type."""
    rows = [
        {"test_labels": name, "a": float(a), "best_p": float(p)}
        for name, curve in _curves(found).items()
        for a, p in zip(curve.a, curve.p, strict=True)
    ]
    return Figure.of(
        "landscape",
        "Where these labels are.",
        lambda: _draw_landscape(found),
        rows,
        f"Left: the expected loss of uniform noise for {JUDGED[found.test_labels]}, dark where it is low, and the best "
        "p as a white line (Chen et al. 2020). The point is the recommendation for these labels with the interval of "
        f"their clean rate, the ring the usual alpha of {USUAL}. If noise is not uniform, the point may lie off the "
        "line. Right: the best p for each kind of test label; the grey line is these labels.",
        f"Expected loss over clean rate and p; these labels are at a clean rate of {percent(found.clean_rate.value)}.",
        table="best_p",
    )


def loss_figure(found: Advice) -> Figure:
    """The expected loss over p at the clean rate of these labels, with every label memorised and with none."""
    rows = loss_rows(found)
    return Figure.of(
        "expected_loss",
        "Expected loss over p.",
        lambda: _draw_losses(found, rows),
        rows,
        f"For {JUDGED[found.test_labels]} and the noise found here; p = 1 is no smoothing. The upper curve is for a "
        "network that memorises every label, as the theory assumes, the lower one for a network that memorises "
        "none. Real networks lie between the two, nearer to the upper curve the longer they are trained.",
        "Two curves of expected loss over p, with the recommended and the usual smoothing marked.",
        table="expected_loss_over_p",
    )


def loss_rows(found: Advice) -> list[dict[str, float]]:
    """Both expected losses for many p."""
    ps = np.arange(1, STEPS + 1) / (STEPS + 1)
    noise = (found.assumed, found.kind, found.estimate.shares)
    heart = theory.mean_field_loss(ps, *noise).tolist()
    return [
        {"p": p, "by_heart": loss, "averaged": theory.averaging_matrix_loss(p, *noise)}
        for p, loss in zip(ps.tolist(), heart, strict=True)
    ]


def suspects_figure(found: Suspects) -> Figure | None:
    """The images whose labels are the most suspicious."""
    if found.images is None or not len(found.images):
        return None
    return Figure.of(
        "suspicious",
        "The most suspicious labels.",
        lambda: _draw_suspects(found),
        found.rows(len(found.images)),
        "Above each image its row in the dataset and the label it was given; below it, in blue, the likely "
        "label.",
        "Images whose given and predicted labels differ.",
        table="suspicious_images",
    )


def _draw_suspects(found: Suspects) -> Drawing:
    assert found.images is not None
    down = -(-len(found.images) // ACROSS)
    figure = canvas(1.1 * ACROSS, 1.75 * down)
    grid = figure.subplots(down, ACROSS, squeeze=False).flatten()
    for axes in grid:
        axes.axis("off")
    for axes, image, row in zip(grid, found.images, found.rows(len(found.images)), strict=False):
        grey = image.shape[0] not in (3, 4)
        axes.imshow(image[0] if grey else image.transpose(1, 2, 0), cmap="gray" if grey else None)
        given, likely = (plain(_short(row[key])) for key in ("given_name", "likely_name"))
        axes.set_title(f"{row['row']}\n{given}", fontsize=9.5, fontweight="normal", loc="center", pad=3)
        below = {"fontsize": 9.5, "color": BLUE, "ha": "center", "va": "top"}
        axes.text(0.5, -0.05, likely, transform=axes.transAxes, **below)
    return figure


def _curves(found: Advice) -> dict[str, Any]:
    return {name: theory.optimum_curve(found.classes, kind) for kind, name in TESTED.items()}


def _draw_matrix(found: Advice) -> Drawing:
    size = found.classes
    figure = canvas(8.8, 4.4 if size <= 12 else 5.4)
    axes, beside = figure.subplots(1, 2, gridspec_kw={"width_ratios": [2, 1]})
    shown = np.where(np.isnan(found.estimate.matrix), np.nan, 100 * found.matrix)
    mesh = axes.imshow(shown, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    axes.grid(visible=False)
    axes.set(xlabel="label given", ylabel="clean class", title="All labels")
    figure.colorbar(mesh, ax=axes, label="% of the class", shrink=0.8)
    _draw_right(beside, found)
    if size <= NUMBERED:
        _write_numbers(axes, shown)
        names = [plain(_short(found.understood.called(index))) for index in range(size)]
        axes.set_xticks(range(size), names, rotation=45 if max(map(len, names)) > 2 else 0)
        for one in (axes, beside):
            one.set_yticks(range(size), names)
    return figure


def _draw_right(axes: Axes, found: Advice) -> None:
    """How many labels of each class are right, with intervals, beside the mean of all."""
    rows = matrix_rows(found, [(k, k) for k in range(found.classes)])
    value, low, high = ([100 * row[key] for row in rows] for key in ("share", "low", "high"))
    places = range(found.classes)
    axes.hlines(places, low, high, color=BLUE, linewidth=1)
    axes.plot(value, places, "o", color=BLUE, markersize=4 if found.classes <= NUMBERED else 2, clip_on=False)
    axes.axvline(100 * found.clean_rate.value, color=GREY, linewidth=1, linestyle="--")
    axes.set(title="Right labels", xlabel="% of the class", xlim=(min(50.0, *low), 100))
    axes.set_ylim(found.classes - 0.5, -0.5)


def _write_numbers(axes: Axes, shown: NDArray[np.float64]) -> None:
    for (i, j), value in np.ndenumerate(shown):
        text = "?" if np.isnan(value) else "" if value < 0.05 else f"{value:.{int(value < 9.95)}f}"
        colour = "white" if value > 55 else "#374151"
        axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)


def _short(name: str, most: int = 14) -> str:
    name = name.removeprefix("class ")
    return name if len(name) <= most else name[: most - 1] + "…"


def _draw_landscape(found: Advice) -> Drawing:
    figure = canvas(8.8, 3.9)
    left, right = figure.subplots(1, 2)
    mesh = draw_landscape(left, theory.landscape(found.classes, found.kind))
    figure.colorbar(mesh, ax=left, label="expected loss (nats)")
    rate, best = found.clean_rate, [found.p.value]
    usual = [float(theory.p_from_alpha(USUAL, found.classes))]
    reach = [[rate.value - rate.low], [rate.high - rate.value]]
    here: dict[str, Any] = {"color": RED, "markeredgecolor": "white", "zorder": 6, **POINT}
    left.errorbar([rate.value], best, xerr=reach, fmt="o", capsize=3, **here)
    ring = {"mfc": "none", "mec": "white", "mew": 1.6, "zorder": 5, **POINT, "markersize": 8}
    left.plot([rate.value], usual, "o", **ring)
    left.set(title="Expected loss", xlim=(0, 1), ylim=(0, 1))
    right.axvspan(rate.low, rate.high, color=GREY, alpha=0.25, linewidth=0)
    right.axvline(rate.value, color=GREY, linewidth=1)
    draw_optimum(right, _curves(found), COLOURS)
    right.plot([rate.value], best, "o", **here)
    right.set_title("Best p")
    right.legend(loc="upper left")
    return figure


def _draw_losses(found: Advice, rows: list[dict[str, float]]) -> Drawing:
    figure = canvas(7.4, 3.8)
    axes = figure.subplots()
    p, heart, averaged = ([row[key] for row in rows] for key in ("p", "by_heart", "averaged"))
    axes.fill_between(p, averaged, heart, color=BLUE, alpha=0.08, linewidth=0)
    axes.plot(p, heart, color=BLUE, label="every label memorised")
    axes.plot(p, averaged, color=BLUE, linestyle="--", label="no label memorised")
    marks = (("recommended", "recommended", RED), ("usual", f"alpha = {USUAL}", PURPLE))
    for name, label, colour in marks:
        one = found.expected[name]
        assert one.p is not None
        axes.axvline(one.p, color=colour, linewidth=1, linestyle=":")
        if np.isfinite(loss := one.by_heart.value):
            told = f"{label}: p = {number(one.p)}, loss {number(loss)}"
            axes.plot([one.p], [loss], "o", color=colour, zorder=5, label=told, **POINT)
    # Both curves rise without bounds where targets deny the label; what matters is below a guess.
    ceiling = max(found.expected["usual"].by_heart.value, float(np.log(found.classes)))
    axes.set(xlim=(0, 1), ylim=(0, 1.25 * ceiling))
    axes.set(xlabel="p, the target's mass on the label", ylabel="test loss (nats)")
    axes.legend(loc="lower left")
    return figure
