"""``softtargets view``: activations and the last layer in, a page with the penultimate layer out.

Words of the command line become panels: files, runs, and which of them belong together.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from softtargets.cli.command_line import naming_options
from softtargets.cli.options import Json, RunsDir, find_run
from softtargets.cli.output import print_json, print_table
from softtargets.cli.page_commands import IgnoreIndex, making, signed, stem
from softtargets.exceptions import RunError, SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.view.finding import Panel
    from softtargets.runs import Run

_SPLIT = r"train|training|test|testing|val|valid|validation|dev|eval|held[-_ ]?out"
_LAST = re.compile(rf"(?:(.*)[-_. ])?({_SPLIT})", re.IGNORECASE)
_FIRST = re.compile(rf"({_SPLIT})[-_. ](.*)", re.IGNORECASE)
_KEPT = ("train", "test")  # of a run, which keeps a validation split too
OPENING = ("activations_name", "weights_name", "labels_name", "ignore_index")


def view(
    context: typer.Context,
    files: Annotated[
        list[str],
        Argument(
            metavar="[MODEL:SPLIT=]FILE...",
            help="Activations with labels (.npz, .safetensors, .pt), one panel each; or runs: RUN_ID[:SPLIT].",
        ),
    ],
    weights: Annotated[
        list[str] | None,
        Option(
            metavar="[MODEL=]FILE",
            help="The file with the last layer; may hold a whole model.",
            show_default="the file with the activations",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        Option(
            metavar="[MODEL:SPLIT=]FILE",
            help="The file with the labels.",
            show_default="the file with the activations",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        Option(metavar="A,B,C", help="Three classes, by number or name.", show_default="chosen by --pick"),
    ] = None,
    pick: Annotated[
        str,
        Option(
            help="Which three classes to choose, by the distances between their templates: close, far, or mixed (two "
            "close, one far)."
        ),
    ] = "mixed",
    names: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Names of the classes: a file with one name per line, a JSON file, or names separated by commas.",
            show_default="their numbers",
        ),
    ] = None,
    units: Annotated[
        str,
        Option(
            help="The unit of the axes: the distance between class means (centres), between templates (templates), "
            "or raw activations (activations)."
        ),
    ] = "centres",
    activations_name: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="The array with the activations.",
            show_default="inferred from names and shapes",
        ),
    ] = None,
    weights_name: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="The array with the last layer.",
            show_default="inferred from names and shapes",
        ),
    ] = None,
    labels_name: Annotated[
        str | None,
        Option(
            metavar="NAME", help="The array with the labels.", show_default="inferred from names and shapes"
        ),
    ] = None,
    ignore_index: IgnoreIndex = None,
    out: Annotated[
        Path | None, Option(help="The directory to write the page to.", show_default="./reports/view-NAME")
    ] = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Show how models arrange three classes in their last layer.

    Draws the examples on the plane through the templates of three classes and measures how far the classes have
    collapsed. Panels of one model share a scale. A file's name says which model and split it is (hard_train.npz is
    the model "hard" on "train"), or you say it: softtargets view hard:train=a.npz hard:test=b.npz
    smooth:train=c.npz smooth:test=d.npz
    """
    from softtargets.geometry import UNITS
    from softtargets.inspection.shared import check_choice
    from softtargets.inspection.view import find_classes, finding, page, read_names, words
    from softtargets.report import write_page

    started = time.monotonic()
    with naming_options(context), _in_a_sentence():
        elsewhere = {"weights": Elsewhere("weights", weights), "labels": Elsewhere("labels", labels)}
        check_choice("pick", pick, finding.PICKS)
        check_choice("units", units, UNITS)
        opening = {name: context.params[name] for name in OPENING}
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
    return stem(path if os.path.exists(path) else path.with_name(path.name.replace(":", "-")))


def _short(files: list[str]) -> str:
    first = Path(labelled(files[0])[1]).name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


