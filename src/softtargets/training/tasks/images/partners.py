"""Other training images of the same class, each drawn at random: whom CS-KD compares an image with."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.randomness import below, key_words, words


class Partners:
    """Draws partners by the seed of a run, its labels, the place of an image and the epoch, and by nothing else.

    >>> labels = torch.tensor([0, 1, 0, 1, 1])
    >>> found = Partners(0, labels, 2).of(torch.tensor([0, 3]), torch.tensor([7]))
    >>> labels[found].tolist()
    [0, 1]
    """

    def __init__(self, seed: int, labels: Tensor, classes: int) -> None:
        self._key = key_words(seed, "partners", labels.device)
        self._labels = labels
        # Members of each class side by side, so that a partner is one draw below the size of the class.
        self._members = labels.argsort(stable=True)
        self._sizes = torch.bincount(labels, minlength=classes)
        self._starts = self._sizes.cumsum(0) - self._sizes

    def of(self, chosen: Tensor, epochs: Tensor) -> Tensor:
        """The places of the partners of images at these places, in one epoch (1,); an image may be its own."""
        labels, drawn = self._labels[chosen], words(self._key, chosen, epochs)[:, 0]
        return self._members[self._starts[labels] + below(drawn, self._sizes[labels])]
