"""Calibrators as scikit-learn estimators: its own checks, its own calibration, and what people do with them."""

import pickle
import warnings
from inspect import signature
from unittest import SkipTest

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from softtargets.calibration import (
    bias_corrected_temperature,
    expected_calibration_error,
    histogram_binning,
    isotonic_regression,
    logits_from_probabilities,
    platt_scaling,
    temperature_scaling,
    vector_scaling,
    zero_floor,
)
from softtargets.integrations.sklearn import (
    BiasCorrectedTemperatureScaler,
    HistogramBinner,
    IsotonicCalibrator,
    PlattScaler,
    TemperatureScaler,
    VectorScaler,
)

ALL = [
    TemperatureScaler,
    VectorScaler,
    BiasCorrectedTemperatureScaler,
    PlattScaler,
    IsotonicCalibrator,
    HistogramBinner,
]


def made(classes=4, examples=500, seed=0):
    random = np.random.default_rng(seed)
    z = 3 * random.normal(size=(examples, classes))
    p = np.exp(z / 2)
    p /= p.sum(1, keepdims=True)
    y = (p.cumsum(1) > random.uniform(size=(examples, 1))).argmax(1)
    return z, y


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], X[600:1200], y[600:1200], X[1200:], y[1200:]


def checked(estimator):
    """What scikit-learn's own checks say, as `check_estimator` gives it since version 1.6."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "on_fail" in signature(check_estimator).parameters:
            return check_estimator(estimator, on_fail=None)
        return [_checked(check, one) for one, check in check_estimator(estimator, generate_only=True)]


def _checked(check, estimator):
    found = {"check_name": check.func.__name__, "status": "passed", "exception": None}
    try:
        check(estimator)
    except SkipTest:
        found["status"] = "skipped"
    except Exception as error:
        found |= {"status": "failed", "exception": error}
    return found


# That of versions before 1.6 removes examples, after which cross-validation has other folds.
OTHER_FOLDS = "check_sample_weights_invariance"


@pytest.mark.parametrize("kind", ALL)
def test_scikit_learns_own_checks(kind):
    results = [one for one in checked(kind(LogisticRegression())) if one["check_name"] != OTHER_FOLDS]
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert not failed
    assert sum(one["status"] == "passed" for one in results) >= (60 if len(results) > 60 else 46)


def test_of_scores_the_checks_that_pass_features_off_as_scores_do_not_apply():
    results = checked(TemperatureScaler())
    failed = [one for one in results if one["status"] == "failed"]
    for one in failed:
        told = f"{one['exception']} {one['exception'].__cause__ or one['exception'].__context__ or ''}"
        assert "column" in told or "add up to 1" in told or one["check_name"] == "check_classifiers_train", (
            one
        )
    assert sum(one["status"] == "passed" for one in results) >= (45 if len(results) > 60 else 30)


def test_numbers_are_those_of_softtargets_calibration():
    z, y = made()
    logits, labels = torch.from_numpy(z), torch.from_numpy(y)
    scaler = TemperatureScaler().fit(z, y)
    assert scaler.temperature_ == temperature_scaling(logits, labels).temperature
    assert scaler.kind_ == "logits"
    vector = VectorScaler().fit(z, y)
    found = vector_scaling(logits, labels)
    assert np.array_equal(vector.scale_, found.scale.numpy())
    assert np.array_equal(vector.bias_, found.bias.numpy())
    both = BiasCorrectedTemperatureScaler().fit(z, y)
    assert both.temperature_ == bias_corrected_temperature(logits, labels).temperature
    assert scaler.predict_proba(z) == pytest.approx(softmax(z / scaler.temperature_), abs=1e-12)
    for kind, fit in (
        (PlattScaler, platt_scaling),
        (IsotonicCalibrator, isotonic_regression),
        (HistogramBinner, histogram_binning),
    ):
        assert np.array_equal(kind().fit(z, y).predict_proba(z), fit(logits, labels)(logits).numpy())


def test_probabilities_are_scaled_by_their_logarithms_with_a_floor_under_zeros():
    z, y = made()
    p = softmax(z)
    p[p < 0.02] = 0
    p /= p.sum(1, keepdims=True)
    scaler = TemperatureScaler().fit(p, y)
    floor = zero_floor(torch.from_numpy(p), torch.from_numpy(y))
    logs = logits_from_probabilities(torch.from_numpy(p), floor=floor)
    assert scaler.kind_ == "probabilities"
    assert scaler.floor_ == floor
    assert scaler.temperature_ == temperature_scaling(logs, torch.from_numpy(y)).temperature
    assert scaler.predict_proba(p) == pytest.approx(softmax(logs.numpy() / scaler.temperature_), abs=1e-12)


def test_log_probabilities_are_logits_and_what_is_said_counts():
    z, y = made()
    logs = np.log(softmax(z))
    assert TemperatureScaler().fit(logs, y).temperature_ == pytest.approx(
        TemperatureScaler().fit(z, y).temperature_
    )
    with pytest.raises(ValueError, match="add up to 1"):
        TemperatureScaler(kind="logits").fit(softmax(z), y)
    with pytest.raises(ValueError, match="do not add up to 1"):
        TemperatureScaler().fit(softmax(z) / 2, y)
    with pytest.raises(ValueError, match="kind must be one of"):
        TemperatureScaler(kind="scores").fit(z, y)


@pytest.mark.parametrize("kind", ALL)
def test_one_column_is_the_second_class(kind):
    z, y = made(2)
    both, one = kind().fit(z, y), kind(kind="logits").fit(z[:, 1] - z[:, 0], y)
    # With two numbers for each class, vector scaling knows more of two logits than of their difference.
    if kind is not VectorScaler:
        assert one.predict_proba(z[:, 1] - z[:, 0]) == pytest.approx(both.predict_proba(z), abs=1e-6)
    p = softmax(z)[:, 1]
    assert kind().fit(p, y).kind_ == "probabilities"
    assert kind().fit(p[:, None], y).predict_proba(p[:, None]).shape == (500, 2)


def test_a_fitted_classifier_stays_as_it_is(digits):
    X, y, X_cal, y_cal, X_test, y_test = digits
    classifier = RandomForestClassifier(30, random_state=0).fit(X, y)
    before = classifier.predict_proba(X_test)
    scaler = TemperatureScaler(classifier).fit(X_cal, y_cal)
    assert scaler.estimator_ is classifier
    assert np.array_equal(classifier.predict_proba(X_test), before)
    alone = TemperatureScaler().fit(classifier.predict_proba(X_cal), y_cal)
    assert scaler.temperature_ == alone.temperature_
    errors = [expected_calibration_error(p, y_test) for p in (before, scaler.predict_proba(X_test))]
    assert errors[1] < errors[0] / 2
    assert np.array_equal(scaler.predict(X_test), classifier.predict(X_test))


def test_frozen_estimators_survive_a_clone(digits):
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6 has no FrozenEstimator")
    X, y, X_cal, y_cal, X_test, _ = digits
    classifier = LogisticRegression(max_iter=200).fit(X / 16, y)
    scaler = TemperatureScaler(frozen.FrozenEstimator(classifier))
    copy = clone(scaler).fit(X_cal / 16, y_cal)
    assert copy.temperature_ == TemperatureScaler(classifier).fit(X_cal / 16, y_cal).temperature_
    assert np.array_equal(copy.estimator_.predict(X_test / 16), classifier.predict(X_test / 16))


def test_what_is_not_fitted_is_calibrated_on_held_out_scores(digits):
    X, y, *_ = digits
    model = LogisticRegression(max_iter=200)
    scaler = TemperatureScaler(model).fit(X / 16, y)
    held_out = cross_val_predict(model, X / 16, y, cv=StratifiedKFold(5), method="decision_function")
    assert scaler.temperature_ == pytest.approx(temperature_scaling(held_out, y).temperature, rel=1e-9)
    assert np.array_equal(scaler.estimator_.coef_, clone(model).fit(X / 16, y).coef_)
    assert not hasattr(model, "coef_")
    with pytest.raises(Exception, match="prefit"):
        TemperatureScaler(model, cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match="hold out every example once"):
        TemperatureScaler(model, cv=ShuffleSplit(3, random_state=0)).fit(X / 16, y)


def test_temperature_and_sigmoid_are_those_of_scikit_learn():
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6 has no FrozenEstimator")
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    classifier = LogisticRegression(C=100).fit(X[:200], y[:200])
    theirs = CalibratedClassifierCV(frozen.FrozenEstimator(classifier), method="sigmoid", ensemble=False)
    ours = PlattScaler(classifier).fit(X[200:], y[200:])
    assert ours.predict_proba(X) == pytest.approx(theirs.fit(X[200:], y[200:]).predict_proba(X), abs=2e-4)
    if "temperature" not in CalibratedClassifierCV._parameter_constraints["method"][0].options:
        pytest.skip("scikit-learn before 1.8 has no temperature scaling")
    Xd, yd = load_digits(return_X_y=True)
    many = LogisticRegression(C=100, max_iter=300).fit(Xd[:600] / 16, yd[:600])
    theirs = CalibratedClassifierCV(frozen.FrozenEstimator(many), method="temperature", ensemble=False)
    theirs.fit(Xd[600:] / 16, yd[600:])
    ours = TemperatureScaler(many).fit(Xd[600:] / 16, yd[600:])
    beta = theirs.calibrated_classifiers_[0].calibrators[0].beta_
    assert ours.temperature_ == pytest.approx(1 / beta, rel=1e-4)
    assert ours.predict_proba(Xd / 16) == pytest.approx(theirs.predict_proba(Xd / 16), abs=1e-4)


def test_isotonic_regression_of_a_forest_is_scikit_learns(digits):
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6 has no FrozenEstimator")
    X, y, X_cal, y_cal, X_test, _ = digits
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    theirs = CalibratedClassifierCV(frozen.FrozenEstimator(forest), method="isotonic", ensemble=False)
    theirs.fit(X_cal, y_cal)
    ours = IsotonicCalibrator(forest).fit(X_cal, y_cal)
    assert ours.predict_proba(X_test) == pytest.approx(theirs.predict_proba(X_test), abs=1e-6)


def test_margins_of_support_vector_machines_become_probabilities(digits):
    X, y, X_cal, y_cal, X_test, y_test = digits
    for classifier in (SVC().fit(X, y), LinearSVC().fit(X / 16, y)):
        scale = 1 if isinstance(classifier, SVC) else 16
        for kind in ALL:
            p = kind(classifier).fit(X_cal / scale, y_cal).predict_proba(X_test / scale)
            assert np.allclose(p.sum(1), 1)
            assert expected_calibration_error(p, y_test) < 0.1, kind


@pytest.mark.parametrize("kind", ALL)
def test_labels_of_any_type(kind):
    z, y = made(3)
    names = np.array(["cat", "dog", "a bird"])
    order = np.argsort(names)
    fitted = kind().fit(z[:, order], names[y])
    assert fitted.classes_.tolist() == sorted(names)
    plain = kind().fit(z, y)
    assert fitted.predict_proba(z[:, order])[:, np.argsort(order)] == pytest.approx(
        plain.predict_proba(z), abs=1e-6
    )
    assert set(fitted.predict(z[:, order])) <= set(names)
    assert kind().fit(z[y < 2][:, :2], y[y < 2] == 1).classes_.tolist() == [False, True]


@pytest.mark.parametrize("kind", ALL)
def test_a_class_may_be_absent_from_the_calibration_set(kind):
    z, y = made(4)
    some = y != 2
    fitted = kind().fit(z[some], y[some])
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    assert np.isfinite(fitted.predict_proba(z)).all()
    named = kind(classes=["a", "b", "c", "d"]).fit(z[some], np.array(list("abcd"))[y[some]])
    assert np.array_equal(named.predict_proba(z), fitted.predict_proba(z))
    with pytest.raises(ValueError, match=r"say which class each column is: classes=\[...\]"):
        kind().fit(z[some], np.array(list("abcd"))[y[some]])
    with pytest.raises(ValueError, match="not classes of the scores: 'e'"):
        kind(classes=["a", "b", "c", "d"]).fit(z, np.array(list("abed"))[y])


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_handful_of_examples_gives_finite_probabilities(kind, rows):
    z = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 4.0]])[:rows]
    fitted = kind().fit(z, np.arange(rows))
    found = fitted.predict_proba(np.array([[0.0, 0.0, 0.0], [1e3, -1e3, 0.0]]))
    assert np.isfinite(found).all()
    assert np.allclose(found.sum(1), 1)


@pytest.mark.parametrize("kind", ALL)
def test_probabilities_of_exactly_0_and_1(kind):
    p = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0]] * 10)
    y = np.array([0, 1, 0, 1] * 10)
    found = kind().fit(p, y).predict_proba(p)
    assert np.isfinite(found).all()
    # Of those with probability 1 half are wrong.
    assert found[0, 0] < 0.95


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ALL)
def test_naive_bayes_whose_probabilities_are_as_small_as_numbers_can_be(kind, digits):
    X, y, X_calibration, y_calibration, X_test, y_test = digits
    classifier = GaussianNB().fit(X, y)
    p = classifier.predict_proba(X_calibration)
    assert (p == 0).any()
    assert p[p > 0].min() < 1e-300
    # With the smallest number that there is: half of it is 0.
    p = np.vstack([p, np.eye(10)[:1] + 5e-324 * (np.arange(10) == 3)])
    scaler = kind().fit(p, np.append(y_calibration, 0))
    assert 0 < scaler.floor_ <= 5e-324
    found = kind(classifier).fit(X_calibration, y_calibration).predict_proba(X_test)
    assert np.isfinite(found).all()
    own = np.arange(len(y_test)), y_test
    before = classifier.predict_proba(X_test)[own]
    assert np.log(found[own].clip(1e-300)).mean() > np.log(before.clip(1e-300)).mean() + 1


def test_a_temperature_at_the_end_of_its_range_says_so(digits):
    X, y, X_calibration, y_calibration, *_ = digits
    with pytest.warns(ConvergenceWarning, match="rises above T = 100"):
        scaler = TemperatureScaler(GaussianNB().fit(X, y)).fit(X_calibration, y_calibration)
    assert scaler.temperature_ == 100
    z = 4 * np.eye(3)
    with pytest.warns(ConvergenceWarning, match=r"rises below T = 0\.01"):
        TemperatureScaler().fit(np.tile(z, (5, 1)), np.tile([0, 1, 2], 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperatureScaler().fit(*made())


def test_labels_of_one_class_are_refused_by_that_name(digits):
    X, y, *_ = digits
    with pytest.raises(ValueError, match=r"labels of one class only, 3; .*must be fitted already"):
        TemperatureScaler(LogisticRegression()).fit(X[y == 3], y[y == 3])
    fitted = LogisticRegression(max_iter=100).fit(X, y)
    assert np.isfinite(PlattScaler(fitted).fit(X[y == 3], y[y == 3]).predict_proba(X)).all()


@pytest.mark.parametrize("kind", ALL)
def test_weights_are_repetitions(kind):
    z, y = made(3, 120)
    w = np.array([0, 1, 2, 3] * 30)
    again = np.repeat(np.arange(120), w)
    weighted, repeated = kind().fit(z, y, sample_weight=w), kind().fit(z[again], y[again])
    assert weighted.predict_proba(z) == pytest.approx(repeated.predict_proba(z), abs=1e-6)
    assert not np.allclose(weighted.predict_proba(z), kind().fit(z, y).predict_proba(z))


@pytest.mark.parametrize("kind", ALL)
def test_a_weight_of_zero_is_an_example_that_is_not_there(kind):
    z, y = made(3, 120)
    p = softmax(z)
    p[p < 0.05] = 0  # what a zero counts as depends on how often it was wrong
    p /= p.sum(1, keepdims=True)
    p[0] = [1 - 1e-6, 1e-6, 0]  # and on the smallest of all others
    w = np.arange(120) % 3 > 0
    weighted, fewer = kind().fit(p, y, sample_weight=w), kind().fit(p[w], y[w])
    assert weighted.floor_ == fewer.floor_
    assert weighted.predict_proba(p) == pytest.approx(fewer.predict_proba(p), abs=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_it_is_cloned_piped_and_pickled(kind, digits):
    X, y, *_, X_test, _ = digits
    scaler = kind(LogisticRegression(max_iter=100), cv=3)
    assert clone(scaler).get_params()["cv"] == 3
    pipe = make_pipeline(StandardScaler(), scaler).fit(X, y)
    again = pickle.loads(pickle.dumps(pipe))
    assert np.array_equal(again.predict_proba(X_test), pipe.predict_proba(X_test))
    behind = make_pipeline(FunctionTransformer(lambda z: 2 * z), kind())
    z, labels = made()
    assert behind.fit(z, labels).predict_proba(z).shape == (500, 4)


def test_a_search_finds_the_number_of_bins():
    z, y = made(2, 400)
    search = GridSearchCV(HistogramBinner(), {"bins": [2, 10]}, scoring="neg_log_loss", cv=2).fit(z, y)
    assert search.best_params_["bins"] in (2, 10)
    assert np.isfinite(search.best_score_) or search.best_score_ == -np.inf


def test_tensors_go_in_and_a_module_comes_out():
    z, y = made()
    scaler = VectorScaler().fit(torch.from_numpy(z), torch.from_numpy(y))
    module = scaler.to_module()
    assert torch.allclose(module(torch.from_numpy(z)), torch.from_numpy(scaler.predict_proba(z)))
    module.scale.zero_()
    assert not (scaler.module_.scale == 0).any()


def test_other_columns_are_refused_when_predicting():
    z, y = made()
    with pytest.raises(ValueError, match="expecting 4 features"):
        TemperatureScaler().fit(z, y).predict_proba(z[:, :3])
    with pytest.raises(ValueError, match="If X has features and not scores"):
        TemperatureScaler().fit(z, np.arange(len(y)) % 7)
    with pytest.raises(ValueError, match=r"non-zero number|sample_weight is 0"):
        TemperatureScaler().fit(z, y, sample_weight=np.zeros(len(y)))


def test_bfloat16_tensors_are_scores_as_others_are():
    z, y = made()
    z = torch.from_numpy(z).bfloat16()
    found = TemperatureScaler().fit(z, torch.from_numpy(y))
    wanted = TemperatureScaler().fit(z.float().numpy(), y)
    assert found.temperature_ == wanted.temperature_
    np.testing.assert_array_equal(found.predict_proba(z), wanted.predict_proba(z.float()))


@pytest.mark.parametrize("classes", [3, 10])
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: make_pipeline(StandardScaler(), one)])
def test_columns_of_pairs_are_not_taken_for_classes(classes, wrap, digits):
    """Of three classes there are three pairs, so that their number says nothing."""
    X, y, X_calibration, y_calibration, *_ = digits
    some, others = y < classes, y_calibration < classes
    support = wrap(SVC(decision_function_shape="ovo")).fit(X[some], y[some])
    with pytest.raises(ValueError, match='one for each pair; use decision_function_shape="ovr"'):
        TemperatureScaler(support).fit(X_calibration[others], y_calibration[others])


@pytest.mark.parametrize("fitted", [True, False])
def test_what_is_no_classifier_is_refused(fitted, digits):
    X, y, *_ = digits
    regressor = LinearRegression().fit(X, y) if fitted else LinearRegression()
    with pytest.raises(ValueError, match="must be a classifier, but LinearRegression is a regressor"):
        TemperatureScaler(regressor).fit(X, y)

    class Nameless(LogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            del self.classes_
            return self

    with pytest.raises(ValueError, match="but Nameless has no classes_ once it is fitted"):
        TemperatureScaler(Nameless()).fit(X[y < 2], y[y < 2])


@pytest.mark.parametrize("kind", ALL)
def test_negative_weights_are_refused(kind):
    z, y = made()
    weights = np.ones(len(y))
    weights[3] = -0.5
    with pytest.raises(ValueError, match=r"sample_weight must be at least 0, but one of them is -0\.5"):
        kind().fit(z, y, sample_weight=weights)


def test_columns_with_names_keep_their_order():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    z, y = made()
    y = np.array(["cat", "dog", "eel", "fox", "gnu", "hen"])[: z.shape[1]][y]
    names = sorted(set(y))
    table = pandas.DataFrame(z, columns=names)
    scaler = TemperatureScaler().fit(table, y)
    assert scaler.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names should match"):
        scaler.predict_proba(table[names[::-1]])
    with pytest.raises(ValueError, match=r"are named .*, but are taken .*classes="):
        TemperatureScaler().fit(table[names[::-1]], y)
    turned = TemperatureScaler(classes=names[::-1]).fit(table[names[::-1]], y)
    assert turned.temperature_ == pytest.approx(scaler.temperature_, rel=1e-6)
    assert (turned.predict(table[names[::-1]]) == scaler.predict(table)).all()
