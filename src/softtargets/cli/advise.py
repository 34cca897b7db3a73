"""``softtargets advise``: how wrong are my labels, and how much smoothing is best for that?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from softtargets.cli import page_commands as pages
from softtargets.cli.command_line import naming_options
from softtargets.cli.options import DataDir, Json, assignments
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.advise import Evidence

LIMIT, FOLDS = 5000, 5
OF_FILES = (*pages.READING, "sample")
OF_DATASETS = ("data_dir", "data_option", "limit", "folds")


def advise(
    context: typer.Context,
    file: Annotated[
        Path | None,
        Argument(help="Out-of-fold predictions with the labels given: .npz .npy .csv .tsv .parquet ..."),
    ] = None,
    labels: pages.Labels = None,
    kind: pages.Kind = None,
    scores_name: pages.Scores = None,
    labels_name: pages.Label = None,
    ignore_index: pages.IgnoreIndex = None,
    purpose: Annotated[
        str, Option(help="What the model is for: classify, teacher or transfer.")
    ] = "classify",
    test_labels: Annotated[
        str, Option(help="What it will be judged by: clean labels, or noisy ones like these.")
    ] = "clean",
    method: Annotated[
        str | None, Option(help="likelihood, confident or naive [by the number of classes].")
    ] = None,
    sample: Annotated[
        int | None, Option(metavar="ROWS", help="Rows of a large file to use [what half a minute allows].")
    ] = None,
    data: Annotated[
        str | None,
        Option(metavar="NAME", help="Instead of a file: a dataset; a small model is trained here."),
    ] = None,
    data_dir: DataDir = None,
    data_option: Annotated[
        list[str] | None, Option(metavar="KEY=VALUE", help="An option of the dataset, e.g. labels=worse.")
    ] = None,
    limit: Annotated[int | None, Option(help=f"Training examples of the dataset to use [{LIMIT}].")] = None,
    folds: Annotated[int | None, Option(help=f"Models trained on a dataset [{FOLDS}].")] = None,
    out: Annotated[Path | None, Option(help="Where the page goes [./reports/advise-STEM].")] = None,
    as_json: Json = False,
) -> None:
    """Estimate how wrong labels are, and recommend a label smoothing, with code and reasons.

    Predictions must be out of fold: each example's by a model that was not trained on it.
    """
    from softtargets.inspection.advise import finding, page, sample_of

    started = time.monotonic()
    with naming_options(context):
        finding.check_choices(test_labels, purpose)
        _one_source(context, file, data)
        directory = out or Path("reports") / f"advise-{pages.stem(file or Path(str(data)))}"
        if file is not None:
            predictions = pages.opened(file, context)
        with pages.making(directory) as told:
            if file is not None:
                given = sample_of(predictions, method, sample, told)
            else:
                given = _trained(context, told)
            found = finding.advise(given, test_labels=test_labels, purpose=purpose, told=told)
    made = pages.signed(page.advise_page(found), context, started, file=file, labels=labels)
    lines = page.loss_lines(found.alpha_all.value, found.alpha_others.value) if found.recommends else {}
    if as_json:
        return pages.as_json(made, directory, found.numbers(), warnings=made.warnings, code=lines)
    pages.as_text(
        made,
        directory,
        f"{found.examples:,} examples, {found.classes:,} classes; {given.trained or given.understood.reason}",
        [("what", "value (95 % interval)"), *page.summary_rows(found)],
        code=list(lines.items()),
    )


def _one_source(context: typer.Context, file: Path | None, data: str | None) -> None:
    """Refuse two sources, none, and options of the other."""
    if file is None and data is None:
        raise SofttargetsError("give a file with out-of-fold predictions, or a dataset with --data NAME")
    if file is not None and data is not None:
        raise SofttargetsError(f"give a file or --data, not both: {file} and {data}")
    source, other, wrong = (
        ("--data", "a file", OF_FILES) if file is None else ("a file", "--data", OF_DATASETS)
    )
    for name in wrong:
        if context.params[name] not in (None, [], ()):
            raise SofttargetsError(f"is for {other}, not for {source}; leave it out", argument=name)


def _trained(context: typer.Context, told: pages.Told) -> Evidence:
    """A dataset's labels, predicted out of fold by a small model."""
    from softtargets.data import load
    from softtargets.inspection.advise import train_out_of_fold

    name, limit, folds = (context.params[key] for key in ("data", "limit", "folds"))
    options = assignments(context.params["data_option"], "--data-option")
    if limit is not None and limit < 2:
        raise SofttargetsError(f"must be at least 2 examples, not {limit}", argument="limit")
    told(f"reading {name}", 0, 0)
    examples = load(name, "train", context.params["data_dir"], **options)
    some = examples.take(range(min(limit or LIMIT, len(examples))))
    return train_out_of_fold(
        name,
        some.images,
        some.labels,
        some.classes,
        examples=len(examples),
        folds=FOLDS if folds is None else folds,
        method=context.params["method"],
        told=told,
    )
