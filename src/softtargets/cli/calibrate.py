"""``softtargets calibrate``: is a model's confidence to be believed?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from softtargets.cli.inspecting import (
    Bins,
    IgnoreIndex,
    Kind,
    Label,
    Scores,
    command_line,
    opened,
    provenance,
    saying_options,
    stem,
    telling,
)
from softtargets.cli.options import Json
from softtargets.cli.output import print_json, print_table


def calibrate(
    file: Annotated[Path, typer.Argument(help="Predictions: .npz .npy .csv .tsv .parquet .safetensors .pt")],
    labels: Annotated[Path | None, typer.Option(help="The file with the labels [the same].")] = None,
    kind: Kind = None,
    scores: Scores = None,
    label: Label = None,
    ignore_index: IgnoreIndex = None,
    bins: Bins = 15,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/calibrate-STEM].")] = None,
    as_json: Json = False,
) -> None:
    """Measure calibration of predictions, fit a temperature, and say what to do about it."""
    from softtargets.inspection.calibrate_page import calibrate_page, summary_rows, temperature_line
    from softtargets.inspection.calibrating import check_bins, inspect
    from softtargets.report import write_page
    from softtargets.storage import make_directory

    started = time.monotonic()
    check_bins(bins)
    options = {"kind": kind, "scores": scores, "label": label, "ignore_index": ignore_index}
    with saying_options():
        predictions = opened(file, labels, options)
        directory = out or Path("reports") / f"calibrate-{stem(file)}"
        make_directory(directory)  # found out now, not after a long file
        with telling() as told:
            found = inspect(predictions, bins, told)
    command = command_line(
        ["calibrate", str(file)],
        {
            "--labels": labels,
            "--kind": kind,
            "--scores": scores,
            "--label": label,
            "--ignore-index": ignore_index,
            "--bins": bins if bins != 15 else None,
            "--out": out,
        },
    )
    files = {"file": file} | ({"labels": labels} if labels else {})
    page = calibrate_page(found, command, provenance(started, **files))
    path = write_page(page, directory)
    assert page.verdict is not None
    if as_json:
        print_json(
            {"report": str(path), "verdict": vars(page.verdict), "warnings": page.warnings, **found.numbers()}
        )
        return
    read = found.understood
    typer.echo(f"{read.examples:,} examples, {read.classes:,} classes; {read.reason}\n")
    print_table(("metric", "as they are (95 % interval)", "scaled"), summary_rows(found))
    typer.echo(f"\n{temperature_line(found)}\n\n{page.verdict.headline}.")
    for sentence in [*page.verdict.sentences, *page.warnings]:
        typer.echo(sentence)
    typer.echo(f"\npage: {path.resolve()}")
