"""Dropout that can draw its masks by place, so that they can be made again anywhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.randomness import uniforms, words


class Dropout(nn.Module):
    """Zero each element with probability p in training and scale the others by 1 / (1 - p).

    Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors", 2012, in the form
    that leaves the expectation alone. Without a `place` the mask comes from torch's generator, as with
    ``torch.nn.Dropout``. With one, an int64 tensor (3,) of two key words and a step, element i is kept if
    uniform(key, i, step, layer) >= p: the same mask on every device, and for each net of a stack under ``torch.vmap``
    the mask it would get alone. A fourth number is how many rows of the batch other processes have before those that
    are given (the first dimension): their mask is that which they would get in the whole batch. `layer` tells the
    dropouts of one net apart; `Classifier.draw_from` sets both.

    >>> from softtargets.randomness import key_words
    >>> dropout = Dropout(0.5)
    >>> dropout.place = torch.cat((key_words(0, "dropout"), torch.tensor([1])))
    >>> dropout(torch.ones(6))
    tensor([2., 2., 0., 0., 2., 2.])
    >>> dropout.eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    place: Tensor | None
    position: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout of {p} is out of range: must be at least 0 and below 1")
        self.p = p
        # Buffers, so that they move with the net and can be stacked, and layers that are alike can be computed by the
        # same code; not part of what a checkpoint holds.
        self.register_buffer("place", None, persistent=False)
        self.register_buffer("position", torch.zeros((), dtype=torch.int64), persistent=False)

    @property
    def layer(self) -> int:
        """Which of the dropouts of its net this is."""
        return int(self.position)

    @layer.setter
    def layer(self, number: int) -> None:
        with torch.no_grad():
            self.position.fill_(number)

    def forward(self, activations: Tensor) -> Tensor:
        """The same shape; the mask follows the order of the elements, whatever their layout in memory."""
        if not self.training or self.p == 0:
            return activations
        if self.place is None:
            return functional.dropout(activations, self.p)
        count = activations.numel()
        if len(self.place) > 3:
            return torch.where(self._kept_of_rows(activations), activations * (1 / (1 - self.p)), 0.0)
        blocks = torch.arange((count + 3) // 4, device=activations.device)  # each gives four words
        drawn = words(self.place[:2], blocks, self.place[2], self.position)
        kept = uniforms(drawn).flatten()[:count].reshape(activations.shape) >= self.p
        return torch.where(kept, activations * (1 / (1 - self.p)), 0.0)

    def _kept_of_rows(self, activations: Tensor) -> Tensor:
        """What of some rows of a batch is kept: as much as of these rows in the whole batch."""
        assert self.place is not None
        count = activations.numel()
        begin = self.place[3] * (count // activations.shape[0])  # of these rows' elements among those of all
        blocks = (begin >> 2) + torch.arange(count // 4 + 2, device=activations.device)
        drawn = uniforms(words(self.place[:2], blocks, self.place[2], self.position)).flatten()
        within = (begin & 3) + torch.arange(count, device=activations.device)
        return drawn[within].reshape(activations.shape) >= self.p

    def extra_repr(self) -> str:
        """Shown by ``print(net)``."""
        return f"p={self.p}"
