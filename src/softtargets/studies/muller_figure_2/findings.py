"""What figure 2 and table 3 come to: errors of calibration beside the printed ones, diagrams and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.claims import Claim, Region, above, below, judge, published, sources, zone
from softtargets.report import Figure, Section, Table
from softtargets.report.drawing import BLUE, GREEN, ORANGE, RED
from softtargets.studies.muller_figure_2.measures import GRID, PRINTED_TEMPERATURES
from softtargets.studies.muller_images import (
    SEEDS,
    as_printed,
    compared,
    deviations,
    networks_in,
    shown_alpha,
    title_of,
)
from softtargets.studies.printed import printed_number
from softtargets.studies.reliabilities import Diagram, pooled, reliability_figure
from softtargets.studies.results import Results, Row
from softtargets.studies.study import Findings

# Differences in ECE too small to count, and how near two must be to be similar.
SAME, SIMILAR = 0.005, 0.01
# Two standard errors of an accuracy of 72 % on 10,000 images, which is what an ECE of an overconfident model, its mean
# confidence minus its accuracy, leaves open; and a tenth of the printed temperature.
ECE_MARGIN, TEMPERATURE_MARGIN = 0.01, 0.2
_COLOURS = (RED, GREEN, BLUE)


def smoothed_alpha(key: str) -> float:
    """The smoothing of table 3."""
    return GRID[key][1]


def claims(results: Results) -> tuple[Claim, ...]:
    """Directions for each network that there is, printed numbers where the training is the printed one."""
    keys = compared(results, list(GRID))
    numbers = [claim for key in keys if key in as_printed(results, GRID) for claim in _numbers(results, key)]
    return (*numbers, *(claim for key in keys for claim in _directions(results, key)))


def _numbers(results: Results, key: str) -> tuple[Claim, ...]:
    title, alpha = title_of(results, key), smoothed_alpha(key)
    hard: dict[str, Any] = {"network": key, "alpha": 0.0}

    def number(
        statement: str, name: str, measure: str, quantity: str, cell: dict[str, Any], **more: Any
    ) -> Claim:
        options = {"margin": ECE_MARGIN, "digits": 3} | more
        margin = options.pop("margin")
        found = results.sample(measure, **cell)
        printed = f"muller-2019/{name}"
        return printed_number(statement, printed, found, margin, quantity=quantity, seeds=SEEDS, **options)

    on = "on the held-out images"
    return (
        number(
            f"{title} with hard targets has a calibration error of {{}}.",
            f"ece/{key}/hard",
            "held_out_ece",
            f"ECE at alpha 0 {on}",
            hard,
        ),
        number(
            f"A temperature brings the calibration error of {title} down to {{}}.",
            f"ece/{key}/scaled",
            "held_out_scaled_ece",
            f"ECE at alpha 0 {on}, with the temperature of the highest likelihood there",
            hard,
            remark="How the paper chose its temperature it does not say; here, for this number only, on the images "
            "that it is measured on.",
        ),
        number(
            f"Label smoothing of {alpha:g} brings the calibration error of {title} down to {{}}.",
            f"ece/{key}/smoothed",
            "held_out_ece",
            f"ECE at alpha {alpha:g} {on}",
            {"network": key, "alpha": alpha},
        ),
        number(
            f"The temperature that {title} needs after training with hard targets is {{}}.",
            f"temperature/{key}/hard",
            "temperature",
            "temperature of the highest likelihood of the held-out images, alpha 0",
            hard,
            margin=TEMPERATURE_MARGIN,
            digits=1,
        ),
    )


def _directions(results: Results, key: str) -> tuple[Claim, ...]:
    title, alpha = title_of(results, key), smoothed_alpha(key)
    named = title.replace("A small", "a small")
    hard, soft = {"network": key, "alpha": 0.0}, {"network": key, "alpha": alpha}
    ece = f"muller-2019/ece/{key}"
    scaled = results.shown("scaled_ece", ".3f", hard)
    return (
        Claim(
            f"{title} is overconfident after training with hard targets.",
            sources(f"{ece}/hard"),
            "mean confidence minus accuracy on the test images, alpha 0",
            *above(0, results.contrast((("overconfidence", hard), None))),
            results.shown("overconfidence", ".3f", hard),
            "",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"A temperature lowers the calibration error of {named} after training with hard targets.",
            sources(ece, "hard", "scaled"),
            "ECE with the temperature minus ECE without, alpha 0, test images",
            *below(0, results.contrast((("scaled_ece", hard), ("ece", hard)))),
            f"{results.shown('ece', '.3f', hard)}, then {scaled}",
            "The temperature is chosen on the held-out images, by their likelihood.",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"Label smoothing of {alpha:g} lowers the calibration error of {named} without a temperature.",
            sources(ece, "hard", "smoothed"),
            f"ECE at alpha {alpha:g} minus ECE at alpha 0, test images",
            *below(0, results.difference("ece", soft, hard)),
            results.then("ece", ".3f", hard, soft),
            "",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"Label smoothing of {alpha:g} and a temperature calibrate {named} about equally well.",
            sources(ece, "scaled", "smoothed"),
            f"ECE at alpha {alpha:g} minus ECE at alpha 0 with its temperature, test images",
            results.contrast((("ece", soft), ("scaled_ece", hard))),
            Region(-SIMILAR, SIMILAR),
            f"{scaled} with the temperature, {results.shown('ece', '.3f', soft)} with smoothing",
            f"“About equally” is a difference of less than {SIMILAR:g}.",
            seeds=SEEDS,
        ),
    )


def findings(results: Results) -> Findings:
    """A table, a diagram for each network, claims."""
    made = claims(results)
    sections = (
        Section.of(
            "Expected calibration error",
            "A network is calibrated if of all predictions with a confidence of 80 % eight in ten are right. The error "
            "has 15 bins of equal width. Temperatures are chosen on the held-out images, by likelihood and, beside it, "
            "by the calibration error itself; no test image chooses anything.",
            *_tables(results),
            *(_figure(results, key) for key in networks_in(results) if _curves(results, key)),
        ),
        Section.of("What differs from the paper", *deviations(results)),
    )
    return Findings(sections, made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does label smoothing calibrate as well as a temperature?"""
    found = {one.claim.statement: one.verdict for one in judge(made)}
    calibrates = next((v for s, v in found.items() if "without a temperature" in s), "not run yet")
    equally = next((v for s, v in found.items() if "about equally well" in s), "not run yet")
    if "not run yet" in (calibrates, equally):
        return "Not known yet: the runs that decide whether smoothing calibrates have not all been made."
    first = {
        "reproduced": "Smoothing lowers the calibration error",
        "contradicted": "Smoothing makes calibration worse",
        "no effect": "Smoothing leaves the calibration error as it is",
    }.get(calibrates, "We cannot tell whether smoothing lowers the calibration error")
    second = {
        "reproduced": "about as well as a temperature does",
        "contradicted": "and a temperature does not come to the same",
    }.get(equally, "and these runs do not tell whether a temperature does so equally well")
    return f"{first}, {second}."


