"""Two models on the same examples: who is better at what, and which mistakes do they share?"""

from softtargets.inspection.compare.finding import Comparison, compare
from softtargets.inspection.compare.page import compare_page, difference_lines
from softtargets.inspection.compare.words import verdict_on_two
from softtargets.inspection.shared.measured import check_bins

__all__ = ["Comparison", "check_bins", "compare", "compare_page", "difference_lines", "verdict_on_two"]