class Elsewhere:
    """Files for all panels or for some of them: ``FILE``, ``MODEL=FILE``, ``SPLIT=FILE``, ``MODEL:SPLIT=FILE``."""

    def __init__(self, argument: str, words: list[str] | None) -> None:
        self._argument = argument
        self._paths: dict[str, str] = {}
        for word in words or []:
            label, path = labelled(word)
            if label in self._paths:
                whose = f"'{label}'" if label else "all panels; write MODEL=FILE"
                raise SofttargetsError(f"is given twice for {whose}", argument=argument)
            self._paths[label] = path

    def of(self, net: str, split: str) -> str | None:
        """The file for a panel, the most particular one."""
        keys = (f"{net}:{split}", net, split, "")
        return next((self._paths[key] for key in keys if key in self._paths), None)

    def refuse_unused(self, panels: list[Panel]) -> None:
        """A name that no panel has is misspelt."""
        there = [key for panel in panels for key in (f"{panel.net}:{panel.split}", panel.net, panel.split)]
        for label in self._paths:
            if label and label not in there:
                shown = ", ".join(dict.fromkeys(f"{panel.net}:{panel.split}" for panel in panels))
                problem = f"{label}=...: there is no panel of this name; there are {shown}"
                raise SofttargetsError(problem, argument=self._argument)


def panels_of(
    word: str, elsewhere: Mapping[str, Elsewhere], arrays: Mapping[str, Any], runs_dir: Path | None
) -> list[Panel]:
    """A word of the command line as panels: one of a file, or those of a run."""
    from softtargets.inspection.view.finding import Panel
    from softtargets.predictions import open_activations

    label, path = labelled(word)
    net, _, split = label.partition(":")
    run, wanted = find_run(path, runs_dir)
    if run is not None:
        if run.recipe.data.task == "translation":
            raise RunError(
                f"run {run.id} is a translation model and keeps no activations; softtargets study run muller-fig7 "
                "shows how such models arrange tokens"
            )
        return _panels_of_run(run, net, split, wanted)
    if not label:
        net, split = guessed(Path(path))
    given: dict[str, Any] = {key: option.of(net, split) for key, option in elsewhere.items()}
    return [Panel(net, split, open_activations(path, **given, **arrays))]


def labelled(word: str) -> tuple[str, str]:
    """``MODEL:SPLIT=FILE`` as label and file; a file whose name has = in it is a file."""
    label, equals, path = word.partition("=")
    if not equals or os.path.exists(word):  # False also for names that no system has
        return "", word
    if not label or not path:
        raise SofttargetsError(
            f"{word}: write it as MODEL:SPLIT=FILE, for example smooth:train=activations.npz"
        )
    return label, path


def guessed(path: Path) -> tuple[str, str]:
    """Model and split from the name of a file.

    >>> guessed(Path("hard_train.npz")), guessed(Path("runs/smooth/test.npz")), guessed(Path("resnet.npz"))
    (('hard', 'train'), ('smooth', 'test'), ('resnet', ''))
    """
    if found := _LAST.fullmatch(path.stem):
        return found[1] or path.absolute().parent.name or "net", found[2]
    if found := _FIRST.fullmatch(path.stem):
        return found[2], found[1]
    return path.stem, ""


def _panels_of_run(run: Run, net: str, split: str, wanted: str | None) -> list[Panel]:
    """Activations of a run on the splits it kept, and its last layer."""
    from softtargets.inspection.view.finding import Held, Panel

    layer = run.weights()
    panels = []
    for kept in [wanted] if wanted else [one for one in _KEPT if run.has_predictions(one)] or ["train"]:
        found = run.predictions(kept)
        source = f"run {run.id}, {kept}"
        held = Held(found.features, found.labels, layer["head.weight"], layer.get("head.bias"), source)
        panels.append(Panel(net or _called(run), split or kept, held))
    return panels


def _called(run: Run) -> str:
    """What a run was trained with, and the beginning of its id, since others may have been too."""
    from softtargets.cli.console import describe

    recipe = run.recipe
    words = describe(recipe).removeprefix(f"{recipe.data.name} {recipe.model.name} ")
    return f"{words.removesuffix(f' seed {recipe.seed}').replace('_', ' ')} ({run.id[:4]})"
