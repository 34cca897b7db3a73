"""Instruments for confidence: do the probabilities mean what they say?"""

from softtargets.calibration.binning import Reliability, expected_calibration_error, reliability
from softtargets.calibration.temperature import fit_temperature

__all__ = ["Reliability", "expected_calibration_error", "fit_temperature", "reliability"]
