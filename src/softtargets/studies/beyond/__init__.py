"""What studies beyond the papers share: networks of the papers' own tables, so that their runs serve twice."""

from softtargets.studies.beyond.grid import (
    ALPHA,
    AXES,
    HARD,
    SEEDS,
    SIZES,
    STRONG,
    alphas_of,
    networks_of,
    rows_of,
    trials,
)
from softtargets.studies.sizes import size_of

__all__ = [
    "ALPHA",
    "AXES",
    "HARD",
    "SEEDS",
    "SIZES",
    "STRONG",
    "alphas_of",
    "networks_of",
    "rows_of",
    "size_of",
    "trials",
]
