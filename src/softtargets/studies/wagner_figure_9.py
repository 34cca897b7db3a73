"""Figure 9 of the replication: reliability diagrams of the other networks."""

from __future__ import annotations

from functools import partial

from softtargets.report import Section
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import WAGNER, Findings, Study
from softtargets.studies.wagner.diagrams import ALPHAS, HOW, details, diagrams, measure, table
from softtargets.studies.wagner.grid import AXES, network_trials, networks_of
from softtargets.studies.wagner.measures import KEEP
from softtargets.studies.wagner.networks import SEEDS, SIZES
from softtargets.studies.wagner.words import about_sizes, how_trained
from softtargets.studies.words import signed

SHOWN = (
    "cifar10-alexnet",
    "cifar10-resnet56",
    "emnist-fcn",
    "fmnist-fcn",
    "tiny-imagenet-resnet50",
    "cub200-resnet34",
)


def findings(results: Results) -> Findings:
    """Diagrams and a table; the paper says nothing of these pictures that could be tested."""
    networks = networks_of(results, SHOWN)
    return Findings(
        (
            Section.of(
                "Six diagrams",
                how_trained(results, networks),
                about_sizes(size_of(results)),
                HOW,
                "The replication shows these diagrams in its appendix without saying anything about them, so there is "
                "no claim to test. Claims about the calibration errors of the same networks are on the page of "
                "table 3.",
                *diagrams(results, networks),
                table(results, networks),
            ),
            Section.of("What differs from the replication", *(network.differs for network in networks)),
        ),
        (),
        _answer(results),
    )


def _answer(results: Results) -> str:
    said = []
    for network in networks_of(results, SHOWN):
        found = results.sample(network.measure("gap"), network=network.key, alpha=0.0)
        if found.n:
            word = "underconfident" if found.mean > 0 else "overconfident"
            said.append(
                f"{network.name} is {word} on average (accuracy minus confidence {signed(found.mean, 3)})"
            )
    return f"With hard targets, {'; '.join(said)}." if said else "Not known yet: no network has been trained."


study = Study(
    name="wagner-figure-9",
    title="How calibrated are the replication's other networks?",
    lead=(
        "Figure 9 of the replication of 2023, in its appendix, has reliability diagrams of six networks that are not "
        "in its text. Three of them are trained here; the others need data that not everybody has, and have sizes of "
        "their own."
    ),
    papers=(WAGNER,),
    trials=partial(network_trials, keys=SHOWN, alphas=ALPHAS),
    measure=measure,
    details=details,
    keep=KEEP,
    findings=findings,
    seeds=SEEDS,
    axes=AXES,
    sizes=tuple(SIZES),
)
