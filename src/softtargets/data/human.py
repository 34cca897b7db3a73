"""Labels that people gave, beside the clean ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class HumanLabels:
    """Clean and noisy labels (int64, N each) of the same images, in the order of the dataset.

    >>> import numpy as np
    >>> HumanLabels(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]), classes=3).clean_rate
    0.75
    """

    clean: NDArray[np.int64]
    noisy: NDArray[np.int64]
    classes: int

    @property
    def clean_rate(self) -> float:
        """The share of labels that are right."""
        return float((self.clean == self.noisy).mean())
