"""What the studies of section 4.2 say: is T Tᵗ the matrix to train with if test labels are wrong too?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from softtargets.claims import Claim, Region, Sample, judge, sources, zone
from softtargets.report import Section
from softtargets.studies.chen_section_4.figures import matrices, ways
from softtargets.studies.chen_section_4.grid import BAYES, HARD, SCALAR, STAR, STRONG, Kind, Scope
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import percent, unless_full

# Seeds that decide; within so much a loss is taken for the predicted one; points of accuracy too few to count.
SEEDS = 3
CLOSE = 0.10
NOTHING = 0.1

_CORRUPTED = "test loss against corrupted labels"


def findings(scope: Scope, results: Results) -> Findings:
    """Two figures, a table and claims."""
    made = claims(scope, results)
    sections = _sections(scope, results) if results.outcomes else ()
    return Findings(sections, made, _answer(made))


def _sections(scope: Scope, results: Results) -> tuple[Section, ...]:
    one, shown = results.first(), ways(results)
    size, examples = str(one.trial.labels["size"]), one.run.provenance["examples"]
    return (
        Section.of(
            "The matrix",
            "Test labels are mostly given by those who gave the training labels, and are wrong as often. The paper "
            "calls that the beta type. What a network should then believe about a given label is which other label "
            "would be given to the same example: S* = T Tᵗ, T being what becomes of clean labels.",
            "Equation 13 prints half of it. Rows of that sum to ½: its loss is half the loss with S*, and training "
            "with it is training with S* at half the learning rate. Where noise is symmetric, S* is smoothing by one "
            "p, and nothing but p is compared there. “Pair” takes every class for the next one, the last one for the "
            "first.",
            matrices(results),
        ),
        Section.of(
            "What to train with",
            f"{scope.dataset}, {size} size: {examples['train']:,} training images with some labels wrong, "
            f"{examples['test']:,} test images. Hard: labels as they are given. p: one for all, the share of right "
            "labels, the best one against clean labels. p, β: the best one against corrupted labels. Bayes: the best "
            "matrix against clean labels. S*: the best matrix against corrupted ones.",
            "The loss against corrupted test labels is the mean over all ways to corrupt them, computed from what the "
            "network predicts on the clean test set.",
            shown,
            shown.data,
        ),
        Section.of(
            "What this is and is not",
            "The paper derives S* and does not train with it. T is known here to the last digit; in practice it is "
            "estimated, and S* inherits its errors.",
            "Intervals of losses against corrupted labels are over seeds only.",
            scope.apart[size],
            unless_full(
                size,
                "Verdicts on this page are about these models; those of the paper are trained with --set size=full.",
            ),
        ),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Is S* the one to take?"""
    verdicts = [one.verdict for one in judge(made)[:3]]
    if set(verdicts) == {"reproduced"}:
        return "Yes: against corrupted test labels S* has the lowest test loss of all that were trained."
    if "contradicted" in verdicts:
        lost = ("hard labels", "weaker smoothing", "smoothing by the best p")[verdicts.index("contradicted")]
        return f"Not always: with some noise the test loss against corrupted labels is lower with {lost}."
    if "not run yet" in verdicts:
        return (
            "Not known yet: the runs that decide whether S* has the lowest test loss have not all been made."
        )
    return "We cannot tell whether S* has the lowest test loss: these runs do not decide every comparison."


def claims(scope: Scope, results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them, about every noise of the size that was trained."""
    size = next((outcome.trial.labels.get("size") for outcome in results.outcomes), None)
    kinds = scope.sizes[size][0] if size in scope.sizes else ()
    pairs = [kind for kind in kinds if kind[0] == "pair"]
    matrix, stronger = sources("chen-2020/section-4.2/matrix"), sources("chen-2020/section-3.2/stronger")

    def against(
        measure: str, other: str, among: Iterable[Kind] = kinds, scale: float = 1
    ) -> dict[str, Sample]:
        return {
            _named(kind): results.gain(measure, [(_cell(kind, STAR), _cell(kind, other))], scale)
            for kind in among
        }

    return (
        _every(
            "S* has a lower test loss against corrupted labels than hard labels have.",
            matrix,
            f"{_CORRUPTED} with S* minus that with hard labels, for every noise",
            against("loss_beta", HARD),
            Region(high=0),
        ),
        _every(
            "When test labels are corrupted too, stronger smoothing is better than what is best against clean ones.",
            stronger,
            f"{_CORRUPTED} with the best p of the beta type minus that with the share of right labels, for every noise",
            {
                _named(kind): results.gain(
                    "loss_beta", [(_cell(kind, _strongest(kind)), _cell(kind, SCALAR))]
                )
                for kind in kinds
            },
            Region(high=0),
            remark="Both smooth by one p.",
        ),
        _every(
            "The matrix S* is better than smoothing by the best p.",
            matrix,
            f"{_CORRUPTED} with S* minus that with the best p of the beta type, for every noise of pairs",
            against("loss_beta", STRONG, pairs),
            Region(high=0),
            remark="With symmetric noise both are the same.",
        ),
        _every(
            "The beta type predicts the loss of S* against corrupted labels.",
            sources("chen-2020/figure-7/agreement"),
            "deviation from the prediction, for every noise",
            {_named(kind): results.sample("deviation_beta", **_cell(kind, STAR)) for kind in kinds},
            Region(-CLOSE, CLOSE),
            remark=f"“Predicts” means within {percent(CLOSE)}. The paper has smoothing by one p only.",
        ),
        _every(
            "Against clean labels S* has a higher test loss than the best matrix of the alpha type.",
            (),
            "test loss with S* minus that by Bayes' rule, which for symmetric noise is one p, for every noise",
            {
                _named(kind): results.difference(
                    "loss", _cell(kind, STAR), _cell(kind, _best_for_clean(kind))
                )
                for kind in kinds
            },
            Region(low=0),
            remark="The theory says so; the paper does not compare them.",
        ),
        _every(
            "S* classifies more test images correctly than hard labels do.",
            (),
            "accuracy with S* minus that with hard labels, for every noise",
            against("accuracy", HARD, scale=100),
            Region(low=0),
            zone=zone(NOTHING),
            unit="points",
            digits=2,
        ),
    )


def _strongest(kind: Kind) -> str:
    """The best p of the beta type, which is S* where noise is symmetric."""
    return STRONG if kind[0] == "pair" else STAR


def _best_for_clean(kind: Kind) -> str:
    return BAYES if kind[0] == "pair" else SCALAR


def _every(
    statement: str,
    published: tuple[Any, ...],
    quantity: str,
    cells: Mapping[str, Sample],
    region: Region,
    **options: Any,
) -> Claim:
    return Claim.every(statement, published, quantity, cells, region, seeds=SEEDS, **options)


def _cell(kind: Kind, way: str) -> dict[str, Any]:
    return {"noise": kind[0], "rate": kind[1], "method": way}


def _named(kind: Kind) -> str:
    return f"{kind[0]} {kind[1]:g}"
