"""Which arrays or columns of a file are scores and which labels: by their usual names, or by being the only ones.

Every guess goes the same way: candidates, then one wish after another (`prefer`), of which those that no candidate
fulfils are dropped, and in the end there must be one (`only`). Nothing else is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from softtargets.exceptions import nearest
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import PredictionFileError
from softtargets.predictions.formats import Arrays
from softtargets.predictions.table import ONE_SCORE

Names = list[str]

LOGITS = ("logits", "logit", "log_probs", "log_prob", "logprobs", "log_probabilities", "log_softmax")
PROBABILITIES = ("probabilities", "probability", "probs", "prob", "proba", "y_prob", "y_proba", "softmax")
SCORES = (
    *(*LOGITS, *PROBABILITIES, "scores", "score", "outputs", "output", "predictions", "prediction", "preds"),
    *("pred", "y_pred", "y_preds", "y_score", "y_scores", "y_hat", "yhat"),
)
LABELS = (
    *("labels", "label", "targets", "target", "y", "y_true", "ytrue", "y_test", "true", "truth"),
    *("true_label", "true_labels", "gt", "ground_truth", "groundtruth", "class", "actual", "label_ids"),
)
# Columns of numbers that are no scores.
OTHERS = frozenset(
    {"", "id", "index", "idx", "row", "number", "unnamed_0", "example", "sample", "filename", "file", "path"}
    | {"name", "fold", "split", "seed", "epoch", "loss", "correct", "confidence", "predicted", "argmax"}
    | {"predicted_label", "pred_label", "pred_class", "predicted_class", "weight"}
)
PREFIXES = sorted((*SCORES, "p", "class", "cls"), key=len, reverse=True)
# A minus belongs to a number where something else separates it: prob_-1.
_REST = r"(?:[_ .:/-]+?(-\d.*|[^_ .:/-].*)|(\d+)|\[(.+)\]|\((.+)\))"
GROUPS = {
    prefix: re.compile(prefix.replace("_", "[_ ]?") + _REST, re.IGNORECASE | re.DOTALL) for prefix in PREFIXES
}
NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def normal(name: str) -> str:
    """A name as the lists above have it: ``Test/True-Label`` becomes ``test_true_label``."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def named(names: Sequence[str], usual: Sequence[str]) -> Names:
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


def prefer(found: Names, *wishes: Callable[[Names], Names]) -> Names:
    """What fulfils one wish after another; a wish that would leave nothing is dropped.

    >>> prefer(["a", "b1", "b2"], lambda names: [n for n in names if "b" in n], lambda names: [])
    ['b1', 'b2']
    """
    for wish in wishes:
        found = wish(found) or found
    return found


def only(
    arrays: Arrays, found: Names, what: str, option: str, several: str = "arrays", none: str = "no array"
) -> str:
    """The one that is left, or the refusal to guess."""
    if len(found) == 1:
        return found[0]
    raise unclear(arrays, f"has {f'several {several}' if found else none} that could be {what}", option)


def unclear(arrays: Arrays, problem: str, option: str) -> PredictionFileError:
    """What there is, and how to say which."""
    return arrays.refused(f"{problem}: it has {arrays.describe()}", f"name it with {option}")


def wanted(arrays: Arrays, name: str, what: str) -> str:
    """A name the user gave, or a refusal that says which there are."""
    if name in arrays:
        return name
    kind = "column" if arrays.table is not None else "array"
    raise arrays.refused(
        f"has no {kind} '{name}' for the {what}{nearest(name, list(arrays))}",
        f"it has {arrays.describe()}",
    )


