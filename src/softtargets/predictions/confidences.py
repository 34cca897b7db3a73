"""Files that have no scores of all classes, only how confident each prediction is and whether it is right.

Nobody stores a vocabulary's worth of logits for every token. What is stored is the probability of the token that was
chosen, or its logarithm, and either whether it was right or both the token and the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from softtargets.arrays import THROUGH_HALF
from softtargets.predictions import guess
from softtargets.predictions.array import FileArray, Merged, rechunk
from softtargets.predictions.confidence_names import LOGARITHMS, name_columns
from softtargets.predictions.errors import FoundFile, PredictionFileError, line
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.table import ONE_SCORE, TableArray

TRUTHS = {
    **ONE_SCORE,
    "FALSE": 0,
    "TRUE": 1,
    "no": 0,
    "yes": 1,
}
ROWS = 1 << 16
LOOK = 4096  # rows that decide what confidences are


class Confidences:
    """The confidence of predictions and whether each is right, from a file; made by `open_confidences`.

    `examples` says how many there are, `reason` how the numbers were understood and `source` which were used.
    """

    def __init__(
        self,
        arrays: Sequence[FileArray],
        kinds: Sequence[str],
        *,
        logarithms: bool | None = None,
        ignore_index: int | None = None,
        source: str = "",
        files: Sequence[FoundFile] = (),
    ) -> None:
        first = arrays[0]
        self.path, self._kinds, self._files = first.path, tuple(kinds), files
        for one in arrays:
            one.refuse_unreadable()
            if one.shape != first.shape:
                raise one.refused(
                    f"has {one.describe()} but {first.describe()}",
                    "there must be one value for each prediction",
                )
        if not first.shape or 0 in first.shape:
            raise first.refused(f"has no examples: {first.describe()}", "save the predictions again")
        self._arrays = [Merged(one, flat=True) if len(one.shape) > 1 else one for one in arrays]
        self.sequences = first.shape[0] if len(first.shape) > 1 else None
        self.ignored = ignore_index
        if ignore_index is not None and "labels" not in kinds:
            raise first.refused("has no labels to be ignored", "leave out ignore_index")
        self.source = line(source)
        self.logarithms, self.reason = self._understood(logarithms)
        self.examples = self._counted()

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Probabilities (n,) in double precision and whether each prediction is right (n,), checked, some at a time."""
        row = 0
        for block in self._blocks():
            columns = dict(zip(self._kinds, block, strict=True))
            kept = self._kept(columns, row)
            p = self._probabilities(columns["confidence"], kept, row)
            right = self._right(columns, kept, row)
            row += len(kept)
            if bool(kept.any()):
                yield p[kept], right[kept]
        for file in self._files:
            file.refuse_changed()

    def _blocks(self) -> Iterator[list[Tensor]]:
        tables = [one for one in self._arrays if isinstance(one, TableArray)]
        if len(tables) == len(self._arrays) and all(one.table is tables[0].table for one in tables):
            codes = {name: of for one in tables for name, of in one.codes.items()}
            names = [one.columns[0] for one in tables]
            for block in rechunk(tables[0].table.blocks(names, ROWS, 0, codes), ROWS):
                yield list(block.unbind(1))
            return
        for parts in zip(*(one.blocks(ROWS) for one in self._arrays), strict=True):
            yield [part.double() for part in parts]

    def _understood(self, said: bool | None) -> tuple[bool, str]:
        """Whether these are logarithms, and why."""
        block = next(self._blocks())
        look = block[0][torch.isfinite(block[0]) & self._counts(block)][:LOOK]
        name = self._arrays[0].name
        inside = bool(((look >= 0) & (look <= 1 + THROUGH_HALF)).all())
        below = bool((look <= THROUGH_HALF).all())
        if said is None and not inside and not below:
            raise self._arrays[0].refused(
                f"has '{name}' from {float(look.min()):g} to {float(look.max()):g}, which are neither probabilities "
                "(0 to 1) nor their logarithms (at most 0)",
                "confidence must be the probability of what was predicted",
            )
        logarithms = said if said is not None else below and (not inside or guess.normal(name) in LOGARITHMS)
        what = "the logarithm of the probability" if logarithms else "the probability"
        return (
            logarithms,
            f"'{name}' is {what} of the predicted class; the file has no scores of other classes",
        )

    def _counts(self, block: Sequence[Tensor]) -> Tensor:
        """Which rows are no padding, as far as labels say; of those that are nobody knows what they hold."""
        if "labels" not in self._kinds:
            return torch.ones(len(block[0]), dtype=torch.bool)
        labels = block[self._kinds.index("labels")]
        return (labels >= 0) & (labels != (-1 if self.ignored is None else self.ignored))

    def _kept(self, columns: dict[str, Tensor], row: int) -> Tensor:
        labels = columns.get("labels")
        if labels is None:
            return torch.ones(len(columns["confidence"]), dtype=torch.bool)
        kept = torch.ones(len(labels), dtype=torch.bool)
        if self.ignored is not None:
            kept = labels != self.ignored
        if bool((wrong := kept & (labels < 0)).any()):
            place = int(wrong.nonzero()[0])
            label = float(labels[place])
            raise self._refused(
                "labels",
                f"has the label {label:g} in",
                row + place,
                f"if it marks padding, use ignore_index={label:.0f}",
            )
        return kept

    def _probabilities(self, values: Tensor, kept: Tensor, row: int) -> Tensor:
        fine = values <= THROUGH_HALF if self.logarithms else (values >= 0) & (values <= 1 + THROUGH_HALF)
        if bool((wrong := kept & ~fine).any()):  # NaN included
            place = int(wrong.nonzero()[0])
            allowed = (
                "a logarithm of a probability, at most 0" if self.logarithms else "a probability, 0 to 1"
            )
            raise self._refused(
                "confidence",
                f"has {float(values[place]):g} as '{self._arrays[0].name}' in",
                row + place,
                f"it must be {allowed}; padding is left out by labels and ignore_index",
            )
        return values.exp().clamp_(max=1) if self.logarithms else values.clamp(max=1)

    def _right(self, columns: dict[str, Tensor], kept: Tensor, row: int) -> Tensor:
        if "correct" not in columns:
            return columns["predicted"] == columns["labels"]
        right = columns["correct"]
        if bool((wrong := kept & (right != 0) & (right != 1)).any()):
            place = int(wrong.nonzero()[0])
            raise self._refused(
                "correct",
                f"has {float(right[place]):g} in",
                row + place,
                "a prediction is right (1) or wrong (0)",
            )
        return right == 1

    def _refused(self, kind: str, problem: str, row: int, advice: str) -> PredictionFileError:
        array = self._arrays[self._kinds.index(kind)]
        return array.refused(f"{problem} {array.place(row)}", advice)

    def _counted(self) -> int:
        if self.ignored is None:
            return int(self._arrays[0].shape[0])
        labels = self._arrays[self._kinds.index("labels")]
        if count := sum(int((block != self.ignored).sum()) for block in labels.blocks(ROWS)):
            return count
        raise labels.refused(
            f"has no example left: all labels are {self.ignored}", "use another ignore_index"
        )


