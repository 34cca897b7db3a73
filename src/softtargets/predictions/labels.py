"""Labels of any form as class indices: whole numbers, one-hot rows, True and False, other numbers by a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import PredictionFileError, listed


def check_shapes(scores: FileArray, labels: FileArray) -> None:
    """Refuse labels that do not belong to these scores."""
    leading = scores.shape[:-1] if len(scores.shape) > 1 else scores.shape
    if labels.shape in (leading, (*leading, 1), scores.shape):
        return
    advice = "there must be one label for each example"
    if len(labels.shape) == 1 and len(scores.shape) == 2 and scores.shape[1] == labels.shape[0]:
        advice = "transpose the scores to (examples, classes)"
    elif len(scores.shape) > 2 and (scores.shape[0], *scores.shape[2:]) == labels.shape:
        advice = "move the classes to the last dimension of the scores"
    where = f" of {labels.path}" if labels.path != scores.path else ""
    raise PredictionFileError(
        scores.path,
        f"has scores '{scores.name}' {scores.shape} that do not match the labels '{labels.name}' {labels.shape}{where}",
        advice,
    )


class LabelReader:
    """Turns what is in a file into class indices; `note` says how, where it is not obvious."""

    def __init__(
        self, labels: FileArray, scores: FileArray, classes: int, numbers: Mapping[int, int] | None = None
    ) -> None:
        self._path, self._classes, self._numbers = labels.path, classes, numbers
        self.note = ""
        self.one_hot = labels.shape == scores.shape and len(scores.shape) > 1 and scores.shape[-1] > 1
        if self.one_hot:
            self.note = "labels are one-hot rows"
        elif labels.dtype == "bool":
            if classes != 2:
                raise self._refused(
                    f"has True and False as labels for {classes} classes",
                    "labels must be the index of each example's class",
                )
            self.note = "False is class 0 and True is class 1"
        elif labels.dtype in ("text", "other"):
            raise self._refused(
                f"has labels '{labels.name}' that are not numbers", "save the index of each example's class"
            )
        if numbers is not None:
            self.note = "labels are the names of columns"

    def read(
        self, found: Tensor, place: Callable[[int], str], ignored: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Class indices (n,) as int64, and which of them are not `ignored`; those that are mean nothing."""
        if self.one_hot:
            labels = self._from_one_hot(found, place)
            return labels, torch.ones_like(labels, dtype=torch.bool)
        values = found.reshape(len(found))
        if values.is_floating_point():
            if bool((broken := values != values.round()).any()):  # NaN included
                row = int(broken.nonzero()[0])
                advice = "labels must be whole numbers, the index of each example's class"
                raise self._refused(f"has the label {float(values[row]):g} in {place(row)}", advice)
            values = values.clamp(
                -(2.0**62), 2.0**62
            )  # too large for an integer is out of range all the more
        values = values.long()
        kept = torch.ones_like(values, dtype=torch.bool) if ignored is None else values != ignored
        if self._numbers is not None:
            values = self._by_name(values, kept, place)
        outside = kept & ((values < 0) | (values >= self._classes))
        if bool(outside.any()):
            row = int(outside.nonzero()[0])
            raise self._out_of_range(int(values[row]), place(row))
        return values, kept

    def _refused(self, problem: str, advice: str) -> PredictionFileError:
        return PredictionFileError(self._path, problem, advice)

    def _out_of_range(self, label: int, place: str) -> PredictionFileError:
        advice = "check that the labels belong to these scores"
        if label < 0:
            advice = f"if it marks examples without a label, use ignore_index={label}"
        elif label == self._classes:
            advice = "if labels count from 1, subtract 1; else some classes are missing"
        classes = f"{self._classes} classes are 0 to {self._classes - 1}"
        return self._refused(f"has the label {label} in {place}, but {classes}", advice)

    def _by_name(self, values: Tensor, kept: Tensor, place: Callable[[int], str]) -> Tensor:
        assert self._numbers is not None
        found = values.clone()
        known = ~kept
        for number, index in self._numbers.items():
            same = kept & (values == number)
            found[same] = index
            known |= same
        if not bool(known.all()):
            row = int((~known).nonzero()[0])
            raise self._refused(
                f"has the label {int(values[row])} in {place(row)}",
                f"columns are named {listed(self._numbers)}, and labels must be among them",
            )
        return found

    def _from_one_hot(self, found: Tensor, place: Callable[[int], str]) -> Tensor:
        plain = found.long() if not found.is_floating_point() else found
        fine = ((plain == 0) | (plain == 1)).all(1) & (plain.sum(1) == 1)
        if not bool(fine.all()):
            row = int((~fine).nonzero()[0])
            raise self._refused(
                f"has labels of the shape of the scores that are not one-hot in {place(row)}",
                "exactly one class of each example must be 1 and the others 0",
            )
        return plain.argmax(1)
