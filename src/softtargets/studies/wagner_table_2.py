"""Table 2 of the replication: accuracies of eight networks over the strength of smoothing."""

from __future__ import annotations

from softtargets.claims import Claim, above, below, judge, zone
from softtargets.report import Section
from softtargets.studies.printed import printed_accuracy
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import MULLER, WAGNER, Findings, Study
from softtargets.studies.wagner.grid import AXES, all_networks, alphas_of, comparable, networks_of
from softtargets.studies.wagner.measures import KEEP, accuracies
from softtargets.studies.wagner.networks import ALPHAS, SEEDS, SIZES, Network, condition
from softtargets.studies.wagner.tables import (
    columns_over_alpha,
    over_alpha,
    rows_over_alpha,
    sources_of,
    table,
)
from softtargets.studies.wagner.words import about_sizes, how_trained

# Points of accuracy that are too few to count; of 10,000 digits three.
NOTHING, NOTHING_ON_DIGITS = 0.1, 0.03
# Strengths that the text of section 3 singles out, besides 0.1 for each network.
_SINGLED_OUT = (
    ("cifar10-alexnet", 0.3, "The replication: “some models benefit significantly from high” constants."),
    (
        "fmnist-fcn",
        0.05,
        "The replication: others show “minor improvements or even degradation from small constants”.",
    ),
)


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    made, networks = claims(results), networks_of(results)
    rows = [
        row
        for network in networks
        for row in rows_over_alpha(network, sources_of(results, network, "accuracy"))
    ]
    return Findings(
        (
            Section.of(
                "Accuracy over the strength of smoothing",
                how_trained(results, networks),
                about_sizes(size_of(results)),
                table(
                    "accuracies",
                    "Top-1 accuracy.",
                    columns_over_alpha(".2%"),
                    rows,
                    "Ours: mean ± standard deviation over seeds, after the last epoch. The replication trained each "
                    "network once. Müller et al.: as the replication quotes them.",
                ),
                *over_alpha(results, networks, "accuracy", 100, ("accuracy_over_alpha", "accuracy, %")),
            ),
            Section.of("What differs from the replication", *(network.differs for network in networks)),
        ),
        made,
        _answer(made, networks),
    )


def _answer(made: tuple[Claim, ...], networks: tuple[Network, ...]) -> str:
    """Does smoothing raise accuracy?"""
    verdicts = [one.verdict for one in judge(made)[: len(networks)]]
    if "not run yet" in verdicts:
        return "Not known yet: the runs that decide whether smoothing raises accuracy have not all been made."
    higher, lower = (
        [network.name for network, verdict in zip(networks, verdicts, strict=True) if side(network, verdict)]
        for side in (_gains, _loses)
    )
    both = (("raises that of", higher), ("lowers that of", lower))
    said = [f"{word} {' and '.join(names)}" for word, names in both if names]
    if not said:
        return "These seeds show no change of accuracy by smoothing of 0.1, in either direction, for any network."
    rest = len(networks) - len(higher) - len(lower)
    also = f"; for {rest} of {len(networks)} networks no change is shown" if rest else ""
    return f"It depends on the network. As to accuracy, smoothing of 0.1 {' and '.join(said)}{also}."


def _gains(network: Network, verdict: str) -> bool:
    return verdict == ("reproduced" if _printed_gain(network, 0.1) > 0 else "contradicted")


def _loses(network: Network, verdict: str) -> bool:
    return verdict == ("contradicted" if _printed_gain(network, 0.1) > 0 else "reproduced")


def claims(results: Results) -> tuple[Claim, ...]:
    """Directions first, one for each network, then printed numbers; without results they are not run yet."""
    networks = networks_of(results)
    return (
        *(_direction(results, network, 0.1) for network in networks),
        *(
            _direction(results, network, alpha, remark)
            for key, alpha, remark in _SINGLED_OUT
            for network in networks
            if network.key == key and alpha in alphas_of(results)
        ),
        *(
            _number(results, network, alpha)
            for network in networks
            if comparable(results, network)
            for alpha in ALPHAS
        ),
    )


def _printed_gain(network: Network, alpha: float) -> float:
    """In points, what smoothing changes in the replication."""
    hard, smoothed = (network.printed("accuracy", strength).value or 0.0 for strength in (0.0, alpha))
    return 100 * (smoothed - hard)


def _direction(results: Results, network: Network, alpha: float, remark: str = "") -> Claim:
    printed, key = _printed_gain(network, alpha), network.measure("accuracy")
    hard, smoothed = ({"network": network.key, "alpha": strength} for strength in (0.0, alpha))
    gain = results.gain(key, [(smoothed, hard)], scale=100)
    return Claim(
        f"Label smoothing of {alpha:g} {'raises' if printed > 0 else 'lowers'} the accuracy of {network.name}.",
        tuple(network.printed("accuracy", strength) for strength in (0.0, alpha)),
        f"accuracy at alpha {alpha:g} minus accuracy at alpha 0",
        *(above if printed > 0 else below)(0, gain),
        results.then(key, ".2%", hard, smoothed) + f" at alpha = {alpha:g}",
        f"The replication's two networks differ by {printed:+.2f} points. ".replace("-", "−") + remark,
        digits=2,
        seeds=network.seeds,
        zone=zone(NOTHING_ON_DIGITS if network.key == "mnist-fcn" else NOTHING),
        unit="points",
    )


def _number(results: Results, network: Network, alpha: float) -> Claim:
    """The printed accuracy, within what its test images leave open."""
    smoothed = f"with label smoothing of {alpha:g}" if alpha else "with hard targets"
    return printed_accuracy(
        f"{network.name} {smoothed} has an accuracy of {{}}.",
        f"wagner-2023/accuracy/{network.key}/{condition(alpha)}",
        results.sample(network.measure("accuracy"), network=network.key, alpha=alpha),
        quantity=f"accuracy at alpha {alpha:g}",
        seeds=network.seeds,
        examples=network.examples,
    )


study = Study(
    name="wagner-table-2",
    title="Does label smoothing raise accuracy? Five networks, five strengths",
    lead=(
        "The replication of 2023 trains networks with label smoothing of five strengths, where Müller, Kornblith and "
        "Hinton (2019) had two, and finds that most become more accurate. It trained each of them once; here are "
        "several seeds of each."
    ),
    papers=(WAGNER, MULLER),
    trials=all_networks,
    measure=accuracies,
    keep=KEEP,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=tuple(SIZES),
)
