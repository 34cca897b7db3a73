"""What the study of human noise says: does the theory of uniform noise do for labels that people gave?"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from softtargets.claims import Claim, Region, Sample, published
from softtargets.report import Column, Figure, Section, Table
from softtargets.report.drawing import BLUE, GREY, RED
from softtargets.studies.chen_human_noise.grid import SOURCES
from softtargets.studies.plotting import errorbars, panels
from softtargets.studies.study import Findings, Results
from softtargets.theory import averaging_loss, generalization_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CLASSES = 10
CLOSE = 0.10
_LOOKS = dict(zip(SOURCES, ((RED, "o"), (BLUE, "s")), strict=True))
_FINE = np.linspace(0.15, 0.985, 150)


def findings(results: Results) -> Findings:
    """A figure and claims."""
    one = results.first()
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    about = () if size == "full" else (
        "This is the tiny size, for a CPU: a fully connected net on few images, which errs on most test images "
        "whatever its labels. The theory cannot hold for it in absolute numbers; what can be compared is human noise "
        "with random noise. With --set size=full the net of the study chen-cifar10 is trained.",
    )  # fmt: skip
    return Findings(
        sections=(
            Section(
                "Human labels and random ones",
                (
                    f"CIFAR-10, {size} size: {examples['train']:,} training images, {examples['test']:,} test images "
                    "with clean labels. CIFAR-10N has labels that people gave to the training images: “aggregate” is "
                    "the majority of three, “worse” is a wrong one wherever one of three was wrong. Beside each stands "
                    "symmetric noise that is wrong as often.",
                    _counted(results),
                    "For smoothing with one p, the theory of the alpha type depends on the noise only through the "
                    "share of labels that are right. People, though, confuse what looks alike: their mistakes are not "
                    "spread evenly, and depend on the image.",
                    *about,
                ),
                (_figure(results),),
            ),
        ),
        claims=_claims(results),
    )


def _counted(results: Results) -> str:
    """How many labels of the images that were trained on are right; of a part it is not quite the share of all."""
    kinds = dict.fromkeys(o.trial.labels["labels"] for o in results.outcomes)
    shares = {
        kind: [_sample(results, "clean_rate", labels=kind, source=source).mean for source in SOURCES]
        for kind in kinds
    }
    said = ", ".join(
        f"{people:.1%} ({kind}; {random:.1%} beside it)" for kind, (people, random) in shares.items()
    )
    return f"Of the labels that were trained on so many are right: {said}.".replace("%", " %")


def _figure(results: Results) -> Figure:
    kinds = list(dict.fromkeys(o.trial.labels["labels"] for o in results.outcomes))
    masses = sorted({o.trial.labels["p"] for o in results.outcomes})
    keys = (
        "loss",
        "accuracy",
        "early_accuracy",
        "by_heart",
        "clean_rate",
        "effective",
        "predicted",
        "averaging",
    )
    rows: tuple[dict[str, Any], ...] = tuple(
        {"labels": kind, "source": source, "p": p}
        | {key: _sample(results, key, labels=kind, source=source, p=p) for key in keys}
        for kind in kinds for source in SOURCES for p in masses
    )  # fmt: skip

    def draw() -> Drawing:
        drawing, axes = panels(2 * len(kinds), width=5.2 * len(kinds), height=3.6)
        for place, kind in enumerate(kinds):
            rate = _sample(results, "clean_rate", labels=kind, source="human").mean
            loss, right = axes[2 * place : 2 * place + 2]
            known = generalization_loss(_FINE, rate, CLASSES, "alpha")
            loss.plot(_FINE, known, color=GREY, label="predicted, by heart")
            averaged = averaging_loss(_FINE, rate, CLASSES, "alpha")
            loss.plot(_FINE, averaged, color=GREY, linestyle=":", label="predicted, averaging")
            for source, (colour, marker) in _LOOKS.items():
                mine = [row for row in rows if (row["labels"], row["source"]) == (kind, source)]
                smoothed = [row for row in mine if row["p"] < 1]
                errorbars(loss, [row["p"] for row in smoothed], [row["loss"] for row in smoothed], colour, source,
                          marker=marker)  # fmt: skip
                errorbars(right, [row["p"] for row in mine], [row["accuracy"] for row in mine], colour, source,
                          scale=100, marker=marker)  # fmt: skip
            loss.set(title=f"{kind}, a = {rate:.2f}", xlabel="p", ylabel="test loss, nats")
            loss.set_ylim(0, max(3.5, loss.get_ylim()[1]))
            right.set(title="", xlabel="p", ylabel="test accuracy, %")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return drawing

    columns = (
        Column("labels", "labels"),
        Column("source", "noise"),
        Column("p", "p", 2),
        Column("clean_rate", "right labels", percent=True),
        Column("effective", "the same, classes alike", percent=True),
        Column("loss", "test loss"),
        Column("predicted", "predicted"),
        Column("accuracy", "accuracy", percent=True),
        Column("by_heart", "training labels given back", percent=True),
    )
    return Figure(
        "human_noise",
        "Test loss and accuracy with human labels and with symmetric noise.",
        draw,
        Table("human_noise", "Human labels and symmetric noise", columns, rows),
        "Mean and deviation over seeds; the loss without smoothing, p = 1, is not shown. Grey: predicted from the "
        "share of right labels alone. The share is counted on the images that were trained on.",
        "Test loss and accuracy over p for two kinds of noise, a pair of panels for each set of human labels.",
    )


def _claims(results: Results) -> tuple[Claim, ...]:
    effective = (published("chen-2020/section-4.4/effective"),)
    seeds = sorted({o.trial.recipe.seed for o in results.outcomes})
    masses = sorted({o.trial.labels["p"] for o in results.outcomes})
    kinds = sorted({o.trial.labels["labels"] for o in results.outcomes})
    step = max(after - before for before, after in pairwise(masses))

    def each(of: Callable[[dict[Any, Any]], float]) -> Sample:
        values = []
        for seed in seeds:
            own = [o for o in results.outcomes if o.trial.recipe.seed == seed]
            cells = {tuple(o.trial.labels[key] for key in ("labels", "source", "p")): o.measures for o in own}
            try:
                values.append(of(cells))
            except KeyError:  # a run of this seed failed
                continue
        return Sample.of(values)

    soft = [(kind, p) for kind in kinds for p in masses if p < 1]

    def apart(cells: dict[Any, Any]) -> float:
        ratios = [cells[k, "human", p]["loss"] / cells[k, "symmetric", p]["loss"] - 1 for k, p in soft]
        return float(max(ratios, key=abs))

    def deviation(cells: dict[Any, Any]) -> float:
        found = (cells[kind, "human", p] for kind, p in soft)
        return float(max(abs(cell["loss"] / cell["predicted"] - 1) for cell in found))

    def best_p(cells: dict[Any, Any]) -> float:
        gaps = []
        for kind in kinds:
            best = min(masses, key=lambda p: cells[kind, "human", p]["loss"])
            gaps.append(abs(best - cells[kind, "human", best]["clean_rate"]))
        return float(sum(gaps) / len(gaps))

    def gain(cells: dict[Any, Any]) -> float:
        gains = [
            min(cells[k, "human", p]["loss"] for p in masses) - cells[k, "human", 1.0]["loss"] for k in kinds
        ]
        return float(sum(gains) / len(gains))

    return (
        Claim(
            "Only the share of right labels counts: human noise costs as much as symmetric noise that is as frequent.",
            effective,
            "largest distance of the test loss from that with symmetric noise, p below 1",
            each(lambda cells: abs(apart(cells))),
            Region(high=CLOSE),
            f"{each(apart).mean:+.1%} where they differ most".replace("-", "−").replace("%", " %"),
            remark=f"“As much” is taken for within {CLOSE:.0%}.".replace("%", " %"),
        ),
        Claim(
            "The alpha type predicts the test loss from that share.",
            (published("chen-2020/figure-6/agreement"),),
            "largest distance from the prediction with human noise, p below 1",
            each(deviation),
            Region(high=CLOSE),
            remark="The paper has symmetric noise only.",
        ),
        Claim(
            "The p with the lowest test loss is that share.",
            effective,
            "mean distance of the best p of the grid from it",
            each(best_p),
            Region(high=step),
            remark=f"A step of the grid is at most {step:g}.",
        ),
        Claim(
            "With human noise, smoothing lowers the test loss.",
            (published("chen-2020/section-1/noise"),),
            "test loss at the best p minus that without smoothing, mean over the sets of labels",
            each(gain),
            Region(high=0),
        ),
    )


def _sample(results: Results, measure: str, **labels: Any) -> Sample:
    outcomes = sorted(results.where(**labels).outcomes, key=lambda outcome: outcome.trial.recipe.seed)
    return Sample.of(o.measures[measure] for o in outcomes if measure in o.measures)
