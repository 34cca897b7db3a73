"""``softtargets view``: activations and the last layer in, a page with the penultimate layer out."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.cli.inspecting import IgnoreIndex, command_line, provenance, stem, telling
from softtargets.cli.options import Json, RunsDir, runs_directory
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.viewing import Look, Panel
    from softtargets.runs import Run

_RUN = re.compile(r"([0-9a-f]{4,16})(?::(\w+))?")
_SPLIT = r"train|training|test|testing|val|valid|validation|dev|eval|held[-_ ]?out"
_LAST = re.compile(rf"(?:(.*)[-_. ])?({_SPLIT})", re.IGNORECASE)
_FIRST = re.compile(rf"({_SPLIT})[-_. ](.*)", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"\b(activations|weights|labels|ignore)_(name|index)\b"
)  # as functions call our options
_KEPT = ("train", "test")  # of a run, which keeps a validation split too


def view(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[NET:SPLIT=]FILE...",
            help="Activations with labels (.npz, .safetensors, .pt); one panel each. Or a run: RUN_ID[:SPLIT].",
        ),
    ],
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NET=]FILE", help="The file with the last layer, if it is another; may be a whole model."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="[NET:SPLIT=]FILE", help="The file with the labels, if it is another."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Three classes, by number or name.")
    ] = None,
    pick: Annotated[
        str,
        typer.Option(help="Or let templates decide: three close ones, two close and a far one (mixed), far."),
    ] = "mixed",
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Names of classes: one on each line, JSON, or separated by commas."
        ),
    ] = None,
    units: Annotated[
        str, typer.Option(help="What the axes count in: centres (of classes), templates or activations.")
    ] = "centres",
    activations_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array has the activations.")
    ] = None,
    weights_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array has the last layer.")
    ] = None,
    labels_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array has the labels.")
    ] = None,
    ignore_index: IgnoreIndex = None,
    out: Annotated[Path | None, typer.Option(help="Where the page goes [./reports/view-NAME].")] = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Show where nets put the examples of three classes, and measure how far they have collapsed.

    Files of one net are drawn on one scale. Nets and splits are named by their files (hard_train.npz is the net "hard"
    on "train"), or by you: softtargets view hard:train=a.npz hard:test=b.npz smooth:train=c.npz smooth:test=d.npz
    """
    from softtargets.geometry import UNITS
    from softtargets.inspection.viewing import PICKS, look

    started = time.monotonic()
    _one_of("--pick", pick, PICKS)
    _one_of("--units", units, UNITS)
    arrays: dict[str, Any] = {
        "activations_name": activations_name,
        "weights_name": weights_name,
        "labels_name": labels_name,
        "ignore_index": ignore_index,
    }
    elsewhere = {"weights": _Elsewhere("--weights", weights), "labels": _Elsewhere("--labels", labels)}
    with _saying_options():
        panels = [panel for word in files for panel in _panels(word, elsewhere, arrays, runs_dir)]
    for option in elsewhere.values():
        option.refuse_unused(panels)

    from softtargets.inspection.viewing_names import find_classes, read_names
    from softtargets.inspection.viewing_page import view_page
    from softtargets.report import write_page
    from softtargets.storage import make_directory

    count = len(panels[0].source.weights)
    known = read_names(names, count) if names is not None else {}
    chosen = find_classes(classes, known, count) if classes is not None else None
    options: dict[str, Any] = {
        "--weights": weights,
        "--labels": labels,
        "--classes": classes,
        "--pick": None if pick == "mixed" else pick,
        "--names": names,
        "--units": None if units == "centres" else units,
        **{f"--{key.replace('_', '-')}": value for key, value in arrays.items()},
        "--runs-dir": runs_dir,
        "--out": out,
    }
    directory = out or Path("reports") / f"view-{_stem(files[0])}"
    make_directory(directory)  # found out now, not after a long file
    try:
        with telling() as told, _saying_options():
            found = look(panels, classes=chosen, pick=pick, names=known, told=told)
        page = view_page(
            found,
            name=_short(files),
            command=command_line(["view", *files], options),
            provenance=provenance(started),
            units=units,
        )
    except SofttargetsError:
        raise
    except ValueError as problem:  # instruments say in one sentence what they cannot do with these numbers
        raise SofttargetsError(str(problem)) from None
    path = write_page(page, directory)
    if as_json:
        print_json(_as_json(found, path))
        return
    _print(found, path)


@contextmanager
def _saying_options() -> Iterator[None]:
    """Refusals of files speak of options instead of arguments of functions."""
    from softtargets.predictions import PredictionFileError

    try:
        yield
    except PredictionFileError as problem:
        raise SofttargetsError(_ARGUMENT.sub(r"--\1-\2", str(problem))) from None


