"""How wrong are labels, and how much smoothing does that ask for?"""

from softtargets.inspection.advise.code import loss_lines
from softtargets.inspection.advise.own_model import train_out_of_fold
from softtargets.inspection.advise.sample import Evidence, check_method, sample_of

__all__ = ["Evidence", "check_method", "loss_lines", "sample_of", "train_out_of_fold"]
