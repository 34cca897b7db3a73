"""What a clock has to say, as plain data. No torch here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds: the median and the quartiles of many repetitions."""

    median: float
    low: float
    high: float
    repetitions: int


@dataclass(frozen=True)
class Speed:
    """So many images in so many seconds.

    >>> Speed(images=1000, seconds=0.5).rate
    2000.0
    """

    images: int
    seconds: float

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.images / self.seconds if self.seconds > 0 else 0.0
