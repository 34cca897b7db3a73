"""Where do models put the examples of three classes, before the last layer?"""

from softtargets.inspection.view.class_names import find_classes, read_names
from softtargets.inspection.view.finding import PICKS, Held, Panel, PenultimateView, look
from softtargets.inspection.view.page import HEADINGS, numbers, summary_rows, view_page
from softtargets.inspection.view.words import between_nets, why

__all__ = [
    "HEADINGS",
    "PICKS",
    "Held",
    "Panel",
    "PenultimateView",
    "between_nets",
    "find_classes",
    "look",
    "numbers",
    "read_names",
    "summary_rows",
    "view_page",
    "why",
]
