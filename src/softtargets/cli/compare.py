"""``softtargets compare``: two models on the same examples."""

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
    Scores,
    making,
    opened,
    page_as_json,
    print_page,
    provenance,
    stem,
)


def compare(
    context: typer.Context,
    a: Annotated[Path, typer.Argument(help="Predictions of one model.")],
    b: Annotated[
        Path, typer.Argument(help="Predictions of another for the same examples, in the same order.")
    ],
    labels: Annotated[
        Path | None, typer.Option(help="The file with the labels of both [each its own].")
    ] = None,
    kind: Kind = None,
    scores_name: Scores = None,
    labels_name: Label = None,
    ignore_index: IgnoreIndex = None,
    bins: Bins = 15,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/compare-A-B].")] = None,
    as_json: Json = False,
) -> None:
    """Compare two models: accuracy, likelihood, calibration, and which mistakes they share."""
    from softtargets.inspection.compare import check_bins, compare_page, difference_lines
    from softtargets.inspection.compare import compare as compared
    from softtargets.report import write_page

    started = time.monotonic()
    directory = out or Path("reports") / f"compare-{stem(a)}-{stem(b)}"
    with naming_options(context):
        check_bins(bins)
        one, two = (opened(path, labels, kind, scores_name, labels_name, ignore_index) for path in (a, b))
        with making(directory) as told:
            found = compared(one, two, bins, told)
    page = compare_page(found, command_line(context), provenance(started, A=a, B=b))
    path = write_page(page, directory)
    if as_json:
        return page_as_json(page, path, found.numbers())
    opening = f"A is {a}, B is {b}; {found.overlap.examples:,} examples"
    headings = ("metric", "A", "B", "B − A (95 % interval)", "better")
    print_page(page, path, opening, headings, difference_lines(found))
