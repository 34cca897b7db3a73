"""Which arrays or columns of a file are confidences, and which say whether a prediction is right: by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.predictions import guess
from softtargets.predictions.formats import Arrays

CONFIDENCES = (
    *("confidence", "confidences", "conf", "max_prob", "max_probs", "max_probability", "top_prob"),
    *("top1_prob", "top_1_prob", "top_probability", "chosen_prob", "chosen_probs", "chosen_probability"),
    *("token_prob", "token_probs", "token_probability", "token_probabilities"),
)
LOGARITHMS = (
    *("log_prob", "log_probs", "logprob", "logprobs", "log_probability", "log_probabilities"),
    *("log_confidence", "token_logprob", "token_logprobs", "token_log_prob", "token_log_probs"),
    *("chosen_logprob", "chosen_logprobs", "chosen_log_prob", "chosen_log_probs", "log_p"),
)
CORRECT = ("correct", "is_correct", "correctness", "right", "is_right", "hit", "hits", "match", "matches")
PREDICTED = (
    *("predicted", "prediction", "predictions", "pred", "preds", "y_pred", "y_preds", "y_hat", "yhat"),
    *("argmax", "predicted_label", "pred_label", "predicted_class", "pred_class", "predicted_token"),
    *("predicted_tokens", "pred_token", "pred_tokens", "chosen", "chosen_token", "chosen_tokens"),
    *("predicted_id", "predicted_ids"),
)


@dataclass(frozen=True)
class ConfidenceColumns:
    """Names of the arrays or columns: the confidence, and either `correct`, or `predicted` and `labels`."""

    confidence: str
    correct: str | None = None
    predicted: str | None = None
    labels: str | None = None


def find_confidences(arrays: Arrays) -> ConfidenceColumns | None:
    """The columns of a file that has confidences and no scores of all classes, by their usual names; None if unsure."""
    names = list(arrays)
    predicted = _first(names, PREDICTED)
    labels = _first([one for one in names if one not in predicted], guess.LABELS)
    correct = _first(names, CORRECT)
    if not correct and not (labels and predicted):
        return None
    # A lone "prob" beside labels is that of class 1; beside nothing but "correct" it can only be a confidence.
    usual = (*CONFIDENCES, *LOGARITHMS, *(() if labels else guess.PROBABILITIES))
    others = [one for one in names if arrays[one].is_number and one not in (*predicted, *labels, *correct)]
    confidence = _first([one for one in others if arrays[one].is_floating], usual)
    left = [one for one in others if one not in confidence]
    # Beside labels, a column such as "prob" or "logit" is the score of class 1, which says more than a confidence.
    scored = [one for one in left if labels and guess.normal(one) in set(guess.SCORES) - set(LOGARITHMS)]
    if not confidence or scored or _has_scores(arrays, left):
        return None
    wide = len(arrays[confidence[0]].shape) > 1
    beside = correct or labels
    if wide and arrays[confidence[0]].shape != arrays[beside[0]].shape:
        return None  # scores of all classes by an unusual name
    if correct:
        return ConfidenceColumns(confidence[0], correct[0], labels=labels[0] if labels else None)
    return ConfidenceColumns(confidence[0], None, predicted[0], labels[0])


def _first(names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The name that comes first among the usual ones, as a list of one or none."""
    found = [name for name in names if guess.normal(name) in usual]
    return sorted(found, key=lambda name: usual.index(guess.normal(name)))[:1]


def _has_scores(arrays: Arrays, others: Sequence[str]) -> bool:
    """Whether there is an array of several classes, or a group of columns such as prob_0, prob_1, ..."""
    if any(len(arrays[one].shape) > 1 and arrays[one].is_floating for one in others):
        return True
    groups = [group[0] for one in others if (group := guess.group_of(one))]
    return len(groups) > len(set(groups))


def name_columns(
    file: Arrays,
    confidence: str | None,
    correct: str | None,
    prediction: str | None,
    labels: str | None,
    ignore_index: int | None,
) -> ConfidenceColumns:
    """What the user named, and the rest by its usual names; refused where it does not say which are right."""
    names = list(file)
    given = {
        "confidence": (confidence, (*CONFIDENCES, *LOGARITHMS, *guess.PROBABILITIES)),
        "correct": (correct, CORRECT),
        "predictions": (prediction, PREDICTED),
        "labels": (labels, guess.LABELS),
    }
    found: dict[str, str | None] = {}
    for what, (said, usual) in given.items():
        taken = set(found.values())
        if said is not None:
            found[what] = guess.wanted(file, said, what)
        else:
            one = _first([name for name in names if name not in taken], usual)
            found[what] = one[0] if one else None
    if found["confidence"] is None:
        raise guess.unclear(file, "has no confidence under a usual name", "confidence_name")
    by_numbers = prediction is not None and correct is None
    right = None if by_numbers else found["correct"]
    if right is None and (found["predictions"] is None or found["labels"] is None):
        raise file.refused(
            f"does not show which predictions are right: it has {file.describe()}",
            "name the array of 0 and 1 with correct_name, or the arrays of predictions and labels with "
            "prediction_name and labels_name",
        )
    if ignore_index is not None and found["labels"] is None:
        raise file.refused(f"has no labels: it has {file.describe()}", "name the labels with labels_name")
    predicted = found["predictions"] if right is None else None
    return ConfidenceColumns(found["confidence"], right, predicted, found["labels"])
