"""Our losses as what ``Trainer(compute_loss_func=...)`` calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import TrainerCallback

from softtargets.exceptions import nearest
from softtargets.integrations.huggingface.rows import aligned, logits_of, rows, shifts
from softtargets.losses import REGULARISERS, SoftTargetLoss

STATE = "softtargets_loss.safetensors"


def loss_function(
    loss: SoftTargetLoss | str, *, shift: bool | None = None, probabilities: bool = False, **options: Any
) -> LossFunction:
    """A loss of softtargets for ``Trainer(compute_loss_func=...)``.

    `loss` is a loss or the name of one, ``loss_function("label_smoothing", alpha=0.1)``: names are those of
    ``softtargets.losses.REGULARISERS``, `options` those of its class.

    It is the mean over labels that are not -100, over all batches of a step where gradients are accumulated: Trainer
    counts those labels (`num_items_in_batch`). Half-precision logits give a loss in single precision. Class weights
    multiply losses and are not divided out again, since their total over a step is not known.

    `shift` says whether position t predicts label t + 1. Without it the class of the model's output decides:
    ``CausalLM...`` is shifted; ``Seq2SeqLM...``, ``MaskedLM...`` and classifiers are not; anything else with a
    dimension for positions (a plain tuple, your own output class) is refused unless `shift` is given.
    `probabilities=True` treats floating-point labels in the shape of the logits as distributions; otherwise they
    are refused, since multi-label models have such labels too.

    Losses that learn between steps (`OnlineLabelSmoothing`, `KnowledgeRefinery`, an attached `BetaSmoothing`) need
    to know about steps and epochs: the function is also the callback for that, and such a loss is refused without
    it. The callback also keeps the state of the loss in checkpoints. ::

        function = loss_function(OnlineLabelSmoothing(classes=10))
        Trainer(..., compute_loss_func=function, callbacks=[function])

    >>> from softtargets.losses import LabelSmoothing
    >>> function = loss_function(LabelSmoothing(0.1))
    >>> function({"logits": torch.tensor([[2.0, 0.0, 0.0]])}, torch.tensor([0]))
    tensor(0.3729)
    """
    made = named_loss(loss, options)
    function = LossFunction(made, shift=shift, probabilities=probabilities)
    if made.needs:
        raise ValueError(
            f"{type(made).__name__} needs {made.needs}, which Trainer does not give to a loss function: "
            "use softtargets.integrations.huggingface.DistillationTrainer"
        )
    return function


def named_loss(loss: Any, options: dict[str, Any]) -> Any:
    """The loss of a name, made with these options; one that is made already takes none."""
    if isinstance(loss, str):
        if loss not in REGULARISERS:
            raise ValueError(
                f"there is no loss {loss!r}{nearest(loss, REGULARISERS)}; there are {', '.join(REGULARISERS)}"
            )
        return REGULARISERS[loss](**options)
    if options:
        raise TypeError(
            f"{', '.join(options)} would be for a loss that is given by its name, but {type(loss).__name__} is made "
            "already"
        )
    return loss


class LossFunction(TrainerCallback):
    """The result of `loss_function`: Trainer's loss function, and a callback for losses that learn between steps."""

    def __init__(
        self, loss: SoftTargetLoss, *, shift: bool | None = None, probabilities: bool = False
    ) -> None:
        self.loss = checked_loss(loss)
        self.shift = shift
        self.probabilities = probabilities
        self._called_back = False
        self._device: torch.device | None = None

    def __call__(
        self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """The loss of a batch, divided by the number of labels of the whole step if that is given."""
        if labels is None:
            raise ValueError(
                "there are no labels: the batch must have them under the name 'labels' for a loss function of Trainer"
            )
        logits = logits_of(outputs)
        pair = aligned(logits, labels, shifts(outputs, logits, self.shift))
        return self.of_rows(*rows(*pair, self.probabilities), num_items_in_batch)

    def of_rows(
        self, logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None, given: Any = None
    ) -> Tensor:
        """The same of logits (N, K) and their labels; `given` is what the loss needs besides."""
        self._ready(logits)
        if num_items_in_batch is None:
            with in_single_precision(logits):
                return self._loss(logits, labels, given)
        with reduced_to(self.loss, "sum"), in_single_precision(logits):
            total = self._loss(logits, labels, given)
        return total / number_of_items(num_items_in_batch, total)

    def _loss(self, logits: Tensor, labels: Tensor, given: Any) -> Tensor:
        loss: Tensor = self.loss(logits, labels) if given is None else self.loss(logits, labels, given)
        return loss

    def _ready(self, logits: Tensor) -> None:
        """The state of the loss is where the logits are, and somebody will tell it of steps and epochs."""
        if self._device != logits.device:
            self.loss.to(logits.device)
            self._device = logits.device
        if self.loss.learns and not self._called_back and learns_between_steps(self.loss):
            raise RuntimeError(
                f"{type(self.loss).__name__} learns between steps or epochs, which a loss function does not see: "
                "pass the same function to Trainer as a callback too, Trainer(compute_loss_func=function, "
                "callbacks=[function])"
            )

    def on_init_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Trainer knows this callback; it must not smooth labels by itself as well."""
        self._called_back = True
        refuse_own_smoothing(args)

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Go on with the state that the checkpoint has, where a training is resumed."""
        self._called_back = True
        if state.global_step == 0 or not self.loss.state_dict():
            return
        path = _checkpoint(args, state)
        if not path.exists() and isinstance(given := getattr(args, "resume_from_checkpoint", None), str):
            path = Path(given) / STATE  # which need not be in this output_dir
        if path.exists():
            self.loss.load_state_dict(load_file(path))
        else:
            warnings.warn(
                f"the training is resumed, but the state of {type(self.loss).__name__} is not at {path}: unless you "
                "have loaded it, it starts from scratch. Trainer does not tell callbacks where a checkpoint is: "
                "keep the checkpoint in output_dir, set resume_from_checkpoint in TrainingArguments too, or load "
                "the state yourself, "
                f"function.loss.load_state_dict(safetensors.torch.load_file('CHECKPOINT/{STATE}'))",
                stacklevel=2,
            )

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Put the state of the loss beside the checkpoint."""
        path, tensors = _checkpoint(args, state), self.loss.state_dict()
        if tensors and state.is_world_process_zero and path.parent.is_dir():
            save_file({name: value.detach().cpu().clone() for name, value in tensors.items()}, path)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """A step of the optimiser is done."""
        self.loss.after_step(rest["model"])

    def on_epoch_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """All examples have been seen once more."""
        self.loss.end_epoch()

    def __repr__(self) -> str:
        return f"loss_function({self.loss!r})"


def learns_between_steps(loss: SoftTargetLoss) -> bool:
    """Whether a training loop has to call ``after_step`` or ``end_epoch`` of this loss.

    >>> from softtargets.losses import LabelSmoothing, OnlineLabelSmoothing
    >>> learns_between_steps(LabelSmoothing()), learns_between_steps(OnlineLabelSmoothing(10))
    (False, True)
    """
    kind = type(loss)
    if getattr(loss, "averaged", loss) is None:  # BetaSmoothing that nothing is attached to
        return False
    return kind.after_step is not SoftTargetLoss.after_step or kind.end_epoch is not SoftTargetLoss.end_epoch


def number_of_items(given: Tensor | int, like: Tensor) -> Tensor | int:
    """What the sum of a step is divided by: the labels that Trainer counted, on the device of the loss, at least 1.

    With DataParallel, Trainer repeats the number for each GPU, and multiplies the loss by how many GPUs there are: each
    would have made a loss of its own part. A loss function is called once for all parts, so that this is undone here.
    """
    if isinstance(given, Tensor):
        return given.sum().to(like.device, like.dtype).clamp(min=1)
    return max(given, 1)


@contextmanager
def reduced_to(loss: SoftTargetLoss, reduction: str) -> Iterator[None]:
    """The loss with another reduction for a while."""
    before, loss.reduction = loss.reduction, reduction
    try:
        yield
    finally:
        loss.reduction = before


def in_single_precision(logits: Tensor) -> Any:
    """Where the loss of half-precision logits is a number in single precision, without a copy of the logits.

    The sum over a batch would overflow fp16 and have three digits in bf16. Losses compute in single precision in any
    case; under autocast they also say so, as those of torch do.
    """
    if logits.dtype not in (torch.float16, torch.bfloat16):
        return nullcontext()
    return torch.autocast(logits.device.type, dtype=logits.dtype)


def refuse_own_smoothing(args: Any) -> None:
    """Trainer would leave its own label smoothing out without a word."""
    if getattr(args, "label_smoothing_factor", 0):
        raise ValueError(
            f"label_smoothing_factor={args.label_smoothing_factor} has no effect with a loss function: leave it out, "
            f"and use LabelSmoothing({args.label_smoothing_factor}) if you want smoothing"
        )


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE


def checked_loss(loss: Any) -> SoftTargetLoss:
    """A loss that Trainer can use, or a refusal."""
    if not isinstance(loss, SoftTargetLoss):
        raise TypeError(
            f"loss must be one of softtargets.losses, such as LabelSmoothing(0.1), not {type(loss).__name__}"
        )
    if loss.reduction != "mean":
        raise ValueError(
            f"loss must have reduction='mean', not {loss.reduction!r}: Trainer decides what the sum is divided by"
        )
    if loss.ignore_index != -100:
        raise ValueError(
            f"loss must have ignore_index=-100, not {loss.ignore_index}: Trainer counts the labels other than -100"
        )
    if any(parameter.requires_grad for parameter in loss.parameters()):
        warnings.warn(
            f"{type(loss).__name__} has learnable parameters, which are not in Trainer's optimiser: pass an "
            "optimiser that has them (optimizers=...)",
            stacklevel=4,
        )
    return loss
