"""What the study of selective prediction says: does smoothing harm it, and do normalised logits repair that?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from softtargets.claims import Claim, Published, Region, Sample, judge, sources, zone
from softtargets.report import Section
from softtargets.studies.beyond import ALPHA, HARD, SEEDS, STRONG, networks_of
from softtargets.studies.beyond.words import how_trained, trainings
from softtargets.studies.beyond_selection.figures import excess, risk_over_coverage
from softtargets.studies.results import Results
from softtargets.studies.study import Findings

# Too small to count, in points: of an area, and of an accuracy.
AREA, ACCURACY = 0.01, 0.1
# “Most” of what was lost.
MOST = 0.5


def findings(results: Results) -> Findings:
    """Two figures, a table and claims."""
    made = claims(results)
    if not results.outcomes:
        return Findings((), made, _answer(made))
    shown = excess(results)
    return Findings(
        (
            Section.of(
                "Rejecting uncertain cases",
                how_trained(results),
                "Whoever hands uncertain cases to a person needs a confidence that tells mistakes from correct "
                "predictions. The area under error rate over coverage (AURC) says how well the maximum probability "
                "does so; its excess leaves out what the accuracy alone explains.",
                "Normalised logits order predictions by the largest logit over the norm of all. The power of the norm "
                "is chosen on other test images than those it is measured on, and where no norm is better, the "
                "maximum probability stays.",
                shown,
                shown.data,
                risk_over_coverage(results),
            ),
            trainings(results),
            Section.of(
                "What this does not show",
                "Xia et al. (2025) have larger networks and data. Their explanation, that smoothing lowers the largest "
                "logit more where a prediction is likely right, is not tested here. Intervals are over seeds only, for "
                "these test images.",
            ),
        ),
        made,
        _answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Does it harm, and does normalising repair?"""
    harm, _, repair, *_ = (one.verdict for one in judge(made))
    if "not run yet" in (harm, repair):
        return "Not known yet: the runs that decide whether smoothing harms it have not all been made."
    harms = {
        "reproduced": "Yes: smoothing makes the confidence of every network tried worse at telling mistakes",
        "contradicted": "Not always: with some networks smoothing does not harm selective prediction",
        "no effect": "No: the harm is too small to count",
        "inconclusive": "We cannot tell whether smoothing harms selective prediction with every network",
    }[harm]
    repairs = {
        "reproduced": "normalised logits repair part of it",
        "contradicted": "normalised logits do not help everywhere",
        "no effect": "normalised logits change next to nothing",
        "inconclusive": "nor whether normalised logits help"
        if harm == "inconclusive"
        else "whether normalised logits help is open",
    }[repair]
    return f"{harms}; {repairs}."


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""

    def cells(of: Callable[[str], Sample]) -> dict[str, Sample]:
        return {name: of(key) for key, name in networks_of(results).items()}

    def apart(measure: str, this: float, that: float) -> dict[str, Sample]:
        def one(key: str) -> Sample:
            pair = ({"network": key, "alpha": this}, {"network": key, "alpha": that})
            return results.gain(measure, [pair], scale=100)

        return cells(one)

    def left(key: str) -> Sample:
        """What normalising leaves of the loss, less half of the loss."""

        def of(own: Results) -> float:
            found = own.where(network=key).cells("alpha")
            hard, smoothed = found[HARD,], found[ALPHA,]
            lost = smoothed["excess_aurc"] - hard["excess_aurc"]
            return 100 * (smoothed["excess_aurc_normalised"] - hard["excess_aurc"] - MOST * lost)

        return results.each_seed(of)

    degrades, repairs = (sources(f"xia-2025/abstract/{key}") for key in ("degrades", "normalisation"))
    than_hard = f"with smoothing {ALPHA:g} minus that with hard targets, for every network"
    return (
        _every(
            "Smoothing makes confidence worse at telling mistakes from correct predictions.",
            degrades,
            f"excess AURC {than_hard}",
            apart("excess_aurc", ALPHA, HARD),
            Region(low=0),
            AREA,
        ),
        _every(
            "Stronger smoothing makes it worse still.",
            (),
            f"excess AURC with smoothing {STRONG:g} minus that with {ALPHA:g}, for every network",
            apart("excess_aurc", STRONG, ALPHA),
            Region(low=0),
            AREA,
        ),
        _every(
            "Normalised logits repair part of what smoothing costs.",
            repairs,
            f"excess AURC by normalised logits minus that by the maximum probability, smoothing {ALPHA:g}, for every "
            "network",
            cells(lambda key: results.sample("recovered", network=key, alpha=ALPHA).times(-100)),
            Region(high=0),
            AREA,
        ),
        _every(
            "Normalised logits recover more than half of what smoothing costs.",
            (),
            "excess AURC by normalised logits minus that with hard targets, less half of what smoothing costs, for "
            "every network",
            cells(left),
            Region(high=0),
            AREA,
        ),
        _every(
            "With smoothing the most confident 80 % of the predictions are less accurate.",
            degrades,
            f"accuracy at a coverage of 80 % {than_hard}",
            apart("accuracy_at_80", ALPHA, HARD),
            Region(high=0),
            ACCURACY,
        ),
    )


def _every(
    statement: str,
    published: tuple[Published, ...],
    quantity: str,
    cells: Mapping[str, Sample],
    region: Region,
    small: float,
) -> Claim:
    fixed: dict[str, Any] = {"seeds": SEEDS, "zone": zone(small), "unit": "points"}
    return Claim.every(statement, published, quantity, cells, region, **fixed)
