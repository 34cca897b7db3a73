"""``softtargets translate train``: sentence pairs in, a model that translates out, with plain words on the way."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from softtargets.cli import following, options, resumable, saved_run
from softtargets.cli import translate_options as given
from softtargets.cli.command_line import naming_options
from softtargets.cli.output import print_json
from softtargets.cli.translate_corpus import as_option, corpus_text, own_text
from softtargets.exceptions import RecipeError, RunError, SofttargetsError, nearest

if TYPE_CHECKING:
    from softtargets.inspection.translate.finding import Assessment
    from softtargets.recipes import Recipe, Regulariser
    from softtargets.runs import Run
    from softtargets.training import Resources
    from softtargets.training.tasks import TranslationTask


def train(
    context: typer.Context,
    src: given.Src = None,
    tgt: given.Tgt = None,
    tsv: given.Tsv = None,
    valid_src: given.ValidSrc = None,
    valid_tgt: given.ValidTgt = None,
    test_src: given.TestSrc = None,
    test_tgt: given.TestTgt = None,
    corpus: given.Corpus = None,
    from_language: given.From = None,
    to_language: given.To = None,
    loss: given.Loss = "label_smoothing",
    alpha: given.Alpha = None,
    size: given.Size = None,
    vocabulary: given.Vocabulary = None,
    lowercase: given.Lowercase = False,
    epochs: given.Epochs = None,
    batch: given.Batch = None,
    seed: given.Seed = 0,
    changes: options.Set = None,
    device: options.Device = "auto",
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
    time_for: options.For = None,
    tensorboard: options.TensorBoardDir = None,
    dry_run: given.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Train a translation model on your text.

    Give two aligned files, a table of two columns, or a corpus that softtargets knows. The result is a run for
    translate decode and translate score. Your text is copied into the data directory under a name derived from its
    content. Settings that you leave out are chosen by the amount of text and the device, and printed. Ctrl-C is
    safe: the same command resumes the training. With --for, the exit code is 3 if the time was too short.
    """
    until = options.deadline(time_for, time.monotonic())
    with naming_options(context):
        regulariser = _loss(loss, alpha)
        text = corpus_text(context) if corpus is not None else own_text(context)

        from softtargets.training import choose_device, translation_recipe
        from softtargets.translation import sacrebleu_metrics

        sacrebleu_metrics()  # whether it is there, rather now than when all is trained
        where = choose_device(device)
        choice = translation_recipe(
            text.data,
            text.train,
            regulariser,
            gpu=where.type == "cuda",
            size=size,
            epochs=epochs,
            batch=batch,
            seed=seed,
        )
    recipe = choice.recipe.replace(options.assignments(changes))
    said = [text.told, loss_words(recipe), *choice.reasons]
    if changes:
        said.append(f"Changed by --set: {', '.join(changes)}.")
    if dry_run:
        return _print_recipe(recipe, said, as_json=as_json)
    if text.own is not None and following.is_first_here():
        from softtargets.data import keep_text

        folder = keep_text(text.own, data_dir)
        said[0] += f" The text is kept in {folder}."
    following.follow(device, runs_dir, data_dir, facts={"recipe": recipe.id})

    from softtargets.cli.console import watching
    from softtargets.training import Resources
    from softtargets.training import train as train_recipes

    store = options.run_store(runs_dir)
    resources = Resources(store, where, data_dir)
    try:
        task = _prepared(resources, recipe, said, quiet=as_json)
    except RecipeError as error:
        raise as_option(error) from None

    with resumable(partial(saved_run, store.root, recipe.id)):
        with watching(tensorboard) as watcher:
            (run,) = train_recipes(
                [recipe],
                store,
                device=device,
                data_dir=data_dir,
                watcher=watcher,
                checkpoint_seconds=checkpoint_seconds,
                until=until,
                resources=resources,
            )
        if run.status != "finished":
            raise RunError(f"run {run.id} failed: {run.provenance['reason']}")
        found = _assessed(run, task, device)
    if as_json:
        print_json({"id": run.id, "directory": str(run.directory), "test": found.numbers()})
    else:
        _print_result(run, found, text.own is not None, runs_dir, data_dir)


def _loss(name: str, alpha: float | None) -> Regulariser:
    from softtargets.recipes import Regulariser, build, kinds

    known = kinds(Regulariser)
    if name not in known:
        raise SofttargetsError(
            f"must be one of {', '.join(known)}, not {name}{nearest(name, known)}", argument="loss"
        )
    if name == "distillation":
        raise SofttargetsError(
            "distillation needs a teacher; write a recipe with regulariser: {name: distillation, teacher: ...} and use "
            "softtargets train",
            argument="loss",
        )
    try:
        return build(Regulariser, {"name": name, **({} if alpha is None else {"alpha": alpha})})
    except RecipeError as error:
        raise as_option(error) from None


