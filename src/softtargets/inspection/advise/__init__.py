"""How wrong are labels, and how much smoothing does that ask for?"""

from softtargets.inspection.advise.code import loss_lines
from softtargets.inspection.advise.finding import PURPOSES, TYPES, Advice, advise
from softtargets.inspection.advise.own_model import train_out_of_fold
from softtargets.inspection.advise.page import advise_page, summary_rows
from softtargets.inspection.advise.sample import Evidence, check_method, sample_of
from softtargets.inspection.shared.choices import check_choice

__all__ = [
    "PURPOSES",
    "TYPES",
    "Advice",
    "Evidence",
    "advise",
    "advise_page",
    "check_choice",
    "check_method",
    "loss_lines",
    "sample_of",
    "summary_rows",
    "train_out_of_fold",
]
