"""Label smoothing."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from softtargets.losses.arguments import choice, distribution, has_numbers, stochastic
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import without_autocast
from softtargets.losses.rule import Rule


class LabelSmoothing(SoftTargetLoss):
    r"""Cross-entropy with the target :math:`(1-\alpha)\,\mathrm{onehot}(y) + \alpha q`, q given beforehand.

    * nothing given: q is uniform. Szegedy et al., "Rethinking the Inception architecture for computer vision",
      2016, section 7; the default alpha of 0.1 is theirs;
    * ``prior``: q is that vector, for example the frequencies of words (unigram smoothing, Pereyra et al. 2017);
    * ``matrix``: q is row y of a class-to-class matrix S (Chen et al. 2020); alpha = 1 trains on S itself.

    ``spread="all"`` lets q cover all K classes, the label included, as PyTorch does. ``spread="others"`` takes the
    label out of q and shares its part among the K-1 others, as tensor2tensor and fairseq do. For uniform q both
    agree when alpha_all = alpha_others * K / (K - 1); `convert_alpha` does it.

    >>> import torch
    >>> loss = LabelSmoothing(alpha=0.1)
    >>> loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.3729)
    >>> unigram = LabelSmoothing(alpha=0.1, prior=torch.tensor([0.7, 0.2, 0.1]))
    >>> unigram(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.2995)
    """

    shown = ("alpha", "spread")
    usual: ClassVar = {"prior": None, "matrix": None}

    alpha: float | Tensor
    prior: Tensor | None
    matrix: Tensor | None

    def __init__(
        self,
        alpha: float | Tensor = 0.1,
        spread: Literal["all", "others"] = "all",
        prior: Tensor | None = None,
        matrix: Tensor | None = None,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)
        self._hyperparameter("alpha", alpha, 0, 1)
        self.spread = choice("spread", spread, ("all", "others"))
        if prior is not None and matrix is not None:
            raise ValueError(
                "prior and matrix cannot be given together: both say where the mass goes; leave one out"
            )
        self.register_buffer("prior", None if prior is None else distribution("prior", prior))
        self.register_buffer("matrix", None if matrix is None else stochastic("matrix", matrix))
        if self.spread == "others":
            self._check_others()

    def smoothing(self, batch: Batch, given: Any) -> tuple[float | Tensor, Tensor | None]:
        """The same alpha everywhere; q is uniform, the prior, or a row of the matrix."""
        self._check_classes(batch)
        if self.matrix is not None:
            q = batch.rows_of(self.matrix)
        elif self.prior is not None:
            q = self.prior.to(batch.logits.dtype)
        else:
            q = batch.logits.new_full((batch.classes,), 1 / batch.classes)
        if self.spread == "others":
            q = self._without_label(batch, q)
        return self.alpha, q

    def torchs_smoothing(self) -> float | None:
        """Alpha, where mass goes to all classes alike and class weights leave impossible classes out of it."""
        tables = self._buffers["prior"], self._buffers["matrix"], self._buffers["weight"]
        # By identity: the compiler of torch 2.12 does not compare tensors with None.
        if self.spread != "all" or any(table is not None for table in tables):
            return None
        return self.alpha if isinstance(self.alpha, float) and self.alpha < 1 else None

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(hard mass, soft mass) of the target, and the table that q is read from."""
        self._check_classes(batch)
        table = self.prior if self.matrix is None else self.matrix
        moved: float | Tensor = self.alpha
        if self.spread == "others":
            if table is None:
                moved = moved * batch.classes / (batch.classes - 1)
            else:
                # Taking the label out of q and sharing its part is moving more of q and giving the label less.
                assert batch.labels is not None
                own = table[batch.labels] if table.dim() == 1 else table[batch.labels, batch.labels]
                moved = moved / (1 - own.to(batch.dtype))
        return Rule("mixture", (1 - moved, moved), table)

    def _without_label(self, batch: Batch, q: Tensor) -> Tensor:
        if batch.labels is None:
            # Each class that the given target holds for possible passes its part on to the classes it is not.
            if self.matrix is None:
                scaled = batch.probabilities / (1 - q)
                return q * (scaled.sum(-1, keepdim=True) - scaled)
            own = self.matrix.to(q.dtype).diagonal()
            bare = self.matrix.to(q.dtype) - torch.diag(own)
            with without_autocast(q.device):
                return (batch.probabilities / (1 - own)) @ bare
        labels = batch.labels.unsqueeze(-1)
        q = q.expand_as(batch.logits)
        return q.scatter(-1, labels, 0) / (1 - q.gather(-1, labels))

    def _check_classes(self, batch: Batch) -> None:
        for name, table in (("prior", self.prior), ("matrix", self.matrix)):
            if table is not None:
                batch.check_classes(name, table)
        if self.spread == "others" and batch.classes < 2:
            raise ValueError("spread='others' needs at least two classes: with one class there are no others")

    def _check_others(self) -> None:
        for name, table in (("prior", self.prior), ("matrix", self.matrix)):
            own = table if table is None or table.dim() == 1 else table.diagonal()
            if own is not None and has_numbers(own) and bool((own >= 1).any()):
                full = int((own >= 1).nonzero()[0])
                raise ValueError(
                    f"spread='others' needs mass on other classes, but {name} puts all of it on class {full}"
                )
