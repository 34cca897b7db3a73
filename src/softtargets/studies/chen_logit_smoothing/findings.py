"""What the study of logit smoothing says: does it work?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softtargets.claims import Claim, Region, Sample, above, below, judge, sources, zone
from softtargets.report import Section
from softtargets.studies.chen_logit_smoothing.figures import four_ways
from softtargets.studies.chen_logit_smoothing.grid import rates_and_masses
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, unless_full

NONE = {"method": "none", "p": 1.0}
SMOOTHED = {"method": "label smoothing"}

# Seeds that judge; one more, the first, chooses p.
SEEDS = 3
# Points of accuracy too few to count, and a share of images that is all but for rounding.
NOTHING, ALL = 0.1, 0.9999


def findings(results: Results) -> Findings:
    """One figure, and the paper's question answered."""
    one, made = results.first(), claims(results)
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Four ways",
                f"MNIST, {size} size: {examples['train']:,} training images with some labels wrong, the network and "
                "training of the study chen-mnist. Label smoothing puts a matrix S outside of the logarithm of "
                "the softmax, forward correction between them, and logit smoothing on the logits: the loss is "
                "the cross-entropy of softmax(Sz) with the label as it is given.",
                "With equal mass for all other classes, S adds the same to every logit and shrinks their "
                "differences by one factor. So softmax(Sz) is softmax(z) at a temperature, and every fit of the "
                "labels that plain cross-entropy has, logit smoothing has too, with larger logits. What is left "
                "to find out is whether training finds another one.",
                four_ways(results),
            ),
            Section.of(
                "What this is and is not",
                "The paper asks the question and does not train. That S acts on the logits of a row and the "
                "softmax is taken over the result is our reading of equation 19, which does not say how smoothed "
                "logits are normalised.",
                "Smoothed logits also have smaller gradients, by the same factor, at an equal learning rate. What "
                "training finds with them may be what a lower rate would find without: this study does not tell "
                "the two apart.",
                unless_full(
                    size,
                    "This is the small size, for a CPU, with a fully connected network; --set size=full trains the "
                    "paper's convolutional network on all digits.",
                ),
            ),
        ),
        claims=made,
        answer=_answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Does it work?"""
    loss, _, accuracy, *_ = (one.verdict for one in judge(made))
    if loss == accuracy == "reproduced":
        return "Yes: with wrong labels, smoothing logits lowers the test loss and raises the accuracy."
    if "reproduced" in (loss, accuracy) and not {"inconclusive", "not run yet"} & {loss, accuracy}:
        gains, not_so = (
            ("lowers the test loss", "raise the accuracy"),
            ("raises the accuracy", "lower the test loss"),
        )
        does, does_not = gains if loss == "reproduced" else not_so
        return f"In part: with wrong labels, smoothing logits {does} but does not {does_not}."
    return answered(
        loss if loss != "reproduced" else accuracy,
        "Yes: with wrong labels, smoothing logits lowers the test loss.",
        "No: with wrong labels, smoothing logits does not lower the test loss.",
        whether="logit smoothing works",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""
    asked, chained = sources("chen-2020/section-6.2/question"), sources("chen-2020/equation-19/chain")

    choosing, judging = results.split()
    rates, masses = rates_and_masses(results)

    def lowest(sign: int, measure: str, method: str) -> Sample:
        """The best p of a method against no remedy, mean over a: chosen with one seed, judged on the others."""
        chosen = [
            (_best(choosing.where(method=method, a=a), sign, measure, masses), {"a": a, **NONE})
            for a in rates
        ]
        pairs = [(this, that) for this, that in chosen if this]
        return judging.gain(measure, pairs) if len(pairs) == len(chosen) else Sample(())

    def shares(measure: str) -> dict[str, Sample]:
        cells = [{"a": a, "p": p} for a in rates for p in masses]
        return {
            f"a = {cell['a']:g}, p = {cell['p']:g}": results.sample(measure, **SMOOTHED, **cell)
            for cell in cells
        }

    fixed: dict[str, Any] = {"seeds": SEEDS}
    best = "at the best p minus that without, mean over a"
    chosen = "The best p is chosen with the first seed, and judged on the others."
    return (
        Claim(
            "Smoothing logits lowers the test loss.",
            asked,
            f"test loss {best}",
            *below(0, lowest(1, "loss", "logit smoothing")),
            remark=chosen,
            **fixed,
        ),
        Claim(
            "Smoothing logits lowers the test loss if the network is used as it was trained, with smoothed logits.",
            asked,
            f"test loss of softmax(Sz) {best}",
            *below(0, lowest(1, "loss_trained", "logit smoothing")),
            remark=chosen,
            **fixed,
        ),
        Claim(
            "Smoothing logits raises the test accuracy.",
            asked,
            f"accuracy {best}",
            *above(0, lowest(-1, "accuracy", "logit smoothing").times(100)),
            remark=chosen,
            zone=zone(NOTHING),
            unit="points",
            **fixed,
        ),
        Claim(
            "Smoothing labels lowers the test loss, for comparison.",
            sources("chen-2020/section-3.1/optimum"),
            f"test loss {best}",
            *below(0, lowest(1, "loss", "label smoothing")),
            remark=chosen,
            **fixed,
        ),
        Claim.every(
            "Label smoothing lies below forward correction, on every test image.",
            chained,
            "share of test images, for every a and p, networks trained with label smoothing",
            shares("jensen"),
            Region(low=ALL),
            digits=4,
            **fixed,
        ),
        Claim.every(
            "Forward correction lies below logit smoothing, on every test image.",
            chained,
            "share of test images, for every a and p, networks trained with label smoothing",
            shares("next"),
            Region(low=ALL),
            remark="It does not follow from Jensen's inequality (ERRATA.md, 11).",
            digits=4,
            **fixed,
        ),
    )


def _best(cells: Results, sign: int, measure: str, masses: Sequence[float]) -> dict[str, Any]:
    """The cell of the best p among those of one method and clean rate; empty where one of them is missing."""
    values = {p: sign * found[measure] for (p,), found in cells.cells("p").items() if measure in found}
    if not set(masses) <= values.keys():
        return {}
    labels = cells.outcomes[0].trial.labels
    return {key: labels[key] for key in ("method", "a")} | {"p": min(values, key=lambda p: (values[p], p))}
