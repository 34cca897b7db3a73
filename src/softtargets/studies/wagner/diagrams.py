"""Reliability diagrams of the replication's networks, for its figures 3 and 9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softtargets.calibration import temperature_by_ece
from softtargets.report import Figure, Table
from softtargets.report.drawing import BLUE, GREEN, ORANGE, RED
from softtargets.runs import Predictions, Run
from softtargets.studies.reliabilities import Diagram, kept_bins, pooled, reliability_figure
from softtargets.studies.results import Results, Row
from softtargets.studies.study import Trial
from softtargets.studies.wagner.grid import alphas_of
from softtargets.studies.wagner.measures import BINS, TEMPERATURES, calibrations, gaps, on_each_split
from softtargets.studies.wagner.networks import NETWORKS, Network

# The replication does not say how strong the smoothing of its diagrams is: two strengths are drawn.
ALPHAS = (0.0, 0.05, 0.1)
_COLOURS = {0.0: RED, 0.05: GREEN, 0.1: BLUE}

HOW = (
    "Curves are of hard targets, of hard targets with a temperature, and of label smoothing. The replication does not "
    "say how strong the smoothing of its curves is; ours are of 0.05 and 0.1, in the small size of 0.1 alone. "
    "Temperatures are chosen as it does: by the calibration error of the examples shown."
)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Calibration, with a temperature too, and how far bins lie above or below the diagonal."""
    return calibrations(trial, run) | on_each_split(gaps, run)


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """Bins of the split that the printed numbers are of; of hard targets with a temperature too."""
    split = _shown(trial, run)
    found: dict[str, Any] = {"bins": kept_bins(split.logits, split.labels)}
    if trial.labels["alpha"] == 0:
        temperature = temperature_by_ece(split.logits, split.labels, TEMPERATURES, bins=BINS)
        found["scaled_bins"] = kept_bins(split.logits, split.labels, temperature)
    return found


def _shown(trial: Trial, run: Run) -> Predictions:
    wanted = NETWORKS[trial.labels["network"]].evaluated
    return run.predictions(wanted if run.has_predictions(wanted) else "test")


def diagrams(results: Results, networks: Sequence[Network]) -> list[Figure]:
    """One for each network that has been trained."""
    return [
        reliability_figure(
            f"reliability_{network.key}",
            f"Does confidence mean what it says? {network.name}.",
            curves,
            "Test images." if network.evaluated == "test" else "Training images that were held out.",
        )
        for network in networks
        if (curves := _curves(results, network))
    ]


def _curves(results: Results, network: Network) -> list[Diagram]:
    found = []
    for alpha in alphas_of(results, ALPHAS):
        outcomes = [
            one for one in results.where(network=network.key, alpha=alpha).outcomes if "bins" in one.details
        ]
        name = f"label smoothing {alpha:g}" if alpha else "hard targets"
        looks = [("bins", name, _COLOURS[alpha])]
        if alpha == 0:
            looks.append(("scaled_bins", "hard targets with a temperature", ORANGE))
        nll = results.sample(network.measure("nll"), network=network.key, alpha=alpha).mean
        for kept, curve, colour in looks:
            bins = pooled(one.details[kept] for one in outcomes)
            if bins is not None:
                found.append(
                    Diagram(curve, colour, bins, nll if kept == "bins" else _scaled_nll(results, network))
                )
    return found


def _scaled_nll(results: Results, network: Network) -> float:
    return results.sample(network.measure("nll_scaled"), network=network.key, alpha=0.0).mean


def table(results: Results, networks: Sequence[Network]) -> Table:
    """How far each network is from the diagonal."""
    rows: list[Row] = []
    for network in networks:
        for alpha in alphas_of(results, ALPHAS):
            cell = {"network": network.key, "alpha": alpha}
            found: Row = {"network": network.name, "alpha": alpha}
            for key in ("ece", "gap", "lowest_gap", "highest_gap", "ece_scaled", "temperature"):
                found[key] = results.sample(network.measure(key), **cell)
            rows.append(found)
    return Table.of(
        "gaps",
        "Distance from the diagonal.",
        "network | alpha .2f | ece: ECE | gap: accuracy minus confidence | lowest_gap: the same, lowest bin | "
        "highest_gap: the same, highest bin | ece_scaled: ECE with a temperature | temperature .2f",
        rows,
        "Mean ± standard deviation over seeds. Of bins, those with at least 50 predictions count.",
    )
