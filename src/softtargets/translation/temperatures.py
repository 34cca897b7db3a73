"""BLEU against temperature, beside likelihood and calibration: which of the two says where BLEU is best?

Müller et al. 2019, figure 4: "the minimum of ECE for this experiment predicts top BLEU score slightly better than NLL".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from softtargets.calibration import TemperatureSweep
from softtargets.exceptions import SofttargetsError


@dataclass(frozen=True)
class TemperatureOptima:
    """The temperatures with the highest BLEU, the least ECE and the least NLL, among those at which BLEU was measured.

    `lost_by_ece` and `lost_by_nll` are the points of BLEU that choosing the temperature by ECE or by NLL costs,
    compared with the highest BLEU; less is a better prediction.
    """

    bleu: float
    ece: float
    nll: float
    lost_by_ece: float
    lost_by_nll: float


def temperature_optima(sweep: TemperatureSweep, bleu: Mapping[float, float]) -> TemperatureOptima:
    """Compare a sweep of next-token predictions with `bleu` by temperature, from decoding at each.

    Of equal values the temperature nearest to 1 is taken. A difference of the two losses within the interval of
    `bleu_difference` says nothing.

    >>> sweep = TemperatureSweep((0.5, 1.0, 2.0), nll=(2.0, 1.4, 1.5), ece=(0.2, 0.1, 0.05), examples=9)
    >>> found = temperature_optima(sweep, {0.5: 27.0, 1.0: 28.0, 2.0: 28.5})
    >>> found.bleu, found.ece, found.nll, found.lost_by_ece, found.lost_by_nll
    (2.0, 2.0, 1.0, 0.0, 0.5)
    """
    shared = [t for t in sweep.temperatures if t in bleu]
    if len(shared) < len(bleu) or not shared:
        missing = [t for t in bleu if t not in sweep.temperatures]
        raise SofttargetsError(
            f"the sweep must have every temperature that BLEU was measured at, at least one; it lacks {missing}"
        )

    def at(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(values[sweep.temperatures.index(t)] for t in shared)

    worst = tuple(-bleu[t] for t in shared)
    some = TemperatureSweep(tuple(shared), at(sweep.nll), at(sweep.ece), sweep.examples, {"worse": worst})
    best, by_ece, by_nll = (some.best(name) for name in ("worse", "ece", "nll"))
    return TemperatureOptima(best, by_ece, by_nll, bleu[best] - bleu[by_ece], bleu[best] - bleu[by_nll])
