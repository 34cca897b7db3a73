"""Label smoothing."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from softtargets.losses.functional import smoothed_cross_entropy


class LabelSmoothing(nn.Module):
    r"""Cross-entropy with the target :math:`(1-\alpha)\,\mathrm{onehot}(y) + \alpha q`, q uniform.

    Szegedy et al., "Rethinking the Inception architecture for computer vision", 2016, section 7; the default
    alpha of 0.1 is theirs. ``spread="all"`` lets q cover all K classes, the label included, as PyTorch does;
    ``spread="others"`` only the K-1 others. Both agree when alpha_all = alpha_others * K / (K - 1).

    >>> import torch
    >>> loss = LabelSmoothing(alpha=0.1)
    >>> loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.3729)
    """

    def __init__(self, alpha: float = 0.1, spread: Literal["all", "others"] = "all") -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
        if spread not in ("all", "others"):
            raise ValueError(f"spread must be 'all' or 'others', not {spread!r}")
        self.alpha = alpha
        self.spread = spread

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Mean loss of a batch: logits (N, K), integer labels (N)."""
        return smoothed_cross_entropy(logits, target, self.alpha, self.spread).mean()

    def extra_repr(self) -> str:
        """Shown by ``print(loss)``."""
        return f"alpha={self.alpha}, spread={self.spread!r}"
