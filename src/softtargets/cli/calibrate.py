"""``softtargets calibrate``: is a model's confidence to be believed?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from softtargets.cli.command_line import command_line, naming_options
from softtargets.cli.options import Json
from softtargets.cli.page_commands import (
    Bins,
    IgnoreIndex,
    Kind,
    Label,
    Labels,
    Scores,
    making,
    opened,
    page_as_json,
    print_page,
    provenance,
    stem,
)


def calibrate(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Predictions: .npz .npy .csv .tsv .parquet .safetensors .pt")],
    labels: Labels = None,
    kind: Kind = None,
    scores_name: Scores = None,
    labels_name: Label = None,
    ignore_index: IgnoreIndex = None,
    bins: Bins = 15,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/calibrate-STEM].")] = None,
    as_json: Json = False,
) -> None:
    """Measure calibration of predictions, fit a temperature, and say what to do about it."""
    from softtargets.inspection.calibrate import (
        calibrate_page,
        check_bins,
        inspect,
        summary_rows,
        temperature_line,
    )
    from softtargets.report import write_page

    started = time.monotonic()
    directory = out or Path("reports") / f"calibrate-{stem(file)}"
    with naming_options(context):
        check_bins(bins)
        predictions = opened(file, labels, kind, scores_name, labels_name, ignore_index)
        with making(directory) as told:
            found = inspect(predictions, bins, told)
    page = calibrate_page(found, command_line(context), provenance(started, file=file, labels=labels))
    path = write_page(page, directory)
    if as_json:
        return page_as_json(page, path, found.numbers(), warnings=page.warnings)
    read = found.understood
    opening = f"{read.examples:,} examples, {read.classes:,} classes; {read.reason}"
    headings = ("metric", "as they are (95 % interval)", "scaled")
    print_page(page, path, opening, headings, summary_rows(found), f"{temperature_line(found)}\n\n")
