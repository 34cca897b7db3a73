"""A pack: runs of one shape trained side by side, each as it would be alone; a fleet: packs that share a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from softtargets.recipes import Recipe
from softtargets.runs import Checkpoint
from softtargets.training.course import Course
from softtargets.training.device_state import Broken, DeviceState
from softtargets.training.machinery import Machinery
from softtargets.training.probing import Stand, probed
from softtargets.training.tasks import LEARNT, Epoch, Task, Teacher

# Where a row of metrics has what a recipe calls by another name.
_COLUMNS = {"validation_bleu": "bleu.validation_bleu"}


@dataclass
class Start:
    """A run about to be trained: its recipe, its task with its own labels, its teacher, and where it stopped."""

    recipe: Recipe
    task: Task
    teacher: Teacher | None = None
    checkpoint: Checkpoint | None = None

    @property
    def course(self) -> Course:
        """What its training is."""
        return Course(self.recipe, self.task)

    @property
    def place(self) -> int:
        """The step in its epoch that comes next."""
        return self.course.place(self.checkpoint.progress["step"] if self.checkpoint else 0)


@dataclass
class Slot:
    """One run of a pack, as the host knows it."""

    course: Course
    step: int = 0
    units: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    measured: int = 0  # the place in the epoch up to which losses have been reported
    failure: str | None = None
    gathered: int = 0  # how many times weights were, that are kept in the place of the last ones
    best: float | None = None  # the number that those have

    @property
    def recipe(self) -> Recipe:
        return self.course.recipe

    @property
    def done(self) -> bool:
        """Whether every step has been taken, or no further one makes sense."""
        return self.failure is not None or self.step >= self.course.total_steps


class Pack:
    """The state of several trainings between two steps, as the host knows it; what is on the device is `DeviceState`.

    All runs are at the same place of their epochs, each perhaps in another epoch.
    """

    def __init__(self, starts: Sequence[Start], machinery: Machinery) -> None:
        self.slots = [Slot(start.course) for start in starts]
        courses, teachers = [slot.course for slot in self.slots], [start.teacher for start in starts]
        self.on_device = DeviceState(courses, teachers, machinery)
        self.stand = Stand()
        for run, start in enumerate(starts):
            if start.checkpoint is not None:
                self._restore(run, start.checkpoint)
        self._steps_per_epoch = self.slots[0].course.steps_per_epoch
        self.place = self.slots[0].course.place(self.slots[0].step)
        if any(slot.course.place(slot.step) != self.place for slot in self.slots):
            raise ValueError("the runs of a pack must be at the same place of their epochs")
        self._epochs: list[Epoch] = []  # of each run, while one is open

    def advance(self) -> list[int]:
        """Take one step in every run; returns the runs that are to be measured now, before the next step.

        An epoch at whose end nobody is measured is over with its last step, and one with measurements after them.
        """
        if not self._epochs:
            self._open_epoch()
        self.on_device.step(self._epochs[0].shapes[self.place], self.slots[0].step)
        due = []
        for run, slot in enumerate(self.slots):
            if not slot.done:
                slot.step += 1
                slot.units += self._epochs[run].units[self.place]
                if slot.course.is_measured_after(slot.step):
                    due.append(run)
        self.place += 1
        if not due and self.place == self._steps_per_epoch:
            self._close_epoch()
        return due

    def begin_at(self, step: int) -> None:
        """Be so many steps further than at the beginning; the state is somebody else's (`share`)."""
        (slot,) = self.slots
        slot.step, self.place = step, slot.course.place(step)

    def share(self) -> None:
        """Give all processes that train this together the state of the one that leads."""
        self.on_device.share()

    def keep_up(self, due: Sequence[int]) -> None:
        """Take part in what is measured, in a process that does not lead: what is found is the leader's."""
        if due:
            self.look()
            if self.place == self._steps_per_epoch:
                self._close_epoch()

    def look(self) -> None:
        """Begin to measure; the device may be busy with that while the host goes on."""
        self.on_device.look()

    def measure(self, due: Sequence[int]) -> None:
        """Add a row to the history of these runs; one that is no longer made of numbers fails."""
        self.look()
        self.read(due)

    def read(self, due: Sequence[int]) -> None:
        """What `look` has found; the host waits for it.

        What a row says of the training set is of the steps of this epoch since the last measurement in it, whether or
        not epochs before were measured.
        """
        self._look_ahead()
        found, losses, correct, broken = self.on_device.seen()
        for run in due:
            slot = self.slots[run]
            part = slice(slot.measured, self.place)
            sizes = torch.tensor(self._epochs[run].units[part], dtype=torch.float64)
            lost, seen = losses[run, part].clone(), sizes.sum()  # where it lies must not matter to a sum
            row: dict[str, Any] = {
                "epoch": math.ceil(slot.step / self._steps_per_epoch),
                "step": slot.step,
                "lr": slot.course.rate(slot.step - 1),
                "train_loss": float((lost * sizes).sum() / seen),
            }
            if correct is not None:
                row["train_accuracy"] = float(correct[run, part].sum() / seen)
            # Beside runs with noise on held-out labels all are measured on clean ones too; a row must not show that.
            noisy = slot.recipe.noise.on_held_out
            row |= {key: values[run] for key, values in found.items() if noisy or "_clean_" not in key}
            slot.measured = self.place
            slot.failure = _failure(slot, row, lost, broken.get(run))
            if slot.failure is None:
                row |= self._probed(run)
                slot.history.append(row | self._gather(run, row))
        if self.place == self._steps_per_epoch:
            self._close_epoch()

    def save(self, run: int) -> Checkpoint:
        """Everything that starting again from here needs, in tensors of its own."""
        slot = self.slots[run]
        progress = {
            "step": slot.step,
            slot.recipe.data.unit: slot.units,
            "measured": slot.measured,
            "history": list(slot.history),
            "gathered": slot.gathered,
            "best": slot.best,
            LEARNT: slot.course.task.learnt,
        }
        return Checkpoint(self.on_device.state(run), progress)

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that are kept, by the names of the net alone: those that evaluation uses, or gathered ones."""
        if times := self.slots[run].gathered:
            return self.on_device.gathered(run, times)
        return self.on_device.weights(run)

    def waited(self) -> float | None:
        """Seconds since this was asked last in which the device waited for data; None if they are on the device."""
        return self.on_device.feed.waited()

    def _gather(self, run: int, row: dict[str, Any]) -> dict[str, Any]:
        """Gather weights if this is the time to, and say so in the row: how many there are, or from which epoch."""
        slot = self.slots[run]
        recipe = slot.recipe
        if recipe.average_last is not None:
            if slot.course.is_averaged_after(slot.step):
                self.on_device.gather(run, anew=False)
                slot.gathered += 1
            return {"averaged_epochs": slot.gathered}
        found = row.get(_COLUMNS.get(recipe.best_by or "", recipe.best_by or ""))
        if found is None:
            return {}
        sign = 1 if recipe.best_by == "validation_loss" else -1
        if slot.best is None or sign * found < sign * slot.best:
            self.on_device.gather(run, anew=True)
            slot.gathered, slot.best = 1, found
            return {"best_step": slot.step}
        return {"best_step": next(row["best_step"] for row in reversed(slot.history) if "best_step" in row)}

    def _probed(self, run: int) -> dict[str, float | None]:
        slot = self.slots[run]
        if not slot.recipe.probes:
            return {}
        task = slot.course.task
        weights, device = self.on_device.weights(run), self.on_device.device
        moment = self.stand.moment(slot.recipe, slot.step, task, weights, device)
        return probed(moment, at_the_end=slot.done)

    def _restore(self, run: int, checkpoint: Checkpoint) -> None:
        slot, progress = self.slots[run], checkpoint.progress
        slot.course.task.refuse_foreign(
            progress.get(LEARNT), f"run {slot.recipe.id}, of which there is a checkpoint,"
        )
        self.on_device.restore(run, checkpoint.tensors)
        slot.step, slot.measured = progress["step"], progress["measured"]
        slot.units = progress[slot.recipe.data.unit]
        slot.history = list(progress["history"])
        slot.gathered, slot.best = progress.get("gathered", 0), progress.get("best")

    def _open_epoch(self) -> None:
        self._epochs = [slot.course.epoch(slot.step // self._steps_per_epoch) for slot in self.slots]
        if any(epoch.shapes != self._epochs[0].shapes for epoch in self._epochs):
            raise ValueError("the runs of a stack must have steps of the same shapes at the same places")
        self.on_device.open_epoch(self.place, [slot.step for slot in self.slots])

    def _look_ahead(self) -> None:
        """Draw the next epoch, which is then remembered, while the device is busy with this one."""
        if self.place == self._steps_per_epoch:
            for slot in self.slots:
                if not slot.done:
                    number = slot.step // self._steps_per_epoch
                    slot.course.epoch(number)
                    slot.course.rates(number)

    def _close_epoch(self) -> None:
        self.on_device.close_epoch()
        self.place, self._epochs = 0, []
        for slot in self.slots:
            slot.measured = 0


class Fleet:
    """Several packs of one run each on streams of their own, to whoever trains them one pack.

    None waits for another: the kernels of one small net leave most of a GPU idle, those of several fill it. Every run
    computes exactly what it would alone, bit for bit.
    """

    def __init__(self, starts: Sequence[Start], machinery: Machinery, going_on: Sequence[Pack] = ()) -> None:
        """`going_on` are packs of an earlier fleet, which keep what was recorded for them; they come first."""
        self._packs = [*going_on, *(Pack([start], machinery) for start in starts)]
        for pack in self._packs:
            pack.stand = self._packs[0].stand  # nets are looked at one after another
        if len({pack.place for pack in self._packs}) > 1:
            raise ValueError("the runs of a pack must be at the same place of their epochs")

    @property
    def slots(self) -> list[Slot]:
        """All runs."""
        return [pack.slots[0] for pack in self._packs]

    @property
    def place(self) -> int:
        """The step of the epoch that comes next, for all runs that are still trained."""
        return next((pack.place for pack in self._packs if not pack.slots[0].done), 0)

    def advance(self) -> list[int]:
        """Take one step in every run that is not done; returns the runs that are to be measured now."""
        return [run for run, pack in enumerate(self._packs) if not pack.slots[0].done for _ in pack.advance()]

    def measure(self, due: Sequence[int]) -> None:
        """Add a row to the history of these runs; the device measures them side by side."""
        for run in due:
            self._packs[run].look()
        for run in due:
            self._packs[run].read([0])

    def share(self) -> None:
        """Give all processes that train this together the state of the one that leads."""
        for pack in self._packs:
            pack.share()

    def waited(self) -> float | None:
        """Of its packs on average, since they share the device."""
        each = [seconds for pack in self._packs if (seconds := pack.waited()) is not None]
        return sum(each) / len(each) if each else None

    def still(self, runs: Sequence[int]) -> list[Pack]:
        """The packs of these runs, to go on in another fleet."""
        return [self._packs[run] for run in runs]

    def save(self, run: int) -> Checkpoint:
        """Everything that starting again from here needs."""
        return self._packs[run].save(0)

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that evaluation uses."""
        return self._packs[run].weights(0)


def _failure(slot: Slot, row: dict[str, Any], losses: Tensor, before: Broken | None) -> str | None:
    """Why a run has failed: the first step with a loss that is no number, or what was measured now.

    losses:  of the last steps, since the last measurement in this epoch.
    before:  the first such step of the epochs before, whose losses nobody looked at.
    """
    if before is not None:
        return f"train_loss is {before.loss} at step {before.step}"
    wrong = (~losses.isfinite()).nonzero()
    if len(wrong):
        place = int(wrong[0])
        return f"train_loss is {float(losses[place])} at step {slot.step - len(losses) + place + 1}"
    # The training loss alone would miss a last step that blew up after its loss was computed.
    for key, value in row.items():
        if not math.isfinite(value):
            return f"{key} is {value} after step {slot.step}"
    return None
