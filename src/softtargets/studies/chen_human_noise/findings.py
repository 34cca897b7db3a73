"""What the study of human noise says: does the theory of uniform noise do for labels that people gave?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from softtargets.claims import Claim, Sample, below, sources
from softtargets.report import Section
from softtargets.studies.chen_human_noise.figures import human_noise
from softtargets.studies.chen_human_noise.grid import SOURCES
from softtargets.studies.results import Results, mean
from softtargets.studies.study import Findings
from softtargets.studies.words import percent, unless_full

CLOSE = 0.10

# What was measured with one seed, by set of labels, source and p.
Cells = Mapping[tuple[Any, ...], Mapping[str, float]]


def findings(results: Results) -> Findings:
    """A figure and claims."""
    one = results.first()
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
                "share of labels that are right. People, though, confuse what looks alike: their mistakes are not "
                "spread evenly, and depend on the image.",
                unless_full(
                    size,
                    "This is the tiny size, for a CPU: a fully connected net on few images, which errs on most "
                    "test images whatever its labels. The theory cannot hold for it in absolute numbers; what can "
                    "be compared is human noise with random noise. With --set size=full the net of the study "
                    "chen-cifar10 is trained.",
                ),
                human_noise(results),
            ),
        ),
        claims=_claims(results),
    )


def _counted(results: Results) -> str:
    """How many labels of the images that were trained on are right; of a part it is not quite the share of all."""
    said = []
    for kind in results.values("labels"):
        people, random = (
            percent(results.sample("clean_rate", labels=kind, source=source).mean, 1) for source in SOURCES
        )
        said.append(f"{people} ({kind}; {random} beside it)")
    return f"Of the labels that were trained on so many are right: {', '.join(said)}."


def _claims(results: Results) -> tuple[Claim, ...]:
    effective = sources("chen-2020/section-4.4/effective")
    masses, kinds = sorted(results.values("p")), sorted(results.values("labels"))
    step = max(after - before for before, after in pairwise(masses))
    soft = [(kind, p) for kind in kinds for p in masses if p < 1]

    def each(of: Callable[[Cells], float]) -> Sample:
        return results.each_seed(lambda own: of(own.cells("labels", "source", "p")))

    def apart(cells: Cells) -> float:
        ratios = (cells[k, "human", p]["loss"] / cells[k, "symmetric", p]["loss"] - 1 for k, p in soft)
        return max(ratios, key=abs)

    def deviation(cells: Cells) -> float:
        found = (cells[kind, "human", p] for kind, p in soft)
        return max(abs(cell["loss"] / cell["predicted"] - 1) for cell in found)

    def human_losses(cells: Cells) -> dict[str, dict[float, float]]:
        return {kind: {p: cells[kind, "human", p]["loss"] for p in masses} for kind in kinds}

    def best_p(cells: Cells) -> float:
        best = {kind: min(losses, key=lambda p: losses[p]) for kind, losses in human_losses(cells).items()}
        return mean(abs(p - cells[kind, "human", p]["clean_rate"]) for kind, p in best.items())

    def gain(cells: Cells) -> float:
        return mean(min(losses.values()) - losses[1.0] for losses in human_losses(cells).values())

    return (
        Claim(
            "Only the share of right labels counts: human noise costs as much as symmetric noise that is as frequent.",
            effective,
            "largest distance of the test loss from that with symmetric noise, p below 1",
            *below(CLOSE, each(lambda cells: abs(apart(cells)))),
            percent(each(apart).mean, 1, "+") + " where they differ most",
            remark=f"“As much” is taken for within {percent(CLOSE)}.",
        ),
        Claim(
            "The alpha type predicts the test loss from that share.",
            sources("chen-2020/figure-6/agreement"),
            "largest distance from the prediction with human noise, p below 1",
            *below(CLOSE, each(deviation)),
            remark="The paper has symmetric noise only.",
        ),
        Claim(
            "The p with the lowest test loss is that share.",
            effective,
            "mean distance of the best p of the grid from it",
            *below(step, each(best_p)),
            remark=f"A step of the grid is at most {step:g}.",
        ),
        Claim(
            "With human noise, smoothing lowers the test loss.",
            sources("chen-2020/section-1/noise"),
            "test loss at the best p minus that without smoothing, mean over the sets of labels",
            *below(0, each(gain)),
        ),
    )
