"""Figure 3 of the replication: one network that smoothing calibrates, and one that it makes underconfident."""

from __future__ import annotations

from functools import partial

from softtargets.claims import Claim, Region, Sample, above, below, judge, sources
from softtargets.report import Section
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import WAGNER, Findings, Study
from softtargets.studies.wagner.diagrams import ALPHAS, HOW, details, diagrams, measure, table
from softtargets.studies.wagner.grid import AXES, network_trials, networks_of
from softtargets.studies.wagner.measures import FEWEST, KEEP
from softtargets.studies.wagner.networks import NETWORKS, SEEDS
from softtargets.studies.wagner.words import about_sizes, how_trained

DEEP, CONNECTED = NETWORKS["cifar100-resnet56"], NETWORKS["mnist-fcn"]
SHOWN = (DEEP.key, CONNECTED.key)
# The smoothing that claims are about, and an ECE that counts as well calibrated.
SMOOTHED, WELL = 0.1, 0.01


def findings(results: Results) -> Findings:
    """Diagrams, a table and claims."""
    made, networks = claims(results), networks_of(results, SHOWN)
    return Findings(
        (
            Section.of(
                "Two networks",
                how_trained(results, networks),
                about_sizes(size_of(results)) if size_of(results) == "small" else "",
                HOW,
                *diagrams(results, networks),
                table(results, networks),
            ),
            Section.of("What differs from the replication", *(network.differs for network in networks)),
        ),
        made,
        _answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Does smoothing calibrate?"""
    _, calibrated, under, _ = (one.verdict for one in judge(made))
    if "not run yet" in (calibrated, under):
        return "Not known yet: the runs that decide whether smoothing calibrates have not all been made."
    deep = {
        "reproduced": "Smoothing calibrates ResNet-56 on CIFAR-100",
        "contradicted": "Smoothing, or a temperature, does not bring ResNet-56 on CIFAR-100 nearer to calibration",
    }.get(calibrated, "We cannot tell whether smoothing calibrates ResNet-56 on CIFAR-100")
    digits = {
        "reproduced": "it makes the network for digits underconfident",
        "contradicted": "it does not make the network for digits underconfident at every confidence",
    }.get(under, "we cannot tell whether it makes the network for digits underconfident at every confidence")
    return f"{deep}, and {digits}."


def claims(results: Results) -> tuple[Claim, ...]:
    """What section 5.1 says of the two diagrams; without results it is not run yet."""
    deep, digits = ({"network": network.key} for network in (DEEP, CONNECTED))
    highest, lowest = DEEP.measure("highest_gap"), CONNECTED.measure("lowest_gap")
    bins = f"Of bins, those with at least {FEWEST} predictions count."
    nearer = {
        f"label smoothing {SMOOTHED:g}": results.difference(
            DEEP.measure("ece"), {**deep, "alpha": SMOOTHED}, {**deep, "alpha": 0.0}
        ),
        "hard targets with a temperature": results.where(**deep).each_seed(_scaled_minus_hard),
    }
    calibrated = {
        "hard targets": results.sample(CONNECTED.measure("ece"), **digits, alpha=0.0),
        "hard targets with a temperature": results.sample(
            CONNECTED.measure("ece_scaled"), **digits, alpha=0.0
        ),
    }
    return (
        Claim(
            "ResNet-56 on CIFAR-100 with hard targets is overconfident: all points lie under the diagonal.",
            sources("wagner-2023/reliability/overconfident"),
            "accuracy minus confidence of the bin where it is highest, alpha 0",
            *below(0, results.sample(highest, **deep, alpha=0.0)),
            results.shown(highest, ".3f", {**deep, "alpha": 0.0}),
            bins,
            seeds=DEEP.seeds,
        ),
        Claim.every(
            "Label smoothing, and a temperature, bring ResNet-56 on CIFAR-100 nearer to the diagonal than hard "
            "targets.",
            sources("wagner-2023/reliability/calibrated"),
            "ECE minus that of hard targets, for both",
            nearer,
            Region(high=0),
            _means(nearer),
            "The paper says “very close”, and not how close.",
            seeds=DEEP.seeds,
        ),
        Claim(
            "FCN on MNIST with label smoothing is underconfident: its points lie above the diagonal.",
            sources("wagner-2023/reliability/underconfident"),
            f"accuracy minus confidence of the bin where it is lowest, alpha {SMOOTHED:g}",
            *above(0, results.sample(lowest, **digits, alpha=SMOOTHED)),
            results.shown(lowest, ".3f", {**digits, "alpha": SMOOTHED}),
            bins,
            seeds=CONNECTED.seeds,
        ),
        Claim.every(
            "FCN on MNIST is well calibrated with hard targets, with a temperature and without.",
            sources("wagner-2023/ece/fully-connected"),
            "ECE, for both",
            calibrated,
            Region(high=WELL),
            _means(calibrated),
            f"“Well calibrated” means an ECE below {WELL:g}.",
            seeds=CONNECTED.seeds,
        ),
    )


def _scaled_minus_hard(own: Results) -> float:
    hard = own.cells("alpha")[(0.0,)]
    return hard[DEEP.measure("ece_scaled")] - hard[DEEP.measure("ece")]


def _means(cells: dict[str, Sample]) -> str:
    return (
        ", ".join(f"{cell.mean:.3f} ({name})".replace("-", "−", 1) for name, cell in cells.items() if cell.n)
        or "–"
    )


study = Study(
    name="wagner-figure-3",
    title="Where does label smoothing calibrate, and where does it make underconfident?",
    lead=(
        "Figure 3 of the replication of 2023 has two reliability diagrams: ResNet-56 on CIFAR-100, which is "
        "overconfident and which smoothing calibrates, and a fully connected network on MNIST, which is calibrated "
        "and which smoothing makes underconfident."
    ),
    papers=(WAGNER,),
    trials=partial(network_trials, keys=SHOWN, alphas=ALPHAS),
    measure=measure,
    details=details,
    keep=KEEP,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=("small", "full"),
)
