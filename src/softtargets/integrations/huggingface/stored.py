"""A teacher's largest logits on disk: asked once, used for as many epochs and students as one likes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import default_data_collator

from softtargets.integrations.huggingface.rows import accepted, aligned, logits_of, rows, shifts
from softtargets.losses import TopLogits
from softtargets.storage import make_directory, replacing

ROW = "teacher_row"  # the place of an example in the dataset, which travels with its batch
_FORMAT = "softtargets teacher 1"


class StoredTeacher:
    r"""A teacher's predictions for the examples of a dataset: the k most probable classes at each label, and the
    rest.

    For each position with a label (not -100) there are k log-probabilities at temperature T, their classes, and the
    logarithm of the probability that all other classes share. `store_teacher` makes it. Positions are found again by
    their labels, which are stored too: padding may be on either side and of any length, but an example with other
    labels than the stored ones, for instance because it was cut elsewhere, is refused.

    `rest` says what happens to that probability: ``"spread"`` gives each of the K - k other classes the same part
    of it, so that the target has the mass of the teacher everywhere it is known; ``"drop"`` leaves it out and lets
    the k stored ones sum to 1, which makes every target more confident than its teacher.
    """

    def __init__(self, path: str | Path, rest: str = "spread") -> None:
        if rest not in ("spread", "drop"):
            raise ValueError(f"rest must be 'spread' or 'drop', not {rest!r}")
        self.path, self.rest = Path(path), rest
        with safe_open(self.path, "pt") as file:
            about = file.metadata() or {}
            if about.get("format") != _FORMAT:
                raise ValueError(f"{self.path} was not written by store_teacher")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.temperature = float(about["temperature"])
        self.classes_in_all = int(about["classes"])
        self.values, self.classes, self.others = tensors["values"], tensors["classes"].long(), tensors["rest"]
        self.labels, self.ends = tensors["labels"].long(), tensors["ends"]

    @property
    def k(self) -> int:
        """How many classes of each position are stored."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.ends) - 1

    def targets(self, examples: Tensor, labels: Tensor) -> Tensor | TopLogits:
        """What the teacher said of the rows of a batch, as logits at its temperature: (N, K), or the largest ones.

        `labels` (examples, ...) are aligned with logits; rows that do not count (-100) have the same number everywhere.
        """
        own = labels.reshape(len(examples), -1).cpu()
        places = torch.cat(
            [self._places(int(example), row) for example, row in zip(examples.cpu(), own, strict=True)]
        )
        counted = (own.reshape(-1) != -100).nonzero().squeeze(-1)
        device, n = labels.device, own.numel()
        values, others = self.values[places].to(device).float(), self.others[places].to(device).float()
        classes, counted = self.classes[places].to(device), counted.to(device)
        if self.rest == "drop":
            top = torch.zeros(n, self.k, device=device).index_copy_(0, counted, values * self.temperature)
            which = torch.arange(self.k, device=device).expand(n, -1).clone().index_copy_(0, counted, classes)
            return TopLogits(top, which)
        left = max(self.classes_in_all - self.k, 1)
        each = (others - math.log(left)).unsqueeze(-1).expand(-1, self.classes_in_all)
        said = each.scatter(-1, classes, values) * self.temperature
        return torch.zeros(n, self.classes_in_all, device=device).index_copy_(0, counted, said)

    def _places(self, example: int, labels: Tensor) -> Tensor:
        """Where the positions of an example are stored."""
        if not 0 <= example < len(self):
            raise ValueError(
                f"the dataset has an example {example}, but {self.path} has {len(self)} examples"
            )
        begin, end = (int(self.ends[at]) for at in (example, example + 1))
        if not torch.equal(labels[labels != -100], self.labels[begin:end]):
            raise ValueError(
                f"the labels of example {example} have changed since {self.path} was written: store the teacher "
                "again for this dataset, collator and length"
            )
        return torch.arange(begin, end)

    def __repr__(self) -> str:
        return f"StoredTeacher('{self.path}', examples={len(self)}, k={self.k}, temperature={self.temperature:g})"


