"""What every net here has in common: penultimate activations and a last layer of class templates."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from softtargets.models.dropout import Dropout
from softtargets.models.pooling import Average


class Classifier(nn.Module):
    """A net in two halves: `features` gives the penultimate activations, `head` scores them per class.

    A logit is the inner product of the activations with a row of ``head.weight``, the template of that class
    (Müller et al. 2019, section 2). Subclasses define `features` and set `head`; those with dropout end their
    constructor with `number_dropouts`. A net that can be `fused` gives in training penultimate activations instead of
    logits, for a loss that multiplies by the templates itself.
    """

    head: nn.Linear
    fused: bool = False

    def features(self, *inputs: Any, **named: Any) -> Tensor:
        """Penultimate activations (..., D) of what the net is for: images (N, C, H, W), or tokens and their masks."""
        raise NotImplementedError("abstract: each net defines its own features")

    def forward(self, *inputs: Tensor) -> Tensor:
        """Logits (..., K)."""
        logits: Tensor = self.head(self.features(*inputs))
        return logits

    @property
    def templates(self) -> Tensor:
        """One row per class (K, D)."""
        return self.head.weight.detach()

    @property
    def links(self) -> list[nn.Module]:
        """Layers that one after another make the whole net, the head included; where many are alike, compiling a few
        serves all. None: the net is compiled as a whole. One that is `slight`, a single operation or none, is not."""
        return []

    def number_dropouts(self) -> list[Dropout]:
        """Give each dropout its position in the net, so that no two draw the same mask; returns them in order."""
        dropouts = [module for module in self.modules() if isinstance(module, Dropout)]
        for layer, dropout in enumerate(dropouts):
            dropout.layer = layer
        return dropouts

    def draw_from(self, place: Tensor | None) -> None:
        """Make every dropout draw from `place` (see `Dropout`), or from torch's generator if None.

        The tensor itself is kept, not a copy: whoever writes the next step into it moves all dropouts along.
        """
        for dropout in self.number_dropouts():
            dropout.place = place


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


def normalised(
    before: int, after: int, kernel: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    """A convolution that keeps the size of maps but for its stride, without bias, and the batch norm behind it."""
    convolution = nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(after)


class ResidualNet(Classifier):
    """A `stem`, a `body` of blocks, sometimes one `last` layer after them, and the average over all places."""

    stem: nn.Module
    body: nn.Sequential

    def __init__(self) -> None:
        super().__init__()
        self.last: nn.Module | None = None
        self.pool = Average()

    @property
    def links(self) -> list[nn.Module]:
        """The blocks, and what is before and after them."""
        last = [] if self.last is None else [self.last]
        return [self.stem, *self.body, *last, self.pool, self.head]

    def features(self, images: Tensor) -> Tensor:
        """What comes after the blocks, averaged over all places."""
        maps: Tensor = self.body(self.stem(images))
        pooled: Tensor = self.pool(maps if self.last is None else self.last(maps))
        return pooled