def open_confidences(
    arrays: Arrays | str,
    *,
    confidence_name: str | None = None,
    correct_name: str | None = None,
    prediction_name: str | None = None,
    labels_name: str | None = None,
    ignore_index: int | None = None,
) -> Confidences:
    """Open a file with the confidence of each prediction and whether it is right: what is left of token predictions.

    Any file of `open_arrays`: columns of a table, lines of JSON (with a list per sentence, if wanted), or arrays
    (predictions,) or (sentences, positions). The confidence is the probability of what was predicted, or its logarithm.
    Right or wrong is said by an array of 0 and 1, or by the numbers of what was predicted and of the label. Names are
    found out where they are usual. Rows with the label `ignore_index` are left out.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     np.savez(f"{directory}/a.npz", confidence=np.array([0.9, 0.6]), correct=np.array([True, False]))
    ...     found = open_confidences(f"{directory}/a.npz")
    ...     [(p.tolist(), right.tolist()) for p, right in found.chunks()]
    [([0.9, 0.6], [True, False])]
    >>> found.reason
    "'confidence' is the probability of the predicted class; the file has no scores of other classes"
    """
    file = arrays if isinstance(arrays, Arrays) else open_arrays(arrays)
    found = name_columns(file, confidence_name, correct_name, prediction_name, labels_name, ignore_index)
    wanted = {"confidence": found.confidence, "correct": found.correct, "predicted": found.predicted}
    if found.correct is None or ignore_index is not None:
        wanted["labels"] = found.labels
    columns = {kind: name for kind, name in wanted.items() if name is not None}
    return Confidences(
        [_array(file, kind, name) for kind, name in columns.items()],
        list(columns),
        ignore_index=ignore_index,
        source=", ".join(f"{_WORDS[kind]} '{name}'" for kind, name in columns.items())
        + f" of {file.path.name}"
        + (f"; {file.note}" if file.note else ""),
        files=[file.file],
    )


_WORDS = {
    "confidence": "confidence",
    "correct": "right or wrong",
    "predicted": "predictions",
    "labels": "labels",
}


def _array(file: Arrays, kind: str, name: str) -> FileArray:
    found = file[name]
    if found.dtype != "text":
        return found
    if kind == "correct" and isinstance(found, TableArray):
        return TableArray(found.table, found.columns, flat=True, codes=TRUTHS)
    raise found.refused(
        f"has texts in '{name}', where numbers are needed",
        "save the numbers of tokens, or a column 'correct' of 0 and 1",
    )
