"""Anti-focal loss."""

from __future__ import annotations

from torch import Tensor

from softtargets.losses.focal import FocalLoss


class AntiFocalLoss(FocalLoss):
    r"""Cross-entropy with more weight on likely labels: :math:`-(1 + \alpha p_y)^\gamma \log p_y`.

    Raunak et al., "On long-tailed phenomena in neural machine translation", 2020. The defaults, gamma = 1,
    alpha = 0.5 and a factor through which no gradient flows (``detach=True``), are those of their released
    criterion. alpha = -1 would be the focal loss.

    >>> import torch
    >>> AntiFocalLoss()(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.8664)
    """

    shown = ("gamma", "alpha", "detach")

    alpha: float | Tensor

    def __init__(
        self,
        gamma: float | Tensor = 1.0,
        alpha: float | Tensor = 0.5,
        detach: bool = True,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(gamma, detach, ignore_index, weight, reduction, inplace)
        self._hyperparameter("alpha", alpha, 0)

    @property
    def slope(self) -> float | Tensor:  # type: ignore[override]
        """Alpha under the name that both losses compute with."""
        return self.alpha
