"""Tables of the replication with ours below its own: a row for each source of numbers, a column for each smoothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from softtargets.claims import published
from softtargets.report import Curve, Figure, Panel, Table, lines
from softtargets.report.drawing import BLUE, ORANGE
from softtargets.studies.results import Results, Row
from softtargets.studies.wagner.grid import comparable
from softtargets.studies.wagner.networks import ALPHAS, Network, condition

Values = Callable[[float], Any]


def column(alpha: float) -> str:
    """The key of a smoothing's column.

    >>> column(0.05)
    'alpha_0_05'
    """
    return f"alpha_{alpha:g}".replace(".", "_")


def columns_over_alpha(form: str, alphas: Sequence[float] = ALPHAS) -> str:
    """Columns for `Table.of`."""
    return " | ".join(f"{column(alpha)} {form}: alpha {alpha:g}" for alpha in alphas)


def rows_over_alpha(
    network: Network, sources: dict[str, Values], alphas: Sequence[float] = ALPHAS
) -> list[Row]:
    """A row for each source of numbers."""
    return [
        {"dataset": network.dataset, "network": network.architecture, "source": source}
        | {column(alpha): values(alpha) for alpha in alphas}
        for source, values in sources.items()
    ]


def sources_of(results: Results, network: Network, quantity: str) -> dict[str, Values]:
    """Printed numbers of both papers and ours, by smoothing; where a paper has none, none."""

    def printed(place: str) -> Values:
        return lambda alpha: _printed(f"wagner-2023/{quantity}/{place}/{condition(alpha)}")

    def ours(alpha: float) -> Any:
        return results.sample(network.measure(quantity), network=network.key, alpha=alpha)

    quoted = printed(f"{network.key}-quoted")
    known = any(quoted(alpha) is not None for alpha in ALPHAS)
    of_mueller = {"Müller et al. 2019": quoted} if known else {}
    return of_mueller | {"replication 2023": printed(network.key), "ours": ours}


def _printed(key: str) -> float | None:
    try:
        return published(key).value
    except KeyError:
        return None


def over_alpha(
    results: Results,
    networks: Sequence[Network],
    quantity: str,
    scale: float,
    names: tuple[str, str],
    extra: Callable[[Network], Sequence[Curve]] = lambda network: (),
    digits: int = 2,
) -> list[Figure]:
    """One panel for each network that has something to show: ours and the replication's over alpha; none without any.

    names: of the figure's file, and of the y axis.
    """
    rows: list[Row] = []
    panels = []
    for network in networks:
        sources = sources_of(results, network, quantity)
        printed = [sources["replication 2023"](alpha) for alpha in ALPHAS]
        found = [sources["ours"](alpha) for alpha in ALPHAS]
        rows += [
            {"network": network.key, "alpha": alpha, "replication": theirs, quantity: sample}
            for alpha, theirs, sample in zip(ALPHAS, printed, found, strict=True)
        ]
        trained = [(alpha, sample) for alpha, sample in zip(ALPHAS, found, strict=True) if sample.n]
        curves = [Curve.of("ours", BLUE, *zip(*trained, strict=True), scale=scale)] if trained else []
        if comparable(results, network):
            known = [None if value is None else scale * value for value in printed]
            curves.append(Curve("replication", ORANGE, ALPHAS, known, line="dashed", marker="square"))
        if shown := [*curves, *extra(network)]:
            panels.append(Panel(network.name, "label smoothing alpha", names[1], shown, digits=digits))
    if not panels:
        return []
    figure = lines(
        names[0],
        f"{names[1][0].upper()}{names[1][1:].removesuffix(', %')} over the strength of smoothing.",
        panels,
        rows,
        "Points are means over seeds, bars one standard deviation, small dots seeds. The replication trained each "
        "network once.",
        f"Line charts over alpha, one for each of {len(panels)} networks: ours and the replication's.",
    )
    return [figure]


def table(name: str, title: str, spec: str, rows: Sequence[Row], caption: str) -> Table:
    """A table of rows by network and source."""
    return Table.of(name, title, f"dataset | network | source | {spec}", rows, caption)
