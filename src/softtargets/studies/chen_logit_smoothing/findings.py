"""What the study of logit smoothing says: does it work?"""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Sample, above, below, sources
from softtargets.report import Section
from softtargets.studies.chen_logit_smoothing.figures import four_ways
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import unless_full

NONE = {"method": "none", "p": 1.0}


def findings(results: Results) -> Findings:
    """One figure, and the paper's question answered."""
    one = results.first()
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Four ways",
                f"MNIST, {size} size: {examples['train']:,} training images with some labels wrong, the net and "
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
                    "This is the small size, for a CPU, with a fully connected net; --set size=full trains the "
                    "paper's convolutional net on all digits.",
                ),
            ),
        ),
        claims=_claims(results),
    )


def _claims(results: Results) -> tuple[Claim, ...]:
    asked, chained = sources("chen-2020/section-6.2/question"), sources("chen-2020/equation-19/chain")

    def lowest(sign: int, measure: str, method: str) -> Sample:
        """The best p of a method against no remedy: by the mean over seeds, then seed by seed, mean over a."""
        labels = ({"method": method, "a": a} for a in sorted(results.values("a")))
        gains = [_gain(results, sign, measure, one) for one in labels]
        return Sample.of(sum(values) / len(values) for values in zip(*gains, strict=False))

    def smallest(measure: str) -> Sample:
        chosen = results.where(method="label smoothing")
        return chosen.each_seed(lambda own: min(own.sample(measure).values))

    best = "at the best p minus that without, mean over a"
    return (
        Claim(
            "Smoothing logits lowers the test loss.",
            asked,
            f"test loss {best}",
            *below(0, lowest(1, "loss", "logit smoothing")),
        ),
        Claim(
            "It does so if the net is used as it was trained, with smoothed logits.",
            asked,
            f"test loss of softmax(Sz) {best}",
            *below(0, lowest(1, "loss_trained", "logit smoothing")),
        ),
        Claim(
            "Smoothing logits raises the test accuracy.",
            asked,
            f"accuracy {best}",
            *above(0, lowest(-1, "accuracy", "logit smoothing")),
            remark="The best of several p, chosen on the test set, lies above by chance already.",
        ),
        Claim(
            "Smoothing labels lowers the test loss, for comparison.",
            sources("chen-2020/section-3.1/optimum"),
            f"test loss {best}",
            *below(0, lowest(1, "loss", "label smoothing")),
        ),
        Claim(
            "Label smoothing lies below forward correction, on every test image.",
            chained,
            "smallest share of test images over a and p, nets trained with label smoothing",
            *above(0.9999, smallest("jensen")),
            digits=4,
        ),
        Claim(
            "Forward correction lies below logit smoothing, on every test image.",
            chained,
            "smallest share of test images over a and p, nets trained with label smoothing",
            *above(0.9999, smallest("next")),
            remark="It does not follow from Jensen's inequality (ERRATA.md, 11).",
            digits=4,
        ),
    )


def _gain(results: Results, sign: int, measure: str, labels: dict[str, Any]) -> tuple[float, ...]:
    masses = sorted(results.where(**labels).values("p"))
    best = min(masses, key=lambda p: sign * results.sample(measure, **labels, p=p).mean)
    none = {"a": labels["a"], **NONE}
    return results.difference(measure, {**labels, "p": best}, none).values
