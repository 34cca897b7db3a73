"""Figure 2 of the replication: penultimate activations on the plane of three templates, and the listing of A.1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from softtargets.claims import Claim, Region, Sample, judge, sources, zone
from softtargets.geometry import sides
from softtargets.report import Figure, Section, Table
from softtargets.runs import Run
from softtargets.studies.planes import kept_view, plane_numbers, planes_figure, shown_view, view_of
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of
from softtargets.studies.study import WAGNER, Findings, Study, Trial
from softtargets.studies.wagner.grid import AXES, network_trials, networks_of
from softtargets.studies.wagner.networks import DEEP_SEEDS, Network
from softtargets.studies.wagner.words import about_sizes, how_trained
from softtargets.studies.words import answered, signed

ALPHAS = (0.0, 0.1)
SPLITS = {"train": "training", "test": "test"}
# The first three classes of each dataset, as in the replication.
CLASSES = (0, 1, 2)
NAMES = {
    "cifar10-alexnet": ("airplane", "automobile", "bird"),
    "cifar100-resnet56": ("apple", "aquarium fish", "baby"),
    "mnist-fcn": ("zero", "one", "two"),
    # Table 5 has ticks for these two, but the figure has no pictures of them.
    "cub200-resnet34": ("black-footed albatross", "Laysan albatross", "sooty albatross"),
    "tiny-imagenet-resnet50": ("first class", "second class", "third class"),
}
# Differences too small to count, of spreads and of triangles (1 is equilateral); and rounding.
SAME, ROUNDING = 0.02, 1e-3


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Clusters on the plane, the distance of templates, and how far the listing of A.1 is from the text's formula."""
    head = run.weights()["head.weight"]
    found: dict[str, float] = {}
    for split in SPLITS:
        view = view_of(run.predictions(split), head, CLASSES)
        found |= {f"{split}_{key}": value for key, value in plane_numbers(view).items()}
    rows = run.predictions("test").features[:100]
    found["templates"] = sum(sides(head[list(CLASSES)])) / 3
    found["listing"] = listing_gap(rows.double(), head[list(CLASSES)].double())
    return found


def listing_gap(activations: Tensor, templates: Tensor) -> float:
    """The largest difference between distances on the plane by the listing of A.1 and by the text, over the largest.

    The text's basis is that of w1 - w3 and w2 - w3, the listing's that of the normalised w2 - w1 and w3 - w1. Both are
    bases of one plane, so that pictures differ by a rotation or a reflection.

    >>> import torch
    >>> listing_gap(torch.randn(9, 5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)) < 1e-12
    True
    """
    first, second, third = templates.numpy()
    text = np.linalg.qr(np.stack([first - third, second - third], axis=1))[0]
    listed = np.linalg.qr(np.stack([_unit(second - first), _unit(third - first)], axis=1))[0]
    by_text, by_listing = (_distances(activations.numpy() @ basis) for basis in (text, listed))
    return float(np.abs(by_text - by_listing).max() / max(float(by_text.max()), 1e-300))


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(vector))
    if length == 0:
        raise ValueError("two templates are equal, so that there is no plane through three")
    return vector / length


def _distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=-1))


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """The panels of the picture: a hundred examples of each class."""
    head, names = run.weights()["head.weight"], NAMES[trial.labels["network"]]
    return {split: kept_view(view_of(run.predictions(split), head, CLASSES, names)) for split in SPLITS}


def findings(results: Results) -> Findings:
    """A picture for each network, a table and claims."""
    made, networks = claims(results), networks_of(results, NAMES)
    pictures = (_picture(results, network) for network in networks)
    return Findings(
        (
            Section.of(
                "Three classes on the plane of their templates",
                how_trained(results, networks),
                about_sizes(size_of(results)) if size_of(results) == "small" else "",
                "The plane goes through the rows of the last layer's weights that belong to three classes: the first "
                "three of each dataset, as in the replication. A hundred images of each class are shown; the numbers "
                "are of all of them.",
                *(picture for picture in pictures if picture is not None),
                _table(results, networks),
            ),
            Section.of(
                "The listing of appendix A.1",
                "The text subtracts the third template from the others, the listing the first, and it normalises the "
                "differences. Both span the same plane. So every distance is the same, and pictures differ by a "
                "rotation or a reflection at most, as the last column of the table shows.",
            ),
            Section.of("What differs from the replication", *(network.differs for network in networks)),
        ),
        made,
        _answer(made),
    )


def _answer(made: tuple[Claim, ...]) -> str:
    """Denser and more equidistant clusters?"""
    denser, regular = (one.verdict for one in judge(made)[:2])
    first = answered(
        denser,
        "It makes the clusters of training images denser for every network.",
        "It does not make the clusters of training images denser for every network.",
        whether="clusters become denser",
    )
    if "not run yet" in (denser, regular):
        return first
    return f"{first} " + answered(
        regular,
        "Their triangle becomes more regular.",
        "Their triangle does not become more regular for all of them.",
        whether="their triangle becomes more regular",
    )


