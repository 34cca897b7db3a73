"""``softtargets calibrate``, ``apply`` and ``compare``: is a model's confidence to be believed, and which is better?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from softtargets.cli import page_commands as pages
from softtargets.cli.command_line import naming_options
from softtargets.cli.options import Json, RunsDir
from softtargets.cli.output import print_json
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.calibrate.finding import Diagnosis
    from softtargets.predictions import Arrays, Predictions

PREDICTIONS = f"Predictions: {pages.FILES}. Or a run: RUN_ID[:SPLIT]"


def calibrate(
    context: typer.Context,
    file: Annotated[str, Argument(help=f"{PREDICTIONS} [split: test].")],
    labels: pages.Labels = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    confidence_name: Annotated[
        str | None,
        Option(
            "--confidence",
            metavar="NAME",
            help="For files without the scores of all classes, such as those of tokens: the array or column with the "
            "probability of the predicted class, or its logarithm.",
            show_default="found out from names",
        ),
    ] = None,
    correct_name: Annotated[
        str | None,
        Option(
            "--correct",
            metavar="NAME",
            help="With confidences: the array or column that says whether each prediction is right (1) or wrong (0).",
            show_default="found out from names",
        ),
    ] = None,
    prediction_name: Annotated[
        str | None,
        Option(
            "--prediction",
            metavar="NAME",
            help="With confidences: the array or column with the predicted classes, which are compared with the "
            "labels.",
            show_default="found out from names",
        ),
    ] = None,
    bins: pages.Bins = 15,
    out: Annotated[
        Path | None,
        Option(help="The directory to write the page to.", show_default="./reports/calibrate-NAME"),
    ] = None,
    save_calibrated: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            show_default="nothing is saved",
            help="Also write corrected predictions (.npz .safetensors .csv .tsv) and, beside them, the correction "
            "itself.",
        ),
    ] = None,
    overwrite: pages.Overwrite = False,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Say whether a model's confidence can be trusted, and how to correct it if a correction helps."""
    from softtargets.inspection.calibrate import finding, page, words
    from softtargets.inspection.shared import check_bins
    from softtargets.predictions import open_arrays
    from softtargets.report import plural

    started = time.monotonic()
    with naming_options(context):
        check_bins(bins)
        path = pages.located(file, runs_dir)
        if save_calibrated is not None:
            refuse_taken(save_calibrated, overwrite)
        arrays = open_arrays(path)
        directory = out or pages.own_directory("calibrate", file=path)
        if pages.only_confidences(arrays, context):
            return calibrate_confidences(context, arrays, directory, started, as_json=as_json)
        predictions = pages.opened(arrays, context)
        with pages.making(directory) as told:
            found = finding.inspect(predictions, bins, told)
            saved = save(found, predictions, directory, save_calibrated, told, overwrite=overwrite)
    made = pages.signed(page.calibrate_page(found), context, started, file=path, labels=labels)
    if as_json:
        pages.as_json(made, directory, found.numbers(), warnings=made.warnings, saved=saved)
    else:
        read = found.understood
        pages.as_text(
            made,
            directory,
            f"{plural(read.examples, 'example')}, {plural(read.classes, 'class')}; {read.reason}",
            [
                ("metric", "as they are (95 % interval)", "scaled by a temperature, held out"),
                *page.summary_rows(found),
            ],
            between=f"{words.correction_line(found)}\n\n",
        )
        for what, where in saved.items():
            typer.echo(f"{what}: {where}")
    if save_calibrated is not None and not saved:
        raise SofttargetsError(f"nothing was written to {save_calibrated}: {' '.join(words.advice(found))}")


def calibrate_confidences(
    context: typer.Context, arrays: Arrays, directory: Path, started: float, *, as_json: bool
) -> None:
    """The same for a file that has only the confidence of predictions and which of them are right."""
    from softtargets.inspection.confidences import finding, page
    from softtargets.predictions import open_confidences
    from softtargets.report import plural

    given = context.params
    if given["save_calibrated"] is not None:
        raise SofttargetsError(
            f"nothing can be written to {given['save_calibrated']}: {arrays.path} has only confidences, and a "
            "correction needs the scores of all classes"
        )
    if given["kind"] == "logits":
        raise SofttargetsError(
            "must be probabilities or left out with confidences: a logit of a single class is not a confidence",
            argument="kind",
        )
    if given["labels"] is not None:
        raise SofttargetsError(
            "must be left out with confidences, whose labels must be in the same file", argument="labels"
        )
    names = ("confidence_name", "correct_name", "prediction_name", "labels_name", "ignore_index")
    confidences = open_confidences(arrays, **{name: given[name] for name in names})
    with pages.making(directory) as told:
        found = finding.inspect(confidences, given["bins"], told)
    made = pages.signed(page.confidences_page(found), context, started, file=arrays.path)
    if as_json:
        pages.as_json(made, directory, found.numbers(), warnings=made.warnings, saved={})
        return
    rows = [("metric", "as they are (95 % interval)"), *page.summary_rows(found)]
    pages.as_text(made, directory, f"{plural(found.examples, 'prediction')}; {found.reason}", rows)


