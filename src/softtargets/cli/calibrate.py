"""``softtargets calibrate`` and ``compare``: is a model's confidence to be believed, and which of two is better?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from softtargets.cli import page_commands as pages
from softtargets.cli.command_line import naming_options
from softtargets.cli.options import Json


def calibrate(
    context: typer.Context,
    file: Annotated[Path, Argument(help="Predictions: .npz .npy .csv .tsv .parquet .safetensors .pt")],
    labels: pages.Labels = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    bins: pages.Bins = 15,
    out: Annotated[Path | None, Option(help="Where the page goes [./reports/calibrate-STEM].")] = None,
    as_json: Json = False,
) -> None:
    """Measure calibration of predictions, fit a temperature, and say what to do about it."""
    from softtargets.inspection.calibrate import finding, page, words
    from softtargets.inspection.shared import check_bins

    started = time.monotonic()
    directory = out or Path("reports") / f"calibrate-{pages.stem(file)}"
    with naming_options(context):
        check_bins(bins)
        predictions = pages.opened(file, context)
        with pages.making(directory) as told:
            found = finding.inspect(predictions, bins, told)
    made = pages.signed(page.calibrate_page(found), context, started, file=file, labels=labels)
    if as_json:
        return pages.as_json(made, directory, found.numbers(), warnings=made.warnings)
    read = found.understood
    pages.as_text(
        made,
        directory,
        f"{read.examples:,} examples, {read.classes:,} classes; {read.reason}",
        [("metric", "as they are (95 % interval)", "scaled"), *page.summary_rows(found)],
        between=f"{words.correction_line(found)}\n\n",
    )


def compare(
    context: typer.Context,
    a: Annotated[Path, Argument(help="Predictions of one model.")],
    b: Annotated[Path, Argument(help="Predictions of another for the same examples, in the same order.")],
    labels: Annotated[Path | None, Option(help="The file with the labels of both [each its own].")] = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    bins: pages.Bins = 15,
    out: Annotated[Path | None, Option(help="Where the page goes [./reports/compare-A-B].")] = None,
    as_json: Json = False,
) -> None:
    """Compare two models: accuracy, likelihood, calibration, and which mistakes they share."""
    from softtargets.inspection.compare import finding, page
    from softtargets.inspection.shared import check_bins

    started = time.monotonic()
    directory = out or Path("reports") / f"compare-{pages.stem(a)}-{pages.stem(b)}"
    with naming_options(context):
        check_bins(bins)
        one, two = (pages.opened(path, context) for path in (a, b))
        with pages.making(directory) as told:
            found = finding.compare(one, two, bins, told)
    made = pages.signed(page.compare_page(found), context, started, A=a, B=b)
    if as_json:
        return pages.as_json(made, directory, found.numbers())
    rows = [("metric", "A", "B", "B − A (95 % interval)", "better"), *page.difference_lines(found)]
    pages.as_text(made, directory, f"A is {a}, B is {b}; {found.overlap.examples:,} examples", rows)
