"""Calibrate scikit-learn classifiers with one import and one line, on real digits; then take the result to torch.

    python examples/sklearn_calibration.py

Trains a random forest and a support vector machine on scikit-learn's handwritten digits, calibrates both on examples
that they have not seen, and prints the calibration error and the log-loss on a third part.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import softtargets as st
from softtargets.integrations.sklearn import (
    HistogramBinner,
    IsotonicCalibrator,
    PlattScaler,
    TemperatureScaler,
    VectorScaler,
)


def main() -> None:
    """Train, calibrate, compare, export."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--trees", type=int, default=300, help="of the random forest")
    trees = arguments.parse_args().trees

    X, y = load_digits(return_X_y=True)
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[
        y
    ]  # labels of any kind will do
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, names, train_size=700, random_state=0, stratify=names
    )
    X_cal, X_test, y_cal, y_test = train_test_split(
        X_rest, y_rest, train_size=500, random_state=0, stratify=y_rest
    )

    forest = RandomForestClassifier(trees, random_state=0).fit(X_train, y_train)
    before = forest.predict_proba(X_test)
    truth = np.searchsorted(forest.classes_, y_test)
    print(
        f"A random forest says {100 * before.max(1).mean():.1f} % and is right in "
        f"{100 * np.mean(forest.predict(X_test) == y_test):.1f} % of cases."
    )
    print(f"{'':22} {'ECE':>7} {'log-loss':>9}")
    print(
        f"{'as it is':22} {100 * st.expected_calibration_error(before, truth):6.2f}% {log_loss(y_test, before):9.3f}"
    )
    for kind in (TemperatureScaler, VectorScaler, PlattScaler, IsotonicCalibrator, HistogramBinner):
        after = kind(forest).fit(X_cal, y_cal).predict_proba(X_test)
        error = st.expected_calibration_error(after, truth)
        print(f"{kind.__name__:22} {100 * error:6.2f}% {log_loss(y_test, after):9.3f}")

    scaler = TemperatureScaler(forest).fit(X_cal, y_cal)
    low, high = scaler.fit_.interval()
    print(
        f"The forest is underconfident: its temperature is {scaler.temperature_:.2f} ({low:.2f} to {high:.2f})."
    )

    # One that is not fitted is calibrated on held-out folds; margins become probabilities.
    machine = TemperatureScaler(SVC()).fit(X_train, y_train)
    error = st.expected_calibration_error(machine.predict_proba(X_test), truth)
    print(
        f"A support vector machine gets probabilities with an ECE of {100 * error:.2f} % "
        f"(T = {machine.temperature_:.2f})."
    )

    # The same numbers in torch: a module with buffers, for state_dict, torch.export or ONNX.
    module = scaler.to_module()
    in_torch = module(torch.from_numpy(before)).numpy()
    print(f"{module} gives the same to {np.abs(in_torch - scaler.predict_proba(X_test)).max():.0e}.")


if __name__ == "__main__":
    main()
