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
from softtargets.cli.output import print_table
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.advise import Evidence, Training
    from softtargets.report import Page

OF_FILES = (*pages.READING, "sample")
OF_DATASETS = ("data_dir", "data_option", "model", "limit", "folds", "epochs", "device", "seed")


def advise(
    context: typer.Context,
    file: Annotated[
        Path | None,
        Argument(help=f"Out-of-fold predictions and the given labels: {pages.FILES}.", show_default=False),
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
        str, Option(help="Labels that the model will be judged by: clean, or noisy like these.")
    ] = "clean",
    method: Annotated[
        str | None,
        Option(
            help="How the noise matrix is estimated: anchors, likelihood, confident or naive.",
            show_default="anchors",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        Option(
            metavar="ROWS",
            help="Rows of a large file to use.",
            show_default="as many as can be used in half a minute, at most 200,000",
        ),
    ] = None,
    data: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Instead of a file: an image dataset, such as cifar10. Models are trained on it to predict it out "
            "of fold.",
            show_default="predictions are read from a file",
        ),
    ] = None,
    data_dir: DataDir = None,
    data_option: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="An option of the dataset, e.g. labels=worse. May be repeated.",
            show_default="its own defaults",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help="The model to train on --data: cnn (a small network) or logistic (logistic regression).",
            show_default="cnn",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        Option(
            help="Training examples of the dataset to use, chosen at random.",
            show_default="30,000 on a CPU, 100,000 on a GPU, 5,000 with logistic",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        Option(
            help="Models to train, each on all folds but one.",
            show_default="5; on a CPU 3 above 5,000 examples and 2 above 15,000",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        Option(
            help="Epochs of each network.",
            show_default="10 to 30 on a CPU, a few minutes on two cores; 20 to 60 on a GPU",
        ),
    ] = None,
    device: Annotated[
        str | None,
        Option(
            help="Where networks are trained: auto, cpu or cuda.", show_default="auto, a GPU if there is one"
        ),
    ] = None,
    seed: Annotated[
        int | None, Option(help="Seed for choosing examples and folds, and for training.", show_default="0")
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            help="The directory to write the page to.",
            show_default="./reports/advise-NAME, after the file or dataset",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate how many labels are wrong, list the suspicious ones, and recommend a label smoothing.

    Predictions must be out of fold: each example is predicted by a model that was not trained on it. Where they do
    not show how many labels are wrong, the answer says so and gives an upper bound.
    """
    from softtargets.inspection.advise import check_method, finding, page, sample_of
    from softtargets.report import plural, write_page

    started = time.monotonic()
    with naming_options(context):
        finding.check_choices(test_labels, purpose)
        check_method(method)
        _one_source(context, file, data)
        plan = _plan(context)
        directory = out or Path("reports") / f"advise-{pages.stem(file or Path(str(data)))}"
        if file is not None:
            predictions = pages.opened(file, context)
        with pages.making(directory) as told:
            if file is not None:
                given = sample_of(predictions, method, sample, told)
            else:
                given = _trained(context, plan, told)
            found = finding.advise(given, test_labels=test_labels, purpose=purpose, told=told)
    made = pages.signed(page.advise_page(found), context, started, file=file, labels=labels)
    found.suspects.write(directory)
    lines = page.code_lines(found)
    if as_json:
        return pages.as_json(made, directory, found.numbers(), warnings=made.warnings, code=lines)
    counts = f"{plural(found.examples, 'example')}, {plural(found.classes, 'class')}"
    opening = f"{counts}; {given.trained or given.understood.reason}"
    _print(made, opening, page.summary_rows(found), list(lines.items()))
    typer.echo(f"\npage: {write_page(made, directory).resolve()}")
    typer.echo(f"labels to check: {(directory / found.suspects.file).resolve()}")


def _print(page: Page, opening: str, table: list[tuple[str, str]], code: list[tuple[str, str]]) -> None:
    """The verdict first, since it may be that nothing is known; then numbers, and lines to copy."""
    assert page.verdict is not None
    typer.echo(f"{page.verdict.headline}.")
    for sentence in [*page.verdict.sentences, *page.warnings]:
        typer.echo(sentence)
    typer.echo(f"\n{opening}\n")
    print_table(("what", "value (95 % interval)"), table)
    if code:
        typer.echo("")
        print_table(("for", "write"), code)


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


def _plan(context: typer.Context) -> Training:
    """How a dataset is to be learned; refused before it is read."""
    from softtargets.inspection.advise import Training

    names = ("model", "limit", "folds", "epochs", "device", "seed")
    asked = {name: context.params[name] for name in names if context.params[name] is not None}
    plan = Training(**asked)
    plan.check()
    return plan


def _trained(context: typer.Context, plan: Training, told: pages.Told) -> Evidence:
    """A dataset's labels, predicted out of fold by models trained here."""
    from softtargets.data import load
    from softtargets.inspection.advise import train_out_of_fold

    name = context.params["data"]
    options = assignments(context.params["data_option"], "--data-option")
    told(f"reading {name}", 0, 0)
    examples = load(name, "train", context.params["data_dir"], **options)
    return train_out_of_fold(
        name,
        examples.images,
        examples.labels,
        examples.classes,
        plan,
        method=context.params["method"],
        told=told,
    )
