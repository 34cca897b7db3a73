"""The page of `softtargets calibrate`: what was found, in tables, figures and plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softtargets.inspection.calibrate import rejecting, words
from softtargets.inspection.calibrate.figures import before_and_after
from softtargets.inspection.calibrate.finding import RICHER_FOLDS, Diagnosis
from softtargets.inspection.shared.measured import metric_rows
from softtargets.inspection.shared.numbers import count, estimated
from softtargets.inspection.shared.reading import read_table
from softtargets.inspection.shared.reliability_figures import sweep_figure
from softtargets.inspection.shared.two_passes import FOLDS
from softtargets.report import Code, Page, Section, Table


def calibrate_page(found: Diagnosis) -> Page:
    """All of a diagnosis as a page."""
    read = found.understood
    return Page(
        name=read.path.name,
        title=f"Calibration of {read.path.name}",
        lead=(
            f"Do the probabilities of this model mean what they say? {count(read.examples, 'example')}, "
            f"{count(read.classes, 'class')}; every interval is one of 95 %."
        ),
        sections=(
            Section.of("Confidence against accuracy", before_and_after(found)),
            Section.of("All metrics", words.scaled_words(found), _metrics(found)),
            Section.of("What to do", *words.scaling_words(found), *_scaling(found)),
            rejecting.section(found),
            Section.of("Over temperature", sweep_figure({"predictions": found})),
            Section.of("Where the errors are", _brier_parts(found), _worst_classes(found)),
            Section.of("What was read", words.READ, _input(found)),
        ),
        warnings=words.warnings_on(found),
        kind="calibrate",
        verdict=words.verdict_on(found),
    )


def _metric_rows(found: Diagnosis) -> list[dict[str, Any]]:
    columns = {"before": found.before} | ({"after": found.after} if found.after else {})
    return metric_rows(columns, found.bins, found.understood.classes)


def _metrics(found: Diagnosis) -> Table:
    after = f"after_shown: scaled ({FOLDS}-fold) | " if found.scaled else ""
    return Table.of(
        "metrics",
        "All metrics",
        f"metric | before_shown: as they are | {after}meaning: what it is",
        _metric_rows(found),
        "with 95 % intervals in brackets. Those of calibration errors allow for what scatter adds to an error, so that "
        "a value may lie above its interval; that of the debiased error is for the root mean square gap that it "
        "estimates.",
    )


def _scaling(found: Diagnosis) -> Iterator[Table | Code]:
    if found.best is not None:
        yield Code(scaling_code(found.understood.kind, found.best), title="To scale predictions:")
    if not found.richer.why_not:
        yield _richer_table(found)


def scaling_code(kind: str, temperature: float) -> str:
    """The line that scales predictions.

    >>> scaling_code("probabilities", 1.5)
    'probabilities = torch.softmax(torch.log(probabilities) / 1.500, dim=-1)'
    """
    logits = "logits" if kind == "logits" else "torch.log(probabilities)"
    return f"probabilities = torch.softmax({logits} / {temperature:.3f}, dim=-1)"


def _richer_table(found: Diagnosis) -> Table:
    rows = []
    for name, gain in found.richer.gains.items():
        worse = "makes it worse" if gain.below_zero else "no difference shown"
        shown = estimated(gain, 5, share=False, sign=True)
        verdict = "helps" if gain.above_zero else worse
        rows.append({"scaling": name, **gain.cells("gain"), "shown": shown, "verdict": verdict})
    examples = count(found.richer.examples, "example")
    return Table.of(
        "richer_scalings",
        "More than a temperature",
        "scaling: scaling with | shown: lower NLL than with a temperature alone | verdict",
        rows,
        f"measured on examples that were not fitted to ({RICHER_FOLDS}-fold, {examples}), in nats.",
    )


def _brier_parts(found: Diagnosis) -> Table:
    measured = {"as they are": found.before} | ({"scaled": found.after} if found.after else {})
    return Table.of(
        "brier_decomposition",
        "Brier score in parts.",
        "predictions | score .4f: Brier score | reliability .4f | resolution .4f | uncertainty .4f | within_bins .4f",
        [{"predictions": name, **vars(one.brier_decomposition)} for name, one in measured.items()],
        "Score = reliability (calibration; 0 is best) − resolution (how much predictions tell examples apart) + "
        "uncertainty (of the labels) + within bins (what bins hide).",
    )


def _worst_classes(found: Diagnosis) -> Table:
    rows = [
        {
            "class": one.name,
            **{key: vars(one)[key] for key in ("index", "examples", "error", "mean_probability", "share")},
            **one.excess.cells("excess"),
            "shown": estimated(one.excess, 2, sign=True),
        }
        for one in found.worst
    ]
    classes = count(found.understood.classes, "class")
    all_of_them = len(rows) == found.understood.classes
    return Table.of(
        "worst_classes",
        "Classes with the largest errors.",
        "class | examples | error .2% | mean_probability .2% | share .2%: share of labels | "
        "shown: predicted too often by",
        rows,
        f"{f'All {classes}' if all_of_them else f'The worst {len(rows)} of {classes}'}, as they are. The worst of many "
        "look worse than they are: take intervals that hardly exclude 0 for chance.",
    )


def _input(found: Diagnosis) -> Table:
    read = found.understood
    sizes = {"examples": f"{read.examples:,}", "classes": f"{read.classes:,}"}
    return read_table({"": {**read.origin(), **sizes, "class names": _some(read.class_names)}})


def _some(names: tuple[str, ...] | None, most: int = 12) -> str:
    if names is None:
        return "none; classes are numbered from 0"
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def summary_rows(found: Diagnosis) -> list[tuple[str, str, str]]:
    """The table for a terminal: metric, as they are, scaled."""
    rows = [
        (row["metric"], row["before_shown"], row.get("after_shown") or "–") for row in _metric_rows(found)
    ]
    return [*rows, *rejecting.area_rows(found)]
