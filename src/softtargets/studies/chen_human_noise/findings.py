"""What the study of human noise says: does the theory of uniform noise do for labels that people gave?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from softtargets.claims import Claim, Region, Sample, judge, sources
from softtargets.report import Section
from softtargets.studies.chen_cifar10 import AS_PRINTED
from softtargets.studies.chen_human_noise.figures import human_noise
from softtargets.studies.chen_human_noise.grid import SOURCES, WRONG, kinds_and_masses
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, percent, unless_full

# Seeds that decide.
SEEDS = 3
CLOSE = 0.10

# What was measured with one seed, by set of labels, source and p.
Cells = Mapping[tuple[Any, ...], Mapping[str, float]]


def findings(results: Results) -> Findings:
    """A figure and claims."""
    one, made = results.first(), claims(results)
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Human labels and random ones",
                f"CIFAR-10, {size} size: {examples['train']:,} training images, {examples['test']:,} test images "
                "with clean labels. CIFAR-10N has labels that people gave to the training images: “aggregate” is "
                "the majority of three, “worse” is a wrong one wherever one of three was wrong. Beside each stands "
                "symmetric noise that is wrong as often.",
                _counted(results),
                "For smoothing with one p, the theory of the alpha type depends on the noise only through the "
                "share of labels that are right. People, however, confuse what looks alike: their mistakes are not "
                "spread evenly, and they depend on the image.",
                unless_full(
                    size,
                    "This is the tiny size, for a CPU: a fully connected network on few images, which misclassifies "
                    "most test images whatever its labels. The theory cannot hold for it in absolute numbers; what can "
                    "be compared is human noise with random noise. With --set size=full the network of the study "
                    "chen-cifar10 is trained.",
                ),
                "This is a part of the full size: two sets of labels and five values of p."
                if size == "core"
                else "",
                *(AS_PRINTED if size != "tiny" else ()),
                human_noise(results),
            ),
        ),
        claims=made,
        answer=_answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Does the theory hold for human mistakes?"""
    alike, predicted, *_ = (one.verdict for one in judge(made))
    if alike == "reproduced" and predicted == "contradicted":
        return "Human mistakes cost as much as random ones that are as frequent, but not what the theory predicts."
    return answered(
        predicted,
        "Yes: with human mistakes the test loss is what the theory predicts from the share of right labels.",
        "No: with human mistakes the test loss is not what the theory predicts from the share of right labels.",
        whether="the theory holds for human mistakes",
    )


def _counted(results: Results) -> str:
    """How many labels of the images that were trained on are right; of a part it is not quite the share of all."""
    said = []
    for kind in results.values("labels"):
        people, random = (
            results.shown("clean_rate", ".1%", {"labels": kind, "source": source}) for source in SOURCES
        )
        said.append(f"{people} ({kind}; {random} beside it)")
    return f"Share of right labels among those that were trained on: {', '.join(said)}."


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""
    effective = sources("chen-2020/section-4.4/effective")
    kinds, masses = kinds_and_masses(results)
    near = 1.5 * max((after - before for before, after in pairwise(masses)), default=0.0)
    soft = [(kind, p) for kind in kinds for p in masses if p < 1]

    def each(of: Callable[[Cells], float]) -> Sample:
        return results.each_seed(lambda own: of(own.cells("labels", "source", "p")))

    def every(of: Callable[[Cells, str, float], float]) -> dict[str, Sample]:
        return {f"{k}, p = {p:g}": each(lambda cells, k=k, p=p: of(cells, k, p)) for k, p in soft}  # type: ignore[misc]

    def apart(cells: Cells, kind: str, p: float) -> float:
        return 100 * (cells[kind, "human", p]["loss"] / cells[kind, "symmetric", p]["loss"] - 1)

    def deviation(cells: Cells, kind: str, p: float) -> float:
        cell = cells[kind, "human", p]
        return 100 * (cell["loss"] / cell["predicted"] - 1)

    def best_p(cells: Cells, kind: str) -> float:
        losses = {p: cells[kind, "human", p]["loss"] for p in masses}
        best = min(losses, key=lambda p: losses[p])
        return float(best - cells[kind, "human", best]["clean_rate"])

    def gain(cells: Cells, kind: str) -> float:
        """At the p of the grid that the theory names: the one next to the share of right labels."""
        named = nearest_below_one(masses, 1 - WRONG[kind])
        return cells[kind, "human", named]["loss"] - cells[kind, "human", 1.0]["loss"]

    def by_labels(of: Callable[[Cells, str], float]) -> dict[str, Sample]:
        return {kind: each(lambda cells, kind=kind: of(cells, kind)) for kind in kinds}  # type: ignore[misc]

    within = Region(-100 * CLOSE, 100 * CLOSE)
    in_percent: dict[str, Any] = {"seeds": SEEDS, "unit": "%", "digits": 1}
    return (
        Claim.every(
            "Only the share of right labels counts: human noise costs as much as symmetric noise that is as frequent.",
            effective,
            "deviation of the test loss from that with symmetric noise, for all labels and every p below 1",
            every(apart),
            within,
            remark=f"“As much” means within {percent(CLOSE)}.",
            **in_percent,
        ),
        Claim.every(
            "The alpha type predicts the test loss from the share of right labels.",
            sources("chen-2020/figure-6/agreement"),
            "deviation from the prediction with human noise, for all labels and every p below 1",
            every(deviation),
            within,
            remark="The paper has symmetric noise only.",
            **in_percent,
        ),
        Claim.every(
            "The p with the lowest test loss is the share of right labels.",
            effective,
            "best p of the grid minus the share, for all labels",
            by_labels(best_p),
            Region(-near, near),
            remark=f"The next p of the grid still counts: up to {near:.2g}, one and a half of its largest steps.",
            seeds=SEEDS,
        ),
        Claim.every(
            "With human noise, smoothing lowers the test loss.",
            sources("chen-2020/section-1/noise"),
            "test loss at the p next to the share of right labels minus that without smoothing, for all labels",
            by_labels(gain),
            Region(high=0),
            remark="The theory names that p.",
            seeds=SEEDS,
        ),
    )


def nearest_below_one(masses: Sequence[float], share: float) -> float:
    """The p of a grid nearest to a share of right labels, and below 1.

    >>> nearest_below_one([0.5, 0.8, 0.9, 1.0], 0.97)
    0.9
    """
    return min((p for p in masses if p < 1), key=lambda p: abs(p - share))
