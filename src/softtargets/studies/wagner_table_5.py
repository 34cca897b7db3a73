"""Table 5 of the replication: which network takes part in which experiment, and the study here that has it."""

from __future__ import annotations

from collections.abc import Mapping

from softtargets.claims import published
from softtargets.report import Section, Table
from softtargets.studies.results import Results, Row
from softtargets.studies.study import WAGNER, Findings, Settings, Study
from softtargets.studies.wagner.networks import NETWORKS
from softtargets.studies.words import counted

# The experiments of the table, and studies that have the network of a label in their grids.
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "accuracy": ("wagner-table-2",),
    "penultimate layer": ("wagner-figure-2",),
    "calibration": ("wagner-table-3",),
    "distillation": (),
}
# Studies of distillation have roles in the place of networks.
_DISTILLATION = {
    "mnist-fcn": ("mnist-distillation",),
    "cifar10-alexnet": ("wagner-figure-8", "muller-figure-5"),
    "cifar10-resnet56": ("wagner-figure-8", "muller-figure-5"),
}
MISSING = "missing"


def ticks(key: str) -> tuple[str, ...]:
    """The experiments that the table ticks for a network.

    >>> ticks("emnist-fcn")
    ('accuracy', 'calibration')
    """
    printed = published(f"wagner-2023/coverage/{key}").printed.split(", ")
    return tuple(experiment for experiment in EXPERIMENTS if experiment in printed)


def covered_by(key: str, experiment: str, studies: Mapping[str, Study]) -> str:
    """The study that has a tick, with the size that its network needs; nothing where there is none."""
    for name in _DISTILLATION.get(key, ()) if experiment == "distillation" else EXPERIMENTS[experiment]:
        if name not in studies:
            continue
        if experiment == "distillation":
            return name
        if size := _size_with(studies[name], key):
            return name if size == "full" else f"{name} (size {size})"
    return ""


def _size_with(study: Study, key: str) -> str:
    for size in study.sizes:
        if size != "small" and key in {one.labels["network"] for one in study.trials(Settings(1, {}, size))}:
            return size
    return ""


def _coverage() -> list[Row]:
    from softtargets.studies import STUDIES  # of which this study is one

    studies = {study.name: study for study in STUDIES}
    return [
        {"key": key, "dataset": network.dataset, "network": network.architecture}
        | {
            experiment: (covered_by(key, experiment, studies) or MISSING)
            if experiment in ticks(key)
            else None
            for experiment in EXPERIMENTS
        }
        for key, network in NETWORKS.items()
    ]


def findings(results: Results) -> Findings:
    """The table with names of studies in the place of ticks."""
    rows = _coverage()
    columns = " | ".join(f"{name.replace(' ', '_')}: {name}" for name in EXPERIMENTS)
    shown = [{key.replace(" ", "_"): value for key, value in row.items()} for row in rows]
    return Findings(
        (
            Section.of(
                "Where each experiment is",
                "A name stands where the replication has a tick: the study here that trains this network for this "
                "experiment. A size in brackets is for users who have the data; --set size=NAME chooses it.",
                Table.of("coverage", "Networks and experiments.", f"dataset | network | {columns}", shown),
                "The replication also calibrates a Transformer on Multi30k, which is not an image study: "
                "wagner-figure-4 and wagner-figure-5 do that here. Its figures 2, 3 and 9, and table 4 with figure 7, "
                "are the studies wagner-figure-2, wagner-figure-3, wagner-figure-9 and mnist-distillation.",
                "For CUB-200-2011 and Tiny ImageNet the table has ticks for the penultimate layer, but the paper has "
                "no picture of them.",
            ),
        ),
        (),
        _answer(rows),
    )


def _answer(rows: list[Row]) -> str:
    """Is everything here?"""
    ticked = [(row, name) for row in rows for name in EXPERIMENTS if row[name] is not None]
    missing = [
        f"{name} with {row['network']} on {row['dataset']}" for row, name in ticked if row[name] == MISSING
    ]
    if not missing:
        return f"Yes: each of the {counted(len(ticked), 'tick')} that are about images has a study here."
    return f"Not quite: {counted(len(missing), 'tick')} of {len(ticked)} have no study here: {', '.join(missing)}."


study = Study(
    name="wagner-table-5",
    title="Is every experiment of the replication here?",
    lead=(
        "Table 5 of the replication of 2023 says which network takes part in which experiment. Here the studies that "
        "have each of them stand in the place of the ticks."
    ),
    papers=(WAGNER,),
    findings=findings,
)
