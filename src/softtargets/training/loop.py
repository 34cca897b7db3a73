"""One training, exactly: the same recipe gives the same weights, however often it was interrupted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from softtargets.randomness import derive
from softtargets.recipes import Recipe
from softtargets.runs import Checkpoint
from softtargets.training.building import build_loss, build_model, build_optimiser
from softtargets.training.precision import autocast
from softtargets.training.prediction import evaluate
from softtargets.training.preparation import Prepared, input_shape, training_view
from softtargets.training.schedules import rate_factor
from softtargets.training.targets import Shown, Teacher, adviser_for


@dataclass
class Sums:
    """What an epoch adds up while it runs, kept on the device so that no step waits for the host."""

    loss: Tensor
    correct: Tensor
    seen: int = 0

    @classmethod
    def zero(cls, device: torch.device) -> Sums:
        """Nothing seen yet."""
        return cls(
            torch.zeros((), dtype=torch.float64, device=device),
            torch.zeros((), dtype=torch.int64, device=device),
        )


class Diverged(Exception):
    """The loss is no longer a number; this training cannot go on."""


@dataclass
class Training:
    """The state of one training between two steps, and the step itself.

    All randomness (order, augmentation, partners, dropout and what a loss draws) is derived from the recipe's seed
    and the place in the training, so the state is weights, optimiser, loss, sums and history, and nothing else.
    """

    recipe: Recipe
    prepared: Prepared
    device: torch.device
    teacher: Teacher | None = None
    step: int = 0
    images: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        recipe, train = self.recipe, self.prepared.splits["train"]
        self.steps_per_epoch = math.ceil(len(train) / recipe.batch)
        self.total_steps = recipe.steps or (recipe.epochs or 0) * self.steps_per_epoch
        shape, classes = input_shape(recipe, self.prepared), len(self.prepared.classes)
        self.model = build_model(recipe, shape, classes).to(self.device)
        self.loss = build_loss(recipe, classes).to(self.device)
        self.optimiser = build_optimiser(recipe.optimiser, self.model.parameters())
        self.sums = Sums.zero(self.device)
        self._order_of_epoch = -1
        self._order = torch.empty(0)
        self.adviser = adviser_for(recipe, self.prepared, self.model, self.loss, self.teacher)
        self.model.train()

    @property
    def done(self) -> bool:
        """Whether every step has been taken."""
        return self.step >= self.total_steps

    def advance(self) -> None:
        """Take one step; at the end of an epoch, measure."""
        recipe = self.recipe
        epoch, place = divmod(self.step, self.steps_per_epoch)
        chosen = self._epoch_order(epoch)[place * recipe.batch : (place + 1) * recipe.batch]
        train = self.prepared.splits["train"]
        labels = train.labels[chosen]
        images = self._augmented(train.images[chosen])
        factor = rate_factor(recipe.schedule, self.step, self.steps_per_epoch, self.total_steps)
        for group in self.optimiser.param_groups:
            group["lr"] = recipe.optimiser.lr * factor
        torch.manual_seed(derive(recipe.seed, "dropout", self.step))
        with autocast(recipe.precision, self.device):
            logits = self.model(self.prepared.standardise(images))
            shown = Shown(self.step, images, labels, chosen)
            given = () if self.adviser is None else (self.adviser.ask(shown),)
            loss: Tensor = self.loss(logits.float(), labels, *given)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        self.loss.after_step(self.model)
        self.sums.loss += loss.detach() * len(chosen)
        self.sums.correct += (logits.detach().argmax(-1) == labels).sum()
        self.sums.seen += len(chosen)
        self.images += len(chosen)
        self.step += 1
        if place + 1 == self.steps_per_epoch:
            self.loss.end_epoch()
        if place + 1 == self.steps_per_epoch or self.done:
            self._close_epoch(epoch + 1)

    def save(self) -> Checkpoint:
        """Everything `restore` needs."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"loss.{name}": value for name, value in self.loss.state_dict().items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {
                f"optimiser.{index}.{name}": torch.as_tensor(value)
                for name, value in state.items()
                if value is not None
            }
        tensors |= {"sums.loss": self.sums.loss, "sums.correct": self.sums.correct}
        progress = {"step": self.step, "images": self.images, "seen": self.sums.seen, "history": self.history}
        return Checkpoint(tensors, progress)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a saved state."""
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "loss": {}, "optimiser": {}, "sums": {}}
        for name, value in checkpoint.tensors.items():
            owner, _, rest = name.partition(".")
            groups[owner][rest] = value
        self.model.load_state_dict(groups["model"])
        self.loss.load_state_dict(groups["loss"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in groups["optimiser"].items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        progress = checkpoint.progress
        self.step, self.images, self.history = progress["step"], progress["images"], progress["history"]
        sums = groups["sums"]
        self.sums = Sums(sums["loss"].to(self.device), sums["correct"].to(self.device), progress["seen"])

    def _close_epoch(self, epoch: int) -> None:
        row: dict[str, Any] = {
            "epoch": epoch,
            "step": self.step,
            "lr": self.optimiser.param_groups[0]["lr"],
            "train_loss": float(self.sums.loss) / self.sums.seen,
            "train_accuracy": int(self.sums.correct) / self.sums.seen,
        }
        for name, split in self.prepared.splits.items():
            if name != "train":
                measured = evaluate(self.recipe, self.model, split, self.prepared)
                row |= {f"{name}_{key}": value for key, value in measured.items()}
        # The training loss alone would miss a last step that blew up after its loss was computed.
        for key, value in row.items():
            if not math.isfinite(value):
                raise Diverged(f"{key} is {value} after step {self.step}")
        self.history.append(row)
        self.sums = Sums.zero(self.device)

    def _epoch_order(self, epoch: int) -> Tensor:
        if epoch != self._order_of_epoch:
            generator = torch.Generator().manual_seed(derive(self.recipe.seed, "order", epoch))
            order = torch.randperm(len(self.prepared.splits["train"]), generator=generator)
            self._order_of_epoch, self._order = epoch, order.to(self.device)
        return self._order

    def _augmented(self, images: Tensor) -> Tensor:
        if not self.recipe.augmentation:
            return images
        generator = torch.Generator().manual_seed(derive(self.recipe.seed, "augmentation", self.step))
        return training_view(self.recipe, images, generator)
