"""Pictures of translation models. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.calibration import Reliability, TemperatureSweep
from softtargets.calibration.drawing import draw_reliability
from softtargets.translation.frequencies import ChosenProbabilities
from softtargets.translation.temperatures import temperature_optima

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that stay apart in grey and for colour-blind readers (Okabe and Ito 2008); lines also differ in their marks.
BLUE, RED = "#0072b2", "#d55e00"
_STYLES = ("-", "--", "-.", ":")
_MARKS = ("o", "s", "^", "v")
_RIGHT = {"ece": ("ECE in %", 100.0), "nll": ("NLL in nats per token", 1.0)}


def draw_token_reliability(
    axes: Axes,
    curves: Mapping[str, Reliability],
    colours: Mapping[str, str],
    fewest: int = 10,
    level: float | None = None,
) -> Axes:
    """Next-token accuracy over confidence with a correct prefix, one line per named model, its ECE in the legend.

    Müller et al. 2019, figure 3. The area of a point is its bin's share of the tokens; bins with fewer than `fewest`
    tokens are not drawn.
    """
    named = {
        f"{name} (ECE {100 * one.expected_calibration_error:.1f} %)": one for name, one in curves.items()
    }
    draw_reliability(
        axes, named, dict(zip(named, (colours[name] for name in curves), strict=True)), fewest, level
    )
    axes.set(xlabel="confidence of the predicted token", ylabel="share of them that are right")
    axes.legend(loc="upper left", framealpha=0.85, edgecolor="none", fontsize="small")
    return axes


def draw_temperatures(
    axes: Axes, sweep: TemperatureSweep, bleu: Mapping[float, float], measure: str = "ece"
) -> tuple[Axes, Axes]:
    """BLEU (left axis) and "ece" or "nll" of next tokens (right axis) over temperature, each optimum marked.

    Müller et al. 2019, figure 4; the replication's figure 5. `bleu` is by temperature, of decoding with the logits
    divided by it; all of its temperatures must be in the sweep. Temperatures are drawn by their ratios, and the dotted
    line is T = 1. Returns the left and the right axes.
    """
    if measure not in _RIGHT:
        raise ValueError(f"measure must be one of {', '.join(_RIGHT)}, not {measure!r}")
    best = temperature_optima(sweep, bleu)
    label, factor = _RIGHT[measure]
    x = sorted(bleu)
    other = {t: factor * sweep.values(measure)[sweep.temperatures.index(t)] for t in x}
    right = axes.twinx()
    axes.axvline(1, linestyle=":", color="0.55", linewidth=1, zorder=1)
    for on, values, at, colour, style, mark in (
        (axes, dict(bleu), best.bleu, BLUE, "-", "o"),
        (right, other, getattr(best, measure), RED, "--", "s"),
    ):
        on.plot(x, [values[t] for t in x], style, color=colour, linewidth=1.5, marker=mark, markersize=3)
        on.plot(
            [at],
            [values[at]],
            mark,
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.6,
        )
        on.tick_params(axis="y", colors=colour)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("temperature that logits are divided by")
    axes.set_ylabel("BLEU (circles; ring: highest)", color=BLUE)
    right.set_ylabel(f"{label} (squares; frame: least)", color=RED)
    if measure == "ece":
        right.set_ylim(bottom=0)
    return axes, right


def draw_chosen(
    axes: Axes, histograms: Mapping[str, ChosenProbabilities], colours: Mapping[str, str]
) -> Axes:
    """The share of chosen tokens over their probability, one line per name, the fullest bin of each marked.

    LABO (Lu et al. 2023), figure 2: one panel for each loss, one line for each split by frequency.
    """
    for place, (name, one) in enumerate(histograms.items()):
        shares = 100 * one.shares
        style, mark = _STYLES[place % len(_STYLES)], _MARKS[place % len(_MARKS)]
        label = f"{name} (mode {one.mode:.3g})"
        axes.stairs(shares, one.edges, color=colours[name], linestyle=style, linewidth=1.5, label=label)
        axes.plot([one.mode], [shares.max()], mark, color=colours[name], markersize=6)
    axes.set(xlim=(0, 1), xlabel="probability of the chosen token", ylabel="share of chosen tokens (%)")
    highest = max((100 * float(one.shares.max()) for one in histograms.values()), default=1.0)
    axes.set_ylim(0, highest * (1.08 + 0.1 * len(histograms)))  # room for the legend
    axes.legend(loc="upper left", framealpha=0.85, edgecolor="none", fontsize="small")
    return axes
