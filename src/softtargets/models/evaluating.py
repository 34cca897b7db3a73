"""Nets that are looked at and not trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode, and afterwards in the mode of before, whatever happens in between.

    >>> net = nn.Dropout(0.5)
    >>> with evaluating(net):
    ...     net.training
    False
    >>> net.training
    True
    """
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
