"""Table 3 of the replication: calibration errors over the strength of smoothing, and with a temperature."""

from __future__ import annotations

from typing import Any

from softtargets.claims import (
    Claim,
    Region,
    Sample,
    above,
    below,
    judge,
    published,
    sources,
    two_standard_errors,
    zone,
)
from softtargets.report import Curve, Section, Table
from softtargets.report.drawing import GREEN, PURPLE
from softtargets.studies.printed import printed_number
from softtargets.studies.results import Results, Row, over
from softtargets.studies.sizes import size_of
from softtargets.studies.study import MULLER, WAGNER, Findings, Study
from softtargets.studies.wagner.grid import AXES, all_networks, alphas_of, comparable, networks_of
from softtargets.studies.wagner.measures import KEEP, calibrations
from softtargets.studies.wagner.networks import ALPHAS, DEEP_SEEDS, SEEDS, SIZES, Network, condition
from softtargets.studies.wagner.tables import (
    columns_over_alpha,
    over_alpha,
    rows_over_alpha,
    sources_of,
    table,
)
from softtargets.studies.wagner.words import about_sizes, how_trained
from softtargets.studies.words import answered, signed

# Differences in ECE that are too small to count.
NOTHING = 0.003
# Where a network is over- or underconfident on the whole, its ECE is |confidence - accuracy|, and is known no better
# than its accuracy: the margin of a printed ECE is two standard errors of the printed accuracy, and at least this.
LEAST_MARGIN = 0.003
_CHOSEN = {"ece_scaled": "temperature", "ece_scaled_held_out": "temperature_held_out"}


