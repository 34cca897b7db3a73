"""Is a model's confidence to be believed? A file of predictions in, a verdict and a page out."""

from softtargets.inspection.calibrate.finding import Diagnosis, inspect
from softtargets.inspection.calibrate.page import calibrate_page, summary_rows
from softtargets.inspection.calibrate.words import temperature_line, verdict_on
from softtargets.inspection.shared.measured import check_bins

__all__ = [
    "Diagnosis",
    "calibrate_page",
    "check_bins",
    "inspect",
    "summary_rows",
    "temperature_line",
    "verdict_on",
]
