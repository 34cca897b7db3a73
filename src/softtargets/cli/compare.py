"""``softtargets compare``: two models on the same examples."""

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


def compare(
    a: Annotated[Path, typer.Argument(help="Predictions of one model.")],
    b: Annotated[
        Path, typer.Argument(help="Predictions of another for the same examples, in the same order.")
    ],
    labels: Annotated[
        Path | None, typer.Option(help="The file with the labels of both [each its own].")
    ] = None,
    kind: Kind = None,
    scores: Scores = None,
    label: Label = None,
    ignore_index: IgnoreIndex = None,
    bins: Bins = 15,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/compare-A-B].")] = None,
    as_json: Json = False,
) -> None:
    """Compare two models: accuracy, likelihood, calibration, and which mistakes they share."""
    from softtargets.inspection.calibrating import check_bins
    from softtargets.inspection.compare_page import compare_page, difference_lines
    from softtargets.inspection.comparing import compare as compared
    from softtargets.report import write_page
    from softtargets.storage import make_directory

    started = time.monotonic()
    check_bins(bins)
    options = {"kind": kind, "scores": scores, "label": label, "ignore_index": ignore_index}
    with saying_options():
        both = [opened(path, labels, options) for path in (a, b)]
        directory = out or Path("reports") / f"compare-{stem(a)}-{stem(b)}"
        make_directory(directory)
        with telling() as told:
            found = compared(both[0], both[1], bins, told)
    command = command_line(
        ["compare", str(a), str(b)],
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
    page = compare_page(found, command, provenance(started, A=a, B=b))
    path = write_page(page, directory)
    assert page.verdict is not None
    if as_json:
        verdict = vars(page.verdict)
        print_json({"report": str(path), "verdict": verdict, **found.numbers()})
        return
    typer.echo(f"A is {a}, B is {b}; {found.overlap.examples:,} examples\n")
    print_table(("metric", "A", "B", "B − A (95 % interval)", "better"), difference_lines(found))
    typer.echo(f"\n{page.verdict.headline}.")
    for sentence in page.verdict.sentences:
        typer.echo(sentence)
    typer.echo(f"\npage: {path.resolve()}")
