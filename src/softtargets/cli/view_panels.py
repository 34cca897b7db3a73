"""Words of ``softtargets view`` as panels: files, runs, and which of them belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.cli.options import runs_directory
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.inspection.view.finding import Panel
    from softtargets.runs import Run

_RUN = re.compile(r"([0-9a-f]{4,16})(?::(\w+))?")
_SPLIT = r"train|training|test|testing|val|valid|validation|dev|eval|held[-_ ]?out"
_LAST = re.compile(rf"(?:(.*)[-_. ])?({_SPLIT})", re.IGNORECASE)
_FIRST = re.compile(rf"({_SPLIT})[-_. ](.*)", re.IGNORECASE)
_KEPT = ("train", "test")  # of a run, which keeps a validation split too


class Elsewhere:
    """Files for all panels or for some of them: ``FILE``, ``NET=FILE``, ``SPLIT=FILE``, ``NET:SPLIT=FILE``."""

    def __init__(self, argument: str, words: list[str] | None) -> None:
        self._argument = argument
        self._paths: dict[str, str] = {}
        for word in words or []:
            label, path = labelled(word)
            if label in self._paths:
                whose = f"'{label}'" if label else "all panels; write NET=FILE"
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
                problem = f"{label}=...: there is no such panel; there are {shown}"
                raise SofttargetsError(problem, argument=self._argument)


def panels_of(
    word: str, elsewhere: Mapping[str, Elsewhere], arrays: Mapping[str, Any], runs_dir: Path | None
) -> list[Panel]:
    """A word of the command line as panels: one of a file, or those of a run."""
    from softtargets.inspection.view.finding import Panel
    from softtargets.predictions import open_activations

    label, path = labelled(word)
    net, _, split = label.partition(":")
    run, wanted = _find_run(path, runs_dir)
    if run is not None:
        return _panels_of_run(run, net, split, wanted)
    if not label:
        net, split = guessed(Path(path))
    given: dict[str, Any] = {key: option.of(net, split) for key, option in elsewhere.items()}
    return [Panel(net, split, open_activations(path, **given, **arrays))]


def labelled(word: str) -> tuple[str, str]:
    """``NET:SPLIT=FILE`` as label and file; a file whose name has = in it is a file."""
    label, equals, path = word.partition("=")
    if not equals or Path(word).exists():
        return "", word
    if not label or not path:
        raise SofttargetsError(
            f"{word}: write it as NET:SPLIT=FILE, for example smooth:train=activations.npz"
        )
    return label, path


def guessed(path: Path) -> tuple[str, str]:
    """Net and split from the name of a file.

    >>> guessed(Path("hard_train.npz")), guessed(Path("runs/smooth/test.npz")), guessed(Path("resnet.npz"))
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
