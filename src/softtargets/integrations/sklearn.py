"""Calibrators as scikit-learn estimators: around a classifier, or on scores that somebody has already.

    scaler = TemperatureScaler(classifier).fit(X_calibration, y_calibration)     # a fitted classifier stays as it is
    scaler = TemperatureScaler().fit(scores, y)                                  # logits or probabilities (n, K)

Each gives ``predict_proba``, and ``to_module()`` the same as a `torch.nn.Module`. What is fitted is what
`softtargets.calibration` fits to the same scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)
from torch import Tensor

from softtargets.calibration import (
    CalibrationModule,
    LogitScaling,
    TemperatureFit,
    VectorScaling,
    bias_corrected_temperature,
    histogram_binning,
    isotonic_regression,
    logits_from_probabilities,
    platt_scaling,
    temperature_scaling,
    vector_scaling,
    zero_floor,
)
from softtargets.predictions import Judgement, Kind, checked_scores, kind_of_scores

try:
    from sklearn.utils.validation import _check_feature_names
except ImportError:  # before scikit-learn 1.6 it was a method

    def _check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
        estimator._check_feature_names(X, reset=reset)


__all__ = [
    "BiasCorrectedTemperatureScaler",
    "HistogramBinner",
    "IsotonicCalibrator",
    "PlattScaler",
    "TemperatureScaler",
    "VectorScaler",
]

FOLDS = 5
# Numbers that a prediction may hold at a time: tables are compared with every score.
AT_A_TIME = 1 << 24
RESPONSES = {
    "auto": ("decision_function", "predict_proba"),
    "logits": ("decision_function", "predict_log_proba"),
    "probabilities": ("predict_proba",),
}
Array = NDArray[Any]


class Calibrator(ClassifierMixin, BaseEstimator):
    """What all of them share.

    Parameters
    ----------
    estimator : a classifier, or None
        One that is fitted is taken as it is, and ``fit(X, y)`` fits the calibration alone: give it examples that the
        classifier has not seen. One that is not fitted is fitted by cross-validation (`cv`): the calibration to
        scores of examples held out, the classifier in the end to all. ``clone``, and so a search over parameters,
        forgets fits; wrap the classifier in ``sklearn.frozen.FrozenEstimator`` to keep it. None: X are scores.
    kind : "auto", "logits" or "probabilities"
        What the scores are. "auto" takes ``decision_function`` of a classifier if it has one, else ``predict_proba``;
        of scores given as X it looks at the numbers, as `softtargets calibrate` does with files.
    classes : the labels that the columns of X stand for, or None
        Needed only where X are scores, some class has no example in y, and labels are not 0 to K - 1.
    cv : number of folds or splitter for a classifier that is not fitted; "prefit" refuses to fit it
        None is 5 folds, or fewer if a class has fewer examples.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of ``predict_proba``
    kind_ : what the scores were taken for
    floor_ : what a probability of exactly 0 counts as (`softtargets.calibration.zero_floor`), None without one
    module_ : the fitted `torch.nn.Module`
    estimator_ : the classifier, if there is one
    """

    classes_: Array
    module_: CalibrationModule
    kind_: Kind
    floor_: float | None
    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        kind: Literal["auto", "logits", "probabilities"] = "auto",
        classes: Sequence[Any] | None = None,
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.kind = kind
        self.classes = classes
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the calibration to scores of X, or to X themselves, and labels y; returns self."""
        if self.kind not in RESPONSES:
            raise ValueError(f"kind must be one of {', '.join(map(repr, RESPONSES))}, not {self.kind!r}")
        y = column_or_1d(_as_numpy(y), warn=True)
        check_classification_targets(y)
        if self.estimator is None:
            scores = _as_scores(X)
            _check_feature_names(self, X, reset=True)
            if len(scores) != len(y):
                raise ValueError(f"there are {len(scores)} rows of scores and {len(y)} labels")
            weight = None if sample_weight is None else _check_sample_weight(sample_weight, scores)
            self.classes_ = self._classes_of(scores, y)
            _refuse_other_order(X, self.classes_, self.classes)
            self.n_features_in_ = 1 if scores.ndim == 1 else scores.shape[1]
            judged = kind_of_scores(scores, None if self.kind == "auto" else self.kind)
        else:
            X, y = indexable(X, y)
            weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
            scores, judged = self._respond_held_out(X, y, weight)
            self.classes_ = self.estimator_.classes_
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
        codes = _codes(y, self.classes_)
        self._judged, self.kind_ = judged, judged.kind
        found = self._columns(scores)
        labels = torch.from_numpy(codes)
        weights = None if weight is None else torch.from_numpy(np.asarray(weight, dtype=np.float64))
        if weights is not None:
            if bool((weights < 0).any()):
                raise ValueError(
                    f"sample_weight must be at least 0, but one of them is {float(weights.min()):g}"
                )
            if not bool((weights > 0).any()):
                raise ValueError("sample_weight is 0 for every example; there is nothing to fit to")
            counted = weights > 0  # an example of weight 0 is one that is not there
            found, labels, weights = found[counted], labels[counted], weights[counted]
        self.floor_ = None if self.kind_ == "logits" else zero_floor(found, labels)
        self.module_ = self._fitted(found, labels, weights)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated probabilities (n, K), columns as in `classes_`."""
        check_is_fitted(self, "module_")
        if self.estimator is None:
            scores = _as_scores(X)
            _check_feature_names(self, X, reset=False)
            self._refuse_other_columns(scores)
        else:
            scores, judged = self._respond(self.estimator_, X)
            if judged.kind != self.kind_:
                raise ValueError(
                    f"the classifier gives {judged.kind}, but the fit had {self.kind_}; fit again"
                )
        values = self._columns(scores).double()
        table = getattr(self.module_, "places", None)
        rows = max(1, AT_A_TIME // (values.shape[1] * (1 if table is None else max(1, table.shape[1]))))
        with torch.no_grad():
            found: NDArray[np.float64] = torch.cat(
                [self.module_(some) for some in values.split(rows)]
            ).numpy()
        return found

    def predict(self, X: Any) -> Array:
        """The label with the highest calibrated probability."""
        check_is_fitted(self, "module_")
        found: Array = self.classes_[self.predict_proba(X).argmax(1)]
        return found

    def to_module(self) -> CalibrationModule:
        """The calibration of scores (..., K) as a module of its own, for torch or ONNX; of two classes two columns."""
        check_is_fitted(self, "module_")
        return deepcopy(self.module_)

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        raise NotImplementedError("abstract: each method fits its own")

    def _logits(self, scores: Tensor) -> Tensor:
        if self.kind_ == "logits":
            return scores
        return logits_from_probabilities(scores, floor=self.floor_, checked=True)

    # --- scores that are given ---

    def _classes_of(self, scores: Array, y: Array) -> Array:
        columns = 2 if scores.ndim == 1 or scores.shape[1] == 1 else scores.shape[1]
        seen = np.unique(y)
        if self.classes is not None:
            known = np.asarray(self.classes)
            if len(known) != columns or len(np.unique(known)) != columns:
                raise ValueError(
                    f"classes must be {columns} different labels, one for each column, not {known.tolist()}"
                )
            return known
        if len(seen) == columns:
            return seen
        numbers = seen.dtype.kind in "iu" or (seen.dtype.kind == "f" and bool((seen == seen.round()).all()))
        if numbers and seen[0] >= 0 and seen[-1] < columns:
            return np.arange(columns, dtype=seen.dtype if seen.dtype.kind in "iuf" else np.int64)
        raise ValueError(
            f"X has scores of {columns} classes and y has {len(seen)} labels, {_some(seen)}; say which class each "
            "column is: classes=[...]. If X has features and not scores, pass the classifier: "
            f"{type(self).__name__}(classifier)"
        )

    def _refuse_other_columns(self, scores: Array) -> None:
        columns = 1 if scores.ndim == 1 else scores.shape[1]
        if columns != self.n_features_in_:
            raise ValueError(
                f"X has {columns} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input: a column of scores for each class. Reshape your data if it is one example: X.reshape(1, -1)"
            )

    def _columns(self, scores: Array) -> Tensor:
        """Scores with a column for each class, looked at."""
        found = torch.from_numpy(np.ascontiguousarray(scores))
        if found.ndim == 1 or found.shape[1] == 1:
            one = found.reshape(-1)
            found = torch.stack([torch.zeros_like(one) if self.kind_ == "logits" else 1 - one, one], 1)
        return checked_scores(found, self._judged)

    # --- scores of a classifier ---

    def _respond_held_out(self, X: Any, y: Array, weight: Array | None) -> tuple[Array, Judgement]:
        """Scores of X by a classifier that has not seen them, as far as that is in our hands."""
        fitted = _is_fitted(self.estimator)
        if is_regressor(self.estimator):
            raise ValueError(
                f"estimator must be a classifier, but {type(self.estimator).__name__} is a regressor"
            )
        if fitted:
            self.estimator_ = self.estimator
            return self._respond(self.estimator_, X)
        if self.cv == "prefit":
            raise NotFittedError(
                f"cv='prefit' and {type(self.estimator).__name__} is not fitted; fit it first, or leave cv out"
            )
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has labels of one class only, {_some(classes)}; a classifier needs two, or must be fitted already"
            )
        if counts.min() < 2:
            raise ValueError(
                f"class {_some(classes[[counts.argmin()]])} has only 1 sample, and cross-validation holds out some of "
                "each class and trains on the rest; give a fitted classifier"
            )
        splitter = check_cv(min(FOLDS, int(counts.min())) if self.cv is None else self.cv, y, classifier=True)
        scores: Array | None = None
        for train, held_out in splitter.split(X, y):
            X_train, y_train = _safe_split(self.estimator, X, y, train)
            classifier = self._fit_classifier(X_train, y_train, weight, train)
            if not hasattr(classifier, "classes_"):
                raise ValueError(
                    f"estimator must be a classifier, but {type(self.estimator).__name__} has no classes_ once it is "
                    "fitted"
                )
            if len(classifier.classes_) != len(classes):
                raise ValueError(
                    f"a fold saw {len(classifier.classes_)} of the {len(classes)} classes; set cv to fewer folds, or "
                    "give a fitted classifier"
                )
            part, judged = self._respond(classifier, _safe_split(self.estimator, X, y, held_out, train)[0])
            if scores is None:
                scores, times = (
                    np.empty((len(y), *part.shape[1:]), dtype=part.dtype),
                    np.zeros(len(y), dtype=int),
                )
            scores[held_out] = part
            times[held_out] += 1
        if scores is None or (times != 1).any():
            raise ValueError(f"cv must hold out every example once, as folds do, which {splitter} does not")
        self.estimator_ = self._fit_classifier(X, y, weight, slice(None))
        return scores, judged

    def _fit_classifier(self, X: Any, y: Any, weight: Array | None, rows: Any) -> Any:
        options = {}
        if weight is not None and has_fit_parameter(self.estimator, "sample_weight"):
            options["sample_weight"] = weight[rows]
        return clone(self.estimator).fit(X, y, **options)

    def _respond(self, classifier: Any, X: Any) -> tuple[Array, Judgement]:
        names = RESPONSES[self.kind]
        name = next((name for name in names if hasattr(classifier, name)), None)
        if name is None:
            raise ValueError(
                f"{type(classifier).__name__} has no {' and no '.join(names)}, which kind={self.kind!r} needs"
            )
        scores = np.asarray(getattr(classifier, name)(X))
        classes = len(classifier.classes_)
        last = classifier.steps[-1][1] if hasattr(classifier, "steps") else classifier
        pairs = name == "decision_function" and getattr(last, "decision_function_shape", None) == "ovo"
        columns = 2 if scores.ndim == 1 or (scores.ndim == 2 and scores.shape[1] == 1) else scores.shape[1]
        if scores.ndim > 2 or columns != classes or (pairs and classes > 2):
            advice = ', one for each pair; use decision_function_shape="ovr" or kind="probabilities"'
            raise ValueError(
                f"{name} of {type(classifier).__name__} must give a column for each of the {classes} classes, but "
                f"gives the shape {scores.shape}{advice * pairs}"
            )
        kind: Kind = "probabilities" if name == "predict_proba" else "logits"
        return scores, Judgement(kind, f"from {name}", 1e-3 if kind == "probabilities" else None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            from sklearn.utils import get_tags

            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


class TemperatureScaler(Calibrator):
    """Divide logits by one number, the temperature (Guo et al. 2017): `softtargets.calibration.temperature_scaling`.

    It changes how confident predictions are, and never which class is the likeliest. Few examples will do.
    `temperature_` and `standard_error_` are its numbers, and `fit_` is all that is known of the fit.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = SVC().fit(X[:900], y[:900])
    >>> scaler = TemperatureScaler(classifier).fit(X[900:1300], y[900:1300])
    >>> print(f"T = {scaler.temperature_:.2f} +- {scaler.standard_error_:.2f}, {scaler.predict_proba(X[1300:]).shape}")
    T = 0.29 +- 0.03, (497, 10)
    """

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        self.fit_: TemperatureFit = temperature_scaling(self._logits(scores), labels, weights=weights)
        self.temperature_, self.standard_error_ = self.fit_.temperature, self.fit_.standard_error
        if self.fit_.ending in ("lowest", "highest"):
            warnings.warn(self.fit_.note, ConvergenceWarning, stacklevel=3)
        return LogitScaling.of(self.fit_, kind=self.kind_, floor=self.floor_)


class VectorScaler(Calibrator):
    """Multiply the logit of each class by a number and add one: `softtargets.calibration.vector_scaling`.

    `scale_` and `bias_` (K,) are its numbers; it needs some twenty examples of each class. `ridge` keeps the numbers of
    classes with few examples in place.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        kind: Literal["auto", "logits", "probabilities"] = "auto",
        classes: Sequence[Any] | None = None,
        cv: Any = None,
        ridge: float = 0.01,
    ) -> None:
        super().__init__(estimator, kind=kind, classes=classes, cv=cv)
        self.ridge = ridge

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        self.fit_: VectorScaling = vector_scaling(
            self._logits(scores), labels, ridge=self.ridge, weights=weights
        )
        self.scale_, self.bias_ = self.fit_.scale.numpy(), self.fit_.bias.numpy()
        return LogitScaling.of(self.fit_, kind=self.kind_, floor=self.floor_)


