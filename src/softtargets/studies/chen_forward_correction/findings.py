"""What the study says: which matrix, and is it the same as forward correction?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from softtargets.claims import Claim, Region, Sample, published
from softtargets.report import Section
from softtargets.studies.chen_forward_correction.figures import five_ways, matrices, noises
from softtargets.studies.chen_forward_correction.grid import BAYES, FORWARD, MIXED, NONE, PRINTED, UNIFORM
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import percent, unless_full

CLOSE = 0.10

# Seeds that decide.
SEEDS = 3
# How the claims call a method; and by measure its name, and where gains lie.
_WITH = {
    NONE: "without a remedy",
    UNIFORM: "with uniform smoothing",
    PRINTED: "with S = T",
    BAYES: "with S by Bayes' rule",
    FORWARD: "with forward correction",
}
_BETTER = {
    "loss": ("test loss", Region(high=0)),
    "accuracy": ("accuracy", Region(low=0)),
    "ece": ("ECE", Region(high=0)),
}

ByMethod = Mapping[str, Mapping[str, float]]  # what was measured with one noise and seed
Of = Callable[[ByMethod], float]


def findings(results: Results) -> Findings:
    """Two figures, and the questions answered."""
    one, ways = results.first(), five_ways(results)
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Noise in one direction",
                "“Pair” noise replaces a digit by the next one, and 9 by 0, with the probability that the rate says. "
                "“Alike” noise replaces 2 by 7, 3 by 8, 5 by 6, 6 by 5, and 7 by 1. If the noise T is known, a model "
                "can be trained on S: for each given label the probability of each clean class, by Bayes' rule. The "
                "paper prints S = T (section 4.1), which is what becomes of the given label if it is corrupted once "
                "more. For symmetric noise both are the same.",
                matrices(results),
            ),
            Section.of(
                "Five ways to handle the noise",
                f"MNIST, {size} size: {examples['train']:,} training images with some labels wrong, "
                f"{examples['test']:,} test images with clean labels, the model and training of the study chen-mnist. "
                "None: hard labels as given. Uniform: smoothing by one p, the share of right labels, which the theory "
                f"finds best. S = T: as printed, with {100 * MIXED:g} % of it spread evenly, since T alone gives "
                "probability 0 to classes that do occur. S by Bayes: the best matrix of the theory. Forward: labels "
                "stay as given, and the model's predictions pass through T before the loss is computed.",
                "Which method is better depends on how much the model memorises. A model that has memorised its labels "
                "predicts S[k] for an example with label k. Under forward correction it predicts the most likely "
                "origin of the label with full confidence, and its loss is infinite where that is wrong. A model that "
                "has learnt only the average label of each class has no loss under forward correction, but still has "
                "one with smoothing.",
                ways,
                ways.data,
            ),
            Section.of(
                "Limits of this study",
                "The paper does not train with such noise. Where nothing is quoted beside a claim, the question is "
                "ours. T is known exactly here. Where it has to be estimated, both S and forward correction inherit "
                "its errors, and this study does not say how much that costs.",
                "The paper passes the output of forward correction through T once more before it is tested. That is "
                "the column “test loss through T”. Everywhere else the model is tested as a user would use it.",
                unless_full(
                    size,
                    "This is the small size, for a CPU: a fully connected model with one hidden layer on few digits, "
                    "which misclassifies some test images even if its labels are right. --set size=full trains the "
                    "paper's convolutional network on all digits.",
                ),
            ),
        ),
        claims=claims(results),
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""

    def every(
        statement: str,
        quantity: str,
        cells: Mapping[str, Sample],
        region: Region,
        *printed: str,
        remark: str = "",
    ) -> Claim:
        """It must hold of every noise."""
        found, shown = tuple(published(f"chen-2020/{key}") for key in printed), _each_noise(cells)
        return Claim.every(statement, found, quantity, cells, region, shown, remark, seeds=SEEDS)

    def claim(
        statement: str, quantity: str, of: Of, region: Region, *printed: str, remark: str = ""
    ) -> Claim:
        cells = {f"{kind} {rate:g}": _of_noise(results, (kind, rate), of) for kind, rate in noises(results)}
        return every(statement, quantity, cells, region, *printed, remark=remark)

    def better(statement: str, by: tuple[str, str, str], *printed: str, remark: str = "") -> Claim:
        """By a measure the first of two ways to meet the noise is better than the second."""
        measure, this, that = by
        what, region = _BETTER[measure]
        quantity = f"{what} {_WITH[this]} minus that {_WITH[that]}, for every noise"

        cells = {
            f"{kind} {rate:g}": results.difference(
                measure,
                {"noise": kind, "rate": rate, "method": this},
                {"noise": kind, "rate": rate, "method": that},
            )
            for kind, rate in noises(results)
        }
        return every(statement, quantity, cells, region, *printed, remark=remark)

    return (
        better(
            "Smoothing by Bayes' rule has a lower test loss than by S = T.",
            ("loss", BAYES, PRINTED),
            "section-4.1/matrix",
            remark="The paper prints S = T as the best matrix. It is best only if T is symmetric (ERRATA.md, 3).",
        ),
        better(
            "Smoothing by Bayes' rule has a higher accuracy than by S = T.",
            ("accuracy", BAYES, PRINTED),
            "section-4.1/matrix",
        ),
        better(
            "Smoothing by Bayes' rule has a lower test loss than uniform smoothing with the best p.",
            ("loss", BAYES, UNIFORM),
        ),
        better("Smoothing by Bayes' rule lowers the test loss.", ("loss", BAYES, NONE), "section-1/noise"),
        claim(
            "The theory predicts the test loss of smoothing by Bayes' rule.",
            "deviation from the prediction, for every noise",
            lambda cell: cell[BAYES]["deviation"],
            Region(-CLOSE, CLOSE),
            "figure-6/agreement",
            remark="The paper has symmetric noise only.",
        ),
        claim(
            "Passed through T, forward correction has the same test loss as smoothing by Bayes' rule.",
            "relative difference of the two losses, for every noise",
            lambda cell: cell[FORWARD]["through"] / cell[BAYES]["loss"] - 1,
            Region(-CLOSE, CLOSE),
            "section-4.1/forward",
            remark=f"“The same” means within {percent(CLOSE)}. In theory the two are the same if T is symmetric "
            "(ERRATA.md, 9).",
        ),
        better(
            "Forward correction, tested without T, has a lower test loss than smoothing by Bayes' rule.",
            ("loss", FORWARD, BAYES),
        ),
        better(
            "Forward correction has a higher accuracy than smoothing by Bayes' rule.",
            ("accuracy", FORWARD, BAYES),
        ),
        better(
            "Forward correction is better calibrated than smoothing by Bayes' rule.", ("ece", FORWARD, BAYES)
        ),
    )


def _each_noise(cells: Mapping[str, Sample]) -> str:
    """The same for each noise, mean over seeds: a claim about all of them may fall by one."""
    said = (f"{sample.mean:+.3f} {name}" for name, sample in cells.items() if sample.n)
    return ", ".join(said).replace("-", "−")


def _of_noise(results: Results, noise: tuple[str, float], of: Of) -> Sample:
    """For each seed; one without all the runs of this noise does not count."""
    kind, rate = noise

    def each(own: Results) -> float:
        cells = own.where(noise=kind, rate=rate).cells("method")
        return of({method: cells[method,] for method in _WITH})

    return results.each_seed(each)
