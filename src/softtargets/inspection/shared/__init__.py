"""What advise, calibrate, compare and view have in common: estimates, words for numbers, tables, passes over a file."""

from softtargets.inspection.shared.choices import check_choice
from softtargets.inspection.shared.measured import check_bins

__all__ = ["check_bins", "check_choice"]
