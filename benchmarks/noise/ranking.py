"""Precision of rankings of suspicious labels: how many of the first so many are wrong, for as many as are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.noise.predictions import Predicted
from softtargets.noise import suspicious_examples

CASES = (
    ("cifar10", ("aggregate", "random1", "random2", "random3", "worse", "uniform-20", "pair-20"), "cnn"),
    ("cifar100", ("noisy",), "cnn"),
)
METHODS = ("self_confidence", "normalized_margin")


def precisions(given: Predicted) -> dict[str, float]:
    """By method; cleanlab's scores are its own where it is installed and by their definition otherwise."""
    wrong = given.given != given.clean
    ours = suspicious_examples(given.given, given.probabilities).index
    found = {"softtargets": ours}
    for method in METHODS:
        found[f"cleanlab {method}"] = np.argsort(_quality(given, method), kind="stable")
    if find_spec("cleanlab"):
        issues: Any = import_module("cleanlab.filter").find_label_issues
        named = issues(given.given, given.probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
        # A method that names fewer examples than there are errors is measured on those it names, and so are we.
        found |= {"cleanlab find_label_issues": named, "softtargets, as many": ours[: len(named)]}
    return {name: float(wrong[order[: wrong.sum()]].mean()) for name, order in found.items()}


def _quality(given: Predicted, method: str) -> NDArray[np.float64]:
    if find_spec("cleanlab"):
        scores: Any = import_module("cleanlab.rank").get_label_quality_scores
        return np.asarray(scores(given.given, given.probabilities, method=method))
    own = np.take_along_axis(given.probabilities, given.given[:, None], 1)[:, 0]
    others = given.probabilities.copy()
    np.put_along_axis(others, given.given[:, None], -1, 1)
    return own if method == "self_confidence" else own - others.max(1)


def table(found: Iterable[tuple[str, dict[str, float]]]) -> str:
    """Labels down, methods across, in per cent."""
    rows = list(found)
    names = list(dict.fromkeys(name for _, by_method in rows for name in by_method))
    lines = [f"| labels | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for title, by_method in rows:
        cells = " | ".join(f"{100 * by_method[name]:.1f}" if name in by_method else "" for name in names)
        lines.append(f"| {title} | {cells} |")
    return "\n".join(lines)