def store_teacher(
    teacher: nn.Module,
    dataset: Dataset[Any],
    path: str | Path,
    *,
    k: int = 32,
    temperature: float = 1.0,
    batch_size: int = 32,
    collator: Callable[[Sequence[Any]], dict[str, Any]] = default_data_collator,
    shift: bool | None = None,
    device: torch.device | str | None = None,
) -> StoredTeacher:
    """Run a teacher on every example of a dataset, in order, and keep its k most probable classes at each label.

    `temperature` is that of the `Distillation` it is stored for: how much probability the other classes share depends
    on it. Log-probabilities are kept in half precision, so that a position takes 6 k + 6 bytes. `collator` and `shift`
    are those of the training.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number of classes, at least 1, not {k!r}")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be a positive number, not {temperature}")
    path = Path(path)
    make_directory(path.parent)  # what is wrong with it is better known before the teacher is asked
    device = device or next(teacher.parameters()).device
    kept: dict[str, list[Tensor]] = {name: [] for name in ("values", "classes", "rest", "labels", "lengths")}
    training = [part for part in teacher.modules() if part.training]
    teacher.eval()
    classes = 0
    try:
        for batch in DataLoader(dataset, batch_size=batch_size, collate_fn=collator):
            batch = {name: value.to(device) for name, value in batch.items() if isinstance(value, Tensor)}
            if "labels" not in batch:
                raise ValueError(
                    f"there are no labels, only {', '.join(batch) or 'nothing'}: the teacher predicts positions that "
                    "have a label, so the collator must make 'labels'"
                )
            labels = batch.pop("labels")
            with torch.no_grad():
                outputs = teacher(**accepted(teacher, batch))
            logits = logits_of(outputs)
            logits, labels = aligned(logits, labels, shifts(outputs, logits, shift))
            flat, wanted = rows(logits, labels)
            counted, classes = wanted != -100, flat.shape[-1]
            values, which, rest = most_probable(flat[counted], min(k, classes), temperature)
            kept["values"].append(values.half().cpu())
            kept["classes"].append(which.int().cpu())
            kept["rest"].append(rest.half().cpu())
            kept["labels"].append(wanted[counted].int().cpu())
            kept["lengths"].append((labels.reshape(len(logits), -1) != -100).sum(-1).cpu())
    finally:
        for part in training:
            part.training = True
    if not classes:
        raise ValueError("the dataset is empty: the teacher has nothing to predict")
    found = {name: torch.cat(parts) for name, parts in kept.items()}
    lengths = found.pop("lengths")
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    about = {"format": _FORMAT, "temperature": repr(float(temperature)), "classes": str(classes)}
    with replacing(path) as file:
        save_file(found | {"ends": ends}, file.name, metadata=about)
    return StoredTeacher(path)


def most_probable(logits: Tensor, k: int, temperature: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Of rows (n, K) the k largest log-probabilities at a temperature, their classes, and the log of what is left.

    >>> values, classes, rest = most_probable(torch.tensor([[2.0, 0.0, 1.0, 0.0]]).log_softmax(-1), k=2)
    >>> classes.tolist(), round(float(values.exp().sum() + rest.exp().sum()), 6)
    ([[0, 2]], 1.0)
    """
    softened = logits.float() / temperature
    total = softened.logsumexp(-1, keepdim=True)
    found = softened.topk(k, dim=-1)
    others = softened.scatter(-1, found.indices, -math.inf).logsumexp(-1)
    return found.values - total, found.indices, others - total.squeeze(-1)


class Numbered(Dataset[Any]):
    """A dataset whose examples say at which place they are."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, place: int) -> dict[str, Any]:
        return {**self.dataset[place], ROW: place}
