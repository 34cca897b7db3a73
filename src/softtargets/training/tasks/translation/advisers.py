"""What a loss is given besides logits and labels: those of a teacher, or of an averaged model."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.losses import BetaSmoothing
from softtargets.training.precision import autocast
from softtargets.training.tasks.task import Shown, Teacher


class TokenTeacher:
    """A teacher that is asked about the very batches that its student sees, with the correct prefixes."""

    def __init__(self, teacher: Teacher, device: torch.device) -> None:
        self._model = teacher.network().to(device).eval()
        self._precision = teacher.recipe.precision

    @torch.no_grad()
    def ask(self, shown: Shown, steps: Tensor, epochs: Tensor) -> Tensor:
        """Logits of all tokens, padding included."""
        with autocast(self._precision, shown.labels.device):
            said: Tensor = self._model(*(each[0] for each in shown.inputs))
        return said.flatten(0, -2).unsqueeze(0)


class AveragedModel:
    """For Beta smoothing: the average of the model over time, which the loss keeps."""

    def __init__(self, loss: BetaSmoothing) -> None:
        self._loss = loss

    def ask(self, shown: Shown, steps: Tensor, epochs: Tensor) -> Tensor:
        """What the averaged model says of the same tokens."""
        said = self._loss.ask(*(each[0] for each in shown.inputs))
        return said.float().flatten(0, -2).unsqueeze(0)
