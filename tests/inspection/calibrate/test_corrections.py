from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from inspection.made import net, saved
from softtargets.calibration import expected_calibration_error, fold_of, temperature_scaling, vector_scaling
from softtargets.inspection.calibrate.corrections import Candidate, Corrections, without_examples
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.words import advice
from softtargets.inspection.shared.numbers import Estimate
from softtargets.predictions import open_predictions


def forest(lost, n=3000, trees=100, classes=6):
    """Votes of trees that are right more often than they say; for the `lost` first examples none is for the label."""
    random = np.random.default_rng(0)
    labels = random.integers(classes, size=n)
    clear = random.uniform(2.0, 5.0, (n, 1)) * np.eye(classes)[labels]
    share = np.exp(0.55 * (random.normal(0, 1, (n, classes)) + clear))  # 0.55: underconfident
    votes = np.stack([random.multinomial(trees, one / one.sum()) for one in share])
    for i in range(lost):
        votes[i, (labels[i] + 1) % classes] += votes[i, labels[i]]
        votes[i, labels[i]] = 0
    return votes / trees, labels


def written(path, p, labels):
    np.savez(path, probabilities=p, labels=labels)
    return open_predictions(path)


@pytest.mark.parametrize("lost", [3, 12])
def test_a_forest_with_zeros_is_sharpened_and_better_for_it(tmp_path, lost):
    p, labels = forest(lost)
    found = inspect(written(tmp_path / "a.npz", p, labels))
    assert found.zeros.labelled > 0
    assert found.overconfidence.below_zero
    assert found.scaled.fit.temperature < 1
    assert found.after.expected_calibration_error < found.before.expected_calibration_error / 2
    assert found.recommended is not None
    corrected = found.recommended.correction(torch.from_numpy(p))
    assert expected_calibration_error(corrected, labels) < 0.5 * found.before.expected_calibration_error


def test_predictions_of_0_and_1_are_made_less_certain(tmp_path):
    random = np.random.default_rng(0)
    labels = random.integers(4, size=1000)
    said = np.where(random.random(1000) < 0.8, labels, random.integers(4, size=1000))
    found = inspect(written(tmp_path / "a.npz", np.eye(4)[said], labels))
    wrong = float((said != labels).mean())
    best = found.recommended
    assert best is not None
    assert best.ece_after < wrong / 4
    corrected = best.correction(torch.eye(4, dtype=torch.float64))
    assert float(corrected[0, 0]) == pytest.approx(1 - wrong, abs=0.03)


def nearly_always_right(n, classes, seed, accuracy=0.98, margin=4.0):
    """A model that is right this often, whatever it says; most of its files of some dozen examples have no mistake."""
    random = np.random.default_rng(seed)
    logits = (
        0.5 * random.normal(size=(n, classes)) + margin * np.eye(classes)[random.integers(classes, size=n)]
    )
    other = (logits.argmax(1) + random.integers(1, classes, size=n)) % classes
    return logits, np.where(random.random(n) < accuracy, logits.argmax(1), other)


@pytest.mark.parametrize(("n", "classes"), [(40, 2), (60, 3)])
def test_a_few_right_predictions_make_no_model_certain(tmp_path, n, classes):
    """Where all are right, whatever makes them more confident helps held-out examples too, until the first mistake."""
    fresh, truth = (torch.from_numpy(one) for one in nearly_always_right(20_000, classes, 99))
    recommended = 0
    for seed in range(6):
        logits, labels = nearly_always_right(n, classes, seed)
        np.savez(tmp_path / f"{seed}.npz", logits=logits, labels=labels)
        found = inspect(open_predictions(tmp_path / f"{seed}.npz"))
        best = found.recommended
        if best is not None:
            recommended += 1
            assert cross_entropy(best.correction(fresh), truth) < cross_entropy(fresh, truth)
    assert recommended <= 1


def test_predictions_that_are_all_right_are_left_as_they_are_and_why(tmp_path):
    labels = np.arange(100) % 4
    np.savez(tmp_path / "a.npz", logits=5.0 * np.eye(4)[labels], labels=labels)
    found = inspect(open_predictions(tmp_path / "a.npz"))
    cold, vector = found.corrections.tried[1:]
    assert cold.gain.above_zero
    assert cold.correction is None  # T = 0.01
    assert vector.gain.above_zero
    assert vector.hangs_on_luck
    assert not vector.helps
    told = advice(found)
    assert told[0] == "Leave the model as it is."
    assert "one more mistake would undo that: 0 mistakes in 100 examples cannot show" in told[1]


