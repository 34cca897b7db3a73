"""Which columns of a table are the label and the classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.predictions.array import FileArray
from softtargets.predictions.choosing import (
    LABELS,
    LOGITS,
    PROBABILITIES,
    SCORES,
    named,
    normal,
    unclear,
    wanted,
)
from softtargets.predictions.opening import Arrays

# Numbers that are no scores.
OTHERS = frozenset(
    {
        "",
        "id",
        "index",
        "idx",
        "row",
        "number",
        "unnamed_0",
        "example",
        "sample",
        "filename",
        "file",
        "path",
        "name",
    }
    | {"fold", "split", "seed", "epoch", "loss", "correct", "confidence", "predicted", "predicted_label"}
    | {"pred_label", "pred_class", "predicted_class", "argmax", "weight"}
)
PREFIXES = (*SCORES, "p", "class", "cls")


@dataclass(frozen=True)
class Columns:
    """Names of columns: the `label`, the `classes` in order; `names` of the classes and what was `ignored`."""

    label: str | None
    classes: tuple[str, ...]
    names: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def called(self) -> str:
        """What the scores are called: the common beginning of the columns, or the name of the first."""
        group = _group(self.classes[0])
        return group[0] if group else self.classes[0]


def choose_label(arrays: Arrays, name: str | None) -> str | None:
    """The column of labels by its usual names; None if there is none."""
    if name is not None:
        return wanted(arrays, name, "labels")
    found = named(list(arrays), LABELS)
    if len(found) > 1:
        raise unclear(arrays, "has several columns that could be labels", "labels_name")
    return found[0] if found else None


def choose_columns(
    arrays: Arrays,
    label: str | None,
    scores_name: str | Sequence[str] | None = None,
    kind: str | None = None,
) -> Columns:
    """Columns of classes: those with a common beginning such as ``prob_``, or else all other numbers."""
    numbers = [name for name, array in arrays.items() if _is_column(array) and name != label]
    if scores_name is not None:
        given = [scores_name] if isinstance(scores_name, str) else list(scores_name)
        # One name may also be the beginning of many.
        many = [
            name for name in numbers if len(given) == 1 and name not in given and name.startswith(given[0])
        ]
        chosen = many or [wanted(arrays, name, "scores") for name in given]
        common = given[0] if many else ""
        names = tuple(name.removeprefix(common) for name in chosen)
    else:
        groups = _groups(numbers)
        if len(groups) > 1:
            preferred = PROBABILITIES if kind == "probabilities" else LOGITS
            groups = {one: of for one, of in groups.items() if one in preferred} or groups
        if len(groups) > 1:
            raise unclear(arrays, "has several groups of columns that could be scores", "scores_name")
        if groups:
            ((_, found),) = groups.items()
            chosen, names = [column for column, _ in found], tuple(suffix for _, suffix in found)
        else:
            chosen = [
                name for name in numbers if normal(name) not in OTHERS and not name.lower().endswith("_id")
            ]
            chosen = _only_score(arrays, chosen, kind)
            names = tuple(chosen)
    if not chosen:
        raise unclear(arrays, "has no columns of numbers that could be scores", "scores_name")
    if len(chosen) > 1 and scores_name is None and all(re.fullmatch(r"\d+", name) for name in names):
        # prob_10 comes before prob_2 in files that are sorted by name.
        order = sorted(range(len(names)), key=lambda place: int(names[place]))
        chosen, names = [chosen[place] for place in order], tuple(names[place] for place in order)
    ignored = tuple(name for name in arrays if name not in chosen and name != label)
    return Columns(label, tuple(chosen), tuple(name.strip() for name in names), ignored)


def _is_column(array: FileArray) -> bool:
    return array.is_number and len(array.shape) == 1


def _only_score(arrays: Arrays, columns: list[str], kind: str | None) -> list[str]:
    """One score for each example, if a column is called so: then others, such as ``pred``, are not classes."""
    called = [name for name in columns if normal(name) in SCORES]
    if len(columns) == 1 and not called and not _group(columns[0]):
        raise unclear(
            arrays, "has one column of numbers beside the labels, and it is not called a score", "scores_name"
        )
    if not called or len(columns) == 1:
        return columns
    for usual in (PROBABILITIES, LOGITS) if kind == "probabilities" else (LOGITS, PROBABILITIES):
        called = [name for name in called if normal(name) in usual] or called
    called = [name for name in called if normal(name) in ("score", "scores")] or called
    if len(called) > 1:
        raise unclear(arrays, "has several columns that could be the score", "scores_name")
    return called


def _groups(numbers: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Columns by their common beginning, if that is a usual name of scores and there are two or more."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in numbers:
        if group := _group(name):
            found.setdefault(group[0], []).append((name, group[1]))
    return {prefix: columns for prefix, columns in found.items() if len(columns) > 1}


def _group(name: str) -> tuple[str, str] | None:
    """The beginning that is a usual name of scores, and the rest.

    >>> _group("prob_cat"), _group("P(cat)"), _group("logits[3]"), _group("class7"), _group("price")
    (('prob', 'cat'), ('p', 'cat'), ('logits', '3'), ('class', '7'), None)
    """
    if normal(name) in OTHERS:
        return None
    for prefix in sorted(PREFIXES, key=len, reverse=True):
        pattern = prefix.replace("_", "[_ ]?")
        match = re.fullmatch(rf"{pattern}(?:[_ .:/-]+(.+)|(\d+)|\[(.+)\]|\((.+)\))", name, re.IGNORECASE)
        if match:
            return prefix, next(group for group in match.groups() if group is not None)
    return None
