"""What each difference between the two papers' trainings does to accuracy and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softtargets.claims import Claim, below, judge, published, two_standard_errors, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
from softtargets.studies.wagner.networks import DEEP_SEEDS, condition
from softtargets.studies.wagner_deviations.grid import BASE, BY_KEY, FAMILIES, HARD, REPLICATED, Family
from softtargets.studies.words import answered, counted, signed

# Points of accuracy that are too few to count.
NOTHING = 0.2
IMAGES = 10_000


def findings(results: Results) -> Findings:
    """A table and a figure for each network, and claims."""
    made = claims(results)
    size = size_of(results)
    families = [family for family in FAMILIES if family.recipe(size) is not None]
    return Findings(
        (
            Section.of(
                "One difference at a time",
                "For each network the first row is the training that the others are variants of; every other row "
                "changes what its name says and nothing else. Changes are seed by seed, all on the same test images. ",
                _small(size),
                *(_table(results, family) for family in families),
                *(_figure(results, family) for family in families if _changes(results, family)),
            ),
            Section.of("What the variants are", *_explained(size)),
            Section.of(
                "What is not varied",
                "ResNet-56 on CIFAR-100 with a first convolution of 7 x 7, which the replication has, is not trained: "
                "six runs cost as much as all the others of this page together. The window of the local response norm "
                "stays 9 channels wide where the replication's code has 8. How temperatures are chosen is on the "
                "page of table 3, where it costs no training.",
            ),
        ),
        made,
        _answer(made),
    )


def _small(size: str) -> str:
    if size != "small":
        return ""
    return (
        "This is the small size, for a CPU: 2,000 images, a narrow network for digits and a small convolutional "
        "network in AlexNet's place, without the variants that only AlexNet or ResNet-56 has. Numbers say nothing "
        "about the papers' networks."
    )


def _explained(size: str) -> tuple[str, ...]:
    digits = (
        "FCN on MNIST. Müller et al. do not name a size of mini-batches; we use 128, the replication 512. They shift "
        "digits by up to two pixels, all shifts equally often; the replication's code rounds shifts, so that those by "
        "two pixels are half as frequent (ERRATA.md, R11). They print initial weights of variance 0.03, which both "
        "the replication and we read as the standard deviation; one row has the variance. Dropout is that of the "
        "replication's table 4 for hard targets."
    )
    alexnet = (
        "AlexNet on CIFAR-10. The first row follows Müller et al. and the tutorial of TensorFlow that they build on: "
        "40,000 training images, brightness and contrast, standardisation by image, decay by half the squared norm. "
        "The replication trains on all 50,000 for as many epochs, so for a quarter more steps, without brightness and "
        "contrast, standardises by channel, and decays by the norm without the square (ERRATA.md, R10). Its code also "
        "normalises responses eight times more weakly (R8) and starts with equal weights in the last layer (R9)."
    )
    deep = (
        "ResNet-56 on CIFAR-10. The first row is tensor2tensor's training, crops of 32 x 32 from padded images, which "
        "Müller et al. use; the replication cuts crops of 24 x 24, standardises by channel and scales initial weights "
        "by the fan-out. The three are changed together."
    )
    return (digits, alexnet) if size == "small" else (digits, alexnet, deep)


def _answer(made: tuple[Claim, ...]) -> str:
    """Do the deviations explain the difference between the papers?"""
    return answered(
        judge(made)[0].verdict,
        "Yes, in part at least: AlexNet trained as the replication does is less accurate than trained as "
        "Müller et al. do.",
        "No: AlexNet trained as the replication does is more accurate than trained as Müller et al. do.",
        nothing="No: AlexNet is as accurate trained as the replication does as trained as Müller et al. do.",
        whether="the replication's training explains its lower accuracy of AlexNet",
    )


def _first(family: Family) -> str:
    return family.variants[0].name


def _cell(family: Family, variant: str, alpha: float = 0.0) -> Row:
    return {"network": family.key, "variant": variant, "alpha": alpha}


def _table(results: Results, family: Family) -> Table:
    rows = []
    for variant in family.of_size(size_of(results)):
        first = variant.name == _first(family)
        for alpha in variant.alphas:
            cell, base = _cell(family, variant.name, alpha), _cell(family, _first(family), alpha)
            soft = results.gain("accuracy", [(cell, {**cell, "alpha": 0.0})], scale=100) if alpha else None
            rows.append(
                {"variant": variant.name, "alpha": alpha}
                | {key: results.sample(key, **cell) for key in ("accuracy", "ece")}
                | {
                    "change": None if first else results.gain("accuracy", [(cell, base)], scale=100),
                    "ece_change": None if first else results.difference("ece", cell, base),
                    "smoothing": soft,
                }
            )
    return Table.of(
        f"variants_{family.key.replace('-', '_')}",
        f"{family.title}, test set.",
        "variant: training | alpha .1f | accuracy .2% | change .2f: points more than the first row | ece: ECE | "
        "ece_change .3f: ECE more than the first row | smoothing .2f: points that smoothing gains",
        rows,
        "Mean ± standard deviation over seeds. Differences are with the first row of the same alpha.",
    )


def _changes(results: Results, family: Family) -> list[tuple[str, Any]]:
    """For hard targets, what each variant gains over the first one."""
    base = _cell(family, _first(family))
    found = [
        (variant.name, results.gain("accuracy", [(_cell(family, variant.name), base)], scale=100))
        for variant in family.of_size(size_of(results))[1:]
    ]
    return [(name, sample) for name, sample in found if sample.n]


def _figure(results: Results, family: Family) -> Figure:
    found = _changes(results, family)
    rows: Sequence[Row] = [{"variant": name, "points": sample} for name, sample in found]
    ends = (-0.5, len(found) - 0.5)
    curves = [
        Curve.level("no change", "#6b7280", 0.0, ends),
        Curve.of("change of accuracy", BLUE, range(len(found)), [sample for _, sample in found], line="none"),
    ]
    ticks = [(place, str(place + 1)) for place in range(len(found))]
    named = "; ".join(f"{place + 1}: {name}" for place, (name, _) in enumerate(found))
    return lines(
        f"changes_{family.key.replace('-', '_')}",
        f"{family.title}: what each difference does to accuracy with hard targets.",
        [
            Panel(
                "Hard targets", "variant", "points of accuracy gained", curves, ticks, xlimits=ends, digits=2
            )
        ],
        rows,
        f"{named}. Mean over {counted(max(sample.n for _, sample in found), 'seed')}, bars one standard deviation.",
        f"Changes of accuracy by {len(found)} variants of the training of {family.title}.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """That the replication's AlexNet is worse than Müller's; without results not run yet."""
    return tuple(_less_accurate(results, alpha) for alpha in (*HARD, 0.1))


def _less_accurate(results: Results, alpha: float) -> Claim:
    family = BY_KEY["cifar10-alexnet"]
    theirs, ours = (_cell(family, name, alpha) for name in (REPLICATED, BASE))
    kind = condition(alpha)
    both = (
        published(f"muller-2019/accuracy/cifar10/{kind}"),
        published(f"wagner-2023/accuracy/cifar10-alexnet/{kind}"),
    )
    before, after = (one.value or 0.0 for one in both)
    # Each was measured once, on other images than the other.
    margin = 100 * sum(two_standard_errors(value, IMAGES) ** 2 for value in (before, after)) ** 0.5
    change, smoothed = 100 * (after - before), f"label smoothing of {alpha:g}" if alpha else "hard targets"
    near: dict[str, Any] = (
        {"printed": round(change, 6), "margin": round(margin, 2)} if size_of(results) == "full" else {}
    )
    return Claim(
        f"AlexNet with {smoothed} is less accurate when it is trained as in the replication than as in Müller et al.",
        both,
        f"accuracy of the replication's training minus accuracy of Müller's, alpha {alpha:g}, test images",
        *below(0, results.gain("accuracy", [(theirs, ours)], scale=100)),
        results.then("accuracy", ".2%", ours, theirs),
        f"The papers print a difference of {signed(change)} points, each of one training, and on other images. The "
        "replication has more training images, which works the other way.",
        digits=2,
        seeds=DEEP_SEEDS,
        zone=zone(NOTHING),
        unit="points",
        **near,
    )
