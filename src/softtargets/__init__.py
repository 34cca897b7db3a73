"""softtargets: the target a classifier is trained on, and what it does to the classifier.

    import softtargets as st

    loss = st.LabelSmoothing(alpha=0.1)                                  # instead of torch.nn.CrossEntropyLoss
    found = st.measure_calibration(logits, labels, from_logits=True)     # do the probabilities mean what they say?
    st.reliability_diagram(found)

Importing this package imports nothing heavy: the names below and the modules (``st.losses``, ``st.calibration``, ...)
are loaded on first use. The modules have many more.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from softtargets import (
        arrays,
        calibration,
        claims,
        data,
        distillation,
        errors,
        geometry,
        information,
        integrations,
        losses,
        models,
        noise,
        plotting,
        predictions,
        recipes,
        runs,
        selection,
        theory,
        training,
        translation,
    )
    from softtargets.calibration import (
        CalibrationMetric,
        expected_calibration_error,
        load_correction,
        measure_calibration,
        smooth_calibration_error,
        temperature_scaling,
        vector_scaling,
    )
    from softtargets.geometry import neural_collapse, plane_view
    from softtargets.losses import (
        LABO,
        ConfidencePenalty,
        CrossEntropy,
        Distillation,
        FocalLoss,
        ForwardCorrection,
        LabelSmoothing,
        OnlineLabelSmoothing,
    )
    from softtargets.noise import estimate_noise
    from softtargets.plotting import reliability_diagram
    from softtargets.predictions import open_predictions
    from softtargets.recipes import Recipe
    from softtargets.runs import RunStore
    from softtargets.selection import measure_selection
    from softtargets.theory import optimal_alpha
    from softtargets.training import train

# The names that people want, by the room that has them.
_NAMES = {
    "losses": (
        "ConfidencePenalty",
        "CrossEntropy",
        "Distillation",
        "FocalLoss",
        "ForwardCorrection",
        "LABO",
        "LabelSmoothing",
        "OnlineLabelSmoothing",
    ),
    "calibration": (
        "CalibrationMetric",
        "expected_calibration_error",
        "load_correction",
        "measure_calibration",
        "smooth_calibration_error",
        "temperature_scaling",
        "vector_scaling",
    ),
    "selection": ("measure_selection",),
    "geometry": ("neural_collapse", "plane_view"),
    "noise": ("estimate_noise",),
    "theory": ("optimal_alpha",),
    "plotting": ("reliability_diagram",),
    "predictions": ("open_predictions",),
    "recipes": ("Recipe",),
    "runs": ("RunStore",),
    "training": ("train",),
}
_HOMES = {name: room for room, names in _NAMES.items() for name in names}

__all__ = [
    "LABO",
    "CalibrationMetric",
    "ConfidencePenalty",
    "CrossEntropy",
    "Distillation",
    "FocalLoss",
    "ForwardCorrection",
    "LabelSmoothing",
    "OnlineLabelSmoothing",
    "Recipe",
    "RunStore",
    "__version__",
    "arrays",
    "calibration",
    "claims",
    "data",
    "distillation",
    "errors",
    "estimate_noise",
    "expected_calibration_error",
    "geometry",
    "information",
    "integrations",
    "load_correction",
    "losses",
    "measure_calibration",
    "measure_selection",
    "models",
    "neural_collapse",
    "noise",
    "open_predictions",
    "optimal_alpha",
    "plane_view",
    "plotting",
    "predictions",
    "recipes",
    "reliability_diagram",
    "runs",
    "selection",
    "smooth_calibration_error",
    "temperature_scaling",
    "theory",
    "train",
    "training",
    "translation",
    "vector_scaling",
]


if not TYPE_CHECKING:  # to which every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(_import_module(f"softtargets.{_HOMES[name]}"), name)
            globals()[name] = value  # asked for once
            return value
        if name in __all__:
            return _import_module(f"softtargets.{name}")
        raise AttributeError(f"module 'softtargets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__file__", "__name__", "__path__"})
