"""What a study of the plane says: figures 5 to 11, and where the theory holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from softtargets.claims import Claim, Sample, judge
from softtargets.report import Section, Table
from softtargets.studies.chen_plane import figures
from softtargets.studies.chen_plane.claims import CLOSE, EARLY, LATE, claims
from softtargets.studies.chen_plane.grid import AWAY, Scope, axes_of, best_ps
from softtargets.studies.chen_plane.measures import KINDS, with_gamma
from softtargets.studies.results import Results, Row, over
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, counted, percent, unless_full

# What the test labels of the three types are.
_TESTED = dict(zip(KINDS, ("clean", "as wrong as those of the training", "clean, smoothed"), strict=True))
# Accuracies that differ by less are alike: of 10,000 images ten.
FLAT = 0.001


class Cell(NamedTuple):
    """Means over seeds at one a and p."""

    a: float
    p: float
    deviation: float
    trained: float
    explained: float
    position: float
    by_heart: float
    accuracy: float


def cells_away(results: Results) -> list[Cell]:
    """The cells away from p = 1 of which there are runs."""
    rates, masses = axes_of(results)
    keys = ("deviation_alpha", "deviation_trained", "explained", "position_alpha", "by_heart", "accuracy")
    return [
        Cell(*cell.values(), *(results.sample(key, **cell).mean for key in keys))
        for cell in over(a=rates, p=[p for p in masses if p <= AWAY])
        if results.where(**cell).outcomes
    ]


def findings(scope: Scope, results: Results) -> Findings:
    """Figures, a table and claims."""
    classes = len(results.first().run.provenance["classes"])
    results = with_gamma(results, classes)
    made = claims(results, classes, scope.losses_only, scope)
    return Findings(_sections(scope, results, classes), made, _answer(scope, made))


def _answer(scope: Scope, made: tuple[Claim, ...]) -> str:
    """Does the theory hold?"""
    everywhere, average = (one.verdict for one in judge(made)[:2])
    if average == "contradicted":
        far = f"more than {percent(CLOSE)} away from the prediction"
        return f"No: on {scope.dataset} the test loss lies on average {far}."
    if everywhere == "contradicted" and average == "reproduced":
        return (
            f"On average, but not everywhere: on {scope.dataset} the mean distance of the test loss from the "
            "prediction is small, but in some cells it is not."
        )
    return answered(
        everywhere,
        f"Yes: on {scope.dataset} the test loss is within {percent(CLOSE)} of the prediction everywhere away from p = "
        "1.",
        f"Not everywhere: on {scope.dataset} the test loss is far from the prediction in some cells.",
        whether=f"the test loss on {scope.dataset} is what the theory predicts",
    )


def _sections(scope: Scope, results: Results, classes: int) -> tuple[Section, ...]:
    one, cells, (rates, masses) = results.first(), cells_away(results), axes_of(results)
    recipe, run, size = one.trial.recipe, one.run, str(one.trial.labels["size"])
    examples = run.provenance["examples"]
    first = (
        f"{scope.dataset}, {size} size: {examples['train']:,} training images and {run.provenance['parameters']:,} "
        f"weights ({recipe.model.name}), {int(run.summary['epoch'])} epochs, {len(rates)} clean rates from "
        f"{rates[0]:g} to {rates[-1]:g} and {len(masses)} values of p, {counted(len(results.seeds), 'seed')}. "
        f"{examples['test']:,} test images."
        + unless_full(
            size,
            " Verdicts on this page are about these models; those of the paper are trained with --set size=full.",
        ),
        "The theory assumes that a network memorises the target of each training example, wrong labels included, and "
        "that it does the same on test examples. Both assumptions are measured. The first: how many of the given "
        "training labels the network reproduces. The second: where the test loss lies between that of a network that "
        "has memorised everything (position 1) and that of one that has learned only what labels are on average "
        "(position 0).",
        "The formula itself is about the training images, judged by their clean labels, so their loss is measured too. "
        "The distance of that loss from the prediction is what was not memorised; the distance of the test loss from "
        "it is generalisation.",
    )
    return (
        Section.of(
            "Loss over the plane",
            *first,
            _where(cells),
            _on_training_images(cells),
            figures.landscape(results, classes),
            _table(cells),
        ),
        Section.of(
            "Slices, clean and corrupted test labels",
            "The loss against corrupted test labels is the mean over all ways to corrupt them, computed from what "
            "the network predicts on the clean test set. So no random draw adds to its variance.",
            "The theory's third type, gamma, tests against clean labels that are smoothed like those of the training. "
            "The paper shows it in theory only. It is a mean over the same predictions, and is measured here.",
            figures.slices(results, classes),
            _by_type(results),
        ),
        Section.of(
            "Which p is best",
            "Predicted is the p of the lowest loss; nothing is predicted about accuracy. The best epoch of a network "
            "is that of its highest test accuracy. The paper's figure 9c shows those maximisers scattered over p and "
            "takes that as a hint that early stopping makes smoothing superfluous; scatter alone would also follow "
            "from accuracies that are all alike, so the claim is tested by what smoothing gains."
            + (" The paper shows this for MNIST only." if scope.losses_only else ""),
            figures.best_smoothing(results, classes),
            _dispersion(results),
            figures.accuracy_planes(results),
            figures.accuracy_over_p(results),
            *figures.weak_smoothing(results),
        ),
        Section.of("What differs from the paper", *scope.apart[size], _grid_beside_the_papers(rates, masses)),
    )


def _where(cells: list[Cell]) -> str:
    """In how many cells the prediction is off by more than it may, and what is the matter there."""
    if not cells:
        return ""
    off = [cell for cell in cells if abs(cell.deviation) > CLOSE]
    if not off:
        return (
            f"In all {len(cells)} cells up to p = 0.9 the measured loss is within {percent(CLOSE)} of the predicted "
            "one."
        )
    below = [cell for cell in off if cell.deviation < 0]
    return (
        f"In {len(off)} of {len(cells)} cells up to p = 0.9 the measured loss is more than {percent(CLOSE)} away from "
        f"the predicted one: {len(below)} times below it, {len(off) - len(below)} times above."
        + _why_below(below)
        + _why_above([cell for cell in off if cell.deviation > 0])
    )


def _why_below(cells: list[Cell]) -> str:
    if not cells:
        return ""
    # Without noise there is no way between the two.
    position = _mean(cell.position for cell in cells if cell.a < 1)
    return (
        f" Where it is below, networks reproduce {percent(_mean(cell.by_heart for cell in cells))} of their training "
        f"labels, wrong ones included, but the loss on test images lies at {position:.2f} on the way from averaging "
        "(0) to memorising (1)."
    )


def _why_above(cells: list[Cell]) -> str:
    if not cells:
        return ""
    error = _mean(1 - cell.accuracy - (1 - cell.a) for cell in cells)
    return (
        f" Where it is above, the error rate on the test set is {100 * error:.1f} points higher than the share of "
        "wrong training labels. The theory leaves that out: it knows no error but that of the labels."
    )


def _on_training_images(cells: list[Cell]) -> str:
    """How the prediction fares where the theory makes it: on the images the model was trained on."""
    cells = [cell for cell in cells if cell.trained == cell.trained]
    if not cells:
        return ""
    close = sum(abs(cell.trained) <= CLOSE for cell in cells)
    trained, tested = _mean(abs(cell.trained) for cell in cells), _mean(abs(cell.deviation) for cell in cells)
    return (
        f"On training images the loss against clean labels is within {percent(CLOSE)} of the prediction in {close} of "
        f"{len(cells)} cells, and on average {percent(trained)} away from it; on test images {percent(tested)}."
    )


def _table(cells: list[Cell]) -> Table:
    rows = []
    for a in dict.fromkeys(cell.a for cell in cells):
        mine = [cell for cell in cells if cell.a == a]
        worst = max(mine, key=lambda cell: abs(cell.deviation))
        rows.append(
            {
                "a": a,
                "mean": _mean(abs(cell.deviation) for cell in mine),
                "worst": worst.deviation,
                "where": worst.p,
                "trained": _mean(abs(cell.trained) for cell in mine),
                "by_heart": _mean(cell.by_heart for cell in mine),
                "position": _mean(cell.position for cell in mine),
                "explained": _mean(abs(cell.explained) for cell in mine),
            }
        )
    return Table.of(
        "deviations",
        "How far the measured loss lies from the prediction of the alpha type, p up to 0.9.",
        "a .2f: clean rate a | mean .1%: mean distance | worst .1%: largest deviation | where .2f: at p | "
        "trained .1%: mean distance on training images | by_heart .1%: training labels reproduced | "
        "position .2f | explained .1%: mean distance with the accuracy for a",
        rows,
        "Means over seeds. Position 1 is memorised, 0 averaged, and above 1 is worse than both. The last column puts "
        "the network's test accuracy in the place of a: what is left of the distance then is due to its confidence, "
        "not to its errors.",
    )


def _by_type(results: Results) -> Table:
    """How far each of the three losses lies from its prediction."""
    rates, masses = axes_of(results)
    away = over(a=rates, p=[p for p in masses if p <= AWAY])
    rows = []
    for kind in KINDS:
        found = {(c["a"], c["p"]): results.sample(f"deviation_{kind}", **c).mean for c in away}
        known = {cell: value for cell, value in found.items() if value == value}
        row: Row = {"type": kind, "labels": _TESTED[kind], "cells": len(known)}
        if known:
            worst = max(known, key=lambda cell: abs(known[cell]))
            row |= {
                "mean": _mean(abs(value) for value in known.values()),
                "close": sum(abs(value) <= CLOSE for value in known.values()),
                "worst": known[worst],
                "where": f"a = {worst[0]:g}, p = {worst[1]:g}",
            }
        rows.append(row)
    return Table.of(
        "types",
        "How far the measured losses of the three types lie from their predictions, p up to 0.9.",
        f"type | labels: test labels | cells | mean .1%: mean distance | close: cells within {percent(CLOSE)} | "
        "worst .1%: largest deviation | where",
        rows,
        "Means over seeds. Test targets of the gamma type are soft, so that part of its loss is the entropy of these "
        "targets, for any network: the same miss is a smaller share of it.",
    )


def _dispersion(results: Results) -> Table:
    """How far the most accurate p differs between seeds, and how many p are as good."""
    rates, masses = axes_of(results)
    rows = []
    for a in rates:
        row: Row = {"a": a}
        for key in (LATE, EARLY):
            best = best_ps(results, key, a)
            means = [results.sample(key, a=a, p=p).mean for p in masses]
            there = [value for value in means if value == value]
            row |= {
                key: best,
                f"{key}_flat": sum(max(there) - value < FLAT for value in there) if there else None,
            }
        rows.append(row)
    return Table.of(
        "dispersion",
        "The most accurate p, after the last epoch and at the best one.",
        f"a .2f: clean rate a | {LATE} .2f: best p at the end | {LATE}_flat: as good at the end | "
        f"{EARLY} .2f: best p with early stopping | {EARLY}_flat: as good with early stopping",
        rows,
        f"Mean and standard deviation over seeds. “As good” counts the p of the grid, {len(masses)} in all, whose mean "
        f"accuracy is within {100 * FLAT:g} points of the best. Where many are as good, the best of them is a matter "
        "of chance.",
    )


def _grid_beside_the_papers(rates: Sequence[float], masses: Sequence[float]) -> str:
    """What the paper's grid has and ours has not, in numbers."""
    steps = [after - before for before, after in pairwise(masses)]
    if not steps:
        return ""
    return (
        "The paper gives its grid as “a granularity of 0.01/0.1 for a and p”, read in this order 100 clean rates and "
        "10 values of p, and prints neither its ends nor how many runs a cell has. Here are "
        f"{len(rates)} clean rates ({', '.join(f'{a:g}' for a in rates)}) and {len(masses)} values of p "
        f"({', '.join(f'{p:g}' for p in masses)}). "
        f"So a best p on this page is known to half a step of this grid, {min(steps) / 2:.2g} to "
        f"{max(steps) / 2:.2g}, and nothing is seen of clean rates between those listed."
    )


def _mean(values: Iterable[float]) -> float:
    return Sample.of(values).mean
