"""softtargets: the target a classifier is trained on, and what it does to the classifier.

Importing this package imports nothing heavy; take what you need from its rooms, for example
``from softtargets.losses import LabelSmoothing``.
"""

__version__ = "0.1.0"
