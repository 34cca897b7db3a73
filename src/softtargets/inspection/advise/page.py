"""The page of `softtargets advise`: how many labels are wrong, how much smoothing is best, what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from softtargets.inspection.advise import figures, words
from softtargets.inspection.advise.finding import LISTED, USUAL, Advice, Outlook
from softtargets.inspection.shared.numbers import Estimate, count, estimated, number, percent
from softtargets.inspection.shared.reading import read_table
from softtargets.report import Code, Figure, Page, Section, Table

SHOWN = 50  # suspicious labels on the page; the file has all
NAMES = {
    "recommended": "recommended",
    "usual": f"the usual alpha = {USUAL}",
    "none": "no smoothing",
    "matrix": "a target for each label (matrix)",
}
METHODS = {
    "anchors": "disagreement where the model is most confident and its own errors are fewest",
    "confident": "confident learning: counts where the model is as confident as usual; too high where classes overlap",
    "disagreement": "every disagreement with the model; counts its errors as label errors too: an upper bound",
    "likelihood": "models each class as a cluster of predictions; separates model errors from label errors by shape",
    "naive": "every disagreement with the model; counts its errors as label errors too",
}


def advise_page(found: Outlook) -> Page:
    """All of the advice as a page."""
    name = found.understood.path.name
    return Page(
        name=name,
        title=f"How many labels of {name} are wrong?",
        lead=(
            "How many labels are wrong, how much label smoothing suits that, and which labels to check. "
            f"{count(found.examples, 'example')}, {count(found.classes, 'class')}, judged by "
            f"{words.JUDGED[found.test_labels]}. All intervals are 95 % intervals."
        ),
        sections=tuple(_sections(found)),
        warnings=words.warnings_on(found),
        kind="advise",
        verdict=words.verdict_on(found),
    )


def _sections(found: Outlook) -> Iterator[Section]:
    if not isinstance(found, Advice):
        yield Section.of("What would help", *words.steps(found))
        yield Section.of("Labels to check", *_suspects(found))
    else:
        yield Section.of("What to do", *_what_to_do(found))
        yield Section.of("Labels to check", *_suspects(found))
        yield Section.of("How wrong the labels are", *_noise(found))
        yield Section.of("The landscape", figures.landscape_figure(found))
        yield Section.of(
            "Expected loss, with and without", words.MEMORISED, figures.loss_figure(found), _losses(found)
        )
        yield Section.of("What theory does not say", *words.NOT_SAID)
    yield Section.of(
        "How it was estimated, and when that fails", *words.FAILURES, _methods(found), _input(found)
    )


def _what_to_do(found: Advice) -> Iterator[str | Table | Code]:
    if found.recommends:
        lines = loss_code(found.alpha_all.value, found.alpha_others.value)
        yield from (_recommended(found), Code(lines, title="One line for each library"))
    elif found.purpose != "classify":
        yield "Train on hard labels. If many of them are wrong, use forward correction with the noise found here."
        yield Code("torch.nn.CrossEntropyLoss()  # hard labels", title="PyTorch")
    else:
        yield words.NO_REASON
    if found.is_negligible or found.may_be_clean:
        return
    yield words.uniformity_words(found)
    if not (found.recommends and found.uniformity.is_uniform) and found.classes <= LISTED:
        lines = matrix_code(found.classes, smoothing=found.recommends)
        yield Code(lines, title="With the matrix of this page (in its directory)")
    after = "Afterwards, on held-out examples"
    yield Code("softtargets calibrate HELD_OUT.npz", language="sh", title=after)


def _suspects(found: Outlook) -> Iterator[str | Table | Figure]:
    yield words.suspects_words(found)
    if not len(found.suspects):
        return
    yield (
        "The list includes errors of the model. The score, from 0 to 1, puts the labels in order; it is not a "
        "probability. Rows are counted from 0, in the order of the file or dataset. "
        "softtargets.noise.suspicious_examples gives the same list in Python."
    )
    if (figure := figures.suspects_figure(found.suspects)) is not None:
        yield figure
    shown, length = min(SHOWN, len(found.suspects)), len(found.suspects)
    which = "All" if shown == length else f"The first {shown} of {length:,}"
    yield Table.of(
        "most_suspicious",
        "Labels to check.",
        "row | given_name: given label | likely_name: likely label | score .3f",
        [row | {"row": str(row["row"])} for row in found.suspects.rows(SHOWN)],
        f"{which}. The whole list is in {found.suspects.file}, beside this page.",
    )


def code_lines(found: Outlook) -> dict[str, str]:
    """Lines to paste, by library; none where there is nothing to recommend."""
    if not isinstance(found, Advice) or not found.recommends:
        return {}
    return loss_lines(found.alpha_all.value, found.alpha_others.value)


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
        "loss = ForwardCorrection(matrix=T)  # the model then predicts the clean label",
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
        f"We estimate that {estimated(found.error_rate)} of the labels are wrong. The interval covers the choice of "
        "examples and the disagreement of the estimators below. "
        f"The model agrees with {percent(found.accuracy)} of the labels; where they differ, one of the two is wrong."
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
        "The most frequent label errors.",
        "clean: examples of | label: are labelled | share .1% | low .1%: at least | high .1%: at most",
        rows,
        "Shares of a class; the largest of many shares look larger than they are.",
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
        "smoothing | p | heart_shown: every label memorised | averaged_shown: none memorised",
        rows,
        "In brackets: at the two ends of the interval of the error rate.",
    )


def _methods(found: Outlook) -> Table:
    rates = dict(found.assessment.estimates)
    if isinstance(found, Advice):
        rates.setdefault(found.estimate.method, 1 - found.estimate.clean_rate)
    rows = [
        {"method": name, "error_rate": rate, "meaning": METHODS.get(name, "")} for name, rate in rates.items()
    ]
    caption = "They differ because of the model's own errors. If they differ too much, we do not choose between them."
    columns = "method | error_rate .1%: wrong labels | meaning: what is counted"
    return Table.of("methods", "Wrong labels, by estimator.", columns, rows, caption)


def _input(found: Outlook) -> Table:
    told = {
        **found.understood.origin("dataset" if found.trained else "file"),
        "examples": f"{found.examples:,} of {found.understood.examples:,}",
        "classes": f"{found.classes:,}",
        "model's agreement with the labels": percent(found.accuracy),
        "temperature that calibrates the model": number(found.assessment.temperature, 2),
        **({"model": found.trained} if found.trained else {}),
        **(
            {"noise matrix": f"{found.estimate.method}: {found.method_reason}"}
            if isinstance(found, Advice)
            else {}
        ),
    }
    return read_table({"": told}, "Input.")


def summary_rows(found: Outlook) -> list[tuple[str, str]]:
    """The advice for a terminal."""
    wrong = found.assessment
    if not isinstance(found, Advice):
        rows = [
            (
                "wrong labels",
                f"unknown, at most {words.rounded_up(wrong.high)}"
                if wrong.high < words.CERTAIN
                else "unknown",
            )
        ]
        return [*rows, ("model agrees with", percent(found.accuracy))]
    best, usual, none = (found.expected[name].by_heart.value for name in ("recommended", "usual", "none"))
    rows = [("wrong labels", estimated(found.error_rate)), ("model agrees with", percent(found.accuracy))]
    if not found.recommends:
        return rows
    return [
        *rows,
        ("p on the label", _plain(found.p)),
        ("alpha, all classes", _plain(found.alpha_all)),
        ("alpha, other classes", _plain(found.alpha_others)),
        ("expected loss with it", f"{number(best)} nats (every label memorised)"),
        (f"with alpha = {USUAL}", f"{number(usual)} nats"),
        ("without smoothing", f"{number(none)}{'' if math.isinf(none) else ' nats'}"),
    ]
