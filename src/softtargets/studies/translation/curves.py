"""BLEU, calibration and likelihood against temperature: what is measured of one model, and the figure of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from softtargets.calibration import TemperatureSweep
from softtargets.claims import Sample
from softtargets.report import Curve, Figure, Panel, lines
from softtargets.report.drawing import BLUE, RED
from softtargets.runs import Measured, Run
from softtargets.studies.results import Results, Row
from softtargets.studies.translation.measures import TranslatedRuns, chances

# Temperatures at which sentences are translated, 1.13 being the paper's; and those of the curves of ECE and NLL.
TEMPERATURES: Mapping[str, tuple[float, ...]] = {
    "small": (0.7, 1.0, 1.5),
    "full": (0.5, 0.7, 0.85, 1.0, 1.13, 1.3, 1.5, 1.75, 2.0),
}
SMOOTH = tuple(step / 10 for step in range(5, 21))
MEASURES = ("bleu", "ece", "nll")


def temperatures_of(size: str) -> tuple[float, ...]:
    """At which sentences are translated."""
    return TEMPERATURES["small" if size == "small" else "full"]


def at(measure: str, temperature: float) -> str:
    """The name of a measure at a temperature.

    >>> at("bleu", 1.0), at("ece", 1.13)
    ('bleu_at_1', 'ece_at_1.13')
    """
    return f"{measure}_at_{temperature:g}"


def measured_curves(
    runs: TranslatedRuns, run: Run, temperatures: Sequence[float], most: int | None
) -> Measured:
    """All three on the test set at each temperature, and which temperatures the held-out pairs choose.

    `hotter` is the temperature above 1 with the least ECE of held-out pairs, `by_ece` and `by_nll` are those with the
    least ECE and NLL of them; of each, BLEU and ECE on the test set are measured. `highest` has the highest BLEU of the
    test set itself: it is shown, and judges nothing.
    """
    numbers: dict[str, float] = {}
    shares: dict[str, list[float]] = {}
    for temperature in temperatures:
        translated = runs.translations(run, "test", temperature, most=most)
        tokens = runs.tokens(run, "test", temperature)
        found = {"bleu": translated.bleu(), "ece": tokens.ece(), "nll": tokens.nll}
        numbers |= {at(key, temperature): value for key, value in found.items()}
        shares |= {at(key, temperature): values for key, values in chances(translated, tokens).items()}
    held_out = runs.sweep(run, temperatures, "validation")
    for name, chosen in _chosen(held_out).items():
        numbers[name] = chosen
        for key in ("bleu", "ece"):
            numbers[f"{key}_{name}"] = numbers[at(key, chosen)]
            shares[f"{key}_{name}"] = shares[at(key, chosen)]
    numbers["highest"] = max(temperatures, key=lambda t: (numbers[at("bleu", t)], -abs(t - 1)))
    test = runs.sweep(run, SMOOTH, "test")
    return Measured(numbers, {"pseudo_values": shares, "curves": kept_sweep(test)})


def _chosen(held_out: TemperatureSweep) -> dict[str, float]:
    above = [(ece, t) for t, ece in zip(held_out.temperatures, held_out.ece, strict=True) if t > 1]
    return {"hotter": min(above)[1], "by_ece": held_out.best("ece"), "by_nll": held_out.best("nll")}


def kept_sweep(sweep: TemperatureSweep) -> dict[str, list[float]]:
    """The curves of one run as plain values."""
    return {
        "temperatures": list(sweep.temperatures),
        **{key: [round(value, 6) for value in sweep.values(key)] for key in ("ece", "nll")},
    }


# --- figures ---

# What a curve is called, its colour, its marker, and the runs whose it is.
Series = tuple[str, str, Any, Results]


def series_of(results: Results, alphas: Sequence[float], called: Mapping[float, str]) -> list[Series]:
    """Hard targets, and label smoothing, of those alphas that there are runs of."""
    looks = zip(alphas, (RED, BLUE), ("circle", "triangle"), strict=True)
    return [
        (called[alpha], colour, marker, own)
        for alpha, colour, marker in looks
        if (own := results.where(alpha=alpha)).outcomes
    ]


def panels_over_temperature(
    title: str, series: Sequence[Series], temperatures: Sequence[float], names: Mapping[str, str]
) -> list[Panel]:
    """BLEU at the temperatures that were translated at, ECE and NLL at more of them; `names` has their measures."""
    bleu = [
        Curve.of(name, colour, temperatures, _samples(own, names["bleu"], temperatures), marker=marker)
        for name, colour, marker, own in series
    ]
    panels = [Panel(f"{title}: BLEU", "temperature", "BLEU", bleu, digits=1)]
    for key, axis in (("ece", "calibration error (ECE)"), ("nll", "NLL, nats per token")):
        drawn = [
            Curve.of(name, colour, *_swept(own, names[key]), marker=marker)
            for name, colour, marker, own in series
        ]
        limits = (0.0, None) if key == "ece" else None
        panels.append(Panel(f"{title}: {key.upper()}", "temperature", axis, drawn, limits=limits))
    return panels


def _samples(own: Results, measure: str, temperatures: Sequence[float]) -> list[Sample]:
    return [own.sample(at(measure, temperature)) for temperature in temperatures]


def _swept(own: Results, measure: str) -> tuple[list[float], list[Sample]]:
    """Temperatures and, at each, the values of all seeds; ``padded.ece`` is of the detail `padded`."""
    which, _, key = measure.rpartition(".")
    kept = [one.details[which or "curves"] for one in own.outcomes if (which or "curves") in one.details]
    x = list(kept[0]["temperatures"]) if kept else []
    return x, [Sample.of(one[key][place] for one in kept) for place in range(len(x))]


def over_temperature(
    name: str, title: str, panels: Sequence[Panel], rows: Sequence[Row], caption: str
) -> Figure:
    """The figure of panels."""
    return lines(
        name,
        title,
        panels,
        rows,
        f"{caption} Points are means over seeds, pale dots single seeds, bars one standard deviation.",
        "BLEU, calibration error and likelihood over the temperature, with hard targets and with smoothing.",
    )


def rows_over_temperature(
    results: Results, cells: Sequence[Mapping[str, Any]], temperatures: Sequence[float], keys: Sequence[str]
) -> list[Row]:
    """For the file of numbers: each cell at each temperature."""
    return [
        {**cell, "temperature": temperature}
        | {key: results.sample(at(key, temperature), **cell) for key in keys}
        for cell in cells
        for temperature in temperatures
    ]
