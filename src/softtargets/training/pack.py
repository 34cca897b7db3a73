"""A pack: runs of one shape trained side by side, each exactly as it would be alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from softtargets.recipes import Recipe
from softtargets.runs import Checkpoint
from softtargets.training.building import build_model
from softtargets.training.course import Course
from softtargets.training.machinery import Machinery
from softtargets.training.preparation import Prepared, input_shape
from softtargets.training.probing import Moment, probed
from softtargets.training.stepping import Stepping
from softtargets.training.targets import Teacher


@dataclass
class Start:
    """A run about to be trained: its recipe, its data with its own labels, its teacher, and where it stopped."""

    recipe: Recipe
    prepared: Prepared
    teacher: Teacher | None = None
    checkpoint: Checkpoint | None = None

    @property
    def place(self) -> int:
        """The step in its epoch that comes next; runs of a pack go through their epochs together."""
        step = self.checkpoint.progress["step"] if self.checkpoint else 0
        return int(step) % Course(self.recipe, len(self.prepared.splits["train"])).steps_per_epoch


@dataclass
class Slot:
    """One run of a pack, as the host knows it."""

    course: Course
    step: int = 0
    images: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    measured: int = 0  # the place in the epoch up to which losses have been reported
    failure: str | None = None

    @property
    def recipe(self) -> Recipe:
        """Of this run."""
        return self.course.recipe

    @property
    def done(self) -> bool:
        """Whether every step has been taken, or no further one makes sense."""
        return self.failure is not None or self.step >= self.course.total_steps


class Pack:
    """The state of several trainings between two steps, as the host knows it; what is on the device is `Stepping`.

    All runs are at the same place of their epochs, each perhaps in another epoch.
    """

    def __init__(self, starts: Sequence[Start], device: torch.device, machinery: Machinery) -> None:
        examples = len(starts[0].prepared.splits["train"])
        self.slots = [Slot(Course(start.recipe, examples)) for start in starts]
        self._prepared = [start.prepared for start in starts]
        self.stepping = Stepping(
            [slot.course for slot in self.slots],
            [start.prepared for start in starts],
            [start.teacher for start in starts],
            device,
            machinery,
        )
        for run, start in enumerate(starts):
            if start.checkpoint is not None:
                self._restore(run, start.checkpoint)
        self._steps_per_epoch = self.slots[0].course.steps_per_epoch
        self.place = self.slots[0].step % self._steps_per_epoch
        if any(slot.step % self._steps_per_epoch != self.place for slot in self.slots):
            raise ValueError("the runs of a pack must be at the same place of their epochs")
        self._opened = False

    def advance(self) -> list[int]:
        """Take one step in every run; returns the runs that are to be measured now."""
        if not self._opened:
            self.stepping.open_epoch(self.place, [slot.step for slot in self.slots])
            self._opened = True
        size = self.slots[0].course.batch_size(self.place)
        self.stepping.step(size, self.slots[0].step)
        self.place += 1
        due = []
        for run, slot in enumerate(self.slots):
            if not slot.done:
                slot.step += 1
                slot.images += size
                if slot.course.is_measured_after(slot.step):
                    due.append(run)
        return due

    def look(self) -> None:
        """Begin to measure; the device may be busy with that while the host goes on."""
        self.stepping.look()

    def measure(self, due: Sequence[int]) -> None:
        """Add a row to the history of these runs; one that is no longer made of numbers fails."""
        self.look()
        self.read(due)

    def read(self, due: Sequence[int]) -> None:
        """What `look` has found; the host waits for it."""
        found, losses, correct = self.stepping.seen()
        course = self.slots[0].course
        sizes = torch.tensor([course.batch_size(place) for place in range(self.place)], dtype=torch.float64)
        for run in due:
            slot = self.slots[run]
            part = slice(slot.measured, self.place)
            lost, seen = (
                losses[run, part].clone(),
                sizes[part].sum(),
            )  # where it lies must not matter to a sum
            row: dict[str, Any] = {
                "epoch": math.ceil(slot.step / self._steps_per_epoch),
                "step": slot.step,
                "lr": slot.course.rate(slot.step - 1),
                "train_loss": float((lost * sizes[part]).sum() / seen),
                "train_accuracy": float(correct[run, part].sum() / seen),
            }
            # Beside runs with noise on held-out labels all are measured on clean ones too; a row must not show that.
            noisy = slot.recipe.noise.on_held_out
            row |= {key: values[run] for key, values in found.items() if noisy or "_clean_" not in key}
            slot.measured = self.place
            slot.failure = _failure(slot, row, lost)
            if slot.failure is None:
                slot.history.append(row | self._probed(run))
        if self.place == self._steps_per_epoch:
            self._close_epoch()

    def save(self, run: int) -> Checkpoint:
        """Everything that starting again from here needs, in tensors of its own."""
        slot = self.slots[run]
        progress = {
            "step": slot.step,
            "images": slot.images,
            "measured": slot.measured,
            "history": list(slot.history),
        }
        return Checkpoint(self.stepping.state(run), progress)

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that evaluation uses, by the names of the net alone."""
        return self.stepping.weights(run)

    def _probed(self, run: int) -> dict[str, float | None]:
        slot = self.slots[run]
        if not slot.recipe.probes:
            return {}
        prepared = self._prepared[run]
        shape = input_shape(slot.recipe, prepared)
        model = build_model(slot.recipe, shape, len(prepared.classes)).to(self.stepping.device)
        model.load_state_dict(self.weights(run))
        return probed(Moment(slot.recipe, slot.step, model, prepared), at_the_end=slot.done)

    def _restore(self, run: int, checkpoint: Checkpoint) -> None:
        self.stepping.restore(run, checkpoint.tensors)
        slot, progress = self.slots[run], checkpoint.progress
        slot.step, slot.images, slot.measured = progress["step"], progress["images"], progress["measured"]
        slot.history = list(progress["history"])

    def _close_epoch(self) -> None:
        self.stepping.close_epoch()
        self.place = 0
        for slot in self.slots:
            slot.measured = 0
        self._opened = False


def _failure(slot: Slot, row: dict[str, Any], losses: Tensor) -> str | None:
    """Why a run has failed: the first of the last steps with a loss that is no number, or what was measured then."""
    wrong = (~losses.isfinite()).nonzero()
    if len(wrong):
        place = int(wrong[0])
        return f"train_loss is {float(losses[place])} at step {slot.step - len(losses) + place + 1}"
    # The training loss alone would miss a last step that blew up after its loss was computed.
    for key, value in row.items():
        if not math.isfinite(value):
            return f"{key} is {value} after step {slot.step}"
    return None
