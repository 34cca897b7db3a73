"""Five figures of two models that were trained on real digits, with hard and with smoothed labels.

    python examples/plots.py --out figures.png          (--dark for a dark background)

Trains teachers and students on scikit-learn's handwritten digits (about 20 seconds on two cores), and draws with
`softtargets.plotting` on axes of an ordinary matplotlib figure.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import softtargets as st
from softtargets import plotting
from softtargets.recipes import MLP, SGD, Digits, Distillation, LabelSmoothing, Recipe, Shift

ALPHAS = (0.0, 0.1, 0.3)


def main() -> None:
    """Train, draw, save."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--out", type=Path, default=Path("figures.png"))
    arguments.add_argument("--epochs", type=int, default=40)
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("--dark", action="store_true")
    given = arguments.parse_args()

    teachers = {
        (alpha, seed): Recipe(
            data=Digits(),
            model=MLP(hidden=(128, 128)),
            regulariser=LabelSmoothing(alpha=alpha),
            optimiser=SGD(lr=0.1, momentum=0.9),
            augmentation=(Shift(pixels=1),),
            epochs=given.epochs,
            seed=seed,
        )
        for alpha in ALPHAS
        for seed in range(given.seeds)
    }
    students = {
        place: teacher.replace(
            {"model": MLP(hidden=(16,)), "regulariser": Distillation(teacher=teacher, temperature=2.0)}
        )
        for place, teacher in teachers.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        made = [*teachers.values(), *students.values()]
        runs = {
            run.id: run
            for run in st.train(made, st.RunStore(folder), device="cpu", keep=("test",), progress=False)
        }
        hard, smooth = (runs[teachers[alpha, 0].id].predictions("test") for alpha in ALPHAS[:2])
        templates = runs[teachers[ALPHAS[1], 0].id].weights()["head.weight"]
        accuracy = {recipe.id: runs[recipe.id].summary["test_accuracy"] for recipe in made}

    both = {"hard labels": hard.logits, "label smoothing 0.1": smooth.logits}
    curves = {
        name: {alpha: [accuracy[some[alpha, seed].id] for seed in range(given.seeds)] for alpha in ALPHAS}
        for name, some in (("teacher", teachers), ("student of that teacher", students))
    }
    figure = Figure(figsize=(15, 9), layout="constrained")
    if given.dark:
        figure.set_facecolor("#111827")
    axes = figure.subplots(2, 3).ravel()
    look = {"dark": True if given.dark else None}
    plotting.reliability_diagram(hard.logits, hard.labels, ax=axes[0], title="Hard labels", **look)
    plotting.reliability_diagram(both, hard.labels, ax=axes[1], title="Both", fewest=5, **look)
    plotting.risk_coverage(both, hard.labels, ax=axes[2], title="Reject the least confident", **look)
    plotting.temperature_sweep(both, hard.labels, ax=axes[3], title="Calibration over temperature", **look)
    plotting.template_plane(
        smooth.features, smooth.labels, templates, [3, 8, 9], ax=axes[4], title="Last layer, smoothed", **look
    )
    plotting.distillation_curves(
        curves,
        ax=axes[5],
        xlabel="label smoothing of the teacher",
        ylabel="test accuracy",
        title="Distillation",
        **look,
    )
    figure.savefig(given.out, dpi=80)

    errors = {
        name: 100 * st.expected_calibration_error(logits.softmax(-1), hard.labels)
        for name, logits in both.items()
    }
    print(
        "Expected calibration error: "
        + ", ".join(f"{error:.2f} % ({name})" for name, error in errors.items())
        + "."
    )
    print(f"Five figures are in {given.out}.")


if __name__ == "__main__":
    main()
