"""A correction applied to a file of predictions, some rows at a time: a file of the same scores, corrected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from softtargets.calibration import Correction
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.reading import Told, quiet, reading
from softtargets.predictions import Predictions, Written, write_predictions


def apply_correction(
    correction: Correction,
    predictions: Predictions,
    out: Path,
    told: Told = quiet,
    *,
    overwrite: bool = False,
) -> int:
    """Write corrected scores of the same kind, in the same order, with the labels if there are any.

    Rows that the predictions leave out (`ignore_index`) are left out; tokens are rows. Returns how many predictions are
    another class than before, which biases can make of them.
    """
    check_fits(correction, predictions)
    changed = 0

    def rows() -> Iterator[tuple[Tensor, Tensor | None]]:
        nonlocal changed
        for scores, labels in reading(predictions, "correcting", told):
            corrected = correction(scores, checked=True)
            if correction.bias is not None:
                changed += int((corrected.argmax(1) != scores.argmax(1)).sum())
            yield corrected, labels if predictions.labelled else None

    first = next(iter(predictions.chunks(1)))[0]
    what = Written(
        kind=predictions.kind,
        examples=predictions.examples,
        classes=predictions.classes,
        class_names=predictions.class_names or correction.class_names,
        double=first.dtype.itemsize == 8,
        labelled=predictions.labelled,
    )
    write_predictions(out, what, rows(), overwrite=overwrite)
    return changed


def check_fits(correction: Correction, predictions: Predictions) -> None:
    """Refuse scores of another kind or of other classes than those the correction was fitted to."""
    if correction.classes != predictions.classes:
        raise SofttargetsError(
            f"{predictions.path} has {predictions.classes} classes, but the correction was fitted to "
            f"{correction.classes}; give predictions of the same model"
        )
    if correction.kind != predictions.kind:
        raise SofttargetsError(
            f"{predictions.path} has {predictions.kind}, but the correction was fitted to {correction.kind}; give "
            f"{correction.kind} of the same model, or fit the correction again ({predictions.reason})"
        )
    known = zip(correction.class_names or (), predictions.class_names or (), strict=False)
    for place, (one, two) in enumerate(known):
        if one != two:
            raise SofttargetsError(
                f"class {place} is '{two}' in {predictions.path}, but was '{one}' when the correction was fitted; "
                "put the columns into that order"
            )


def correction_beside(out: Path) -> Path:
    """Where the correction of saved predictions goes.

    >>> correction_beside(Path("calibrated.npz")).name
    'calibrated.correction.json'
    """
    return out.with_name(f"{out.stem}.correction.json")
