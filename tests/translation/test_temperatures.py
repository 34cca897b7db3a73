"""Which measure says where BLEU is best."""

from __future__ import annotations

import pytest

from softtargets.calibration import TemperatureSweep
from softtargets.exceptions import SofttargetsError
from softtargets.translation import temperature_optima

SWEEP = TemperatureSweep(
    (0.5, 0.9, 1.0, 1.1, 2.0), nll=(3.0, 1.6, 1.5, 1.45, 1.7), ece=(0.3, 0.05, 0.08, 0.1, 0.2), examples=5
)


def test_only_temperatures_of_bleu_count():
    found = temperature_optima(SWEEP, {0.5: 20.0, 1.0: 27.0, 2.0: 25.0})
    assert (found.bleu, found.ece, found.nll) == (1.0, 1.0, 1.0)
    assert (found.lost_by_ece, found.lost_by_nll) == (0, 0)
    found = temperature_optima(SWEEP, {0.5: 20.0, 0.9: 27.5, 1.1: 27.0})
    assert (found.bleu, found.ece, found.nll) == (0.9, 0.9, 1.1)
    assert found.lost_by_nll == pytest.approx(0.5)
    assert found.lost_by_ece == 0


def test_of_equal_bleu_the_nearest_to_one():
    assert temperature_optima(SWEEP, {0.5: 27.0, 1.1: 27.0, 2.0: 27.0}).bleu == 1.1


def test_refusals():
    for bleu in ({0.7: 20.0, 1.0: 3.0}, {}):
        with pytest.raises(SofttargetsError, match="every temperature"):
            temperature_optima(SWEEP, bleu)
