"""How wrong are labels, and how much smoothing does that ask for?"""

from softtargets.inspection.advise.code import loss_lines
from softtargets.inspection.advise.evidence import Evidence, sample_of, train_out_of_fold

__all__ = ["Evidence", "loss_lines", "sample_of", "train_out_of_fold"]
