"""Is a model's confidence to be believed? A file of predictions in, a verdict and a page out."""

from softtargets.calibration import load_correction
from softtargets.inspection.calibrate.applying import apply_correction, check_fits, correction_beside

__all__ = ["apply_correction", "check_fits", "correction_beside", "load_correction"]
