"""``softtargets calibrate``: is a model's confidence to be believed?"""

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
        between=f"{words.temperature_line(found)}\n\n",
    )
