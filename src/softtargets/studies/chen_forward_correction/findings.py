"""What the study says: which matrix, and is it the same as forward correction?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from softtargets.claims import Claim, Region, Sample, judge, published
from softtargets.report import Section
from softtargets.studies.chen_forward_correction.figures import five_ways, matrices, noises_to_judge
from softtargets.studies.chen_forward_correction.grid import BAYES, FORWARD, MIXED, NONE, PRINTED, UNIFORM
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, percent, unless_full

CLOSE = 0.10

# Seeds that decide, and the statement that the page's answer rests on.
SEEDS = 3
SAME = "Sent through T, forward correction has the same test loss as smoothing by Bayes' rule."
# How the claims call a method; and by measure its name, where gains lie, the factor and the unit of its numbers.
_WITH = {
    NONE: "without a remedy",
    UNIFORM: "with uniform smoothing",
    PRINTED: "with S = T",
    BAYES: "with S by Bayes' rule",
    FORWARD: "with forward correction",
}
_BETTER = {
    "loss": ("test loss", Region(high=0), 1, ""),
    "accuracy": ("accuracy", Region(low=0), 100, "points"),
    "ece": ("ECE", Region(high=0), 1, ""),
}

ByMethod = Mapping[str, Mapping[str, float]]  # what was measured with one noise and seed
Of = Callable[[ByMethod], float]


def findings(results: Results) -> Findings:
    """Two figures, and the questions answered."""
    one, ways, made = results.first(), five_ways(results), claims(results)
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return Findings(
        sections=(
            Section.of(
                "Noise in one direction",
                "“Pair” takes every digit for the next one, and 9 for 0, as often as the rate says; “alike” takes "
                "2 for 7, 3 for 8, 5 for 6 and 6 for 5, 7 for 1. A network whose noise T is known can be trained on "
                "what to believe about a label: S, for each given label the probability of each clean class. That "
                "is Bayes' rule. The paper prints S = T (section 4.1), what would become of the given label if "
                "it went wrong once more. For symmetric noise both are the same.",
                matrices(results),
            ),
            Section.of(
                "Five ways to meet it",
                f"MNIST, {size} size: {examples['train']:,} training images with some labels wrong, "
                f"{examples['test']:,} test images with clean labels, the network and training of the study "
                "chen-mnist. None: hard labels as they are given. Uniform: smoothing by one p, the share of right "
                f"labels, which the theory finds best. S = T: as printed, with {100 * MIXED:g} % of it spread evenly, "
                "since T alone holds what happens for impossible. S by Bayes: the best matrix of the theory. Forward: "
                "labels stay as they are, and the network's output goes through T before it is judged.",
                "A network that has memorised its labels puts out S[k] for an example with label k. Under forward "
                "correction it is fully confident of the class that most likely led to the label, and its loss is "
                "infinite where that is wrong. A network that has learned only what labels of a class are on average "
                "loses nothing under forward correction, but still does with smoothing. So which is better depends on "
                "how much is memorised.",
                ways,
                ways.data,
            ),
            Section.of(
                "What this is and is not",
                "The paper does not train with such noise: questions are ours where nothing is quoted beside them. "
                "T is known here to the last digit. Where it must be estimated, both S and forward correction "
                "inherit its errors; this study does not say how they bear them.",
                "The paper sends the output of forward correction through T once more before it is tested. That "
                "is the column “test loss through T”; everywhere else the network is tested as a user would use it.",
                unless_full(
                    size,
                    "This is the small size, for a CPU: a fully connected network with one hidden layer on few digits, "
                    "which misclassifies some test images whatever its labels. With --set size=full the paper's "
                    "convolutional network is trained on all digits.",
                ),
            ),
        ),
        claims=made,
        answer=_answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Are both the same?"""
    same = next(one.verdict for one in judge(made) if one.claim.statement == SAME)
    return answered(
        same,
        "Yes, if its output is sent through the noise matrix: then both have the same test loss.",
        "No: even sent through the noise matrix, forward correction has another test loss than smoothing by a matrix.",
        whether="both have the same test loss",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""
    stated = noises_to_judge(results)

    def every(
        statement: str,
        quantity: str,
        cells: Mapping[str, Sample],
        region: Region,
        *printed: str,
        remark: str = "",
        unit: str = "",
    ) -> Claim:
        """It must hold of every noise."""
        found, shown = tuple(published(f"chen-2020/{key}") for key in printed), _each_noise(cells, unit)
        digits = 1 if unit else 3
        return Claim.every(
            statement, found, quantity, cells, region, shown, remark, seeds=SEEDS, unit=unit, digits=digits
        )

    def claim(
        statement: str, quantity: str, of: Of, region: Region, *printed: str, remark: str = ""
    ) -> Claim:
        cells = {f"{kind} {rate:g}": _of_noise(results, (kind, rate), of) for kind, rate in stated}
        return every(statement, quantity, cells, region, *printed, remark=remark)

    def better(statement: str, by: tuple[str, str, str], *printed: str, remark: str = "") -> Claim:
        """By a measure the first of two ways to meet the noise is better than the second."""
        measure, this, that = by
        what, region, scale, unit = _BETTER[measure]
        quantity = f"{what} {_WITH[this]} minus that {_WITH[that]}, for every noise"

        cells = {
            f"{kind} {rate:g}": results.gain(
                measure,
                [
                    (
                        {"noise": kind, "rate": rate, "method": this},
                        {"noise": kind, "rate": rate, "method": that},
                    )
                ],
                scale,
            )
            for kind, rate in stated
        }
        return every(statement, quantity, cells, region, *printed, remark=remark, unit=unit)

    return (
        better(
            "The printed matrix S = T is the best: it has a lower test loss than smoothing by Bayes' rule.",
            ("loss", PRINTED, BAYES),
            "section-4.1/matrix",
            remark="In theory it has not, unless T is symmetric (ERRATA.md, 3).",
        ),
        better(
            "Smoothing by Bayes' rule classifies more test images correctly than smoothing by S = T.",
            ("accuracy", BAYES, PRINTED),
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
            SAME,
            "its difference from the latter, as a share of that, for every noise",
            lambda cell: cell[FORWARD]["through"] / cell[BAYES]["loss"] - 1,
            Region(-CLOSE, CLOSE),
            "section-4.1/forward",
            remark=f"“The same” means within {percent(CLOSE)}. In theory it is, if T is symmetric "
            "(ERRATA.md, 9).",
        ),
        better(
            "As it stands, forward correction has a lower test loss than smoothing by Bayes' rule.",
            ("loss", FORWARD, BAYES),
        ),
        better(
            "Forward correction classifies more test images correctly than smoothing by Bayes' rule.",
            ("accuracy", FORWARD, BAYES),
        ),
        better(
            "Forward correction is better calibrated than smoothing by Bayes' rule.", ("ece", FORWARD, BAYES)
        ),
    )


def _each_noise(cells: Mapping[str, Sample], unit: str) -> str:
    """The same for each noise, mean over seeds: a claim about all of them may fall by one."""
    digits = 1 if unit else 3
    said = ", ".join(f"{sample.mean:+.{digits}f} at {name}" for name, sample in cells.items() if sample.n)
    return (f"{said} {unit}" if said and unit else said).replace("-", "−")


def _of_noise(results: Results, noise: tuple[str, float], of: Of) -> Sample:
    """For each seed; one without all the runs of this noise does not count."""
    kind, rate = noise

    def each(own: Results) -> float:
        cells = own.where(noise=kind, rate=rate).cells("method")
        return of({method: cells[method,] for method in _WITH})

    return results.each_seed(each)