def choose_scores(arrays: Arrays, name: str | None, kind: str | None) -> FileArray:
    """The array of logits or probabilities."""
    if name is not None:
        return arrays[wanted(arrays, name, "scores")]

    def wide(names: Names) -> Names:
        return [one for one in names if len(arrays[one].shape) > 1]

    def floating(names: Names) -> Names:
        return [one for one in names if arrays[one].is_floating]

    def preferred(names: Names) -> Names:
        # Logits say all that probabilities do; of both, they are taken unless the user wants the others.
        usual = PROBABILITIES if kind == "probabilities" else LOGITS
        return named(names, usual[:1]) or named(names, usual)

    numbers = [one for one, array in arrays.items() if array.is_number]
    either = {*floating(numbers), *wide(numbers)}
    fitting = [one for one in numbers if one in either]
    labels = set(named(fitting, LABELS))
    others = [one for one in fitting if one not in labels]
    found = prefer(named(others, SCORES), wide, preferred) or prefer(wide(others), floating)
    if len(arrays) == 1:
        found = found or fitting  # one score for each example, with labels in another file
    return arrays[only(arrays, found, "scores", "scores_name")]


def choose_labels(arrays: Arrays, name: str | None, scores: FileArray | None = None) -> FileArray:
    """The array of labels; a file that has only one array has no other."""
    if name is not None:
        return arrays[wanted(arrays, name, "labels")]
    others = [one for one in arrays if scores is None or one != scores.name]
    if scores is None and len(others) == 1:
        return arrays[others[0]]

    found = named(others, LABELS) or _unnamed_labels(arrays, others, scores)
    if not found:
        raise arrays.refused(
            f"has no labels: it has {arrays.describe()}",
            "give the file that has them with labels, or name them with labels_name",
        )
    if scores is not None:
        found = prefer(found, lambda names: _shaped(arrays, names, scores.shape[:-1]))
    return arrays[only(arrays, found, "labels", "labels_name")]


def _unnamed_labels(arrays: Arrays, others: Names, scores: FileArray | None) -> Names:
    """Whole numbers, one for each row of scores or one-hot; or else those with one dimension."""
    whole = [one for one in others if arrays[one].dtype != "text" and not arrays[one].is_floating]
    numbers = [one for one in whole if arrays[one].is_number]
    fitting = _shaped(arrays, numbers, scores.shape[:-1], scores.shape) if scores is not None else []
    return fitting or [one for one in whole if len(arrays[one].shape) == 1]


def _shaped(arrays: Arrays, names: Names, *shapes: tuple[int, ...]) -> Names:
    return [one for one in names if arrays[one].shape in shapes]


def choose_label_column(arrays: Arrays, name: str | None) -> str | None:
    """The column of labels by its usual names; None if there is none."""
    if name is not None:
        return wanted(arrays, name, "labels")
    found = named(list(arrays), LABELS)
    return only(arrays, found, "labels", "labels_name", "columns") if found else None


@dataclass(frozen=True)
class Columns:
    """Names of columns: the `classes` in order; `names` of the classes and what was `ignored`."""

    classes: tuple[str, ...]
    names: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def called(self) -> str:
        """What the scores are called: the common beginning of the columns, or the name of the first."""
        group = group_of(self.classes[0])
        return group[0] if group else self.classes[0]

    @property
    def codes(self) -> Mapping[str, int]:
        """The number of a class for each text that stands for it."""
        if len(self.classes) == 1:
            return ONE_SCORE
        return {name: place for names in (self.classes, self.names) for place, name in enumerate(names)}

    @property
    def numbers(self) -> dict[int, int] | None:
        """The class for each number that columns are named by; None if those are 0, 1, 2, ... or no numbers."""
        plain = len(self.names) > 1 and all(map(NUMBER.fullmatch, self.names))
        found = {int(name): place for place, name in enumerate(self.names)} if plain else {}
        return found if any(number != place for number, place in found.items()) else None


