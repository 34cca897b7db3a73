"""Does label smoothing harm selective prediction, and do normalised logits repair it? Trains, measures, prints a table.

    softtargets data fetch fashion-mnist
    python docs/label_smoothing_selection.py [--data fashion-mnist] [--model mlp] [--seeds 5] [--epochs 20]

Runs are kept in ./runs, so that the command goes on where it was stopped. docs/selection.md has the results.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.selection import fit_normalisation, measure_selection
from softtargets.training import train

ALPHAS = (0.0, 0.1, 0.2, 0.4)
MODELS = {"mlp": {"name": "mlp", "hidden": [512]}, "cnn": {"name": "cnn"}}


def recipes(data: str, model: str, seeds: int, epochs: int, limit: int | None) -> dict[float, list[Recipe]]:
    """For each share of smoothing one recipe for each seed."""
    common = {
        "data": {"name": data, "limit": limit},
        "model": MODELS[model],
        "optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4},
        "schedule": "cosine",
        "epochs": epochs,
    }
    return {
        alpha: [
            Recipe.from_dict(
                common | {"regulariser": {"name": "label_smoothing", "alpha": alpha}, "seed": seed}
            )
            for seed in range(seeds)
        ]
        for alpha in ALPHAS
    }


def measured(run: Run) -> list[float]:
    """Accuracy, AURC and excess AURC by the maximum probability, and the two areas by normalised logits (held out)."""
    found = run.predictions("test")
    plain = measure_selection(found.logits, found.labels, from_logits=True)
    normalised = fit_normalisation(found.logits, found.labels)
    curve = normalised.curve or plain.curve
    return [plain.accuracy, plain.aurc, plain.excess_aurc, curve.aurc, curve.excess_aurc]


def told(values: Sequence[float], sign: str = "") -> str:
    """A mean over seeds in points, with its interval of Student's distribution."""
    numbers = 100 * np.asarray(values)
    half = student.ppf(0.975, len(numbers) - 1) * numbers.std(ddof=1) / math.sqrt(len(numbers))
    return f"{numbers.mean():{sign}.2f} ± {half:.2f}".replace("-", "−")


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--model", default="mlp", choices=MODELS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--limit", type=int, help="train on the first so many examples [all]")
    given = parser.parse_args()
    grid = recipes(given.data, given.model, given.seeds, given.epochs, given.limit)
    runs = iter(train([one for column in grid.values() for one in column], RunStore("runs")))
    found = {alpha: np.array([measured(next(runs)) for _ in column]) for alpha, column in grid.items()}
    hard = found[0.0]
    columns = [
        "smoothing",
        "accuracy (%)",
        "AURC (%)",
        "excess AURC",
        "change by smoothing",
        "excess AURC, normalised logits",
        "change by normalising",
    ]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for alpha, one in found.items():
        accuracy, aurc, excess, _, repaired = one.T
        against = told(excess - hard[:, 2], "+") if alpha else "–"
        cells = [told(accuracy), told(aurc), told(excess), against, told(repaired)]
        lines.append(f"| {alpha:g} | {' | '.join([*cells, told(repaired - excess, '+')])} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