def refuse_taken(out: Path, overwrite: bool) -> None:
    """Refuse to write over predictions or a correction, before a long file is read."""
    from softtargets.inspection.calibrate import correction_beside
    from softtargets.predictions import refuse_existing, refuse_replacing

    refuse_existing(out, overwrite)
    refuse_replacing(correction_beside(out), overwrite)


def save(
    found: Diagnosis,
    predictions: Predictions,
    directory: Path,
    out: Path | None,
    told: pages.Told,
    *,
    overwrite: bool,
) -> dict[str, str]:
    """Write the recommended correction beside the page and, on demand, corrected predictions; what went where."""
    from softtargets.inspection.calibrate import apply_correction, correction_beside
    from softtargets.inspection.calibrate.page import CORRECTION_FILE

    best = found.recommended
    if best is None or best.correction is None:
        (directory / CORRECTION_FILE).unlink(missing_ok=True)  # of a page that was here before
        return {}
    best.correction.save(directory / CORRECTION_FILE)
    if out is None:
        return {}
    apply_correction(best.correction, predictions, out, told, overwrite=overwrite)
    best.correction.save(correction_beside(out))
    return {"corrected predictions": str(out), "correction": str(correction_beside(out))}


def apply(
    context: typer.Context,
    correction: Annotated[Path, Argument(help="The correction that calibrate wrote: correction.json.")],
    file: Annotated[str, Argument(help=f"{PREDICTIONS} [split: test]; labels are not needed.")],
    out: Annotated[Path, Option(metavar="FILE", help="The file to write: .npz .safetensors .csv .tsv.")],
    labels: pages.Labels = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    overwrite: pages.Overwrite = False,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Apply a correction that was fitted to other predictions of the same model."""
    from softtargets.inspection.calibrate import apply_correction, load_correction
    from softtargets.predictions import refuse_existing
    from softtargets.report import plural

    with naming_options(context):
        refuse_existing(out, overwrite)
        loaded = load_correction(correction)
        predictions = pages.opened(pages.located(file, runs_dir), context, labels_needed=False)
        with pages.progress() as told:
            changed = apply_correction(loaded, predictions, out, told, overwrite=overwrite)
    if as_json:
        written = {
            "kind": predictions.kind,
            "examples": predictions.examples,
            "method": loaded.method,
            "predictions_changed": changed,
        }
        return print_json({"written": str(out), **written})
    typer.echo(f"{plural(predictions.examples, 'example')} of {predictions.path} corrected: {out}")
    if changed:
        typer.echo(f"{plural(changed, 'prediction')} changed to another class")


def compare(
    context: typer.Context,
    a: Annotated[
        str, Argument(help="Predictions of one model: a file, or a run, RUN_ID[:SPLIT] [split: test].")
    ],
    b: Annotated[
        str, Argument(help="Predictions of the other model for the same examples, in the same order.")
    ],
    labels: Annotated[
        Path | None, Option(help="The file with the labels of both.", show_default="each file has its own")
    ] = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    bins: pages.Bins = 15,
    out: Annotated[
        Path | None, Option(help="The directory to write the page to.", show_default="./reports/compare-A-B")
    ] = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Compare two models: accuracy, likelihood, calibration, and which mistakes they share."""
    from softtargets.inspection.compare import finding, page
    from softtargets.inspection.compare.words import names_of
    from softtargets.inspection.shared import check_bins
    from softtargets.report import plural

    started = time.monotonic()
    with naming_options(context):
        check_bins(bins)
        paths = {"A": pages.located(a, runs_dir), "B": pages.located(b, runs_dir)}
        one, two = (pages.opened(path, context) for path in paths.values())
        directory = out or pages.own_directory("compare", **paths)
        with pages.making(directory) as told:
            found = finding.compare(one, two, bins, told)
    made = pages.signed(page.compare_page(found), context, started, **paths)
    if as_json:
        return pages.as_json(made, directory, found.numbers())
    names = names_of(found)
    rows = [
        ("metric", *names.values(), "difference (95 % interval)", "better"),
        *page.difference_lines(found),
    ]
    said = f"{plural(found.overlap.examples, 'example')}; a difference is {names['B']} minus {names['A']}"
    pages.as_text(made, directory, said, rows)
