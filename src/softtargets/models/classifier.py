"""What every net here has in common: penultimate activations and a last layer of class templates."""

from __future__ import annotations

from torch import Tensor, nn


class Classifier(nn.Module):
    """A net in two halves: `features` gives the penultimate activations, `head` scores them per class.

    A logit is the inner product of the activations with a row of ``head.weight``, the template of that class
    (Müller et al. 2019, section 2). Subclasses define `features` and set `head`.
    """

    head: nn.Linear

    def features(self, images: Tensor) -> Tensor:
        """Penultimate activations (N, D)."""
        raise NotImplementedError("abstract: each net defines its own features")

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, K)."""
        logits: Tensor = self.head(self.features(images))
        return logits

    @property
    def templates(self) -> Tensor:
        """One row per class (K, D)."""
        return self.head.weight.detach()
