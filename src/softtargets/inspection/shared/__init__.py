"""What advise, calibrate, compare and view have in common: estimates, words for numbers, tables, passes over a file."""

from softtargets.inspection.shared.reading import check_bins, check_choice

__all__ = ["check_bins", "check_choice"]
