"""What figure 1 comes to: the pictures, numbers beside them, and the claims."""

from __future__ import annotations

from collections.abc import Iterator

from softtargets.claims import Claim, judge
from softtargets.report import Figure, Section, Table
from softtargets.studies.muller_figure_1.claims import claims
from softtargets.studies.muller_figure_1.geometry import predicted_gap
from softtargets.studies.muller_figure_1.measures import ALPHAS, NAMES, SPLITS, TRIPLES
from softtargets.studies.muller_images import deviations, networks_in, shown_alpha, title_of
from softtargets.studies.planes import planes_figure, shown_view
from softtargets.studies.results import Results, Row, over
from softtargets.studies.study import Findings, Outcome
from softtargets.studies.words import answered


def findings(results: Results) -> Findings:
    """Pictures of the paper's classes, of similar ones, and tables."""
    made = claims(results)
    keys = networks_in(results)
    sections = (
        Section.of(
            "Three classes on the plane of their templates",
            "The plane goes through the rows of the last layer's weights that belong to three classes. A hundred "
            "images of each class are shown, as the paper does; the numbers are of all of them.",
            *(figure for key in keys for figure in _pictures(results, key, "paper")),
            _clusters(results),
        ),
        Section.of(
            "Two similar classes, and one that is not",
            "The paper shows two breeds of poodle with a tench. CIFAR has no breeds; here are a cat and a dog with an "
            "airplane, and a maple and an oak with a fish. The arc is the spread of the two similar classes towards "
            "and away from the third over their spread around it: 0 is a perfect arc, 1 is round.",
            *(figure for key in keys for figure in _pictures(results, key, "similar")),
        ),
        Section.of(
            "Logits and templates",
            "Smoothed targets are met exactly if every correct logit is log((1 − alpha + alpha / K) / (alpha / K)) "
            "above all incorrect ones. The gap is measured on all training images, without augmentation.",
            _logits(results),
        ),
        Section.of(
            "What differs from the paper",
            *deviations(results),
            "ImageNet's row is not here: the penultimate activations of its training images would take 13 GB a run.",
        ),
    )
    return Findings(sections, made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Tight, equally distant clusters?"""
    tight, regular = (one.verdict for one in judge(made)[:2])
    first = answered(
        tight,
        "It makes the clusters of training images tighter.",
        "It does not make the clusters of training images tighter.",
        whether="clusters become tighter",
    )
    if "not run yet" in (tight, regular):
        return first
    second = answered(
        regular,
        "Their triangle becomes more regular.",
        "Their triangle does not become more regular.",
        whether="their triangle becomes more regular",
    )
    return f"{first} {second}"


def _pictures(results: Results, key: str, which: str) -> Iterator[Figure]:
    """A row of the figure: the first seed of each strength that has one."""
    first = {alpha: _first(results, key, alpha) for alpha in ALPHAS}
    views = [
        shown_view(outcome.details[f"{which}_{split}"], shown_alpha(alpha), name)
        for alpha, outcome in first.items()
        if outcome is not None
        for split, name in SPLITS.items()
    ]
    if views:
        seeds = " and ".join(str(seed) for seed in sorted({one.seed for one in first.values() if one}))
        classes = ", ".join(name.replace("_", " ") for name in TRIPLES[key][which])
        yield planes_figure(
            f"planes_{which}_{key}",
            f"{title_of(results, key)}: {classes}.",
            views,
            f"One network of each kind, seed {seeds}. Panels of one network have one scale; look at the axes.",
        )


def _first(results: Results, key: str, alpha: float) -> Outcome | None:
    there = [one for one in results.where(network=key, alpha=alpha).outcomes if one.details]
    return min(there, key=lambda one: one.seed, default=None)


def _clusters(results: Results) -> Table:
    measures = (
        "train_spread", "validation_spread", "train_triangle", "validation_triangle", "train_scale",
        "train_arc", "validation_arc",
    )  # fmt: skip
    return Table.of(
        "clusters",
        "Clusters as numbers.",
        "network | targets | train_spread: spread, training | validation_spread: spread, held out | "
        "train_triangle: triangle, training | validation_triangle: triangle, held out | "
        "train_scale .2f: distance of means | train_arc: arc, training | validation_arc: arc, held out",
        _rows(results, measures),
        "Mean ± standard deviation over seeds. Spread: deviation from the class mean over the mean distance of means; "
        "triangle: 1 is equilateral; arc: of the similar classes, 0 is a perfect arc.",
    )


def _logits(results: Results) -> Table:
    measures = ("gap", "gap_deviation", "gap_ratio", "norm_variation", "train_accuracy")
    rows = _rows(results, measures)
    for row in rows:
        alpha, classes = row["alpha"], len(NAMES[row["key"]])
        row["predicted"] = predicted_gap(alpha, classes) if alpha else None
    return Table.of(
        "logits",
        "The gap between correct and incorrect logits, and norms of templates.",
        "network | targets | predicted .2f: gap of the targets | gap .2f: gap, ours | gap_ratio .2f: ratio | "
        "gap_deviation .2f: its deviation over its mean | norm_variation: norms, deviation over mean | "
        "train_accuracy .1%: accuracy, training images",
        rows,
        "Mean ± standard deviation over seeds. Hard targets have no finite gap.",
    )


def _rows(results: Results, measures: tuple[str, ...]) -> list[Row]:
    return [
        {"key": cell["network"], "network": title_of(results, cell["network"]), "alpha": cell["alpha"]}
        | {"targets": shown_alpha(cell["alpha"])}
        | {name: results.sample(name, **cell) for name in measures}
        for cell in over(network=networks_in(results), alpha=ALPHAS)
    ]