def test_the_gain_with_one_mistake_more_is_that_of_the_examples_and_the_second_class(tmp_path):
    logits, labels = net(600, classes=3, sharpness=2.0)
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    last = found.corrections.tried[-1]
    # The same by hand: fits to other folds, and the mean example as if its label were the class that comes second.
    fold = fold_of(0, 600, 3)
    scaled = torch.empty_like(logits)
    for part in range(3):
        rows = fold == part
        scaled[rows] = vector_scaling(logits[~rows], labels[~rows])(logits[rows])
    second = logits.argsort(1, descending=True)[:, 1]
    nll = {"reduction": "none"}
    gain = cross_entropy(logits, labels, **nll) - cross_entropy(scaled, labels, **nll)
    more = (cross_entropy(logits, second, **nll) - cross_entropy(scaled, second, **nll)).mean()
    every = torch.cat([gain, more[None]]).double()
    half = 1.959964 * float(every.std(correction=1)) / 601**0.5
    expected = [float(every.mean()), float(every.mean()) - half, float(every.mean()) + half]
    assert list(vars(last.gain_with_mistake).values()) == pytest.approx(expected, rel=1e-4)


def candidate(
    name, gain=(0.1, 0.05, 0.15), ece=(0.1, 0.05), over=None, fitted=True, accuracy=(0.0, 0.0, 0.0)
):
    over = {simpler: Estimate(*ends) for simpler, ends in (over or {}).items()}
    return Candidate(
        name, Estimate(*gain), over, *ece, 100, 5, object() if fitted else None, accuracy=Estimate(*accuracy)
    )


BETTER, SAME = (0.02, 0.01, 0.03), (0.02, -0.01, 0.05)


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        ([candidate("temperature")], "temperature"),
        ([candidate("temperature", gain=(0.1, -0.01, 0.2))], None),
        ([candidate("temperature", ece=(0.05, 0.0501))], None),
        ([candidate("temperature", fitted=False)], None),
        ([candidate("temperature", accuracy=(-0.02, -0.03, -0.01))], None),
        ([candidate("temperature"), candidate("vector_scaling", over={"temperature": SAME})], "temperature"),
        (
            [candidate("temperature"), candidate("vector_scaling", over={"temperature": BETTER})],
            "vector_scaling",
        ),
        (
            [
                candidate("temperature", ece=(0.05, 0.06)),
                candidate("vector_scaling", over={"temperature": SAME}),
            ],
            "vector_scaling",
        ),
        (
            [
                candidate("temperature"),
                candidate("vector_scaling", over={"temperature": BETTER}, ece=(0.1, 0.11)),
            ],
            "temperature",
        ),
    ],
)
def test_the_rule(tried, expected):
    best = Corrections(tuple(tried)).recommended
    assert (best.name if best else None) == expected


def test_held_out_numbers_are_those_of_a_loop_over_thirds(tmp_path):
    logits, labels = net(1500, 4, sharpness=1.5)
    logits = logits + torch.tensor([1.0, 0, 0, -1.0])
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    one = next(one for one in found.corrections.tried if one.name == "vector_scaling")
    fold = fold_of(0, 1500, 3)
    scaled, single = torch.empty_like(logits), torch.empty_like(logits)
    for f in range(3):
        scaled[fold == f] = vector_scaling(logits[fold != f], labels[fold != f])(logits[fold == f])
        single[fold == f] = temperature_scaling(logits[fold != f], labels[fold != f])(logits[fold == f])
    losses = [cross_entropy(z.double(), labels, reduction="none") for z in (logits, single, scaled)]
    gain = losses[0] - losses[2]
    assert one.gain.value == pytest.approx(float(gain.mean()), abs=1e-6)
    half = 1.96 * float(gain.std()) / math.sqrt(1500)
    assert one.gain.high - one.gain.value == pytest.approx(half, rel=1e-3)
    assert one.over["temperature"].value == pytest.approx(float((losses[1] - losses[2]).mean()), abs=1e-6)
    assert one.ece_after == pytest.approx(expected_calibration_error(scaled.softmax(1), labels), abs=1e-6)
    assert one.ece_before == pytest.approx(found.before.expected_calibration_error)
    right = [(z.argmax(1) == labels).double().mean() for z in (logits, scaled)]
    assert one.accuracy.value == pytest.approx(float(right[1] - right[0]), abs=1e-9)