_AS_TRAINED = ("held_out_ece", "ece", "nll", "accuracy")
_SCALED = ("held_out_scaled_ece", "scaled_ece", "temperature", "temperature_by_ece", "ece_at_printed")


def _tables(results: Results) -> tuple[Table, ...]:
    """Each network as trained, and with a temperature."""
    return tuple(
        table for key in networks_in(results) for table in (_trained(results, key), _scaled(results, key))
    )


def _trained(results: Results, key: str) -> Table:
    kinds = {0.0: "hard", smoothed_alpha(key): "smoothed"}
    printed = {alpha: published(f"muller-2019/ece/{key}/{kind}").value for alpha, kind in kinds.items()}
    return Table.of(
        f"calibration_{key}",
        f"{title_of(results, key)}, as trained.",
        "targets | paper: ECE, paper | held_out_ece: ECE, held-out images | ece: ECE, test set | nll: NLL, test set | "
        "accuracy .2%: accuracy, test set",
        _rows(results, key, _AS_TRAINED, printed),
        "Ours: mean ± standard deviation over seeds. The paper's numbers are of held-out images too.",
    )


def _scaled(results: Results, key: str) -> Table:
    printed = {0.0: published(f"muller-2019/ece/{key}/scaled").value}
    return Table.of(
        f"temperatures_{key}",
        f"{title_of(results, key)}, with a temperature.",
        "targets | paper: ECE, paper | held_out_scaled_ece: ECE, held-out images | scaled_ece: ECE, test set | "
        "temperature .2f: T by likelihood | temperature_by_ece .2f: T by ECE | "
        "ece_at_printed: ECE at the paper's T, held-out images",
        _rows(results, key, _SCALED, printed),
        f"The paper's temperature is {PRINTED_TEMPERATURES[key]:g}. ECEs are with the temperature by likelihood.",
    )


def _rows(
    results: Results, key: str, measures: tuple[str, ...], printed: Mapping[float, float | None]
) -> list[Row]:
    return [
        {"targets": shown_alpha(alpha), "paper": printed.get(alpha)}
        | {name: results.sample(name, network=key, alpha=alpha) for name in measures}
        for alpha in GRID[key]
    ]


def _curves(results: Results, key: str) -> list[Diagram]:
    found: list[Diagram] = []
    for alpha, colour in zip(GRID[key], _COLOURS, strict=False):
        outcomes = [one for one in results.where(network=key, alpha=alpha).outcomes if "bins" in one.details]
        looks = [("bins", "nll", shown_alpha(alpha), colour)]
        if alpha == 0:
            looks.append(("scaled_bins", "scaled_nll", "hard targets with a temperature", ORANGE))
        for kept, nll, name, look in looks:
            bins = pooled(one.details[kept] for one in outcomes)
            if bins is not None:
                likelihood = results.sample(nll, network=key, alpha=alpha).mean
                found.append(Diagram(name, look, bins, likelihood))
    return found


def _figure(results: Results, key: str) -> Figure:
    return reliability_figure(
        f"reliability_{key}",
        f"Does confidence mean what it says? {title_of(results, key)}.",
        _curves(results, key),
        "Test images.",
    )
