"""Table 2 of Müller et al. 2019: does label smoothing change accuracy?"""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, above, judge, published, sources, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, ORANGE
from softtargets.runs import Run
from softtargets.studies.muller_images import (
    AXES,
    KEEP,
    NETWORKS,
    SIZES,
    as_printed,
    compared,
    deviations,
    networks_in,
    on_both,
    shown_alpha,
    title_of,
    trials_of,
    two_accuracies,
)
from softtargets.studies.printed import printed_accuracy
from softtargets.studies.results import Results, over
from softtargets.studies.study import MULLER, Findings, Settings, Study, Trial

ALPHAS = (0.0, 0.1)
KINDS = dict(zip(ALPHAS, ("hard", "smoothed"), strict=True))
GRID = dict.fromkeys(NETWORKS, ALPHAS)

# Seeds that decide: as many as the response has of the same networks.
SEEDS = 5
# Points of accuracy that count as a difference, and what the paper's own deviations (0.3 each) leave open of one.
WORTH, SMALL_GAIN, GAIN_MARGIN = 0.5, 0.2, 0.4


def _measure(trial: Trial, run: Run) -> dict[str, float]:
    return on_both(run)


def claims(results: Results) -> tuple[Claim, ...]:
    """Printed accuracies, and what smoothing does to them; without results they are not run yet."""
    keys = compared(results, list(NETWORKS))
    number = as_printed(results, ("cifar10", "cifar100"))
    found = [_accuracy(results, key, alpha) for key in keys if key in number for alpha in ALPHAS]
    same = [_no_change(results, key) for key in ("cifar10", "imagenet") if key in keys]
    better = [_gain(results, printed="cifar100" in number)] if "cifar100" in keys else []
    return (*found, *same, *better)


def _accuracy(results: Results, key: str, alpha: float) -> Claim:
    network = NETWORKS[key]
    return printed_accuracy(
        f"{network.title} with {shown_alpha(alpha)} gets {{}} of the held-out images right.",
        f"muller-2019/accuracy/{key}/{KINDS[alpha]}",
        results.sample("held_out_accuracy", network=key, alpha=alpha),
        quantity=f"{network.dataset}: accuracy on held-out images at alpha {alpha:g}",
        seeds=SEEDS,
    )


def _change(results: Results, key: str) -> Any:
    pair = ({"network": key, "alpha": 0.1}, {"network": key, "alpha": 0.0})
    return results.gain("accuracy", [pair], scale=100)


def _no_change(results: Results, key: str) -> Claim:
    network = NETWORKS[key]
    return Claim(
        f"{title_of(results, key)} is about as accurate with label smoothing of 0.1 as without.",
        sources(f"muller-2019/accuracy/{key}", *KINDS.values()),
        f"{network.dataset}: test accuracy at alpha 0.1 minus at alpha 0",
        _change(results, key),
        Region(-WORTH, WORTH),
        two_accuracies(results, key),
        f"“About as accurate” is a difference of less than {WORTH:g} points.",
        digits=2,
        seeds=SEEDS,
        unit="points",
    )


def _gain(results: Results, printed: bool) -> Claim:
    hard, smoothed = (published(f"muller-2019/accuracy/cifar100/{kind}").value for kind in KINDS.values())
    number: dict[str, Any] = {}
    if printed:
        number = {"printed": round(100 * ((smoothed or 0) - (hard or 0)), 6), "margin": GAIN_MARGIN}
    return Claim(
        f"{title_of(results, 'cifar100')} is more accurate with label smoothing of 0.1.",
        sources("muller-2019/accuracy/cifar100", *KINDS.values()),
        "CIFAR-100: test accuracy at alpha 0.1 minus at alpha 0",
        *above(0, _change(results, "cifar100")),
        two_accuracies(results, "cifar100"),
        "",
        digits=2,
        seeds=SEEDS,
        unit="points",
        zone=zone(SMALL_GAIN),
        **number,
    )


