"""Axis limits that several panels share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def common_limits(
    panels: Sequence[Tensor], margin: float = 0.06
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Axis limits that show all points (N, 2) of several panels on one scale.

    >>> import torch
    >>> common_limits([torch.tensor([[0.0, 0.0], [10.0, 1.0]]), torch.tensor([[4.0, -3.0]])], margin=0.1)
    ((-1.0, 11.0), (-7.0, 5.0))
    """
    shown = [points for points in panels if len(points)]
    if not shown:
        raise ValueError("need at least one point to find limits for")
    lows = [min(float(points[:, axis].min()) for points in shown) for axis in (0, 1)]
    highs = [max(float(points[:, axis].max()) for points in shown) for axis in (0, 1)]
    reach = (1 + 2 * margin) * max(high - low for low, high in zip(lows, highs, strict=True)) / 2
    middles = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    reach = reach or 1.0  # one point alone
    return (middles[0] - reach, middles[0] + reach), (middles[1] - reach, middles[1] + reach)