def _picture(results: Results, network: Network) -> Figure | None:
    """A row of the figure: the first seed of each strength that has one."""
    mine = results.where(network=network.key)
    views, seeds = [], set()
    for alpha in ALPHAS:
        there = [one for one in mine.where(alpha=alpha).outcomes if one.details]
        if there:
            first = min(there, key=lambda one: one.seed)
            name = f"smoothing {alpha:g}" if alpha else "hard targets"
            views += [shown_view(first.details[split], name, title) for split, title in SPLITS.items()]
            seeds.add(first.seed)
    if not views:
        return None
    return planes_figure(
        f"planes_{network.key}",
        f"{network.name}: {', '.join(NAMES[network.key])}.",
        views,
        f"One network of each kind, seed {' and '.join(map(str, sorted(seeds)))}. Panels of one network have "
        f"one scale; "
        "look at the axes.",
    )


def _table(results: Results, networks: tuple[Network, ...]) -> Table:
    measures = (
        "train_spread", "test_spread", "train_triangle", "test_triangle", "train_scale", "templates", "listing",
    )  # fmt: skip
    rows: list[Row] = [
        {"network": network.name, "alpha": alpha}
        | {key: results.sample(key, network=network.key, alpha=alpha) for key in measures}
        for network in networks
        for alpha in ALPHAS
    ]
    return Table.of(
        "clusters",
        "Clusters as numbers.",
        "network | alpha .1f | train_spread: spread, training | test_spread: spread, test | "
        "train_triangle: triangle, training | test_triangle: triangle, test | train_scale .2f: distance of means | "
        "templates .2f: distance of templates | listing .6f: listing against text",
        rows,
        "Mean ± standard deviation over seeds. Spread: deviation from the class mean over the mean distance of means; "
        "triangle: 1 is equilateral; listing against text: largest relative difference of distances.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """What section 4 says of the figure; without results it is not run yet."""
    return (
        _every(
            results,
            "Label smoothing makes the clusters of training images denser.",
            "denser",
            "spread of training images, alpha 0.1 minus alpha 0",
            partial(_difference, measure="train_spread"),
            Region(high=0),
            zone=zone(SAME),
        ),
        _every(
            results,
            "With label smoothing the clusters are more nearly equidistant: their triangle is more regular.",
            "equidistant",
            "how equilateral the class means of training images are, alpha 0.1 minus alpha 0",
            partial(_difference, measure="train_triangle"),
            Region(low=0),
            zone=zone(SAME),
        ),
        _every(
            results,
            "With label smoothing templates are nearer to each other.",
            "templates",
            "mean distance of the three templates, alpha 0.1 over alpha 0",
            _ratio,
            Region(high=1),
        ),
        _every(
            results,
            "The listing of appendix A.1 gives the picture that the text describes, up to a rotation or reflection.",
            "code",
            "largest relative difference of distances between the two, both alphas",
            lambda own: max(one["listing"] for one in _cells(own).values()),
            Region(high=ROUNDING),
        ),
    )


def _every(
    results: Results,
    statement: str,
    key: str,
    quantity: str,
    of: Callable[[Results], float],
    region: Region,
    **options: Any,
) -> Claim:
    cells: Mapping[str, Sample] = {
        network.name: results.where(network=network.key).each_seed(of)
        for network in networks_of(results, NAMES)
    }
    shown = [f"{signed(cell.mean, 3)} ({name})" for name, cell in cells.items() if cell.n]
    return Claim.every(
        statement,
        sources(f"wagner-2023/penultimate/{key}"),
        f"{quantity}, for every network",
        cells,
        region,
        ", ".join(shown) or "–",
        seeds=DEEP_SEEDS,
        **options,
    )


def _cells(own: Results) -> dict[float, Mapping[str, float]]:
    found = own.cells("alpha")
    return {alpha: found[(alpha,)] for alpha in ALPHAS}


def _difference(own: Results, measure: str) -> float:
    hard, soft = _cells(own).values()
    return soft[measure] - hard[measure]


def _ratio(own: Results) -> float:
    hard, soft = _cells(own).values()
    return soft["templates"] / hard["templates"]


study = Study(
    name="wagner-figure-2",
    title="Does label smoothing make clusters denser, also for digits?",
    lead=(
        "Figure 2 of the replication of 2023 repeats the pictures of the penultimate layer by Müller, Kornblith and "
        "Hinton (2019) for AlexNet on CIFAR-10 and ResNet-56 on CIFAR-100, with other classes, and adds a fully "
        "connected network on MNIST. Here are the pictures, and each statement about them as a number."
    ),
    papers=(WAGNER,),
    trials=partial(network_trials, keys=tuple(NAMES), alphas=ALPHAS),
    # With penultimate activations: 30 to 40 MB a run, of the digits' network 340 MB.
    keep=("train", "test"),
    measure=measure,
    details=details,
    findings=findings,
    claims=claims,
    seeds=DEEP_SEEDS,
    axes=AXES,
    sizes=("small", "full", "cub200", "tiny-imagenet"),
)
