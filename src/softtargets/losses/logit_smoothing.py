"""Logit smoothing."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.arguments import stochastic
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import without_autocast


class LogitSmoothing(SoftTargetLoss):
    r"""Cross-entropy of smoothed logits: :math:`-\log \mathrm{softmax}(S_\alpha z)_y`, hard targets.

    .. math:: S_\alpha = (1 - \alpha) I + \alpha S

    Chen et al., "An investigation of how label smoothing affects generalization", 2020, equation 19. Label smoothing
    puts the matrix S outside of the logarithm, forward correction between logarithm and softmax; moving it once more,
    inside the softmax, they call logit smoothing and leave open whether it works. The printed equation also leaves
    open how the smoothed logits are normalised; this is our reading: S acts on the logits of a row, and the softmax
    is taken over the result.

    S is ``matrix``, a class-to-class matrix whose rows sum to 1; alpha = 1 is S itself. Without one S is uniform, and
    then the loss is exactly cross-entropy at temperature :math:`1 / (1 - \alpha)`, since adding the mean to all
    logits changes nothing. The default alpha = 0.1 is ours, chosen like that of label smoothing. With a matrix logits
    must be finite: a class of minus infinity has no mean with others.

    >>> import torch
    >>> LogitSmoothing(alpha=0.1)(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.2856)
    >>> near = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> LogitSmoothing(alpha=0.1, matrix=near)(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.2737)
    """

    shown = ("alpha",)
    usual: ClassVar = {"matrix": None}

    alpha: float | Tensor
    matrix: Tensor | None

    def __init__(
        self,
        alpha: float | Tensor = 0.1,
        matrix: Tensor | None = None,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self._hyperparameter("alpha", alpha, 0, 1)
        self.register_buffer("matrix", None if matrix is None else stochastic("matrix", matrix))

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """Cross-entropy of what became of the logits."""
        return batch.hard(F.log_softmax(self._smoothed(batch), dim=-1))

    def _smoothed(self, batch: Batch) -> Tensor:
        if isinstance(self.alpha, float) and self.alpha == 0:
            return batch.logits
        kept = (1 - self.alpha) * batch.logits
        if self.matrix is None:
            return kept  # the mean, which all classes would get, does not change a softmax
        batch.check_classes("matrix", self.matrix)
        # Autocast would take the product in half precision.
        with without_autocast(batch.logits.device):
            return kept + self.alpha * (batch.logits @ self.matrix.to(batch.logits.dtype).t())