def loss_words(recipe: Recipe) -> str:
    """What the loss is."""
    from softtargets.cli.recipe_parts import first_sentence

    part = recipe.regulariser
    options = {name: value for name, value in part.canonical().items() if name != "name"}
    if (alpha := part.to_dict().get("alpha")) is not None:
        options["alpha"] = alpha
    numbers = ", ".join(f"{name} {value}" for name, value in options.items())
    said = f"Loss: {part.name}{f' ({numbers})' if numbers else ''}. {first_sentence(type(part))}."
    if part.name == "labo" and part.to_dict()["alpha"] is None and part.to_dict()["reading"] == "literal":
        said += (
            " Read literally, as here, its paper moves at least half of the mass, which made models underconfident "
            "in our one-seed trials; --alpha 0.1 or --set regulariser.reading=reversed moves less."
        )
    return said.replace("`", "")


def _print_recipe(recipe: Recipe, said: list[str], *, as_json: bool) -> None:
    from softtargets.recipes import dump_yaml

    if as_json:
        return print_json({"id": recipe.id, "recipe": recipe.to_dict(), "notes": said})
    typer.echo(f"# run {recipe.id}; nothing was written")
    for sentence in said:
        typer.echo(f"# {sentence}")
    typer.echo(dump_yaml(recipe.to_dict()).rstrip())


def _prepared(resources: Resources, recipe: Recipe, said: list[str], *, quiet: bool) -> TranslationTask:
    """The text as tokens on the device; says what was read, kept and dropped."""
    from softtargets.data import leaks
    from softtargets.training.tasks import TranslationTask

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        task = resources.task(recipe.data)
    assert isinstance(task, TranslationTask)
    if quiet:
        return task
    train, test = task.splits["train"], task.splits["test"]
    known = leaks(train.texts, test.texts)
    overlap = "None" if not known.sources_alike else f"{known.sources_alike:,}"
    pieces = train.targets.lengths.mean()
    lines = [
        said[0],
        f"Cleaning: {task.report}",
        f"Overlap: {overlap} of the {len(test):,} test sources {'is' if known.sources_alike == 1 else 'are'} in the "
        "training text.",
        f"Vocabulary: {len(task.tokeniser):,} word pieces that both languages share; a target sentence has "
        f"{pieces:.1f} on average, including its end.",
        f"Padding: {100 * task.layout(recipe).padding:.1f} % of the target positions in batches.",
        *(f"Note: {warning.message}." for warning in caught if issubclass(warning.category, UserWarning)),
        *said[1:],
    ]
    for line in lines:
        typer.echo(line)
    typer.echo("")
    return task


def _assessed(run: Run, task: TranslationTask, device: str) -> Assessment:
    from softtargets.cli.page_commands import progress
    from softtargets.inspection.translate.finding import assess
    from softtargets.training import load_translator

    test = task.splits["test"].texts
    with progress() as told:
        return assess(load_translator(run, device), test.sources, test.targets, told=told)


def _print_result(
    run: Run, found: Assessment, own: bool, runs_dir: Path | None, data_dir: Path | None
) -> None:
    from softtargets.data import data_directory
    from softtargets.inspection.translate import words
    from softtargets.report import percent, plural

    typer.echo(f"run {run.id} in {run.directory}")
    typer.echo(
        f"On {plural(found.text.sentences, 'test sentence')}, beam {found.beam}: "
        f"{words.bleu_words(found.text, signed=True)}"
    )
    typer.echo(words.likelihood_words(found))
    ece = percent(found.calibration.expected_calibration_error)
    typer.echo(f"{words.trust(found)} Token ECE is {ece}, with correct prefixes and without padding.")
    for sentence in words.warnings_on(found):
        typer.echo(sentence)
    where = "" if runs_dir is None else f" --runs-dir {quote(str(runs_dir))}"
    typer.echo(f"\nTo translate: softtargets translate decode {run.id}{where} --in sentences.txt")
    if own:
        text = data_directory(data_dir) / str(run.recipe.data.to_dict()["corpus"])
        files = " ".join(
            f"--{side} {quote(str(text / name))}"
            for side, name in (("src", "test.source"), ("ref", "test.target"))
        )
        typer.echo(f"For a page about it: softtargets translate score {run.id}{where} {files}")
