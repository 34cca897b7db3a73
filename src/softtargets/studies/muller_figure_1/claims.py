"""What the paper says of the penultimate layer, and the quantities that test it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from softtargets.claims import Claim, Region, Sample, sources, zone
from softtargets.studies.muller_figure_1.measures import ALPHAS, GRID
from softtargets.studies.muller_images import NETWORKS, SEEDS, compared, shown_alpha
from softtargets.studies.results import Results

# Differences too small to count, of spreads, of triangles (1 is equilateral), of arcs and of gaps.
SAME_SPREAD, SAME_TRIANGLE, SAME_ARC, SAME_GAP = 0.02, 0.02, 0.05, 0.05
# How near the gap must come to that of the targets, as a share; and how much norms may vary to be “usually constant”.
NEAR_GAP, CONSTANT = 0.2, 0.1


def claims(results: Results) -> tuple[Claim, ...]:
    """One for each statement; a statement about all networks is a claim about every one of them."""
    keys = compared(results, list(GRID))
    return (
        _every(
            "Label smoothing makes the clusters of training images tighter.",
            (f"clusters/{key}" for key in keys),
            "spread of training images on the plane of the paper's classes, alpha 0.1 minus alpha 0",
            _differences(results, keys, "train_spread"),
            Region(high=0),
            "A spread is the deviation of images from their class mean over the mean distance of the means.",
            zone=zone(SAME_SPREAD),
        ),
        _every(
            "With label smoothing the clusters form a more regular triangle.",
            (f"triangles/{key}" for key in keys),
            "how equilateral the class means of training images are, alpha 0.1 minus alpha 0",
            _differences(results, keys, "train_triangle"),
            Region(low=0),
            "1 for three equal sides, 0 for three means on a line.",
            zone=zone(SAME_TRIANGLE),
        ),
        *(_about_cifar100(results) if "cifar100" in keys else ()),
        _every(
            "Label smoothing makes the gap between correct and incorrect logits more constant.",
            ("logit-gap",),
            "deviation of the gap over its mean, training images, alpha 0.1 minus alpha 0",
            _differences(results, keys, "gap_deviation"),
            Region(high=0),
            "Over all training images and all incorrect classes, without augmentation.",
            zone=zone(SAME_GAP),
        ),
        _every(
            "With label smoothing the gap is the one that the smoothed targets have.",
            ("logit-gap",),
            "mean gap over log((1 - alpha + alpha / K) / (alpha / K)), training images, alpha 0.1",
            {NETWORKS[key].dataset: results.sample("gap_ratio", network=key, alpha=0.1) for key in keys},
            Region(1 - NEAR_GAP, 1 + NEAR_GAP),
            "The paper says “a constant dependent on alpha”; this is the constant that minimises the loss.",
        ),
        _every(
            "All templates have about the same norm.",
            ("template-norms",),
            "deviation of the templates' norms over their mean",
            {
                f"{NETWORKS[key].dataset}, {shown_alpha(alpha)}": results.sample(
                    "norm_variation", network=key, alpha=alpha
                )
                for key in keys
                for alpha in ALPHAS
            },
            Region(high=CONSTANT),
            f"“About the same” is a deviation below {CONSTANT:.0%} of the mean.".replace("%", " %"),
        ),
        _every(
            "With label smoothing two similar classes lie in an arc around a third.",
            ("arc/imagenet",),
            "spread across the arc over spread along it, held-out images, alpha 0.1 minus alpha 0",
            _differences(results, keys, "validation_arc"),
            Region(high=0),
            "0 is a perfect arc around the third class, 1 a spread that is the same in both directions. The paper's "
            "picture is of ImageNet; CIFAR's training images of similar classes are told apart, so held-out ones "
            "are measured.",
            zone=zone(SAME_ARC),
        ),
    )


def _about_cifar100(results: Results) -> tuple[Claim, Claim]:
    soft: dict[str, Any] = {"network": "cifar100", "alpha": 0.1}
    return (
        Claim(
            "Without label smoothing the activations of CIFAR-100 are on a larger scale.",
            sources("muller-2019/scale/cifar100"),
            "mean distance of the class means of training images, alpha 0.1 over alpha 0",
            _per_seed(results, lambda own: _ratio(own, "train_scale")),
            Region(high=1),
            results.then("train_scale", ".2f", soft | {"alpha": 0.0}, soft),
            "On the plane of beaver, dolphin and otter.",
            seeds=SEEDS,
        ),
        Claim(
            "With label smoothing the clusters of CIFAR-100 are tighter for training images than for held-out ones.",
            sources("muller-2019/held-out-clusters/cifar100"),
            "spread of held-out images minus spread of training images, alpha 0.1",
            _per_seed(results.where(**soft), _spreads_apart),
            Region(low=0),
            f"{results.shown('train_spread', '.2f', soft)} for training images, "
            f"{results.shown('validation_spread', '.2f', soft)} for held-out ones",
            "",
            seeds=SEEDS,
            zone=zone(SAME_SPREAD),
        ),
    )


def _ratio(own: Results, measure: str) -> float:
    cells = own.where(network="cifar100").cells("alpha")
    return float(cells[(0.1,)][measure] / cells[(0.0,)][measure])


def _spreads_apart(own: Results) -> float:
    (measures,) = own.cells("alpha").values()
    return float(measures["validation_spread"] - measures["train_spread"])


def _per_seed(results: Results, of: Callable[[Results], float]) -> Sample:
    return results.each_seed(of)


def _differences(results: Results, keys: list[str], measure: str) -> dict[str, Sample]:
    return {
        NETWORKS[key].dataset: results.difference(
            measure, {"network": key, "alpha": 0.1}, {"network": key, "alpha": 0.0}
        )
        for key in keys
    }


def _every(
    statement: str,
    places: Any,
    quantity: str,
    cells: Mapping[str, Sample],
    region: Region,
    remark: str,
    **options: Any,
) -> Claim:
    published = tuple(one for place in places for one in sources(f"muller-2019/{place}"))
    shown = {name: sample.first(SEEDS).mean for name, sample in cells.items()}
    measured = "; ".join(
        f"{name} {'–' if math.isnan(value) else format(value, '.3f').replace('-', '−')}"
        for name, value in shown.items()
    )
    return Claim.every(
        statement, published, quantity, cells, region, measured, remark, seeds=SEEDS, **options
    )