def test_biases_are_recommended_where_they_are_and_only_there(tmp_path):
    logits, labels = net(3000, 4, sharpness=1.5)
    biased = inspect(saved(tmp_path / "b.npz", logits + torch.tensor([1.0, 0, 0, -1.0]), labels))
    plain = inspect(saved(tmp_path / "a.npz", logits, labels))
    assert biased.recommended.name == "bias_corrected_temperature"
    assert plain.recommended.name == "temperature"
    bias = biased.recommended.correction.bias
    assert bias.tolist() == pytest.approx([-1 / 1.5, 0, 0, 1 / 1.5], abs=0.15)
    assert "a bias for each class; its numbers are in the table, in correction.json" in advice(biased)[0]


def test_a_calibrated_model_is_seldom_touched_and_never_much(tmp_path):
    """Of models that are calibrated; a false correction must pass both conditions."""
    touched = 0
    for seed in range(40):
        n = (25, 60, 200, 800)[seed % 4]
        found = inspect(saved(tmp_path / "a.npz", *net(n, 3, seed=seed)))
        touched += found.recommended is not None
    assert touched <= 4


def test_few_examples_per_class_are_not_asked_for_more(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(100, 10)))
    assert found.corrections.why_not == "100 examples are fewer than 20 for each of the 10 classes"
    assert [one.name for one in found.corrections.tried] == ["temperature"]


@pytest.mark.parametrize("names", [None, ("ant", "bee", "cat", "dog")])
def test_a_class_that_is_never_the_label_is_not_taken_away(tmp_path, names):
    """No held-out example could show what a bias for it does to a file that has it."""
    logits, labels = net(4000, 4, sharpness=1.5)
    logits = logits + torch.tensor([1.0, 0, 0, -1.0])
    kept = labels != 2
    found = inspect(saved(tmp_path / "a.npz", logits[kept][:2000], labels[kept][:2000]))
    assert [one.name for one in found.corrections.tried] == ["temperature"]
    assert found.corrections.why_not.startswith("no label is class 2, and")
    said = without_examples(torch.tensor([0, 3]), 4, names)
    assert said.startswith(
        f"2 of the 4 classes, such as class {repr(names[1]) if names else 1}, are never the label"
    )
    assert without_examples(torch.arange(4), 4, names) == ""


def test_numbers_are_given_for_what_helps_alone(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(800, 3, sharpness=2.0)))
    told = found.numbers()["corrections"]
    assert told["recommended"] == "temperature"
    assert told["tried"][0]["correction"]["temperature"] == pytest.approx(found.scaled.fit.temperature)
    for one in told["tried"]:
        assert (one["correction"] is not None) == one["helps"]


def sharpened(found):
    """What must hold of every forest: it says too little, and what is recommended makes it say more."""
    assert found.overconfidence.below_zero
    assert found.scaled.fit.temperature < 1
    assert found.after.expected_calibration_error < found.before.expected_calibration_error / 3
    assert found.recommended is not None
    assert found.recommended.ece_after < found.before.expected_calibration_error / 3


def test_a_forest_on_digits_whose_labels_have_zeros(tmp_path):
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    some, others = order[:200], order[200:]
    trees = RandomForestClassifier(25, random_state=0).fit(images[some], labels[some])
    found = inspect(written(tmp_path / "a.npz", trees.predict_proba(images[others]), labels[others]))
    assert found.zeros.labelled > 0
    sharpened(found)


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["fashion-mnist", "mnist"])
def test_a_forest_on_real_images(tmp_path, name):
    from sklearn.ensemble import RandomForestClassifier

    from softtargets.data import load

    root = os.environ.get("SOFTTARGETS_DATA")
    if root is None or not (Path(root) / {"mnist": "MNIST"}.get(name, "FashionMNIST")).exists():
        pytest.skip("SOFTTARGETS_DATA is not set or has no such data")
    train, test = load(name, "train", root), load(name, "test", root)
    trees = RandomForestClassifier(50, random_state=0).fit(
        train.images[:10_000].reshape(10_000, -1), train.labels[:10_000]
    )
    found = inspect(
        written(tmp_path / "a.npz", trees.predict_proba(test.images.reshape(10_000, -1)), test.labels)
    )
    assert found.zeros.labelled > 0
    sharpened(found)
