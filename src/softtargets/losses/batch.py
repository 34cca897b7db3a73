"""One call of a loss in canonical form: however logits and target were shaped, one row per example."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F

from softtargets.arrays import resolution_advice
from softtargets.exceptions import TargetError
from softtargets.losses.arguments import is_fake
from softtargets.losses.functional import label_cross_entropy, soft_cross_entropy, wide, without_autocast


class Batch:
    """Logits and target as rows, checked; the shapes are those of ``torch.nn.functional.cross_entropy``.

    | logits | class indices | class probabilities |
    |---|---|---|
    | (C) | () | (C) |
    | (N, C) | (N) | (N, C) |
    | (N, C, d1, ...) | (N, d1, ...) | (N, C, d1, ...) |

    What costs something is computed when it is first asked for, so that a fused kernel pays for nothing.
    """

    def __init__(self, logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> None:
        check(logits, target)
        self.raw = logits
        # Narrow integers could not be compared with the number of classes, or with -100.
        narrow = not target.dtype.is_floating_point and target.dtype != torch.int64
        self.target = target.long() if narrow else target
        self.ignore_index = ignore_index
        self.class_dimension = 1 if logits.dim() > 1 else 0
        self.classes = logits.shape[self.class_dimension]
        # Probabilities come in the shape of the logits; (N, C) labels of (N, C, C) logits are integers.
        self.by_index = not target.dtype.is_floating_point
        if weight is not None and len(weight) != self.classes:
            raise ValueError(f"weight has {len(weight)} values, but there are {self.classes} classes")
        if not self.by_index and ignore_index >= 0:
            raise TargetError(
                f"target has probabilities, none of which can be ignored, but ignore_index is {ignore_index}: leave "
                "ignore_index out, or give class indices"
            )
        self.class_weight = weight
        # Not functools.cached_property: Dynamo cannot trace its lock.
        self._logits: Tensor | None = None
        self._log_p: Tensor | None = None
        self._kept: Tensor | None = None
        self._labels: Tensor | None = None
        # Whether it has been looked at that no row is ignored.
        self.complete = False
        if self.by_index and target.is_cpu and target.numel() and is_plain(target):
            self._check_range()

    @property
    def shape(self) -> torch.Size:
        """Of the losses, before reduction."""
        raw = self.raw.shape
        return torch.Size(raw[: self.class_dimension] + raw[self.class_dimension + 1 :])

    @property
    def dtype(self) -> torch.dtype:
        """Of the computation: single precision at least."""
        return torch.float64 if self.raw.dtype == torch.float64 else torch.float32

    @property
    def logits(self) -> Tensor:
        """(N, K), in single precision at least."""
        if self._logits is None:
            self._logits = self.rows(self.raw)
        return self._logits

    @property
    def log_p(self) -> Tensor:
        """(N, K): the logarithm of what the model says."""
        if self._log_p is None:
            self._log_p = F.log_softmax(self.logits, dim=-1)
        return self._log_p

    @property
    def kept(self) -> Tensor | None:
        """(N,): which rows count; None where nothing can be ignored."""
        if self._kept is None and self.by_index:
            self._kept = self.target.reshape(-1) != self.ignore_index
        return self._kept

    @property
    def labels(self) -> Tensor | None:
        """(N,): class indices, 0 for ignored rows; None where the target is probabilities."""
        if self._labels is None and self.by_index:
            labels = self.target if self.target.dim() == 1 else self.target.reshape(-1)
            if labels.is_cuda:
                # Not looked at, since the host would wait: see `unknown`.
                labels = labels.masked_fill((labels < 0) | (labels >= self.classes), 0)
            self._labels = labels if self.complete or self.kept is None else labels.masked_fill(~self.kept, 0)
        return self._labels

    @property
    def unknown(self) -> Tensor | None:
        """(N,): rows on a GPU whose label is no class; None where that has been looked at before."""
        if not self.target.is_cuda or self.kept is None:
            return None
        labels = self.target.reshape(-1)
        return self.kept & ((labels < 0) | (labels >= self.classes))

    @property
    def probabilities(self) -> Tensor:
        """(N, K): the given target, where that is not class indices."""
        assert not self.by_index
        return self.rows(self.target).to(self.logits.dtype)

    @property
    def mass(self) -> Tensor:
        """(N, K): the same, times the factor of each class."""
        return self.probabilities if self.weight is None else self.probabilities * self.weight

    @property
    def likeliest(self) -> Tensor:
        """(N,): the label, or the most probable class of a given distribution."""
        return self.probabilities.argmax(-1) if self.labels is None else self.labels

    @property
    def weight(self) -> Tensor | None:
        """(K,): the factor of each class."""
        return None if self.class_weight is None else self.class_weight.to(self.logits.dtype)

    @property
    def example_weight(self) -> Tensor | float:
        """The factor of each example: of its label, or the mean over a given distribution."""
        if self.weight is None:
            return 1.0
        return self.mass.sum(-1) if self.labels is None else self.weight[self.labels]

    def rows(self, values: Tensor, name: str = "logits") -> Tensor:
        """Anything in the shape of the logits, as (N, K)."""
        if values.shape != self.raw.shape:
            raise ValueError(
                f"{name} must have the shape of the logits, {tuple(self.raw.shape)}, not {tuple(values.shape)}"
            )
        if values.dim() != 2:
            values = values.movedim(self.class_dimension, -1).reshape(-1, self.classes)
        return wide(values)

    def rows_of(self, table: Tensor) -> Tensor:
        """The row of a K x K table that belongs to each example: (N, K)."""
        table = table.to(self.logits.dtype)
        if self.labels is not None:
            return table[self.labels]
        with without_autocast(table.device):
            return self.probabilities @ table

    def check_classes(self, name: str, table: Tensor) -> None:
        """Refuse a table that has rows for other classes than the logits."""
        if len(table) != self.classes:
            raise ValueError(f"{name} is for {len(table)} classes, but the logits have {self.classes}")

    def hard(self, log_p: Tensor | None = None) -> Tensor:
        """Cross-entropy with the target as it was given, of what the model says or of what became of that: (N,)."""
        log_p = self.log_p if log_p is None else log_p
        if self.labels is None:
            return soft_cross_entropy(log_p, self.mass)
        return self.example_weight * label_cross_entropy(log_p, self.labels)

    def soft(self, q: Tensor) -> Tensor:
        """Cross-entropy with another distribution, one for all rows or one for each: (N,)."""
        return soft_cross_entropy(self.log_p, q if self.weight is None else q * self.weight)

    def settled(self, losses: Tensor) -> Tensor:
        """The losses of all rows with 0 for ignored ones, and NaN for labels that are no class."""
        if not self.complete and self.kept is not None:
            losses = losses.masked_fill(~self.kept, 0)
        if self.unknown is not None:
            losses = losses.masked_fill(self.unknown, torch.nan)
        return losses

    def total_weight(self) -> Tensor | int:
        """What ``reduction="mean"`` divides by, as torch does: examples, or weights of labels; NaN if those are 0."""
        if (self.complete and self.class_weight is None) or self.kept is None:
            return self.logits.shape[0] if self.classes else 0
        if self.weight is None:
            return self.kept.sum()
        total = (self.example_weight * self.kept).sum()
        # Nothing that counts: what smoothing puts on other classes has no mean either.
        return torch.where(total == 0, torch.nan, total)

    def _check_range(self) -> None:
        smallest, highest = self.target.aminmax()
        least, largest = smallest.item(), highest.item()
        self.complete = not least <= self.ignore_index <= largest
        if least >= 0 and largest < self.classes:
            return
        wrong = (self.target < 0) | (self.target >= self.classes)
        wrong &= self.target != self.ignore_index
        if bool(wrong.any()):
            if self.classes == 0:
                raise TargetError(
                    f"logits of shape {tuple(self.raw.shape)} have no classes, so every target must be "
                    f"{self.ignore_index}"
                )
            where = wrong.reshape(-1).nonzero()[0]
            raise TargetError(
                f"target has the label {int(self.target.reshape(-1)[where])} at position {int(where)}, but there "
                f"are {self.classes} classes: allowed are 0 to {self.classes - 1}, and {self.ignore_index} to ignore"
                f"{_unlabelled(int(self.target.reshape(-1)[where]), self.ignore_index)}"
            )


def _unlabelled(label: int, ignored: int) -> str:
    """What 255 usually means."""
    if label != 255:
        return ""
    return f". Where 255 marks pixels without a label, set ignore_index=255 or those labels to {ignored}"


def check(logits: Tensor, target: Tensor) -> None:
    """Refuse what is not logits and a target for them."""
    if _is_usual(logits, target):
        return
    check_tensors(logits, target)
    if not logits.dtype.is_floating_point:
        raise TypeError(f"logits must be floating-point numbers, not {logits.dtype}")
    if logits.dim() == 0:
        raise ValueError("logits must have a dimension for the classes: (C), (N, C) or (N, C, d1, ...)")
    (_check_probabilities if target.dtype.is_floating_point else _check_indices)(logits, target)
    if logits.device != target.device:
        raise ValueError(f"logits are on {logits.device} but target is on {target.device}")


def check_tensors(logits: Tensor, target: Tensor) -> None:
    """Refuse what is not even tensors."""
    for name, value in (("logits", logits), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")


def _is_usual(logits: Tensor, target: Tensor) -> bool:
    """Whether a look at a few things is enough: this comes before every loss."""
    if not (isinstance(logits, Tensor) and isinstance(target, Tensor) and target.dtype == torch.int64):
        return False
    fits = logits.dim() == 2 and target.shape == logits.shape[:1] and logits.shape[1] > 0
    return fits and logits.is_floating_point() and logits.device == target.device


def _check_probabilities(logits: Tensor, target: Tensor) -> None:
    if target.shape != logits.shape:
        raise ValueError(
            f"target has probabilities ({target.dtype}), so it must have the shape of the logits, "
            f"{tuple(logits.shape)}, not {tuple(target.shape)}; class indices must be integers"
            f"{resolution_advice(logits.shape, target.shape, labels_name='target')}"
        )


def _check_indices(logits: Tensor, target: Tensor) -> None:
    if target.dtype == torch.bool or target.dtype.is_complex:
        raise TypeError(f"target must be class indices (integers) or probabilities, not {target.dtype}")
    shape = logits.shape
    expected = shape[:1] + shape[2:] if len(shape) > 1 else shape[1:]
    if target.shape != expected:
        raise ValueError(
            f"target must have shape {tuple(expected)} for logits of shape {tuple(shape)}, not {tuple(target.shape)}"
            f"{resolution_advice(shape, target.shape, labels_name='target')}"
        )


def is_plain(*tensors: Tensor) -> bool:
    """Whether the numbers themselves are here: not while tracing, nor in a transform, forward AD or fake tensors."""
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    if forward_ad._current_level >= 0:
        return False
    return not any(torch._C._functorch.is_functorch_wrapped_tensor(each) or is_fake(each) for each in tensors)
