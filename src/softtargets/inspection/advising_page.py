"""The page of `softtargets advise`: how wrong labels are, how much smoothing that asks for, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.inspection.advising import LISTED, USUAL, Advice, Prediction
from softtargets.inspection.advising_code import loss_code, matrix_code
from softtargets.inspection.advising_figures import (
    NUMBERED,
    landscape_figure,
    largest,
    loss_figure,
    matrix_figure,
)
from softtargets.inspection.advising_words import (
    FAILURES,
    JUDGED,
    NOT_SAID,
    called,
    uniformity_words,
    verdict_on,
    warnings_on,
)
from softtargets.inspection.words import count, estimated, number, percent
from softtargets.report import Code, Column, Figure, Page, Section, Table

NAMES = {
    "recommended": "recommended",
    "usual": f"the usual alpha = {USUAL}",
    "none": "no smoothing",
    "matrix": "a target for each label (matrix)",
}
METHODS = {
    "likelihood": "each class a cluster of predictions; tells mistakes of the model from those of labels",
    "confident": "counts where the model is as sure as usual; too much noise where classes overlap",
    "naive": "takes the model's word; counts its mistakes as noise too",
}


def advise_page(found: Advice, command: str, provenance: Mapping[str, Any]) -> Page:
    """All of the advice as a page."""
    name = found.understood.path.name
    return Page(
        name=name,
        title=f"How much smoothing for {name}?",
        lead=(
            f"How wrong the labels are, and how much label smoothing that asks for. "
            f"{count(found.examples, 'example')}, {count(found.classes, 'class')}, judged by "
            f"{JUDGED[found.test_labels]}; every interval is one of 95 %."
        ),
        sections=(
            _what_to_do(found),
            _noise(found),
            Section("The landscape", exhibits=(landscape_figure(found),)),
            _losses(found),
            Section("What theory does not say", NOT_SAID),
            _how(found),
        ),
        command=command,
        provenance=provenance,
        warnings=warnings_on(found),
        kind="advise",
        verdict=verdict_on(found),
    )


def _what_to_do(found: Advice) -> Section:
    if not found.is_learnable:
        return Section("What to do", ("Repair the labels first; there is no smoothing to recommend.",))
    if found.is_memorised:
        return Section("What to do", ("Predict the examples out of fold, and ask again.",))
    paragraphs: list[str] = []
    exhibits: list[Table | Code] = []
    smooths = found.recommends
    if smooths:
        rows = (
            _in_words("label smoothing, shared among all K classes", "alpha_all", found),
            _in_words("label smoothing, shared among the K − 1 others", "alpha_others", found),
            _in_words("mass on the label, p in Chen et al.", "p", found),
        )
        columns = (Column("what", "the same smoothing as"), Column("shown", "value (95 % interval)"))
        exhibits += [
            Table("recommended", "Recommended.", columns, rows, "Libraries differ in what alpha means."),
            Code(
                loss_code(found.alpha_all.value, found.alpha_others.value), title="One line for each library"
            ),
        ]
    else:
        paragraphs.append(
            "Train on hard labels; where many are wrong, with forward correction for the noise found here."
        )
        exhibits.append(Code("torch.nn.CrossEntropyLoss()  # hard labels", title="PyTorch"))
    paragraphs.append(uniformity_words(found))
    if (not smooths or not found.uniformity.is_uniform) and found.classes <= LISTED:
        exhibits.append(
            Code(
                matrix_code(found.classes, smoothing=smooths),
                title="With the matrix of this page (in its directory)",
            )
        )
    exhibits.append(
        Code("softtargets calibrate HELD_OUT.npz", language="sh", title="Afterwards, on examples held out")
    )
    return Section("What to do", tuple(paragraphs), tuple(exhibits))


def _in_words(what: str, key: str, found: Advice) -> dict[str, Any]:
    one = getattr(found, key)
    return {
        "what": what,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "shown": estimated(one, 3, share=False),
    }


def _noise(found: Advice) -> Section:
    exhibits: list[Table | Figure] = [matrix_figure(found)]
    if found.classes > NUMBERED:
        exhibits.append(_largest_table(found))
    paragraph = (
        f"Labels are right in {estimated(found.clean_rate)} of cases. The model agrees with "
        f"{percent(found.accuracy)} of the labels; it is wrong where it disagrees, or they are."
    )
    return Section("How wrong the labels are", (paragraph,), tuple(exhibits))


def _largest_table(found: Advice) -> Table:
    noise = found.estimate.interval
    assert noise is not None
    rows = tuple(
        {
            "clean": called(found, i),
            "label": called(found, j),
            "share": float(found.matrix[i, j]),
            "low": float(noise.matrix_low[i, j]),
            "high": float(noise.matrix_high[i, j]),
        }
        for i, j in largest(found)
    )
    columns = (
        Column("clean", "examples of"),
        Column("label", "are labelled"),
        Column("share", "share", percent=True),
        Column("low", "at least", percent=True),
        Column("high", "at most", percent=True),
    )
    return Table(
        "largest",
        "The commonest mistakes of labels.",
        columns,
        rows,
        "Shares of a class; the largest of many look larger than they are.",
    )


def _losses(found: Advice) -> Section:
    rows = tuple(_loss_row(one) for one in found.predicted)
    columns = (
        Column("smoothing", "smoothing"),
        Column("p", "p"),
        Column("heart_shown", "learned by heart"),
        Column("averaged_shown", "on the average"),
    )
    table = Table(
        "expected_losses",
        "Expected test loss in nats.",
        columns,
        rows,
        "Intervals are what the two ends of the clean rate make of it.",
    )
    paragraph = (
        "The theory takes a net that has learned every label by heart, so that each wrong label costs what the target "
        "denies the right one. Without smoothing that is everything, hence the infinite loss: no net gets there, but "
        "the surer it grows of wrong labels, the worse its loss. The other extreme has learned no label by heart and "
        "says of each class what its targets are on the average; to such a net smoothing does no good."
    )
    return Section("Expected loss, with and without", (paragraph,), (loss_figure(found), table))


def _loss_row(one: Prediction) -> dict[str, Any]:
    return {
        "smoothing": NAMES[one.name],
        "p": one.p,
        "by_heart": one.by_heart.value,
        "by_heart_low": one.by_heart.low,
        "by_heart_high": one.by_heart.high,
        "averaged": one.averaged.value,
        "averaged_low": one.averaged.low,
        "averaged_high": one.averaged.high,
        "heart_shown": "infinite"
        if one.by_heart.value == float("inf")
        else estimated(one.by_heart, 3, share=False),
        "averaged_shown": estimated(one.averaged, 3, share=False),
    }


def _how(found: Advice) -> Section:
    read = found.understood
    rates = tuple(
        {
            "method": name + (" (used)" if name == found.estimate.method else ""),
            "clean_rate": rate,
            "shown": estimated(found.clean_rate) if name == found.estimate.method else percent(rate),
            "meaning": METHODS[name],
        }
        for name, rate in found.rates.items()
    )
    methods = Table(
        "methods",
        "Right labels, by method.",
        (Column("method", "method"), Column("shown", "right labels"), Column("meaning", "what it does")),
        rates,
    )
    rows = (
        {"what": "dataset" if found.trained else "file", "value": str(read.path)},
        {"what": "used", "value": read.source},
        {"what": "taken for", "value": f"{read.kind}: {read.reason}"},
        {"what": "examples", "value": f"{found.examples:,} of {read.examples:,}"},
        {"what": "classes", "value": f"{found.classes:,}"},
        {"what": "method", "value": f"{found.estimate.method}: {found.method_reason}"},
        *([{"what": "model", "value": found.trained}] if found.trained else []),
    )
    given = Table("read", "Input.", (Column("what", "what"), Column("value", "understood as")), rows)
    return Section("How it was estimated, and when that fails", FAILURES, (methods, given))


def summary_rows(found: Advice) -> list[tuple[str, str]]:
    """The advice for a terminal."""
    best, usual, none = (found.prediction(name).by_heart.value for name in ("recommended", "usual", "none"))
    rows = [
        ("right labels", estimated(found.clean_rate)),
        ("p on the label", estimated(found.p, 3, share=False)),
        ("alpha, all classes", estimated(found.alpha_all, 3, share=False)),
        ("alpha, other classes", estimated(found.alpha_others, 3, share=False)),
        ("expected loss with it", f"{number(best)} nats (learned by heart)"),
        (f"with alpha = {USUAL}", f"{number(usual)} nats"),
        ("without smoothing", f"{number(none)}" + (" nats" if none != float("inf") else "")),
    ]
    return rows if found.is_learnable and not found.is_memorised else rows[:1]
