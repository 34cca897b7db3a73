"""``softtargets advise``: how wrong are my labels, and how much smoothing does that ask for?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.cli.inspecting import (
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
from softtargets.cli.options import DataDir, Json, assignments
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.advising_sample import Given
    from softtargets.inspection.looks import Told

LIMIT, FOLDS = 5000, 5


def advise(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Out-of-fold predictions with the labels given: .npz .npy .csv .tsv .parquet ..."
        ),
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="The file with the labels [the same].")] = None,
    kind: Kind = None,
    scores: Scores = None,
    label: Label = None,
    ignore_index: IgnoreIndex = None,
    purpose: Annotated[
        str, typer.Option(help="What the net is for: classify, teacher or transfer.")
    ] = "classify",
    test_labels: Annotated[
        str, typer.Option(help="What it will be judged by: clean labels, or noisy ones like these.")
    ] = "clean",
    method: Annotated[
        str | None, typer.Option(help="likelihood, confident or naive [by the number of classes].")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="ROWS", help="Rows of a large file to use [what half a minute allows]."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Instead of a file: a dataset; a small model is trained here."),
    ] = None,
    data_dir: DataDir = None,
    data_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the dataset, e.g. labels=worse."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help=f"Training examples of the dataset to use [{LIMIT}].")
    ] = None,
    folds: Annotated[int | None, typer.Option(help=f"Models trained on a dataset [{FOLDS}].")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/advise-STEM].")] = None,
    as_json: Json = False,
) -> None:
    """Estimate how wrong labels are, and recommend a label smoothing, with code and reasons.

    Predictions must be out of fold: each example's by a model that was not trained on it.
    """
    from softtargets.inspection.advising import PURPOSES, TYPES, check_choice
    from softtargets.inspection.advising import advise as advised
    from softtargets.inspection.advising_page import advise_page, summary_rows
    from softtargets.report import write_page
    from softtargets.storage import make_directory

    started = time.monotonic()
    check_choice("--test-labels", test_labels, tuple(TYPES))
    check_choice("--purpose", purpose, PURPOSES)
    of_file = {
        "--labels": labels,
        "--kind": kind,
        "--scores": scores or None,
        "--label": label,
        "--ignore-index": ignore_index,
        "--sample": sample,
    }
    of_data = {
        "--data-dir": data_dir,
        "--data-option": data_option or None,
        "--limit": limit,
        "--folds": folds,
    }
    _one_source(file, data, of_file, of_data)
    directory = out or Path("reports") / f"advise-{stem(file) if file else stem(Path(str(data)))}"
    with saying_options(), telling() as told:
        if file is not None:
            from softtargets.inspection.advising_sample import sample_of

            options = {"kind": kind, "scores": scores, "label": label, "ignore_index": ignore_index}
            predictions = opened(file, labels, options)
            make_directory(directory)  # found out now, not after a long file
            given = sample_of(predictions, method, sample, told)
        else:
            assert data is not None
            make_directory(directory)
            given = _trained(data, data_dir, data_option, limit, folds, method, told)
        found = advised(given, test_labels=test_labels, purpose=purpose, told=told)
    shared = {
        "--purpose": None if purpose == "classify" else purpose,
        "--test-labels": None if test_labels == "clean" else test_labels,
        "--method": method,
        "--out": out,
    }
    words = ["advise"] + ([str(file)] if file else [])
    command = command_line(words, {"--data": data, **of_file, **of_data, **shared})
    files = ({"file": file} if file else {}) | ({"labels": labels} if labels else {})
    page = advise_page(found, command, provenance(started, **files))
    path = write_page(page, directory)
    assert page.verdict is not None
    if as_json:
        from softtargets.inspection.advising_code import loss_lines

        code = loss_lines(found.alpha_all.value, found.alpha_others.value) if found.recommends else {}
        print_json(
            {
                "report": str(path),
                "verdict": vars(page.verdict),
                "warnings": page.warnings,
                "code": dict(code),
                **found.numbers(),
            }
        )
        return
    typer.echo(
        f"{found.examples:,} examples, {found.classes:,} classes; {given.trained or given.understood.reason}\n"
    )
    print_table(("what", "value (95 % interval)"), summary_rows(found))
    typer.echo(f"\n{page.verdict.headline}.")
    for sentence in [*page.verdict.sentences, *page.warnings]:
        typer.echo(sentence)
    if found.recommends:
        from softtargets.inspection.advising_code import loss_lines

        typer.echo("")
        print_table(
            ("for", "write"), list(loss_lines(found.alpha_all.value, found.alpha_others.value).items())
        )
    typer.echo(f"\npage: {path.resolve()}")


def _one_source(
    file: Path | None, data: str | None, of_file: Mapping[str, Any], of_data: Mapping[str, Any]
) -> None:
    """Refuse two sources, none, and options of the other."""
    if file is None and data is None:
        raise SofttargetsError("give a file with out-of-fold predictions, or a dataset with --data NAME")
    if file is not None and data is not None:
        raise SofttargetsError(f"give a file or --data, not both: {file} and {data}")
    wrong, source = (of_data, "a file") if file is not None else (of_file, "--data")
    for option, value in wrong.items():
        if value is not None:
            other = "--data" if file is not None else "a file"
            raise SofttargetsError(f"{option} is for {other}, not for {source}; leave it out")


def _trained(
    name: str,
    data_dir: Path | None,
    options: list[str] | None,
    limit: int | None,
    folds: int | None,
    method: str | None,
    told: Told,
) -> Given:
    """A dataset's labels, predicted out of fold by a small model."""
    from softtargets.data import load
    from softtargets.inspection.advising_sample import plan
    from softtargets.inspection.advising_training import train_out_of_fold

    if limit is not None and limit < 2:
        raise SofttargetsError(f"--limit must be at least 2 examples, not {limit}")
    plan(1, 2, method)  # refuses a method that there is not, before anything is trained
    told(f"reading {name}", 0, 0)
    examples = load(name, "train", data_dir, **assignments(options, "--data-option"))
    some = examples.take(range(min(limit or LIMIT, len(examples))))
    return train_out_of_fold(
        name,
        some.images,
        some.labels,
        some.classes,
        examples=len(examples),
        folds=FOLDS if folds is None else folds,
        method=method,
        told=told,
    )
