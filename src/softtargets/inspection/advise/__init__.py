"""How wrong are labels, and how much smoothing does that ask for?"""

from softtargets.inspection.advise.evidence import Evidence, sample_of, train_out_of_fold

__all__ = ["Evidence", "sample_of", "train_out_of_fold"]
