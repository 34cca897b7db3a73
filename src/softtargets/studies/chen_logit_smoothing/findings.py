"""What the study of logit smoothing says: does it work?"""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, Sample, above, below, sources, zone
from softtargets.report import Section
from softtargets.studies.chen_logit_smoothing.figures import four_ways
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import unless_full

NONE = {"method": "none", "p": 1.0}
SMOOTHED = {"method": "label smoothing"}

# Seeds that judge; one more, the first, chooses p.
SEEDS = 3
# Accuracy too small to count, and a share of images that is all but for rounding.
NOTHING, ALL = 0.001, 0.9999


def findings(results: Results) -> Findings:
    """One figure, and the paper's question answered."""
    one = results.first()
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Four methods",
                f"MNIST, {size} size: {examples['train']:,} training images with some labels wrong, the model and "
                "training of the study chen-mnist. Label smoothing puts a matrix S outside the logarithm of the "
                "softmax, forward correction puts it between the two, and logit smoothing applies it to the logits: "
                "the loss is the cross-entropy of softmax(Sz) with the given label.",
                "With equal mass for all other classes, S adds the same number to every logit and shrinks their "
                "differences by one factor. So softmax(Sz) is softmax(z) at a temperature, and logit smoothing can fit "
                "the labels exactly as plain cross-entropy does, with larger logits. The question is whether training "
                "finds a different solution.",
                four_ways(results),
            ),
            Section.of(
                "Limits of this study",
                "The paper asks the question and trains no model. We read equation 19 so that S acts on the logits of "
                "an example and the softmax is taken of the result. The equation does not say how smoothed logits are "
                "normalised.",
                "Smoothed logits also have smaller gradients, by the same factor, at the same learning rate. A lower "
                "learning rate without smoothing might have the same effect. This study does not separate the two.",
                unless_full(
                    size,
                    "This is the small size, for a CPU, with a fully connected model. --set size=full trains the "
                    "paper's convolutional network on all digits.",
                ),
            ),
        ),
        claims=claims(results),
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""
    asked, chained = sources("chen-2020/section-6.2/question"), sources("chen-2020/equation-19/chain")

    choosing, judging = results.split()
    rates = sorted(results.values("a"))

    def lowest(sign: int, measure: str, method: str) -> Sample:
        """The best p of a method against no remedy, mean over a: chosen with one seed, judged on the others."""
        chosen = [(_best(choosing, sign, measure, method, a), {"a": a, **NONE}) for a in rates]
        pairs = [(this, that) for this, that in chosen if this]
        return judging.gain(measure, pairs) if len(pairs) == len(chosen) else Sample(())

    def shares(measure: str) -> dict[str, Sample]:
        cells = [{"a": a, "p": p} for a in rates for p in results.where(**SMOOTHED, a=a).values("p")]
        return {
            f"a = {cell['a']:g}, p = {cell['p']:g}": results.sample(measure, **SMOOTHED, **cell)
            for cell in cells
        }

    fixed: dict[str, Any] = {"seeds": SEEDS}
    best = "at the best p minus that without, mean over a"
    chosen = "The best p was chosen with the first seed and is judged on the others."
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
            "Smoothing logits lowers the test loss if the model is also tested with smoothed logits.",
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
            *above(0, lowest(-1, "accuracy", "logit smoothing")),
            remark=chosen,
            zone=zone(NOTHING),
            **fixed,
        ),
        Claim(
            "For comparison: smoothing labels lowers the test loss.",
            sources("chen-2020/section-3.1/optimum"),
            f"test loss {best}",
            *below(0, lowest(1, "loss", "label smoothing")),
            remark=chosen,
            **fixed,
        ),
        Claim.every(
            "The loss of label smoothing is below that of forward correction on every test image.",
            chained,
            "share of test images, for every a and p, models trained with label smoothing",
            shares("jensen"),
            Region(low=ALL),
            digits=4,
            **fixed,
        ),
        Claim.every(
            "The loss of forward correction is below that of logit smoothing on every test image.",
            chained,
            "share of test images, for every a and p, models trained with label smoothing",
            shares("next"),
            Region(low=ALL),
            remark="It does not follow from Jensen's inequality (ERRATA.md, 11).",
            digits=4,
            **fixed,
        ),
    )


def _best(choosing: Results, sign: int, measure: str, method: str, a: float) -> dict[str, Any]:
    """The cell of the best p; empty where there is none."""
    cells = choosing.where(method=method, a=a).cells("p")
    values = {p: sign * found[measure] for (p,), found in cells.items() if measure in found}
    return {"method": method, "a": a, "p": min(values, key=lambda p: (values[p], p))} if values else {}