def choose_columns(
    arrays: Arrays, label: str | None, scores_name: str | Sequence[str] | None, kind: str | None
) -> Columns:
    """Columns of classes: those with a common beginning such as ``prob_``, or else all other numbers."""
    numbers = [
        name for name, one in arrays.items() if one.is_number and len(one.shape) == 1 and name != label
    ]
    if scores_name is None:
        found = _in_order(_grouped(arrays, numbers, kind) or _ungrouped(arrays, numbers, kind))
    else:
        found = _said(arrays, numbers, [scores_name] if isinstance(scores_name, str) else list(scores_name))
    if not found:
        if arrays.table is not None and (comma := arrays.table.decimal_comma()):
            name, cell = comma
            raise arrays.refused(
                f"has no columns of numbers that could be scores: column '{name}' has '{cell[:40]}'",
                "write decimals with a point: 0.5, not 0,5",
            )
        raise unclear(arrays, "has no columns of numbers that could be scores", "scores_name")
    chosen, names = zip(*found, strict=True)
    used = {*chosen, label}
    ignored = tuple(name for name in arrays if name not in used)
    return Columns(chosen, tuple(name.strip() for name in names), ignored)


# Columns with the names of their classes.
Pairs = list[tuple[str, str]]


def _said(arrays: Arrays, numbers: Names, given: Names) -> Pairs:
    """Columns the user gave; one name may also be the beginning of many."""
    if len(given) == 1:
        many = [name for name in numbers if name != given[0] and name.startswith(given[0])]
        if many:
            return [(name, name.removeprefix(given[0])) for name in many]
    return [(wanted(arrays, name, "scores"), name) for name in given]


def _in_order(found: Pairs) -> Pairs:
    """By number, if classes are numbers: prob_10 comes before prob_2 in files that are sorted by name."""
    numbered = all(NUMBER.fullmatch(name) for _, name in found)
    return sorted(found, key=lambda one: int(one[1])) if numbered else found


def _grouped(arrays: Arrays, numbers: Names, kind: str | None) -> Pairs:
    """Two columns or more with a common beginning that is a usual name of scores."""
    groups: dict[str, Pairs] = {}
    for name in numbers:
        if group := group_of(name):
            groups.setdefault(group[0], []).append((name, group[1]))
    usual = PROBABILITIES if kind == "probabilities" else LOGITS
    found = [prefix for prefix, columns in groups.items() if len(columns) > 1]
    found = _among(usual)(found) or found
    if len(found) > 1:
        raise unclear(arrays, "has several groups of columns that could be scores", "scores_name")
    return groups[found[0]] if found else []


def _ungrouped(arrays: Arrays, numbers: Names, kind: str | None) -> Pairs:
    """All other numbers; or the one that is called a score: then others, such as ``pred``, are not classes."""
    found = [name for name in numbers if not (normal(name) in OTHERS or name.lower().endswith("_id"))]
    called = _among(SCORES)(found)
    if len(found) == 1:
        if not called and not group_of(found[0]):
            problem = (
                "has one column of numbers beside the labels, but its name does not say that it is a score"
            )
            raise unclear(arrays, problem, "scores_name")
    elif called:
        usual = (PROBABILITIES, LOGITS) if kind == "probabilities" else (LOGITS, PROBABILITIES)
        wishes = [_among(names) for names in (*usual, ("score", "scores"))]
        found = [only(arrays, prefer(called, *wishes), "the score", "scores_name", "columns")]
    return [(name, name) for name in found]


def _among(usual: Sequence[str]) -> Callable[[Names], Names]:
    return lambda names: [name for name in names if normal(name) in usual]


def group_of(name: str) -> tuple[str, str] | None:
    """The beginning that is a usual name of scores, and the rest.

    >>> group_of("prob_cat"), group_of("P(cat)"), group_of("logits[3]"), group_of("class7"), group_of("price")
    (('prob', 'cat'), ('p', 'cat'), ('logits', '3'), ('class', '7'), None)
    >>> group_of("prob_-1"), group_of("prob-1"), group_of("y_prob - cat")
    (('prob', '-1'), ('prob', '1'), ('y_prob', 'cat'))
    """
    for prefix, pattern in GROUPS.items() if normal(name) not in OTHERS else ():
        if match := pattern.fullmatch(name):
            return prefix, next(group for group in match.groups() if group is not None)
    return None
