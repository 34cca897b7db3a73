"""``softtargets translate train``: sentence pairs in, a model that translates out, with plain words on the way."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softtargets.cli import options, resumable
from softtargets.cli import translate_options as given
from softtargets.cli.command_line import naming_options
from softtargets.cli.output import print_json
from softtargets.exceptions import RecipeError, RunError, SofttargetsError, nearest

if TYPE_CHECKING:
    from softtargets.data import Pairs
    from softtargets.inspection.translate.finding import Assessment
    from softtargets.recipes import Recipe, Regulariser, TranslationDataset
    from softtargets.runs import Run
    from softtargets.training import Resources
    from softtargets.training.tasks import TranslationTask

_FIELDS = {"source": "--from", "target": "--to", "vocabulary": "--vocabulary", "alpha": "--alpha"}


@dataclass(frozen=True)
class Text:
    """What is trained on: the data of the recipe, the training pairs, own text to be kept, and where it came from."""

    data: TranslationDataset
    train: Pairs
    own: dict[str, Pairs] | None
    told: str


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
    """Train a model that translates, on your text.

    Two aligned files, a table of two columns, or a corpus that softtargets knows go in; a run comes out that translate
    decode and translate score use. Your text is copied into the data directory under a name made of its content. What
    is not given is chosen by the amount of text and the device, and said. Ctrl-C is safe: the same command goes on
    where it stopped. With --for, the exit code is 3 if the time was too short.
    """
    until = options.deadline(time_for, time.monotonic())
    with naming_options(context):
        regulariser = _loss(loss, alpha)
        text = _corpus(context) if corpus is not None else _own(context)

        from softtargets.training import choose_device, translation_recipe

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
    if text.own is not None:
        from softtargets.data import keep_text

        folder = keep_text(text.own, data_dir)
        said[0] += f" The text is kept in {folder}."

    from softtargets.cli.console import watching
    from softtargets.training import Resources
    from softtargets.training import train as train_recipes

    store = options.run_store(runs_dir)
    resources = Resources(store, where, data_dir)
    task = _prepared(resources, recipe, said, quiet=as_json)

    def saved() -> str:
        if not (store.root / recipe.id).exists():
            return f"run {recipe.id} had not begun; give the same command again"
        return f"run {recipe.id} is saved and goes on when you give the same command again"

    with resumable(saved):
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
        print_json(
            {"id": run.id, "directory": str(run.directory), "summary": run.summary, "test": found.numbers()}
        )
    else:
        _print_result(run, found, text.own is not None, data_dir)


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
        raise _as_option(error) from None


def _as_option(error: RecipeError) -> SofttargetsError:
    """The same, about the option that the field comes from."""
    option = _FIELDS.get(error.field, error.field)
    return SofttargetsError(f"{option}: {error.message}" if option else error.message)


def _corpus(context: typer.Context) -> Text:
    """A corpus of the catalogue."""
    from softtargets.data import load_pairs
    from softtargets.recipes import TranslationDataset, build, kinds

    asked = context.params
    name = asked["corpus"]
    files = ("src", "tgt", "tsv", "valid_src", "valid_tgt", "test_src", "test_tgt")
    for one in files:
        if asked[one] is not None:
            raise SofttargetsError(
                f"and --corpus cannot be used together: {name} has text of its own", argument=one
            )
    known = [kind for kind in kinds(TranslationDataset) if kind != "parallel-text"]
    if name not in known:
        raise SofttargetsError(
            f"must be one of {', '.join(known)}, not {name}{nearest(name, known)}; your own text is given by --src and "
            "--tgt",
            argument="corpus",
        )
    wanted = {"source": asked["from_language"], "target": asked["to_language"]}
    wanted |= {"vocabulary": asked["vocabulary"], "lowercase": asked["lowercase"] or None}
    try:
        data = build(TranslationDataset, {"name": name, **{k: v for k, v in wanted.items() if v is not None}})
    except RecipeError as error:
        raise _as_option(error) from None
    direction = " and ".join(f"{one} to {other}" for one, other in data.languages)
    from softtargets.data import join_pairs

    train = join_pairs(*(load_pairs(name, *pair, "train", asked["data_dir"]) for pair in data.languages))
    return Text(data, train, None, f"Text: {name}, {direction}, {len(train):,} training pairs.")


def _own(context: typer.Context) -> Text:
    """Files of the user, with held-out pairs where no validation or test set is given."""
    from softtargets.data import hold_out, read_tsv, text_name
    from softtargets.recipes import ParallelText
    from softtargets.training import vocabulary_for

    asked = context.params
    for one in ("from_language", "to_language"):
        if asked[one] is not None:
            raise SofttargetsError(
                "is for --corpus: your own files say which language is which, --src and --tgt", argument=one
            )
    if asked["tsv"] is not None:
        if asked["src"] is not None or asked["tgt"] is not None:
            raise SofttargetsError("has both sides: leave out --src and --tgt", argument="tsv")
        pairs, files = read_tsv(asked["tsv"]), f"{asked['tsv']}"
    else:
        found = _side_by_side(asked, "src", "tgt")
        if found is None:
            raise SofttargetsError(
                "there is no text to train on: give --src and --tgt, or --tsv, or --corpus (multi30k, tatoeba, "
                "iwslt14, iwslt17, wmt14)"
            )
        pairs, files = found, f"{asked['src']} and {asked['tgt']}"
    if not len(pairs):
        raise SofttargetsError(f"{files} has no sentence pair")
    if pairs.sources == pairs.targets:
        raise SofttargetsError(
            f"{files}: source and target are the same text; a translation is into another language"
        )
    splits = {"validation": _side_by_side(asked, "valid_src", "valid_tgt")}
    splits["test"] = _side_by_side(asked, "test_src", "test_tgt")
    missing = tuple(name for name, split in splits.items() if split is None)
    whole = hold_out(pairs, missing) | {name: split for name, split in splits.items() if split is not None}
    folder, digest = text_name(whole)
    pieces = asked["vocabulary"] or vocabulary_for(whole["train"])
    data = ParallelText(
        corpus=folder,
        source="source",
        target="target",
        digest=digest,
        vocabulary=pieces,
        lowercase=asked["lowercase"],
    )
    counts = " and ".join(
        f"{len(whole[name]):,} {'are held out' if name in missing else 'are given'} for {name}"
        for name in ("validation", "test")
    )
    return Text(data, whole["train"], whole, f"Text: {len(pairs):,} sentence pairs of {files}; {counts}.")


def _side_by_side(asked: dict[str, Any], source: str, target: str) -> Pairs | None:
    """The pairs of two files that come together, or None where neither is given."""
    from softtargets.data import read_parallel

    one, other = asked[source], asked[target]
    if one is None and other is None:
        return None
    for name, path, beside in ((source, one, target), (target, other, source)):
        if path is None:
            raise SofttargetsError(f"is missing: it comes with --{beside.replace('_', '-')}", argument=name)
    if Path(one) == Path(other):
        raise SofttargetsError(f"is the file of --{target.replace('_', '-')} too, {one}", argument=source)
    pairs = read_parallel(one, other)
    if not len(pairs):
        raise SofttargetsError(f"{one} and {other} hold no sentence")
    return pairs


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
            " Read literally, as here, its paper moves at least half of the mass, which made models "
            "underconfident in our one-seed tries; "
            "--alpha 0.1 or --set regulariser.reading=reversed moves less."
        )
    return said.replace("`", "")


def _print_recipe(recipe: Recipe, said: list[str], *, as_json: bool) -> None:
    import yaml

    if as_json:
        return print_json({"id": recipe.id, "recipe": recipe.to_dict(), "notes": said})
    typer.echo(f"# run {recipe.id}; nothing was written")
    for sentence in said:
        typer.echo(f"# {sentence}")
    typer.echo(yaml.safe_dump(recipe.to_dict(), sort_keys=False, allow_unicode=True).rstrip())


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
        f"Vocabulary: {len(task.tokeniser):,} pieces of words that both languages share; a target has "
        f"{pieces:.1f} on average, its end included.",
        f"Padding: {100 * train.padding:.1f} % of the target positions in batches.",
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


def _print_result(run: Run, found: Assessment, own: bool, data_dir: Path | None) -> None:
    from softtargets.data import data_directory
    from softtargets.inspection.translate import words
    from softtargets.report import percent

    typer.echo(f"run {run.id} in {run.directory}")
    typer.echo(
        f"On {found.text.sentences:,} test sentences, beam {found.beam}: {words.bleu_words(found.text)}"
    )
    typer.echo(words.likelihood_words(found))
    ece = percent(found.calibration.expected_calibration_error)
    typer.echo(f"{words.trust(found)} Token ECE is {ece}, with correct prefixes and without padding.")
    for sentence in words.warnings_on(found):
        typer.echo(sentence)
    typer.echo(f"\nTo translate: softtargets translate decode {run.id} --in sentences.txt")
    if own:
        text = data_directory(data_dir) / str(run.recipe.data.to_dict()["corpus"])
        files = f"--src {text / 'test.source'} --ref {text / 'test.target'}"
        typer.echo(f"For a page about it: softtargets translate score {run.id} {files}")
