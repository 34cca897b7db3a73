"""The page of `softtargets calibrate`: what was found, in tables, figures and plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.inspection.calibrate_figures import before_and_after, sweep_figure
from softtargets.inspection.calibrating import Inspection
from softtargets.inspection.looks import FEWEST, FOLDS
from softtargets.inspection.metric_rows import metric_rows
from softtargets.inspection.verdicts import HELD_OUT, verdict_on
from softtargets.inspection.words import between, count, estimated, number
from softtargets.report import Code, Column, Page, Section, Table
from softtargets.report.drawing import BLUE


def calibrate_page(found: Inspection, command: str, provenance: Mapping[str, Any]) -> Page:
    """All of an inspection as a page."""
    read = found.understood
    return Page(
        name=read.path.name,
        title=f"Calibration of {read.path.name}",
        lead=(
            f"Do the probabilities of this model mean what they say? {count(read.examples, 'example')}, "
            f"{count(read.classes, 'class')}; every interval is one of 95 %."
        ),
        sections=(
            _diagrams(found),
            _metrics(found),
            _what_to_do(found),
            _over_temperature(found),
            _parts_and_classes(found),
            _what_was_read(found),
        ),
        command=command,
        provenance=provenance,
        warnings=warnings_on(found),
        kind="calibrate",
        verdict=verdict_on(found),
    )


def warnings_on(found: Inspection) -> list[str]:
    """What a reader must know before believing the numbers."""
    told = []
    if found.impossible:
        index = found.curves.temperatures.index(1.0)
        told.append(
            f"{count(found.impossible, 'label')} had a probability of exactly 0, so the NLL is infinite. "
            "Counting 0 as the "
            "smallest number of its precision, which is what scaling does, it is "
            f"{number(found.curves.nll[index], 3)}."
        )
    return told


def best_temperature(found: Inspection) -> float | None:
    """The fitted temperature, if there is one to recommend."""
    return found.scaled.fit.temperature if found.scaled and found.scaled.is_known else None


def _diagrams(found: Inspection) -> Section:
    after = found.scaled.after.reliability if found.scaled and found.scaled.is_known else None
    figure = before_and_after(found.before.reliability, after, found.curves, best_temperature(found), BLUE)
    return Section("Confidence against accuracy", exhibits=(figure,))


def _metrics(found: Inspection) -> Section:
    scaled = found.scaled
    after = {"after": scaled.after} if scaled else {}
    columns = [Column("metric", "metric"), Column("before_shown", "as they are")]
    if scaled:
        columns.append(Column("after_shown", f"scaled ({FOLDS}-fold)"))
        paragraph = (
            f"Scaled means: the examples are divided into {FOLDS} parts, and each part is scaled by a "
            "temperature fitted to the "
            f"others ({', '.join(number(t, 3) for t in scaled.temperatures)}). So no example has a say in its "
            "own scaling, and "
            "the numbers are those to expect of new examples. Scaling never changes the accuracy."
        )
    else:
        paragraph = (
            f"With fewer than {FEWEST} examples none can be held out, so nothing is said about scaling."
        )
    table = Table(
        "metrics",
        "All metrics",
        (*columns, Column("meaning", "what it is")),
        metric_rows({"before": found.before, **after}, found.bins, found.understood.classes),
        "with 95 % intervals in brackets. Those of calibration errors allow for what scatter adds to an error, "
        "so that a value may lie above its interval; that of the "
        "debiased error is for the root mean square gap that it estimates.",
    )
    return Section("All metrics", (paragraph,), (table,))


def _what_to_do(found: Inspection) -> Section:
    exhibits: tuple[Table | Code, ...] = ()
    paragraphs = []
    if found.scaled and found.scaled.is_known:
        fit = found.scaled.fit
        low, high = found.scaled.interval
        paragraphs.append(
            f"The temperature with the best likelihood of these examples is T = {number(fit.temperature, 3)} "
            f"(95 % interval {between(low, high, 3, share=False)}). "
            + (
                "Since the interval includes 1, predictions may as well stay as they are."
                if low <= 1 <= high
                else "It makes predictions less sure."
                if fit.temperature > 1
                else "It makes predictions surer."
            )
        )
        exhibits = (
            Code(scaling_code(found.understood.kind, fit.temperature), title="To scale predictions:"),
        )
    elif found.scaled:
        paragraphs.append(f"No temperature can be recommended. {found.scaled.fit.note}")
    paragraphs.append(HELD_OUT)
    richer = found.richer
    if richer.why_not:
        paragraphs.append(
            f"Would more numbers than one temperature help? That cannot be said: {richer.why_not}."
        )
    else:
        helps = any(gain.above_zero for gain in richer.gains.values())
        paragraphs.append(
            "Would more numbers than one temperature help? "
            + (
                "Yes; see the table."
                if helps
                else "Not that these examples could show: stay with the temperature."
            )
        )
        exhibits += (_richer_table(found),)
    return Section("What to do", tuple(paragraphs), exhibits)


def scaling_code(kind: str, temperature: float) -> str:
    """The line that scales predictions.

    >>> scaling_code("probabilities", 1.5)
    'probabilities = torch.softmax(torch.log(probabilities) / 1.500, dim=-1)'
    """
    if kind == "logits":
        return f"probabilities = torch.softmax(logits / {temperature:.3f}, dim=-1)"
    return f"probabilities = torch.softmax(torch.log(probabilities) / {temperature:.3f}, dim=-1)"


def _richer_table(found: Inspection) -> Table:
    rows = tuple(
        {
            "scaling": name,
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "shown": estimated(gain, 5, share=False, sign=True),
            "verdict": "helps"
            if gain.above_zero
            else "makes it worse"
            if gain.below_zero
            else "no difference shown",
        }
        for name, gain in found.richer.gains.items()
    )
    columns = (
        Column("scaling", "scaling with"),
        Column("shown", "lower NLL than with a temperature alone"),
        Column("verdict", "verdict"),
    )
    return Table(
        "richer_scalings",
        "More than a temperature",
        columns,
        rows,
        f"measured on examples that were not fitted to (3-fold, {count(found.richer.examples, 'example')}), in nats.",
    )


def _over_temperature(found: Inspection) -> Section:
    named = {"predictions": found.curves}
    best = {"predictions": best_temperature(found)}
    return Section("Over temperature", exhibits=(sweep_figure(named, best, {"predictions": BLUE}),))


def _parts_and_classes(found: Inspection) -> Section:
    parts = {"as they are": found.before.brier_decomposition}
    if found.scaled:
        parts["scaled"] = found.scaled.after.brier_decomposition
    keys = ("score", "reliability", "resolution", "uncertainty", "within_bins")
    brier = Table(
        "brier_decomposition",
        "Brier score in parts.",
        (
            Column("predictions", "predictions"),
            *(Column(key, key.replace("_", " ").replace("score", "Brier score"), digits=4) for key in keys),
        ),
        tuple({"predictions": name, **vars(part)} for name, part in parts.items()),
        "Score = reliability (calibration; 0 is best) − resolution (how much predictions tell examples apart) + "
        "uncertainty (of the labels) + within bins (what bins hide).",
    )
    rows = tuple(
        {
            "class": one.name,
            "index": one.index,
            "examples": one.examples,
            "error": one.error,
            "mean_probability": one.mean_probability,
            "share": one.share,
            "excess": one.excess.value,
            "excess_low": one.excess.low,
            "excess_high": one.excess.high,
            "shown": estimated(one.excess, 2, sign=True),
        }
        for one in found.worst
    )
    worst = Table(
        "worst_classes",
        "Classes with the largest errors.",
        (
            Column("class", "class"),
            Column("examples", "examples"),
            Column("error", "error", digits=4, percent=True),
            Column("mean_probability", "mean probability", digits=4, percent=True),
            Column("share", "share of labels", digits=4, percent=True),
            Column("shown", "predicted too often by"),
        ),
        rows,
        f"{_of_all(len(rows), found.understood.classes)}, as they are. The worst of many look worse than they "
        "are: take intervals that hardly exclude 0 for chance.",
    )
    return Section("Where the errors are", exhibits=(brier, worst))


def _of_all(shown: int, classes: int) -> str:
    return (
        f"All {count(classes, 'class')}"
        if shown == classes
        else f"The worst {shown} of {count(classes, 'class')}"
    )


def _what_was_read(found: Inspection) -> Section:
    read = found.understood
    rows = (
        {"what": "file", "value": str(read.path)},
        {"what": "used", "value": read.source},
        {"what": "taken for", "value": f"{read.kind}: {read.reason}"},
        {"what": "examples", "value": f"{read.examples:,}"},
        {"what": "classes", "value": f"{read.classes:,}"},
        {"what": "class names", "value": _some(read.class_names)},
    )
    columns = (Column("what", "what"), Column("value", "understood as"))
    return Section(
        "What was read",
        ("If this is not what you meant, say so with --kind, --scores, --label or --labels.",),
        (Table("read", "Input", columns, rows),),
    )


def _some(names: tuple[str, ...] | None, most: int = 12) -> str:
    if names is None:
        return "none; classes are numbered from 0"
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def summary_rows(found: Inspection) -> list[tuple[str, str, str]]:
    """The table for a terminal: metric, as they are, scaled."""
    after = {"after": found.scaled.after} if found.scaled else {}
    rows = metric_rows({"before": found.before, **after}, found.bins, found.understood.classes)
    return [(row["metric"], row["before_shown"], row.get("after_shown") or "–") for row in rows]


def temperature_line(found: Inspection) -> str:
    """The temperature for a terminal."""
    if found.scaled is None or not found.scaled.is_known:
        return "temperature: none"
    low, high = found.scaled.interval
    value = number(found.scaled.fit.temperature, 3)
    return f"temperature: {value} ({between(low, high, 3, share=False)})"