class BiasCorrectedTemperatureScaler(VectorScaler):
    """A temperature and a number that is added to each class: `softtargets.calibration.bias_corrected_temperature`.

    For a model that predicts some classes too often. `temperature_` and `bias_` (K,) are its numbers.
    """

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        found = bias_corrected_temperature(self._logits(scores), labels, ridge=self.ridge, weights=weights)
        self.fit_ = found  # type: ignore[assignment]
        self.temperature_, self.bias_ = found.temperature, found.bias.numpy()
        return LogitScaling.of(found, kind=self.kind_, floor=self.floor_)


class PlattScaler(Calibrator):
    """A sigmoid of each class's log-odds (Platt 1999): `softtargets.calibration.platt_scaling`."""

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        module = platt_scaling(scores, labels, from_logits=self.kind_ == "logits", weights=weights)
        self.slope_, self.intercept_ = module.slope.numpy(), module.intercept.numpy()
        return module


class IsotonicCalibrator(Calibrator):
    """A rising function of each class's probability: `softtargets.calibration.isotonic_regression`."""

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        return isotonic_regression(scores, labels, from_logits=self.kind_ == "logits", weights=weights)


class HistogramBinner(Calibrator):
    """How often a class was the label where its probability lay in the same bin: `histogram_binning`.

    `bins` is how many there are, and `edges` whether they are as wide as each other or hold as many examples.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        kind: Literal["auto", "logits", "probabilities"] = "auto",
        classes: Sequence[Any] | None = None,
        cv: Any = None,
        bins: int = 15,
        edges: Literal["uniform", "quantile"] = "uniform",
    ) -> None:
        super().__init__(estimator, kind=kind, classes=classes, cv=cv)
        self.bins = bins
        self.edges = edges

    def _fitted(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> CalibrationModule:
        return histogram_binning(
            scores,
            labels,
            bins=self.bins,
            edges=self.edges,
            from_logits=self.kind_ == "logits",
            weights=weights,
        )


def _is_fitted(classifier: Any) -> bool:
    try:
        check_is_fitted(classifier)
    except NotFittedError:
        return False
    return hasattr(classifier, "classes_")


def _as_numpy(values: Any) -> Any:
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()  # numpy has no bfloat16


def _as_scores(X: Any) -> Array:
    found: Array = check_array(_as_numpy(X), dtype=[np.float64, np.float32], ensure_2d=False)
    if found.ndim == 0:
        raise ValueError(f"scores must be (examples, classes), not the number {found}. Reshape your data")
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _refuse_other_order(X: Any, classes: Array, said: Any) -> None:
    """Columns that are named as the labels, but stand in another order, are not what they are taken for."""
    names = [str(name) for name in getattr(X, "columns", ())]
    wanted = [str(label) for label in classes.tolist()]
    if said is None and names != wanted and sorted(names) == sorted(wanted):
        raise ValueError(
            f"the columns of X are named {_some(names)}, but are taken for the labels in their order, {_some(wanted)}; "
            "say which class each column is: classes=[...]"
        )


def _codes(y: Array, classes: Array) -> NDArray[np.int64]:
    """The place of each label among the classes."""
    seen, inverse = np.unique(y, return_inverse=True)
    places = {label: place for place, label in enumerate(classes.tolist())}
    unknown = [label for label in seen.tolist() if label not in places]
    if unknown:
        raise ValueError(
            f"y has labels that are not classes of the scores: {_some(unknown)}; classes are {_some(classes)}"
        )
    return np.array([places[label] for label in seen.tolist()], dtype=np.int64)[inverse.reshape(-1)]


def _some(values: Any, most: int = 5) -> str:
    shown = list(_shown(values, most))
    return ", ".join(shown) + (", ..." if len(values) > most else "")


def _shown(values: Any, most: int) -> Iterator[str]:
    for value in list(values)[:most]:
        yield repr(value.item() if isinstance(value, np.generic) else value)
