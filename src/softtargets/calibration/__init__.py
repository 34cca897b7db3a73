"""Instruments for confidence: do the probabilities mean what they say?"""

from softtargets.calibration.bias import BiasCorrectedTemperature, bias_corrected_temperature
from softtargets.calibration.binning import (
    Reliability,
    ReliabilityBin,
    normal_quantile,
    reliability,
    reliability_of,
    wilson,
)
from softtargets.calibration.chunks import Chunks, as_chunks, fold_of, in_fold, logits_from_probabilities
from softtargets.calibration.confidence_cells import Cells, bin_edges
from softtargets.calibration.confidences import (
    ConfidenceCalibration,
    ConfidenceSums,
    confidence_calibration_of,
    measure_confidences,
)
from softtargets.calibration.correction import Correction, load_correction
from softtargets.calibration.crossfit import CrossFit, Scaling, cross_fit
from softtargets.calibration.groups import NARROWEST, frequencies, on_grid, smooth_error, smoothed
from softtargets.calibration.measure import Calibration, calibration_of, measure_calibration
from softtargets.calibration.metric import CalibrationMetric
from softtargets.calibration.metrics import (
    adaptive_calibration_error,
    brier_decomposition,
    brier_score,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
    smooth_calibration_error,
    top_k_accuracy,
)
from softtargets.calibration.modules import (
    CalibrationModule,
    HistogramBinning,
    IsotonicScaling,
    LogitScaling,
    PlattScaling,
    log_odds,
)
from softtargets.calibration.one_vs_rest import histogram_binning, isotonic_regression, platt_scaling
from softtargets.calibration.scores import Piece, as_scores, rows_of_a_piece
from softtargets.calibration.sums import BrierDecomposition, CalibrationSums
from softtargets.calibration.sweep import TemperatureSweep, temperature_by_ece, temperature_sweep
from softtargets.calibration.sweep_sums import SweepSums, perplexity
from softtargets.calibration.temperature import (
    HIGHEST,
    LOWEST,
    TemperatureFit,
    TemperatureSums,
    fit_temperature,
    scale,
    sums_at,
    temperature_scaling,
)
from softtargets.calibration.vector import VectorScaling, vector_scaling
from softtargets.calibration.workspace import one_thread
from softtargets.calibration.zeros import ZeroCounts, zero_floor

__all__ = [
    "HIGHEST",
    "LOWEST",
    "NARROWEST",
    "BiasCorrectedTemperature",
    "BrierDecomposition",
    "Calibration",
    "CalibrationMetric",
    "CalibrationModule",
    "CalibrationSums",
    "Cells",
    "Chunks",
    "ConfidenceCalibration",
    "ConfidenceSums",
    "Correction",
    "CrossFit",
    "HistogramBinning",
    "IsotonicScaling",
    "LogitScaling",
    "Piece",
    "PlattScaling",
    "Reliability",
    "ReliabilityBin",
    "Scaling",
    "SweepSums",
    "TemperatureFit",
    "TemperatureSums",
    "TemperatureSweep",
    "VectorScaling",
    "ZeroCounts",
    "adaptive_calibration_error",
    "as_chunks",
    "as_scores",
    "bias_corrected_temperature",
    "bin_edges",
    "brier_decomposition",
    "brier_score",
    "calibration_of",
    "classwise_calibration_error",
    "confidence_calibration_of",
    "cross_fit",
    "debiased_calibration_error",
    "expected_calibration_error",
    "fit_temperature",
    "fold_of",
    "frequencies",
    "histogram_binning",
    "in_fold",
    "isotonic_regression",
    "load_correction",
    "log_odds",
    "logits_from_probabilities",
    "maximum_calibration_error",
    "measure_calibration",
    "measure_confidences",
    "negative_log_likelihood",
    "normal_quantile",
    "on_grid",
    "one_thread",
    "perplexity",
    "platt_scaling",
    "reliability",
    "reliability_of",
    "rows_of_a_piece",
    "scale",
    "smooth_calibration_error",
    "smooth_error",
    "smoothed",
    "sums_at",
    "temperature_by_ece",
    "temperature_scaling",
    "temperature_sweep",
    "top_k_accuracy",
    "vector_scaling",
    "wilson",
    "zero_floor",
]
