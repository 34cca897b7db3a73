"""Which arrays of a file are scores and which labels: by their usual names, or by being the only ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from softtargets.exceptions import nearest
from softtargets.predictions.array import FileArray
from softtargets.predictions.failing import PredictionFileError
from softtargets.predictions.opening import Arrays

LOGITS = ("logits", "logit", "log_probs", "log_prob", "logprobs", "log_probabilities", "log_softmax")
PROBABILITIES = ("probabilities", "probability", "probs", "prob", "proba", "y_prob", "y_proba", "softmax")
SCORES = (
    *LOGITS,
    *PROBABILITIES,
    *("scores", "score", "outputs", "output", "predictions", "prediction", "preds", "pred"),
    *("y_pred", "y_preds", "y_score", "y_scores", "y_hat", "yhat"),
)
LABELS = (
    *(
        "labels",
        "label",
        "targets",
        "target",
        "y",
        "y_true",
        "ytrue",
        "y_test",
        "true",
        "truth",
        "true_label",
    ),
    *("true_labels", "gt", "ground_truth", "groundtruth", "class", "actual", "label_ids"),
)


def normal(name: str) -> str:
    """A name as the lists above have it: ``Test/True-Label`` becomes ``test_true_label``."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def named(names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The names that are usual ones, or else those that end in one: ``test_logits``.

    >>> named(["logits", "test_labels", "labels"], ["labels"]), named(["val.logits", "x"], ["logits"])
    (['labels'], ['val.logits'])
    """
    exact = [name for name in names if normal(name) in usual]
    # One letter is too little to go by: every weight called something.y would be labels.
    ends = tuple(f"_{one}" for one in usual if len(one) > 1)
    return exact or [name for name in names if normal(name).endswith(ends)]


def kind_of_name(name: str) -> Literal["logits", "probabilities"] | None:
    """What scores are by their name; None if it does not say.

    >>> kind_of_name("test_logits"), kind_of_name("probs"), kind_of_name("scores")
    ('logits', 'probabilities', None)
    """
    if named([name], LOGITS):
        return "logits"
    return "probabilities" if named([name], PROBABILITIES) else None


def wanted(arrays: Arrays, name: str, what: str) -> str:
    """A name the user gave, or a refusal that says which there are."""
    if name in arrays:
        return name
    kind = "column" if arrays.table is not None else "array"
    raise PredictionFileError(
        arrays.path,
        f"has no {kind} '{name}' for the {what}{nearest(name, list(arrays))}",
        f"it has {arrays.describe()}",
    )


def unclear(arrays: Arrays, problem: str, option: str) -> PredictionFileError:
    """The refusal to guess."""
    return PredictionFileError(
        arrays.path, f"{problem}: it has {arrays.describe()}", f"say which with {option}"
    )


def choose_scores(arrays: Arrays, name: str | None, kind: str | None) -> FileArray:
    """The array of logits or probabilities."""
    if name is not None:
        return arrays[wanted(arrays, name, "scores")]
    fitting = [
        one
        for one, array in arrays.items()
        if array.is_floating or (array.is_number and len(array.shape) > 1)
    ]
    others = [one for one in fitting if one not in named(fitting, LABELS)]
    found = named(others, SCORES)
    found = [one for one in found if len(arrays[one].shape) > 1] or found
    if len(found) > 1:
        # Logits say all that probabilities do; of both, they are taken unless the user wants the others.
        preferred = PROBABILITIES if kind == "probabilities" else LOGITS
        found = named(found, preferred[:1]) or named(found, preferred) or found
    if not found:
        wide = [one for one in others if len(arrays[one].shape) > 1]
        found = [one for one in wide if arrays[one].is_floating] or wide
    if len(found) != 1:
        problem = "has several arrays that could be scores" if found else "has no array that could be scores"
        raise unclear(arrays, problem, "scores_name")
    return arrays[found[0]]


def choose_labels(
    arrays: Arrays, name: str | None, scores: FileArray | None = None, option: str = "labels_name"
) -> FileArray:
    """The array of labels; a file that has only one array has no other."""
    if name is not None:
        return arrays[wanted(arrays, name, "labels")]
    others = [one for one, array in arrays.items() if scores is None or one != scores.name]
    if scores is None and len(others) == 1:
        return arrays[others[0]]
    found = named(others, LABELS)
    if not found:
        whole = [one for one in others if arrays[one].dtype != "text" and not arrays[one].is_floating]
        shapes = [scores.shape[:-1], scores.shape] if scores is not None else []
        fitting = [one for one in whole if arrays[one].shape in shapes and arrays[one].is_number]
        found = fitting or [one for one in whole if len(arrays[one].shape) == 1]
    if len(found) > 1 and scores is not None:
        found = [one for one in found if arrays[one].shape == scores.shape[:-1]] or found
    if not found:
        raise PredictionFileError(
            arrays.path,
            f"has no labels: it has {arrays.describe()}",
            f"give the file that has them with labels, or say which they are with {option}",
        )
    if len(found) > 1:
        raise unclear(arrays, "has several arrays that could be labels", option)
    return arrays[found[0]]