class _Elsewhere:
    """Files for all panels or for some of them: ``FILE``, ``NET=FILE``, ``SPLIT=FILE``, ``NET:SPLIT=FILE``."""

    def __init__(self, option: str, words: list[str] | None) -> None:
        self._option = option
        self._paths: dict[str, str] = {}
        for word in words or []:
            label, path = _labelled(word)
            if label in self._paths:
                whose = f"'{label}'" if label else "all panels; write NET=FILE"
                raise SofttargetsError(f"{option} is given twice for {whose}")
            self._paths[label] = path

    def of(self, net: str, split: str) -> str | None:
        """The file for a panel, the most particular one."""
        return next(
            (self._paths[key] for key in (f"{net}:{split}", net, split, "") if key in self._paths), None
        )

    def refuse_unused(self, panels: list[Panel]) -> None:
        """A name that no panel has is misspelt."""
        there = [key for panel in panels for key in (f"{panel.net}:{panel.split}", panel.net, panel.split)]
        for label in self._paths:
            if label and label not in there:
                shown = ", ".join(dict.fromkeys(f"{panel.net}:{panel.split}" for panel in panels))
                raise SofttargetsError(
                    f"{self._option} {label}=...: there is no such panel; there are {shown}"
                )


def _panels(
    word: str, elsewhere: Mapping[str, _Elsewhere], arrays: Mapping[str, Any], runs_dir: Path | None
) -> list[Panel]:
    from softtargets.inspection.viewing import Panel
    from softtargets.predictions import open_activations

    label, path = _labelled(word)
    net, _, split = label.partition(":")
    run, wanted = _find_run(path, runs_dir)
    if run is not None:
        return _panels_of_run(run, net, split, wanted)
    if not label:
        net, split = _guessed(Path(path))
    given: dict[str, Any] = {key: option.of(net, split) for key, option in elsewhere.items()}
    return [Panel(net, split, open_activations(path, **given, **arrays))]


def _labelled(word: str) -> tuple[str, str]:
    """``NET:SPLIT=FILE`` as label and file; a file whose name has = in it is a file."""
    label, equals, path = word.partition("=")
    if not equals or Path(word).exists():
        return "", word
    if not label or not path:
        raise SofttargetsError(
            f"{word}: write it as NET:SPLIT=FILE, for example smooth:train=activations.npz"
        )
    return label, path


def _guessed(path: Path) -> tuple[str, str]:
    """Net and split from the name of a file.

    >>> _guessed(Path("hard_train.npz")), _guessed(Path("runs/smooth/test.npz")), _guessed(Path("resnet.npz"))
    (('hard', 'train'), ('smooth', 'test'), ('resnet', ''))
    """
    if found := _LAST.fullmatch(path.stem):
        return found[1] or path.absolute().parent.name or "net", found[2]
    if found := _FIRST.fullmatch(path.stem):
        return found[2], found[1]
    return path.stem, ""


def _find_run(word: str, runs_dir: Path | None) -> tuple[Run | None, str | None]:
    """The run that a word means, and the split; a file that exists is a file."""
    from softtargets.runs import RunStore

    path, found = Path(word), _RUN.fullmatch(word)
    if path.is_dir() and (path / "run.json").exists():
        return RunStore(path.parent).get(path.name), None
    if found is None or path.exists():
        return None, None
    return RunStore(runs_directory(runs_dir)).get(found[1]), found[2]


def _panels_of_run(run: Run, net: str, split: str, wanted: str | None) -> list[Panel]:
    """Activations of a run on the splits it kept, and its last layer."""
    from softtargets.inspection.viewing import Held, Panel

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


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SofttargetsError(f"{option} {value}: must be one of {', '.join(allowed)}")


def _stem(word: str) -> str:
    path = Path(_labelled(word)[1])
    return stem(path if path.exists() else path.with_name(path.name.replace(":", "-")))


def _short(files: list[str]) -> str:
    first = Path(_labelled(files[0])[1]).name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _as_json(found: Look, path: Path) -> dict[str, Any]:
    from softtargets.inspection.viewing_page import collapse_table, measures_table

    return {
        "report": str(path),
        "classes": list(found.classes),
        "names": list(found.names),
        "picked": found.kind,
        "reason": found.reason,
        "panels": [
            {
                "net": three["net"],
                "split": three["split"],
                "three_classes": _rest(three),
                "all_classes": _rest(all_),
            }
            for three, all_ in zip(measures_table(found).rows, collapse_table(found).rows, strict=True)
        ],
    }


def _rest(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("net", "split")}


def _print(found: Look, path: Path) -> None:
    from softtargets.inspection.viewing_differences import between_nets
    from softtargets.inspection.viewing_page import why

    typer.echo(f"{why(found)}\n")
    rows = []
    for panel in found.panels:
        three, every = panel.view.measures, panel.collapse
        numbers = (three.spread, three.spread_over_templates, three.centres_equilateral, every.nc1)
        rows.append(
            (
                panel.view.net,
                panel.view.split,
                f"{three.examples:,}",
                *(f"{number:.3f}" for number in numbers),
                f"{every.nc2_means.equal_angles:.3f}",
                f"{every.nc3:.3f}",
                f"{100 * every.nc4:.1f} %",
            )
        )
    print_table(
        ("net", "split", "examples", "spread", "over templates", "triangle", "NC1", "NC2", "NC3", "NC4"), rows
    )
    for sentence in between_nets(found):
        typer.echo(f"\n{sentence}")
    typer.echo(f"\npage: {path.resolve()}")
