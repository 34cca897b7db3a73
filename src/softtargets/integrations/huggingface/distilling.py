"""A Trainer whose loss asks a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer

from softtargets.integrations.huggingface.loss import LossFunction, refuse_own_smoothing
from softtargets.integrations.huggingface.rows import accepted, aligned, logits_of, named_inputs, rows, shifts
from softtargets.integrations.huggingface.stored import ROW, Numbered, StoredTeacher
from softtargets.losses import CrossEntropy, Distillation, TopLogits


class DistillationTrainer(Trainer):
    """``transformers.Trainer`` with a teacher and a `Distillation` loss; everything else is unchanged.

    `teacher` is a model, which predicts each batch (in evaluation mode, without gradient) from the inputs that its
    ``forward`` takes. Columns that the student does not know, such as the ``token_type_ids`` of a BERT that teaches a
    DistilBERT, are kept for the teacher. Or `teacher` is the result of `store_teacher` (a `StoredTeacher` or its path)
    for the training dataset in its order. A stored teacher must have been stored at the temperature of the loss. It has
    no predictions for evaluation examples: their reported loss is the cross-entropy with their labels; with a live
    teacher it is the training loss.

    ``loss=Distillation.hinton(2.0)`` is the text-book loss (student at T, soft part times T squared), the default; see
    `Distillation` for others. `shift` is as in `loss_function`.
    """

    def __init__(
        self,
        *arguments: Any,
        teacher: nn.Module | StoredTeacher | str | Path,
        loss: Distillation | None = None,
        shift: bool | None = None,
        **options: Any,
    ) -> None:
        loss = Distillation.hinton(2.0) if loss is None else loss
        if not isinstance(loss, Distillation):
            raise TypeError(
                f"loss must be a Distillation, not {type(loss).__name__}: use losses without a teacher through "
                "Trainer(compute_loss_func=loss_function(loss))"
            )
        if options.pop("compute_loss_func", None) is not None:
            raise ValueError(
                "DistillationTrainer has its own compute_loss_func: leave yours out, or use Trainer"
            )
        self.distillation = _Teaching(loss, shift=shift)
        self._without_teacher = LossFunction(CrossEntropy(), shift=shift)
        self._taught: Any = None
        self._only_teachers: list[str] = []
        stored = StoredTeacher(teacher) if isinstance(teacher, str | Path) else teacher
        if not isinstance(stored, StoredTeacher | nn.Module):
            raise TypeError(
                "teacher must be a model or the result of store_teacher (a StoredTeacher or its path), not "
                f"{type(stored).__name__}"
            )
        if isinstance(stored, StoredTeacher):
            _check_stored(stored, loss)
        self.teacher = stored
        super().__init__(*arguments, compute_loss_func=self._loss_of, **options)
        refuse_own_smoothing(self.args)
        # Here, and not among the options: the dataset may have been given by its place.
        dataset: Any = vars(self)["train_dataset"]
        if isinstance(stored, StoredTeacher) and dataset is not None:
            self.train_dataset = Numbered(_of_size(dataset, stored))
        if isinstance(stored, nn.Module):
            stored.requires_grad_(False).eval()
            if not _has_its_place(stored):
                stored.to(self.args.device)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *rest: Any, **options: Any) -> Any:
        """Get the teacher's logits, then compute the loss as Trainer does."""
        inputs = dict(inputs)
        places = inputs.pop(ROW, None)
        if isinstance(self.teacher, nn.Module):
            asked = {name: value for name, value in inputs.items() if name != "labels"}
            with torch.no_grad():
                self._taught = logits_of(self.teacher.eval()(**accepted(self.teacher, asked)))
        else:
            if places is None and model.training:
                raise ValueError(
                    f"a batch has no column {ROW!r}, so a stored teacher cannot tell which examples are in it. The "
                    "collator must keep that column, and train_dataset must be passed to DistillationTrainer when "
                    "it is made"
                )
            self._taught = places
        try:
            return super().compute_loss(model, self._students(inputs), *rest, **options)
        finally:
            self._taught = None

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], *rest: Any, **options: Any) -> Any:
        """As Trainer does; where there are no labels, no loss is computed and nobody asks the teacher."""
        if any(inputs.get(name) is None for name in self.label_names):
            inputs = self._students(inputs)
        return super().prediction_step(model, inputs, *rest, **options)

    def _students(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Inputs without what is there for the teacher alone."""
        return {name: value for name, value in inputs.items() if name not in (ROW, *self._only_teachers)}

    def _loss_of(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Any = None) -> Tensor:
        if self._taught is None:
            return self._without_teacher(outputs, labels, num_items_in_batch)
        return self.distillation.taught(outputs, labels, self._taught, self.teacher, num_items_in_batch)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if ROW in self._signature_columns:
            return
        if isinstance(self.teacher, nn.Module):
            known = set(self._signature_columns)
            self._only_teachers = [name for name in named_inputs(self.teacher) if name not in known]
        self._signature_columns += [*self._only_teachers, ROW]


class _Teaching(LossFunction):
    """A loss function that also gets what the teacher said."""

    def taught(
        self, outputs: Any, labels: Tensor | None, said: Tensor, teacher: Any, num_items_in_batch: Any
    ) -> Tensor:
        if labels is None:
            raise ValueError(
                "there are no labels: they are needed because positions with the label -100 are left out"
            )
        logits = logits_of(outputs)
        shift = shifts(outputs, logits, self.shift)
        given: Tensor | TopLogits
        if isinstance(teacher, StoredTeacher):
            given = teacher.targets(said, aligned(logits, labels, shift)[1].to(logits.device))
        else:
            if said.shape != logits.shape:
                raise ValueError(
                    f"the teacher's logits have the shape {tuple(said.shape)}, the student's {tuple(logits.shape)}: "
                    "both need the same classes (or vocabulary) and the same inputs"
                )
            given = rows(*aligned(said, labels, shift))[0].to(logits.device)
        flat, wanted = rows(*aligned(logits, labels, shift))
        if isinstance(given, Tensor):
            given = given.to(flat.dtype) if flat.dtype == torch.float64 else given
        return self.of_rows(flat, wanted, num_items_in_batch, given)


def _has_its_place(teacher: Any) -> bool:
    """Whether a teacher is spread over devices, or quantised on one: such a model cannot be moved, and need not be."""
    places = set((getattr(teacher, "hf_device_map", None) or {}).values())
    return len(places) > 1 or bool(getattr(teacher, "is_quantized", False))


def _check_stored(stored: StoredTeacher, loss: Distillation) -> None:
    if loss.match == "logits":
        raise ValueError(
            "match='logits' compares all logits, but a stored teacher has only the largest: use a live teacher"
        )
    if float(loss.temperature) != stored.temperature:
        raise ValueError(
            f"the teacher was stored at temperature {stored.temperature:g}, but the loss has "
            f"{float(loss.temperature):g}: store it again, or change the loss"
        )


def _of_size(dataset: Any, stored: StoredTeacher) -> Any:
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise TypeError("a stored teacher needs a dataset with indices, not an iterable one")
    if len(dataset) != len(stored):
        raise ValueError(f"the dataset has {len(dataset)} examples, but the stored teacher has {len(stored)}")
    if len(dataset) and not isinstance(dataset[0], Mapping):
        raise TypeError(f"examples must be dictionaries, not {type(dataset[0]).__name__}")
    return dataset
