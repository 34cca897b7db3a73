"""What the study of temperatures says: is temperature scaling after smoothing ever worth it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from softtargets.claims import Claim, Region, Sample, judge, zone
from softtargets.report import Section
from softtargets.studies.beyond import ALPHA, HARD, SEEDS, STRONG, alphas_of, networks_of
from softtargets.studies.beyond.words import how_trained, trainings
from softtargets.studies.beyond_temperature.figures import before_and_after, over_temperatures
from softtargets.studies.results import Results
from softtargets.studies.study import Findings

# Too small to count: nats of likelihood, and calibration error.
NATS, ECE = 0.005, 0.003


def findings(results: Results) -> Findings:
    """Two figures, a table and claims."""
    made = claims(results)
    if not results.outcomes:
        return Findings((), made, _answer(made))
    shown = before_and_after(results)
    return Findings(
        (
            Section.of(
                "Smoothing, then scaling",
                how_trained(results),
                "Temperature scaling divides all logits by one number, fitted to examples that the model was not "
                "trained on. Smoothing and scaling both change how confident a model is, and hard targets with "
                "scaling are what smoothing has to beat. So two things are asked: what scaling gains after smoothing, "
                "and whether smoothing and scaling together are better than scaling alone.",
                _worth(results),
                shown,
                shown.data,
                over_temperatures(results),
            ),
            trainings(results),
        ),
        made,
        _answer(made),
    )


def _worth(results: Results) -> str:
    """In how many cells scaling is worth it, on average over seeds."""
    cells = [
        {"network": key, "alpha": alpha}
        for key in networks_of(results)
        for alpha in alphas_of(results)
        if alpha > 0 and results.sample("nll_gained", network=key, alpha=alpha).n
    ]
    if not cells:
        return ""
    lower = sum(results.sample("nll_gained", **cell).mean > NATS for cell in cells)
    calibrated = sum(results.sample("ece_gained", **cell).mean > ECE for cell in cells)
    return (
        f"Of {len(cells)} smoothed settings, scaling lowers the likelihood loss by more than {NATS:g} nats in {lower}, "
        f"and the calibration error by more than {ECE:g} in {calibrated}."
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Is it?"""
    verdicts = [one.verdict for one in judge(made)]
    likelihood, calibration = verdicts[:2]
    if "not run yet" in (likelihood, calibration):
        return "Not known yet: the runs that decide whether scaling after smoothing is worth it have not all been made."
    if likelihood == calibration == "reproduced":
        return f"Yes: after smoothing with {ALPHA:g}, scaling lowers likelihood loss and calibration error everywhere."
    if "reproduced" in (likelihood, calibration):
        what = "the likelihood loss" if likelihood == "reproduced" else "the calibration error"
        return f"In part: after smoothing with {ALPHA:g}, scaling lowers {what} of every network tried."
    if "contradicted" in (likelihood, calibration):
        return f"Not everywhere: after smoothing with {ALPHA:g}, scaling gains nothing with some networks."
    return f"We cannot tell whether scaling after smoothing with {ALPHA:g} is worth it for every network."


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""

    def cells(of: Callable[[str], Sample]) -> dict[str, Sample]:
        return {name: of(key) for key, name in networks_of(results).items()}

    def gained(measure: str, alpha: float) -> dict[str, Sample]:
        return cells(lambda key: results.sample(f"{measure}_gained", network=key, alpha=alpha))

    def smoothed(measure: str, alpha: float = ALPHA) -> dict[str, Sample]:
        def apart(key: str) -> Sample:
            return results.difference(
                measure, {"network": key, "alpha": alpha}, {"network": key, "alpha": HARD}
            )

        return cells(apart)

    before = "before scaling minus after, for every network"
    apart = f"with smoothing {ALPHA:g} minus without, for every network"
    return (
        _every(
            f"After smoothing with {ALPHA:g}, temperature scaling lowers the likelihood loss.",
            f"NLL {before}",
            gained("nll", ALPHA),
            Region(low=0),
            zone=zone(NATS),
        ),
        _every(
            f"After smoothing with {ALPHA:g}, temperature scaling lowers the calibration error.",
            f"ECE {before}",
            gained("ece", ALPHA),
            Region(low=0),
            zone=zone(ECE),
        ),
        _every(
            f"After strong smoothing, {STRONG:g}, temperature scaling lowers the calibration error.",
            f"ECE {before}",
            gained("ece", STRONG),
            Region(low=0),
            zone=zone(ECE),
        ),
        _every(
            "Smoothing takes the place of scaling: after it, scaling gains less likelihood than without.",
            f"what scaling gains of the NLL {apart}",
            smoothed("nll_gained"),
            Region(high=0),
            zone=zone(NATS),
        ),
        _every(
            "Smoothing and scaling together have a lower likelihood loss than scaling alone.",
            f"NLL after scaling {apart}",
            smoothed("nll_scaled"),
            Region(high=0),
            zone=zone(NATS),
        ),
        _every(
            "Smoothing and scaling together have a lower calibration error than scaling alone.",
            f"ECE after scaling {apart}",
            smoothed("ece_scaled"),
            Region(high=0),
            zone=zone(ECE),
        ),
    )


def _every(statement: str, quantity: str, cells: Mapping[str, Sample], region: Region, **fixed: Any) -> Claim:
    """The questions are ours: nothing was printed."""
    return Claim.every(statement, (), quantity, cells, region, seeds=SEEDS, digits=4, **fixed)
