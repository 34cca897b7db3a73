"""What every loss shares: shapes, reduction, ignored rows, class weights, and the choice of a fused kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from softtargets.arrays import ProcessState, added_up, several_processes
from softtargets.losses.arguments import choice, class_weights, hyperparameter, whole_number
from softtargets.losses.autograd import (
    fused_losses,
    fused_reduction,
    may_be_torchs,
    may_fuse,
    may_solve,
    rule_tensors,
    solved_reduction,
)
from softtargets.losses.batch import Batch, check_tensors, is_plain
from softtargets.losses.functional import blend, wide
from softtargets.losses.reference import plain_losses
from softtargets.losses.rule import Rule, is_learnt


class WholeBatch(Protocol):
    """A batch whose rows are shared among processes: what a loss must know about the other processes' rows."""

    @property
    def labels(self) -> int:
        """How many labels there are in all processes together, those that are ignored included."""

    def added_up(self, own: Tensor) -> Tensor:
        """The sum over all processes."""

    def all_labels(self, own: Tensor) -> Tensor:
        """One number for each label of the whole batch, (labels,), of this process's."""

    def own_labels(self, everyones: Tensor) -> Tensor:
        """Of one number for each label of the whole batch those of this process."""


REDUCTIONS = ("mean", "sum", "none")
# What torch's cross-entropy has too, as it is unless somebody says otherwise.
_USUAL = {"ignore_index": -100, "weight": None, "reduction": "mean", "inplace": False}


