"""``softtargets view``: activations and the last layer in, a page with the penultimate layer out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from softtargets.cli.command_line import naming_options
from softtargets.cli.options import Json, RunsDir
from softtargets.cli.output import print_json, print_table
from softtargets.cli.page_commands import IgnoreIndex, making, signed, stem
from softtargets.cli.view_panels import Elsewhere, labelled, panels_of
from softtargets.exceptions import SofttargetsError


def view(
    context: typer.Context,
    files: Annotated[
        list[str],
        Argument(
            metavar="[NET:SPLIT=]FILE...",
            help="Activations with labels (.npz, .safetensors, .pt); one panel each. Or a run: RUN_ID[:SPLIT].",
        ),
    ],
    weights: Annotated[
        list[str] | None,
        Option(
            metavar="[NET=]FILE", help="The file with the last layer, if it is another; may be a whole model."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        Option(metavar="[NET:SPLIT=]FILE", help="The file with the labels, if it is another."),
    ] = None,
    classes: Annotated[str | None, Option(metavar="A,B,C", help="Three classes, by number or name.")] = None,
    pick: Annotated[
        str, Option(help="Or let templates decide: three close ones, two close and a far one (mixed), far.")
    ] = "mixed",
    names: Annotated[
        str | None,
        Option(metavar="FILE", help="Names of classes: one on each line, JSON, or separated by commas."),
    ] = None,
    units: Annotated[
        str, Option(help="What the axes count in: centres (of classes), templates or activations.")
    ] = "centres",
    activations_name: Annotated[
        str | None, Option(metavar="NAME", help="Which array has the activations.")
    ] = None,
    weights_name: Annotated[
        str | None, Option(metavar="NAME", help="Which array has the last layer.")
    ] = None,
    labels_name: Annotated[str | None, Option(metavar="NAME", help="Which array has the labels.")] = None,
    ignore_index: IgnoreIndex = None,
    out: Annotated[Path | None, Option(help="Where the page goes [./reports/view-NAME].")] = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Show where nets put the examples of three classes, and measure how far they have collapsed.

    Files of one net are drawn on one scale. Nets and splits are named by their files (hard_train.npz is the net "hard"
    on "train"), or by you: softtargets view hard:train=a.npz hard:test=b.npz smooth:train=c.npz smooth:test=d.npz
    """
    from softtargets.geometry import UNITS
    from softtargets.inspection.shared import check_choice
    from softtargets.inspection.view import find_classes, finding, page, read_names, words
    from softtargets.report import write_page

    started = time.monotonic()
    arrays = {"activations_name": activations_name, "weights_name": weights_name, "labels_name": labels_name}
    with naming_options(context), _in_a_sentence():
        elsewhere = {"weights": Elsewhere("weights", weights), "labels": Elsewhere("labels", labels)}
        check_choice("pick", pick, finding.PICKS)
        check_choice("units", units, UNITS)
        opening = {**arrays, "ignore_index": ignore_index}
        panels = [panel for word in files for panel in panels_of(word, elsewhere, opening, runs_dir)]
        for option in elsewhere.values():
            option.refuse_unused(panels)
        count = len(panels[0].source.weights)
        known = read_names(names, count) if names is not None else {}
        chosen = find_classes(classes, known, count) if classes is not None else None
        directory = out or Path("reports") / f"view-{_stem(files[0])}"
        with making(directory) as told:
            found = finding.look(panels, classes=chosen, pick=pick, names=known, told=told)
        shown = signed(page.view_page(found, _short(files), units), context, started)
    path = write_page(shown, directory)
    if as_json:
        return print_json({"report": str(path), **page.numbers(found)})
    typer.echo(f"{words.why(found)}\n")
    print_table(page.HEADINGS, page.summary_rows(found))
    for sentence in (*words.between_nets(found), f"page: {path.resolve()}"):
        typer.echo(f"\n{sentence}")


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Instruments say in one sentence what they cannot do with these numbers."""
    try:
        yield
    except SofttargetsError:
        raise
    except ValueError as problem:
        raise SofttargetsError(str(problem)) from None


def _stem(word: str) -> str:
    path = Path(labelled(word)[1])
    return stem(path if path.exists() else path.with_name(path.name.replace(":", "-")))


def _short(files: list[str]) -> str:
    first = Path(labelled(files[0])[1]).name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"
