"""The page of `softtargets advise`: how wrong labels are, how much smoothing that asks for, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from softtargets.inspection.advise import figures, words
from softtargets.inspection.advise.finding import LISTED, USUAL, Advice
from softtargets.inspection.shared.numbers import Estimate, count, estimated, number, percent
from softtargets.inspection.shared.reading import read_table
from softtargets.report import Code, Figure, Page, Section, Table

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


def advise_page(found: Advice) -> Page:
    """All of the advice as a page."""
    name = found.understood.path.name
    return Page(
        name=name,
        title=f"How much smoothing for {name}?",
        lead=(
            f"How wrong the labels are, and how much label smoothing that asks for. "
            f"{count(found.examples, 'example')}, {count(found.classes, 'class')}, judged by "
            f"{words.JUDGED[found.test_labels]}; every interval is one of 95 %."
        ),
        sections=(
            Section.of("What to do", *_what_to_do(found)),
            Section.of("How wrong the labels are", *_noise(found)),
            Section.of("The landscape", figures.landscape_figure(found)),
            Section.of(
                "Expected loss, with and without", words.HEART, figures.loss_figure(found), _losses(found)
            ),
            Section.of("What theory does not say", *words.NOT_SAID),
            Section.of(
                "How it was estimated, and when that fails", *words.FAILURES, _methods(found), _input(found)
            ),
        ),
        warnings=words.warnings_on(found),
        kind="advise",
        verdict=words.verdict_on(found),
    )


def _what_to_do(found: Advice) -> Iterator[str | Table | Code]:
    if not found.is_learnable:
        yield "Repair the labels first; there is no smoothing to recommend."
        return
    if found.is_memorised:
        yield "Predict the examples out of fold, and ask again."
        return
    if found.recommends:
        lines = loss_code(found.alpha_all.value, found.alpha_others.value)
        yield from (_recommended(found), Code(lines, title="One line for each library"))
    else:
        yield "Train on hard labels; where many are wrong, with forward correction for the noise found here."
        yield Code("torch.nn.CrossEntropyLoss()  # hard labels", title="PyTorch")
    yield words.uniformity_words(found)
    if not (found.recommends and found.uniformity.is_uniform) and found.classes <= LISTED:
        lines = matrix_code(found.classes, smoothing=found.recommends)
        yield Code(lines, title="With the matrix of this page (in its directory)")
    after = "Afterwards, on examples held out"
    yield Code("softtargets calibrate HELD_OUT.npz", language="sh", title=after)


def loss_lines(alpha_all: float, alpha_others: float) -> dict[str, str]:
    """One line for each library that trains with this smoothing.

    PyTorch, timm, Hugging Face and our own losses share the smoothed mass among all K classes, the label included:
    PyTorch by its documentation, timm by ``confidence * nll + smoothing * mean(-log p)``, the ``LabelSmoother`` of
    Hugging Face by the same formula with epsilon, ours by ``spread="all"``. Losses that share it among the K - 1 others
    need the smaller `alpha_others`.

    >>> for library, line in loss_lines(0.2222, 0.2).items():
    ...     print(f"{library}: {line}")
    PyTorch: torch.nn.CrossEntropyLoss(label_smoothing=0.222)
    timm: timm.loss.LabelSmoothingCrossEntropy(smoothing=0.222)
    Hugging Face: transformers.TrainingArguments(..., label_smoothing_factor=0.222)
    softtargets: softtargets.losses.LabelSmoothing(alpha=0.222, spread="all")
    tensor2tensor, fairseq: label_smoothing=0.200  # shared among the other classes only
    """
    every, others = f"{alpha_all:.3f}", f"{alpha_others:.3f}"
    return {
        "PyTorch": f"torch.nn.CrossEntropyLoss(label_smoothing={every})",
        "timm": f"timm.loss.LabelSmoothingCrossEntropy(smoothing={every})",
        "Hugging Face": f"transformers.TrainingArguments(..., label_smoothing_factor={every})",
        "softtargets": f'softtargets.losses.LabelSmoothing(alpha={every}, spread="all")',
        "tensor2tensor, fairseq": f"label_smoothing={others}  # shared among the other classes only",
    }


def loss_code(alpha_all: float, alpha_others: float) -> str:
    """The same lines as one piece of code, each under the name of its library.

    >>> print(loss_code(0.2222, 0.2).splitlines()[:2])
    ['# PyTorch', 'torch.nn.CrossEntropyLoss(label_smoothing=0.222)']
    """
    lines = loss_lines(alpha_all, alpha_others)
    return "\n".join(f"# {library}\n{line}" for library, line in lines.items())


def matrix_code(classes: int, smoothing: bool) -> str:
    """Lines that train with the matrices of a page, whose directory they are run in.

    Forward correction takes T, what becomes of clean labels; smoothing takes S, the targets of given ones.
    """
    lines = [
        "import numpy, torch",
        "from softtargets.losses import ForwardCorrection" + (", LabelSmoothing" if smoothing else ""),
        'table = numpy.genfromtxt("tables/noise_matrix.csv", delimiter=",", names=True)',
        f'T = torch.tensor(table["share"].reshape({classes}, {classes}), dtype=torch.float32)',
        "loss = ForwardCorrection(matrix=T)  # the net then says what the clean label is",
    ]
    if smoothing:
        lines += [
            f'S = torch.tensor(table["target"].reshape({classes}, {classes}), dtype=torch.float32)',
            "loss = LabelSmoothing(alpha=1, matrix=S)  # or this: each label's own soft target",
        ]
    return "\n".join(lines)


def _recommended(found: Advice) -> Table:
    same = {
        "label smoothing, shared among all K classes": found.alpha_all,
        "label smoothing, shared among the K − 1 others": found.alpha_others,
        "mass on the label, p in Chen et al.": found.p,
    }
    return Table.of(
        "recommended",
        "Recommended.",
        "what: the same smoothing as | shown: value (95 % interval)",
        [{"what": what, **vars(one), "shown": _plain(one)} for what, one in same.items()],
        "Libraries differ in what alpha means.",
    )


def _plain(one: Estimate) -> str:
    return estimated(one, 3, share=False)


def _noise(found: Advice) -> Iterator[str | Table | Figure]:
    yield (
        f"Labels are right in {estimated(found.clean_rate)} of cases. The model agrees with "
        f"{percent(found.accuracy)} of the labels; it is wrong where it disagrees, or they are."
    )
    yield figures.matrix_figure(found)
    if found.classes > figures.NUMBERED:
        yield _largest_table(found)


def _largest_table(found: Advice) -> Table:
    rows: list[dict[str, Any]] = []
    for row in figures.matrix_rows(found, figures.largest(found)):
        classes = {key: found.understood.called(int(row[key])) for key in ("clean", "label")}
        rows.append(classes | {key: row[key] for key in ("share", "low", "high")})
    return Table.of(
        "largest",
        "The commonest mistakes of labels.",
        "clean: examples of | label: are labelled | share .1% | low .1%: at least | high .1%: at most",
        rows,
        "Shares of a class; the largest of many look larger than they are.",
    )


def _losses(found: Advice) -> Table:
    rows = [
        {
            "smoothing": NAMES[name],
            "p": one.p,
            **one.by_heart.cells("by_heart"),
            **one.averaged.cells("averaged"),
            "heart_shown": "infinite" if math.isinf(one.by_heart.value) else _plain(one.by_heart),
            "averaged_shown": _plain(one.averaged),
        }
        for name, one in found.expected.items()
    ]
    return Table.of(
        "expected_losses",
        "Expected test loss in nats.",
        "smoothing | p | heart_shown: learned by heart | averaged_shown: on the average",
        rows,
        "Intervals are what the two ends of the clean rate make of it.",
    )


def _methods(found: Advice) -> Table:
    rows = []
    for name, rate in found.rates.items():
        used = name == found.estimate.method
        shown = estimated(found.clean_rate) if used else percent(rate)
        called = f"{name} (used)" if used else name
        rows.append({"method": called, "clean_rate": rate, "shown": shown, "meaning": METHODS[name]})
    columns = "method | shown: right labels | meaning: what it does"
    return Table.of("methods", "Right labels, by method.", columns, rows)


def _input(found: Advice) -> Table:
    told = {
        **found.understood.origin("dataset" if found.trained else "file"),
        "examples": f"{found.examples:,} of {found.understood.examples:,}",
        "classes": f"{found.classes:,}",
        "method": f"{found.estimate.method}: {found.method_reason}",
        **({"model": found.trained} if found.trained else {}),
    }
    return read_table({"": told}, "Input.")


def summary_rows(found: Advice) -> list[tuple[str, str]]:
    """The advice for a terminal."""
    best, usual, none = (found.expected[name].by_heart.value for name in ("recommended", "usual", "none"))
    rows = [
        ("right labels", estimated(found.clean_rate)),
        ("p on the label", _plain(found.p)),
        ("alpha, all classes", _plain(found.alpha_all)),
        ("alpha, other classes", _plain(found.alpha_others)),
        ("expected loss with it", f"{number(best)} nats (learned by heart)"),
        (f"with alpha = {USUAL}", f"{number(usual)} nats"),
        ("without smoothing", f"{number(none)}{'' if math.isinf(none) else ' nats'}"),
    ]
    return rows if found.is_learnable and not found.is_memorised else rows[:1]
