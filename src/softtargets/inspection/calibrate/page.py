"""The page of `softtargets calibrate`: what was found, in tables, figures and plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softtargets.calibration import Correction
from softtargets.inspection.calibrate import changed_classes, not_enough, rejecting, words
from softtargets.inspection.calibrate.corrections import Candidate
from softtargets.inspection.calibrate.figures import before_and_after
from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.shared.measured import metric_rows
from softtargets.inspection.shared.numbers import count, estimated, number, percent, points
from softtargets.inspection.shared.reading import read_table
from softtargets.inspection.shared.reliability_figures import sweep_figure
from softtargets.inspection.shared.two_passes import FOLDS
from softtargets.report import Code, Page, Section, Table

CORRECTION_FILE = "correction.json"  # beside the page, where a correction is recommended
MOST_WRITTEN_OUT = 20  # classes whose numbers stand in the code itself


def calibrate_page(found: Diagnosis) -> Page:
    """All of a diagnosis as a page."""
    read = found.understood
    return Page(
        name=read.path.name,
        title=f"Calibration of {read.path.name}",
        lead=(
            f"Do the probabilities of this model mean what they say? {count(read.examples, 'example')}, "
            f"{count(read.classes, 'class')}. All intervals are 95 % intervals."
        ),
        sections=(
            Section.of("Confidence against accuracy", before_and_after(found)),
            Section.of("All metrics", words.scaled_words(found), _metrics(found)),
            Section.of("What to do", *words.correction_words(found), *_correcting(found)),
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
    floored = {"before": found.nll_with_floor} if found.nll_with_floor else {}
    return metric_rows(columns, found.bins, found.understood.classes, floored)


def _metrics(found: Diagnosis) -> Table:
    after = f"after_shown: scaled ({FOLDS}-fold) | " if found.scaled else ""
    return Table.of(
        "metrics",
        "All metrics",
        f"metric | before_shown: as they are | {after}meaning: what it is",
        _metric_rows(found),
        "with 95 % intervals in brackets. Scatter makes calibration errors larger than they are: they are corrected "
        "for that, and the uncorrected number stands beneath where it differs.",
    )


def _correcting(found: Diagnosis) -> Iterator[Table | Code]:
    if (best := found.recommended) is not None and best.correction is not None:
        yield Code(correcting_code(best.correction), title="To correct predictions:")
    yield from changed_classes.recall_exhibits(found)
    if words.still_bad(found):
        yield from not_enough.not_enough_code(found)
    if found.corrections.tried:
        yield _tried(found)
    if best is not None and best.correction is not None and best.correction.bias is not None:
        yield _fitted(found, best.correction)


def correcting_code(correction: Correction) -> str:
    """Lines that correct predictions; of many classes they read the file that lies beside the page.

    >>> import torch
    >>> half = {"method": "temperature", "classes": 3, "scale": torch.tensor(0.5)}
    >>> print(correcting_code(Correction(kind="logits", **half)))
    probabilities = torch.softmax(logits / 2.000, dim=-1)
    >>> print(correcting_code(Correction(kind="probabilities", floor=2e-4, **half)))
    logits = torch.log(torch.where(probabilities > 0, probabilities, 0.0002))
    probabilities = torch.softmax(logits / 2.000, dim=-1)
    """
    temperature, bias = correction.temperature, correction.bias
    if bias is not None and correction.classes > MOST_WRITTEN_OUT:
        return _loading_code(correction.kind)
    lines = []
    if correction.kind == "probabilities":
        floored = (
            f"torch.where(probabilities > 0, probabilities, {correction.floor:.4g})"
            if correction.floor
            else ""
        )
        lines.append(f"logits = torch.log({floored or 'probabilities'})")
    if temperature is None:
        lines.append(f"scale = {_written(correction.scale.tolist())}")
        scaled = "logits * scale"
    else:
        scaled = "logits" if temperature == 1 else f"logits / {temperature:.3f}"
    if bias is not None:
        lines.append(f"bias = {_written(bias.tolist())}")
        scaled += " + bias"
    return "\n".join([*lines, f"probabilities = torch.softmax({scaled}, dim=-1)"])


def _loading_code(kind: str) -> str:
    lines = [
        "from softtargets.calibration import load_correction",
        f'{kind} = load_correction("{CORRECTION_FILE}")({kind})',
        *(["probabilities = torch.softmax(logits, dim=-1)"] if kind == "logits" else []),
    ]
    return "\n".join(lines)


def _written(values: list[float]) -> str:
    return f"torch.tensor([{', '.join(f'{value:.4f}' for value in values)}])"


def _tried(found: Diagnosis) -> Table:
    best = found.recommended
    rows = [
        {
            "correction": words.NAMES[one.name],
            **one.gain.cells("nll_gain"),
            "nll_shown": "from infinite"
            if one.name == "floor"
            else estimated(-one.gain, 4, share=False, sign=True),
            "ece_before": one.ece_before,
            "ece_after": one.ece_after,
            "ece_shown": f"{percent(one.ece_before, 2)} to {percent(one.ece_after, 2)}",
            **one.accuracy.cells("accuracy_change"),
            "examples": one.examples,
            "verdict": _judged(one, best),
        }
        for one in found.corrections.tried
    ]
    folds = " and ".join(
        dict.fromkeys(f"{one.folds}-fold" for one in found.corrections.tried if one.folds > 1)
    )
    return Table.of(
        "corrections",
        "Corrections.",
        "correction | nll_shown: change of NLL | ece_shown: ECE | verdict",
        rows,
        f"What each does to held-out examples ({folds}): NLL in nats, with 95 % intervals, and uncorrected ECE.",
    )


def _judged(one: Candidate, best: Candidate | None) -> str:
    if one is best:
        return "recommended"
    if one.correction is None:
        return "does not fit"
    if not one.gain.above_zero:
        return "makes it worse" if one.gain.below_zero else "no gain beyond chance"
    if not one.helps:
        return "raises the ECE" if one.ece_after > one.ece_before else "lowers the accuracy"
    return (
        "helps, but no more than a simpler one" if best in (None, one) or _later(one, best) else "helps less"
    )


def _later(one: Candidate, best: Candidate | None) -> bool:
    order = list(words.NAMES)
    return best is not None and order.index(one.name) > order.index(best.name)


def _fitted(found: Diagnosis, correction: Correction) -> Table:
    read = found.understood
    bias = [] if correction.bias is None else correction.bias.tolist()
    scale = correction.scale.expand(read.classes).tolist()
    rows = [
        {
            "class": read.called(k),
            "scale": one,
            "bias": added,
            "shown": number(one, 4),
            "added": number(added, 4),
        }
        for k, (one, added) in enumerate(zip(scale, bias, strict=True))
    ]
    shown = (
        ""
        if correction.temperature is None
        else f" The scale is 1/T, with T = {number(correction.temperature, 4)}."
    )
    scores = "logits" if correction.kind == "logits" else "log-probabilities"
    return Table.of(
        "fitted_numbers",
        "Fitted numbers.",
        "class | shown: scale | added: bias",
        rows,
        f"Multiply the {scores} of a class by its scale and add its bias.{shown}",
    )


def _brier_parts(found: Diagnosis) -> Table:
    measured = {"as they are": found.before} | ({"scaled": found.after} if found.after else {})
    return Table.of(
        "brier_decomposition",
        "Brier score in parts.",
        "predictions | score .4f: Brier score | reliability .4f | resolution .4f | uncertainty .4f | within_bins .4f",
        [{"predictions": name, **vars(one.brier_decomposition)} for name, one in measured.items()],
        "Score = reliability (calibration; 0 is best) − resolution (how well predictions separate examples) + "
        "uncertainty (of the labels) + within bins (differences that bins hide).",
    )


def _worst_classes(found: Diagnosis) -> Table:
    rows = [
        {
            "class": one.name,
            **{key: vars(one)[key] for key in ("index", "examples", "error", "mean_probability", "share")},
            **one.excess.cells("excess"),
            "shown": points(one.excess),
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
        "look worse than they are: an interval that barely excludes 0 may do so by chance.",
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
