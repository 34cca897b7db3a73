"""What several nets check before they are built."""

from __future__ import annotations


def check_size(shape: tuple[int, int, int], least: int, reason: str) -> None:
    """Refuse images (channels, height, width) of which a net would leave nothing.

    >>> check_size((3, 6, 32), 8, "three halvings")
    Traceback (most recent call last):
    ValueError: images of 6 x 32 are too small: three halvings need at least 8 x 8
    """
    _, height, width = shape
    if min(height, width) < least:
        raise ValueError(
            f"images of {height} x {width} are too small: {reason} need at least {least} x {least}"
        )