def findings(results: Results) -> Findings:
    """Table, figure, claims."""
    made = claims(results)
    sections = (
        Section.of(
            "Accuracy",
            "Each network is trained with hard targets, and with a share of 0.1 of every target spread over all "
            "classes. The numbers are those of the last epoch; nothing is chosen.",
            _table(results),
            _figure(results),
        ),
        Section.of("What differs from the paper", *deviations(results)),
    )
    return Findings(sections, made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does label smoothing change accuracy?"""
    judged = [one for one in judge(made) if one.claim.printed is None or not one.claim.is_number]
    if all(one.verdict == "not run yet" for one in judged):
        return (
            "Not known yet: the runs that decide whether smoothing changes accuracy have not all been made."
        )
    said = ", and ".join(_said(one.claim.statement, one.verdict) for one in judged)
    return f"{said[:1].upper()}{said[1:]}."


def _said(statement: str, verdict: str) -> str:
    network = statement.partition(" is ")[0].replace("A small", "a small")
    gains = "more accurate" in statement
    yes = f"it makes {network} more accurate" if gains else f"it leaves the accuracy of {network} as it is"
    no = (
        f"it does not make {network} more accurate"
        if gains
        else f"it changes the accuracy of {network} by half a point or more"
    )
    known = {"reproduced": yes, "contradicted": no, "no effect": no}
    return known.get(verdict, f"for {network} these runs do not tell")


def _table(results: Results) -> Table:
    rows = (
        {
            "network": title_of(results, cell["network"]),
            "alpha": cell["alpha"],
            "paper": published(f"muller-2019/accuracy/{cell['network']}/{KINDS[cell['alpha']]}").printed,
            **{key: results.sample(key, **cell) for key in ("held_out_accuracy", "accuracy", "nll")},
        }
        for cell in over(network=networks_in(results), alpha=ALPHAS)
    )
    return Table.of(
        "accuracies",
        "Accuracy with and without label smoothing.",
        "network | alpha .1f | paper: paper | held_out_accuracy .2%: ours, held-out images | "
        "accuracy .2%: ours, test set | nll: NLL, test set",
        rows,
        "Ours: mean ± standard deviation over seeds, after the last epoch. The paper's are of held-out images too.",
    )


def _figure(results: Results) -> Figure:
    rows = results.rows(over(network=networks_in(results), alpha=ALPHAS), "held_out_accuracy", "accuracy")
    panels = [
        _panel(title_of(results, key), [row for row in rows if row["network"] == key])
        for key in networks_in(results)
    ]
    return lines(
        "accuracies_by_seed",
        "Accuracy of every seed.",
        panels,
        rows,
        "Points are means over seeds, pale dots single seeds, bars one standard deviation.",
        "Accuracy with hard targets and with smoothing, for each network, on held-out and on test images.",
    )


def _panel(title: str, rows: list[dict[str, Any]]) -> Panel:
    places = range(len(rows))
    curves = [
        Curve.of(
            name,
            colour,
            [place + shift for place in places],
            [row[key] for row in rows],
            scale=100,
            line="none",
        )
        for key, name, colour, shift in (
            ("held_out_accuracy", "held-out images", BLUE, -0.06),
            ("accuracy", "test set", ORANGE, 0.06),
        )
    ]
    ticks = [(place, shown_alpha(row["alpha"])) for place, row in zip(places, rows, strict=True)]
    return Panel(title, "", "accuracy, %", curves, ticks, xlimits=(-0.6, len(rows) - 0.4), digits=2)


def _trials(settings: Settings) -> list[Trial]:
    return trials_of(settings, GRID)


study = Study(
    name="muller-table-2",
    title="Does label smoothing change how accurate a network is?",
    lead=(
        "Müller, Kornblith and Hinton (2019) print the accuracies of three networks with and without label smoothing: "
        "on CIFAR-10 and ImageNet nothing changes, on CIFAR-100 half a point is gained. Here are the first two."
    ),
    papers=(MULLER,),
    trials=_trials,
    keep=KEEP,
    measure=_measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