def findings(results: Results) -> Findings:
    """Tables, figure and claims."""
    made, networks = claims(results), networks_of(results)
    return Findings(
        (
            Section.of(
                "Calibration error over the strength of smoothing",
                how_trained(results, networks),
                about_sizes(size_of(results)),
                _table(results, networks),
                *over_alpha(
                    results,
                    networks,
                    "ece",
                    1,
                    ("ece_over_alpha", "calibration error (ECE)"),
                    lambda network: _levels(results, network),
                    digits=3,
                ),
            ),
            Section.of(
                "Which temperature?",
                "The replication tries temperatures on the examples that it reports, and takes the one with the lowest "
                "calibration error. That flatters scaling, because no temperature could have been chosen better. So a "
                "second column has temperatures chosen on other examples: on one half of the examples for the other "
                "half, and the other way round. The difference between the two is what choosing on the evaluation "
                "set gains.",
                _temperatures(results, networks),
            ),
            Section.of(
                "What differs from the replication",
                "Temperatures from 0.2 to 5 in steps of 0.02 are tried; the replication does not say which it tried. "
                "ECE has 15 bins of equal width, as there.",
                *(network.differs for network in networks),
            ),
        ),
        made,
        _answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Does smoothing calibrate, or a temperature?"""
    return answered(
        judge(made)[0].verdict,
        "A temperature calibrates better than smoothing of any strength, for every network of this page.",
        "No: some network is better calibrated by smoothing than by a temperature.",
        whether="a temperature calibrates better than smoothing",
    )


def _table(results: Results, networks: tuple[Network, ...]) -> Table:
    rows = []
    for network in networks:
        mine = rows_over_alpha(network, sources_of(results, network, "ece"))
        for row in mine:
            row |= _scaled(results, network, str(row["source"]))
        rows += mine
    return table(
        "calibration_errors",
        "Expected calibration error.",
        "scaled: alpha 0, T chosen on the evaluation set | temperature .2f: that T | "
        "scaled_held_out: alpha 0, T chosen on held-out examples | temperature_held_out .2f: that T | "
        + columns_over_alpha(".3f"),
        rows,
        "All columns without a temperature of their own are at T = 1. Ours: mean ± standard deviation over seeds. The "
        "replication has no temperature chosen on held-out examples.",
    )


def _scaled(results: Results, network: Network, source: str) -> Row:
    """The columns with a temperature; of the papers those that they printed."""
    if source == "ours":
        hard = {"network": network.key, "alpha": 0.0}
        names = {"scaled": "ece_scaled", "temperature": "temperature"}
        names |= {f"{name}_held_out": f"{measure}_held_out" for name, measure in names.items()}
        return {name: results.sample(network.measure(measure), **hard) for name, measure in names.items()}
    key = network.key if source.startswith("replication") else f"{network.key}-quoted"
    return {
        "scaled": published(f"wagner-2023/ece/{key}/scaled").value,
        "temperature": published(f"wagner-2023/temperature/{key}/hard").value,
    }


def _temperatures(results: Results, networks: tuple[Network, ...]) -> Table:
    """Every smoothing with its own temperature, which the paper has for hard targets only."""
    rows = []
    for cell in over(network=[network.key for network in networks], alpha=alphas_of(results)):
        network = next(one for one in networks if one.key == cell["network"])
        found: Row = {
            "dataset": network.dataset,
            "architecture": network.architecture,
            "alpha": cell["alpha"],
        }
        found["ece"] = results.sample(network.measure("ece"), **cell)
        for measure, temperature in _CHOSEN.items():
            found[measure] = results.sample(network.measure(measure), **cell)
            found[temperature] = results.sample(network.measure(temperature), **cell)
        rows.append(found)
    return Table.of(
        "temperatures",
        "The same with a temperature for every strength.",
        "dataset | architecture: network | alpha .2f | ece: ECE at T = 1 | "
        "ece_scaled: T chosen on the evaluation set | temperature .2f: that T | "
        "ece_scaled_held_out: T chosen on held-out examples | temperature_held_out .2f: that T",
        rows,
        "Mean ± standard deviation over seeds. The temperature of held-out examples is the mean of two halves.",
    )


def _levels(results: Results, network: Network) -> list[Curve]:
    """Hard targets with a temperature, chosen in both ways."""
    looks = {
        "ece_scaled": ("hard, T of the evaluation set", GREEN, "dotted"),
        "ece_scaled_held_out": ("hard, T of held-out examples", PURPLE, "dashed"),
    }
    ends = (ALPHAS[0], ALPHAS[-1])
    found = {key: results.sample(network.measure(key), network=network.key, alpha=0.0) for key in looks}
    return [
        Curve.level(name, colour, found[key].mean, ends, line)  # type: ignore[arg-type]
        for key, (name, colour, line) in looks.items()
        if found[key].n
    ]


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements of section 5.1, then printed numbers; without results they are not run yet."""
    networks = networks_of(results)
    connected = [network for network in networks if network.architecture == "FCN"]
    return (
        _temperature_wins(
            results, networks, "ece_scaled", "chosen on the evaluation set, as in the replication"
        ),
        _temperature_wins(results, networks, "ece_scaled_held_out", "chosen on held-out examples"),
        *([_no_help(results, connected)] if connected else []),
        *(_direction(results, network) for network in networks),
        *(
            claim
            for network in networks
            if comparable(results, network)
            for claim in (
                _number(results, network, None),
                *(_number(results, network, alpha) for alpha in ALPHAS),
            )
        ),
    )


def _labels(network: Network, alpha: float = 0.0) -> Row:
    return {"network": network.key, "alpha": alpha}


def _temperature_wins(results: Results, networks: tuple[Network, ...], measure: str, how: str) -> Claim:
    cells = {
        f"{network.name}, alpha {alpha:g}": _apart(results, network, measure, alpha)
        for network in networks
        for alpha in alphas_of(results)[1:]
    }
    return Claim.every(
        f"Hard targets with a temperature, {how}, are better calibrated than smoothing of any strength.",
        sources("wagner-2023/temperature-scaling/best"),
        "ECE of hard targets with the temperature minus ECE with smoothing at T = 1, for every network and strength",
        cells,
        Region(high=0),
        _ends(cells),
        seeds=min((network.seeds for network in networks), default=DEEP_SEEDS),
    )


def _apart(results: Results, network: Network, measure: str, alpha: float) -> Sample:
    """A measure of hard targets minus the ECE of smoothing, seed by seed."""
    key, ece = network.measure(measure), network.measure("ece")

    def one(own: Results) -> float:
        cells = own.cells("alpha")
        return cells[(0.0,)][key] - cells[(alpha,)][ece]

    return results.where(network=network.key).each_seed(one)


def _no_help(results: Results, connected: list[Network]) -> Claim:
    cells = {
        f"{network.name}, alpha {alpha:g}": results.difference(
            network.measure("ece"), _labels(network, alpha), _labels(network)
        )
        for network in connected
        for alpha in alphas_of(results)[1:]
    }
    return Claim.every(
        "Fully connected networks are well calibrated with hard targets, so that even little smoothing raises their "
        "calibration error.",
        sources("wagner-2023/ece/fully-connected"),
        "ECE with smoothing minus ECE with hard targets, for every fully connected network and strength",
        cells,
        Region(low=0),
        _ends(cells),
        seeds=SEEDS,
        zone=zone(NOTHING),
    )


def _ends(cells: dict[str, Sample]) -> str:
    """Means of the lowest and the highest cell."""
    rising = sorted((sample.mean, name) for name, sample in cells.items() if sample.n)
    shown = rising[:1] + rising[1:][-1:]
    return ", ".join(f"{signed(value, 3)} for {name}" for value, name in shown) or "–"


def _direction(results: Results, network: Network) -> Claim:
    hard, soft = (network.printed("ece", alpha) for alpha in (0.0, 0.1))
    change = (soft.value or 0.0) - (hard.value or 0.0)
    key, margin = network.measure("ece"), _margin(network)
    near: dict[str, Any] = (
        {"printed": round(change, 6), "margin": margin} if comparable(results, network) else {}
    )
    return Claim(
        f"Smoothing of 0.1 {'lowers' if change < 0 else 'raises'} the calibration error of {network.name}.",
        (hard, soft),
        "ECE at alpha 0.1 minus ECE at alpha 0, both at T = 1",
        *(below if change < 0 else above)(
            0, results.difference(key, _labels(network, 0.1), _labels(network))
        ),
        results.then(key, ".3f", _labels(network), _labels(network, 0.1)) + " at alpha = 0.1",
        seeds=network.seeds,
        zone=zone(NOTHING),
        **near,
    )


def _margin(network: Network) -> float:
    accuracy = network.printed("accuracy", 0.0).value or 0.0
    return round(max(LEAST_MARGIN, two_standard_errors(accuracy, network.examples)), 3)


def _number(results: Results, network: Network, alpha: float | None) -> Claim:
    """A printed ECE; without an alpha, that of hard targets with a temperature."""
    kind = "scaled" if alpha is None else condition(alpha)
    found = results.sample(
        network.measure("ece_scaled" if alpha is None else "ece"), **_labels(network, alpha or 0.0)
    )
    soft = f"label smoothing of {alpha:g}" if alpha else "hard targets"
    with_temperature = " and a temperature chosen on the evaluation set" if alpha is None else ""
    return printed_number(
        f"{network.name} with {soft}{with_temperature} has a calibration error of {{}}.",
        f"wagner-2023/ece/{network.key}/{kind}",
        found,
        _margin(network),
        quantity="ECE with the temperature" if alpha is None else f"ECE at alpha {alpha:g} and T = 1",
        seeds=network.seeds,
        remark=f"The margin is two standard errors of the printed accuracy, and at least {LEAST_MARGIN:g}.",
    )


study = Study(
    name="wagner-table-3",
    title="Does label smoothing calibrate better than a temperature?",
    lead=(
        "The replication of 2023 compares the calibration of networks trained with smoothing of five strengths with "
        "that of hard targets and a temperature, which it chooses on the examples that it reports. Here are both, with "
        "several seeds, and temperatures chosen on held-out examples as well."
    ),
    papers=(WAGNER, MULLER),
    trials=all_networks,
    measure=calibrations,
    keep=KEEP,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=tuple(SIZES),
)