class SoftTargetLoss(ProcessState):
    r"""Cross-entropy against :math:`(1 - a)\,\mathrm{onehot}(y) + a\,q`, plus at most one extra term.

    A subclass says where a and q come from (`smoothing`), and its extra term if it has one (`extra`). Shapes,
    ``ignore_index``, ``weight`` and ``reduction`` mean what they mean for
    ``torch.nn.functional.cross_entropy``. The extra term of an example is multiplied by the weight of its label.

    Edge cases: a batch that is empty, has only ignored rows or has no classes has the mean NaN and the sum 0, as in
    torch, and the gradient 0. The mean is NaN too where all that count have weight 0. NaN among the logits of a row
    that counts makes its loss NaN. A label out of range is refused on the CPU; on a GPU, where looking would make
    the host wait, its loss is NaN.

    Hyper-parameters may be tensors. With one value per run (1-D) the call is a *pack*: logits and target carry the
    runs as their first dimension, and the reduced loss has one value per run. If such a tensor could also be class
    weights (``weight``), because there are as many classes as runs and both shapes fit, it is refused.

    ``inplace=True`` lets a fused kernel overwrite the logits with their gradient, which saves the memory for it; do
    not use the logits afterwards. It has no effect where no kernel runs.

    What a loss learns or counts is part of its ``state_dict`` (unless ``persistent(False)``), and a model to which one
    is added still loads older checkpoints strictly. It changes in training mode only, and only where gradients are
    enabled: under ``torch.no_grad()`` nothing is learnt and nothing is drawn, also if nobody has called ``eval``.

    With ``torch.distributed`` every process counts its own examples, and ``end_epoch`` puts together what those of all
    (or of `process_group`) have seen; every process must call it, unless `sync_on_end_epoch` is set to False. A
    state must be loaded in every process: unlike buffers it is not sent around by DDP. Nor does
    ``torch.func.stack_module_state`` see it: stack the `named_state` of each loss.

    Where the processes have the rows of one batch among them, `whole` (a `WholeBatch`) makes what a loss counts, sorts
    and draws that of the whole batch; the reduced loss stays that of the process's own rows.
    """

    # What must be passed besides logits and target, by the name of the argument; "" for nothing.
    needs: ClassVar[str] = ""
    # Losses that keep a table cannot share one among the runs of a pack.
    shares_state: ClassVar[bool] = False
    # Losses that draw random numbers would draw others if they were asked twice.
    draws: ClassVar[bool] = False
    # What ``print`` shows: these options, and those that are not as usual.
    shown: ClassVar[tuple[str, ...]] = ()
    usual: ClassVar[dict[str, Any]] = {}

    sync_on_end_epoch = True
    process_group: Any = None
    # Where several processes have a part of the rows of every batch each: what is summed or sorted over all of them.
    whole: WholeBatch | None = None

    weight: Tensor | None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Who computes something else has no use for the rule of the class above.
        if "rule" not in vars(cls) and vars(cls).keys() & {"smoothing", "extra", "per_example"}:
            cls.rule = SoftTargetLoss.rule  # type: ignore[method-assign]
            cls.torchs_smoothing = SoftTargetLoss.torchs_smoothing  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(persistent=True)
        self.ignore_index = whole_number("ignore_index", ignore_index, None)
        self.reduction = choice("reduction", reduction, REDUCTIONS)
        self.inplace = bool(inplace)
        self.register_buffer("weight", None if weight is None else class_weights(weight))
        self._in_tensors: list[str] = []  # hyper-parameters, by name
        self._in_pack = self._learning_in_pack = False

    def forward(self, input: Tensor, target: Tensor, given: Any = None) -> Tensor:
        """The loss of a batch: logits, called ``input`` as torch's losses call them, and target.

        Shapes are those of ``torch.nn.functional.cross_entropy``.
        """
        logits = input
        if self._kept and isinstance(logits, Tensor):
            self.awake(logits.device)
        if self._in_tensors and (stacked := self._per_run()):
            loss = self._pack(stacked, logits, target, given)
        elif (alpha := self.torchs_smoothing()) is not None and may_be_torchs(logits, target, alpha > 0):
            loss = self._by_torch(logits, target, alpha)
        else:
            batch = Batch(logits, target, self.weight, self.ignore_index)
            if self.needs and given is None:
                raise TypeError(
                    f"{type(self).__name__} needs {self.needs}: loss(logits, target, {self.needs})"
                )
            loss = self._of_batch(batch, given)
        self.called()
        return loss

    @property
    def learns(self) -> bool:
        """Whether a call is part of a training: what is learnt, counted or drawn is so only then."""
        return self.training and torch.is_grad_enabled()

    def computable(self, batch: Batch, given: Any) -> Rule | None:
        """The rule by which a kernel or `analytic` computes this call, if they may: what is learnt needs autograd."""
        if self._learning_in_pack or not batch.by_index:
            return None
        fused = may_fuse(batch.raw)
        if not fused and (self.draws or not may_solve(batch.raw)):
            return None
        rule = self.rule(batch, given)
        return None if rule is None or is_learnt(rule) or (fused and not rule.fused) else rule

    def called(self) -> None:
        """Called after each loss computed, where a subclass counts its steps."""

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """The loss of every row, in plain PyTorch: the reference for the kernels, and used without one."""
        a, q = self.smoothing(batch, given)
        if q is None or (isinstance(a, float) and a == 0):
            losses = batch.hard()
        else:
            losses = blend(a, batch.hard(), batch.soft(q))
        extra = self.extra(batch, given)
        return losses if extra is None else losses + batch.example_weight * extra

    def smoothing(self, batch: Batch, given: Any) -> tuple[float | Tensor, Tensor | None]:
        """How much mass to move, one number or one per row, and to which distribution, (K,) or (N, K)."""
        return 0.0, None

    def extra(self, batch: Batch, given: Any) -> Tensor | None:
        """A term added to the loss of every row, if there is one."""
        return None

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """How the loss of a row follows from logits and label, where that is one of the known rules."""
        return None

    def torchs_smoothing(self) -> float | None:
        """The ``label_smoothing`` with which ``torch.nn.functional.cross_entropy`` is this loss, if there is one."""
        return None

    def after_step(self, model: nn.Module) -> None:
        """Called by a training loop after each step of the optimiser."""

    def end_epoch(self) -> None:
        """Called by a training loop at the end of each epoch."""

    def _over_processes(self, **own: Tensor) -> dict[str, Tensor]:
        """The sums of tensors over all processes that have a part in this training."""
        if not (self.sync_on_end_epoch and several_processes()):
            return own
        return added_up(own, f"{type(self).__name__}.end_epoch", "sync_on_end_epoch", self.process_group)

    def _hyperparameter(self, name: str, value: Any, *bounds: float, open_low: bool = False) -> None:
        """Check and keep a hyper-parameter: a number as it is, a tensor as a buffer or parameter."""
        value = hyperparameter(name, value, *bounds, open_low=open_low)
        if isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Tensor):
            self.register_buffer(name, value)
        else:
            setattr(self, name, value)
            return
        self._in_tensors.append(name)

    def _per_run(self) -> dict[str, Tensor]:
        return {name: value for name in self._in_tensors if (value := getattr(self, name)).dim() == 1}

    def _pack(self, stacked: dict[str, Tensor], logits: Tensor, target: Tensor, given: Any) -> Tensor:
        size = self._check_pack(stacked, logits, target)
        for run in range(size if logits.device.type == "cpu" else 1):  # inside vmap nothing can be looked at
            Batch(logits[run], target[run], self.weight, self.ignore_index)

        def one(values: dict[str, Tensor], *call: Any) -> Tensor:
            result: Tensor = functional_call(self, values, call)
            return result

        dimensions = (0, 0, 0, None if given is None else 0)
        packed = torch.vmap(one, in_dims=dimensions, randomness="different")
        self._in_pack = True
        self._learning_in_pack = any(value.requires_grad for value in stacked.values())
        try:
            losses: Tensor = packed(stacked, logits, target, given)
        finally:
            self._in_pack = self._learning_in_pack = False
        return losses

    def _check_pack(self, stacked: dict[str, Tensor], logits: Tensor, target: Tensor) -> int:
        """The number of runs."""
        runs = {name: len(value) for name, value in stacked.items()}
        if len(set(runs.values())) > 1:
            raise ValueError(
                f"every hyper-parameter of a pack must have one value per run, but there are {runs}"
            )
        size = next(iter(runs.values()))
        if self.shares_state:
            raise ValueError(
                f"{type(self).__name__} keeps a table, which the runs of a pack cannot share: stack the "
                "named_state() of one loss per run and call them with torch.func.functional_call in torch.vmap"
            )
        check_tensors(logits, target)
        for name, value in (("logits", logits), ("target", target)):
            if value.dim() == 0 or value.shape[0] != size:
                raise ValueError(
                    f"{', '.join(runs)} has {size} values, one per run, so the first dimension of {name} must be the "
                    f"{size} runs; its shape is {tuple(value.shape)}"
                )
        if len(runs) == 1 and self.weight is None and _may_be_no_pack(size, logits.shape, target.shape):
            name = next(iter(runs))
            raise ValueError(
                f"{name} has {size} values, which for logits of shape {tuple(logits.shape)} could be one per class "
                f"or one per run of a pack: for class weights, pass weight={name}; for a pack, pass "
                "weight=torch.ones(classes) too"
            )
        return size

    def _by_torch(self, logits: Tensor, target: Tensor, alpha: float) -> Tensor:
        weight = self._buffers["weight"]
        rows = logits if logits.is_cuda else wide(logits)
        try:
            loss = F.cross_entropy(
                rows,
                target,
                weight if weight is None else weight.to(rows.dtype),
                ignore_index=self.ignore_index,
                reduction=self.reduction,
                label_smoothing=alpha,
            )
        except (RuntimeError, ValueError, IndexError):
            Batch(logits, target, weight, self.ignore_index)  # which says what is wrong with which argument
            raise
        return loss if rows is logits else loss.to(loss_dtype(logits))

    def _of_batch(self, batch: Batch, given: Any) -> Tensor:
        """By a kernel or in closed form where that is possible, else an operation at a time."""
        if batch.classes == 0:
            return self._reduce(batch.logits.sum(-1), batch)
        loss = None
        rule = self.computable(batch, given)
        if rule is not None:
            if may_fuse(batch.raw):
                return self._fused(batch, rule)
            plain = self._plain(batch, rule)
            loss = solved_reduction(batch, rule, self.reduction, loss_dtype(batch.raw), plain)
        return self._reduce(self.per_example(batch, given), batch) if loss is None else loss

    def _fused(self, batch: Batch, rule: Rule) -> Tensor:
        """By a kernel: in one pass where nothing but the reduced loss is wanted, else through an operator."""
        if self.reduction == "none" or not is_plain(*rule_tensors(batch, rule)):
            return self._reduce(fused_losses(batch, rule), batch)
        mean, dtype = self.reduction == "mean", loss_dtype(batch.raw)
        return fused_reduction(batch, rule, mean, dtype, self.inplace, self._plain(batch, rule))

    def _plain(self, batch: Batch, rule: Rule) -> Callable[[Tensor], Tensor]:
        """The same loss from logits, an operation at a time, now or later."""
        target = batch.target  # and nothing else of the batch: this outlives the call

        def plain(logits: Tensor) -> Tensor:
            again = Batch(logits, target, self.weight, self.ignore_index)
            return self._reduce(plain_losses(again, rule), again)

        return plain

    def _reduce(self, losses: Tensor, batch: Batch) -> Tensor:
        losses = batch.settled(losses)
        if self.reduction == "none":
            result = losses.reshape(batch.shape)
        elif self.reduction == "sum":
            result = losses.sum()
        else:
            result = losses.sum() / batch.total_weight()
        return result.to(loss_dtype(batch.raw))

    def extra_repr(self) -> str:
        """Shown by ``print(loss)``: what differs from torch's defaults comes last."""
        unusual = (name for name, value in (self.usual | _USUAL).items() if getattr(self, name) != value)
        shown = [*self._options(), *((name, self._as_shown(name)) for name in unusual)]
        return ", ".join(f"{name}={value}" for name, value in shown)

    def _options(self) -> list[tuple[str, Any]]:
        return [(name, self._as_shown(name)) for name in self.shown]

    def _as_shown(self, name: str) -> Any:
        """Of a table its size, of words their spelling, and numbers as they are."""
        value = getattr(self, name)
        if isinstance(value, Tensor) and value.dim() and name not in self._in_tensors:
            return f"<{len(value)} classes>"
        return repr(value) if isinstance(value, str) else value


def _may_be_no_pack(size: int, logits: torch.Size, target: torch.Size) -> bool:
    """Whether these are the shapes of a single batch of as many classes as there should be runs."""
    return logits[1:2] == (size,) and target in (logits, logits[:1] + logits[2:])


def loss_dtype(logits: Tensor) -> torch.dtype:
    """What torch's cross-entropy would return: the precision of the logits, single under autocast."""
    kind = logits.device.type
    if logits.dtype != torch.float64 and kind != "meta" and torch.is_autocast_enabled(kind):
        return torch.float32
    return logits.dtype


class RuleLoss(SoftTargetLoss):
    """A loss whose rule is known for every call, and says all there is to say about it."""

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """By the rule."""
        rule = self.rule(batch, given)
        return super().per_example(batch, given) if rule is None else plain_losses(batch, rule)
