"""A pack on its device: all tensors, and the step that changes them.

All randomness (order, augmentation, partners, dropout) is a function of a run's seed and the place in its training, so
there is no generator state, and what a run sees does not depend on who shares its pack. The step reads its place from
the device and never asks the host: so it can be recorded once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError
from softtargets.losses import BetaSmoothing, DisturbLabel
from softtargets.models import Classifier, Dropout
from softtargets.randomness import derive, stacked_keys
from softtargets.recipes import Recipe
from softtargets.training.building import build_model
from softtargets.training.course import Course
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets, Single, Stacked, inner_linear
from softtargets.training.optimisers import WeightUpdate, make_update
from softtargets.training.pack_loss import SingleLoss, StackedLoss
from softtargets.training.precision import autocast
from softtargets.training.recording import Recorder
from softtargets.training.tasks.task import Teachers

# Numbers that processes exchange beside the gradients: the loss and the hits.
_SUMS = 2


class Broken(NamedTuple):
    """The first step of a run, counted from 1, whose loss was no number, and that loss."""

    step: int
    loss: float


class Seen(NamedTuple):
    """What was measured of each run, on the host.

    scores:   of the other splits, by name.
    losses:   of every step of the epoch so far, (runs, steps), in double precision.
    correct:  hits in the same way; they are not counted where there are no logits.
    broken:   runs whose loss was no number in an epoch that is over.
    """

    scores: dict[str, list[float]]
    losses: Tensor
    correct: Tensor | None
    broken: dict[int, Broken]


class DeviceState:
    """The tensors of several trainings, and the step that changes them; the first dimension is the runs."""

    def __init__(self, courses: Sequence[Course], teachers: Teachers, machinery: Machinery) -> None:
        self.courses, self.machinery = courses, machinery
        self.device = device = machinery.device
        recipes, tasks = [course.recipe for course in courses], [course.task for course in courses]
        self.recipe, self.task = recipes[0], tasks[0]  # for what all have in common
        self._whole = None
        if machinery.crew is not None:
            from softtargets.training.distributed.whole_batch import WholeBatch

            self._whole = WholeBatch(machinery.crew)
        self._multiplier = torch.tensor([recipe.multiplier for recipe in recipes], device=device)
        self._fused = self.task.fuses_head(self.recipe)
        self.nets = self._make_nets(recipes)
        self.memory = self.update.initial(self.nets.parameters)
        kept = self.nets.parameters if self.recipe.average is not None else []
        self.averages = [value.detach().clone() for value in kept]
        self._gathered: list[dict[str, Tensor]] = [{} for _ in recipes]
        self.loss = self._make_loss(recipes)
        alone = self.loss.loss if isinstance(self.loss, SingleLoss) else None
        self.adviser = self.task.adviser(recipes, self.nets, alone, teachers)
        self.feed = self.task.feed(recipes, tasks, machinery)
        self._make_tables()
        # One for both: all is on one stream, one thing at a time.
        pool = torch.cuda.graph_pool_handle() if machinery.recorded else None
        self._recorder = Recorder(self._changed(), machinery.recorded, pool)
        self._looker = Recorder([], machinery.recorded, pool)
        self._stream: torch.cuda.Stream | None = None
        self._closed: torch.cuda.Event | None = None  # the end of the last epoch, perhaps still to come
        self._change: Callable[..., Tensor | None] = WeightUpdate(
            self.update, self.recipe.clip, self.recipe.average, self.nets.lead
        )
        if machinery.recorded:
            self._change = torch.compile(self._change, dynamic=False)
            self._stream = torch.cuda.Stream(device)
            self._stream.wait_stream(torch.cuda.current_stream(device))

    @contextmanager
    def _at_work(self, waiting: bool = False) -> Iterator[None]:
        """On the stream of this pack, so that packs do not wait for each other; `waiting`, the host does at the end."""
        if self._stream is None:
            yield
            return
        with torch.cuda.stream(self._stream):
            yield
        if waiting:
            self._stream.synchronize()

    # --- one epoch after another ---

    def open_epoch(self, place: int, steps: Sequence[int]) -> None:
        """Draw all that an epoch draws."""
        per_epoch = self.courses[0].steps_per_epoch
        epochs = [step // per_epoch for step in steps]
        self._host_epochs = epochs
        rates = [course.rates(epoch) for course, epoch in zip(self.courses, epochs, strict=True)]
        with self._at_work():
            _put(epochs, self._epochs)
            _put(steps, self._steps)
            self._place.fill_(place)
            _put(rates, self._rates)
            if self._whole is not None:
                units = [
                    course.epoch(epoch).units for course, epoch in zip(self.courses, epochs, strict=True)
                ]
                _put(units, self._units)
            self.feed.open(self._epochs)

    def share(self) -> None:
        """Give all processes that train this together the leader's state."""
        if self.machinery.crew is not None:
            with self._at_work(waiting=True):
                self.machinery.crew.send_(self._changed())

    def close_epoch(self) -> None:
        """All examples have been seen once more.

        The host goes on while the device is still at it, but waits until the epoch before is over: the device always
        has something to do, and who asks for the end does not wait for many epochs that it was given ahead of time.
        """
        with self._at_work():
            self._note_broken()
            self.loss.end_epoch()
            if self._stream is not None:
                before, self._closed = self._closed, self._stream.record_event()
                if before is not None:
                    before.synchronize()

    def _note_broken(self) -> None:
        """Remember the first loss that is no number: the next epoch is written over this one's losses."""
        wrong = ~self._losses.isfinite()
        place = wrong.int().argmax(1, keepdim=True)
        step = self._epochs * wrong.shape[1] + place.squeeze(1) + 1
        found = torch.stack((step.double(), self._losses.gather(1, place).squeeze(1).double()), 1)
        new = wrong.any(1) & (self._broken[:, 0] == 0)
        self._broken.copy_(torch.where(new.unsqueeze(1), found, self._broken))

    def step(self, shape: Hashable, number: int) -> None:
        """Take the next step in every run, on batches of this shape; `number` is the first run's."""
        with self._at_work():
            self.feed.bring(self._host_epochs, self.courses[0].place(number))
            self._recorder.ready(self._step, shape)
            if self._draws_at_random:
                torch.manual_seed(derive(self.recipe.seed, "loss", number, *self._draws_of_rank))
            self._recorder.run(self._step, shape)

    def look(self) -> None:
        """Measure all splits but the training set."""
        with self._at_work():
            for piece in self.feed.pieces():
                self._looker.run(self._look_at, piece)
            self._looker.run(self._look)

    def seen(self) -> Seen:
        """What was measured; the host waits for it."""
        with self._at_work():
            scores = {name: values.tolist() for name, values in self._scores.items()}
            correct = None if self._fused else self._correct.double().cpu()
            broken = {
                run: Broken(int(step), loss) for run, (step, loss) in enumerate(self._broken.tolist()) if step
            }
            return Seen(scores, self._losses.double().cpu(), correct, broken)

    # --- states ---

    def state(self, run: int) -> dict[str, Tensor]:
        """Everything that starting again from here needs, copied; the host does not wait for it."""
        with self._at_work():
            model = {f"model.{name}": value for name, value in self.nets.state(run).items()}
            loss = {f"loss.{name}": value for name, value in self.loss.state(run).items()}
            gathered = {f"gathered.{name}": value for name, value in self._gathered[run].items()}
            state = _copied(model | loss | gathered | self._own(run))
        if self._stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return state

    def restore(self, run: int, tensors: dict[str, Tensor]) -> None:
        """Go back to a state."""
        with self._at_work(waiting=True), torch.no_grad():
            parts: dict[str, dict[str, Tensor]] = {"model": {}, "loss": {}, "gathered": {}}
            own = self._own(run)
            for name, value in tensors.items():
                owner, _, rest = name.partition(".")
                if owner in parts:
                    parts[owner][rest] = value
                elif name in own or owner != "memory":  # a run without momentum has one beside runs that have
                    own[name].copy_(value)
            self.nets.load(run, parts["model"])
            self.loss.load(run, parts["loss"])
            self._gathered[run] = {
                name: value.to(self.device, copy=True) for name, value in parts["gathered"].items()
            }

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that evaluation uses."""
        with self._at_work(waiting=True):
            return _copied(self._measured().state(run))

    def gather(self, run: int, anew: bool) -> None:
        """Add the weights that evaluation uses to those gathered of a run, or begin `anew` with them."""
        with self._at_work(), torch.no_grad():
            now, sums = self._measured().state(run), self._gathered[run]
            if anew or not sums:
                self._gathered[run] = _copied(now)
                return
            for name, value in now.items():
                if value.is_floating_point():
                    sums[name] += value
                else:  # what is counted is not averaged
                    sums[name].copy_(value)

    def gathered(self, run: int, times: int) -> dict[str, Tensor]:
        """The mean of the weights that were gathered so many times."""
        with self._at_work(waiting=True):
            found = _copied(self._gathered[run])
            return {
                name: value / times if value.is_floating_point() else value for name, value in found.items()
            }

    def _own(self, run: int) -> dict[str, Tensor]:
        """What there is of a run beside its net and its loss, by the names that checkpoints have."""
        tensors = {
            "trace.losses": self._losses[run],
            "trace.correct": self._correct[run],
            "trace.broken": self._broken[run],
        }
        for kind, values in self._memories().items():
            for name, value in zip(self.nets.names, self.nets.apart(values), strict=True):
                tensors[f"memory.{kind}.{name}"] = value[run] if self.nets.lead else value
        return tensors

    def _memories(self) -> dict[str, list[Tensor]]:
        return self.memory | ({"average": self.averages} if self.averages else {})

    def _measured(self) -> Nets:
        return self.nets.swapped(self.averages) if self.averages else self.nets

    # --- making ---

    def _make_nets(self, recipes: Sequence[Recipe]) -> Nets:
        models = [build_model(recipe, self.task).to(self.device) for recipe in recipes]
        for model in models:
            model.fused = self._fused
            if self._whole is not None:
                from softtargets.training.distributed.norms import (
                    share_norms,
                )  # with it comes torch's compiler

                share_norms(model, self._whole)
        names = [name for name, _ in models[0].named_parameters()]
        stacked, forward = self.machinery.stacked, self.machinery.forward(models[0])
        keys = stacked_keys([recipe.seed for recipe in recipes], "dropout", self.device)
        self.update = make_update([each.optimiser for each in recipes], names, int(stacked), self.device)
        low = torch.bfloat16 if self.machinery.recorded and self.recipe.precision == "bf16" else None
        if stacked:
            return Stacked(models, keys, forward, low)
        (model,) = models
        # Sequences, that is: nets of images have one linear layer, and are what they were.
        low = low if self.task.shapes_vary else None
        buckets = self.update.bucketed(inner_linear(model) if low is not None else ())
        single = Single(model, keys, forward, buckets, low, sliced=self._whole is not None)
        if self._whole is not None:
            self._exchanged = single.gather_into(_SUMS)
        return single

    def _make_loss(self, recipes: Sequence[Recipe]) -> SingleLoss | StackedLoss:
        classes = len(self.task.classes)
        self._draws_at_random = False
        self._draws_of_rank: tuple[str | int, ...] = ()
        if not isinstance(self.nets, Single):
            return StackedLoss(recipes, classes, self.device, self.task.frequencies())
        model = self.nets.model
        head = model.head if self._fused else None
        single = SingleLoss(recipes[0], classes, self.device, head, self.task.frequencies())
        foreign = any(_is_foreign_dropout(module) for module in model.modules())
        draws = isinstance(single.loss, (BetaSmoothing, DisturbLabel))
        self._draws_at_random = foreign or draws
        if self._whole is not None:
            single.share(self._whole)
            if foreign and draws:
                raise RecipeError(
                    f"several ranks cannot train {recipes[0].regulariser.name} with {recipes[0].model.name}: the "
                    "first draws random numbers for all rows of a batch, and the dropouts of the second for those "
                    "of one process; train the recipe in one process",
                    "regulariser",
                )
            rank = self._whole.crew.share.rank
            self._draws_of_rank = ("rank", rank) if foreign and rank else ()
        if isinstance(single.loss, BetaSmoothing):
            single.loss.attach(model)
            assert isinstance(single.loss.averaged, Classifier)
            single.loss.averaged.draw_from(self.nets.place)
        return single

    def _make_tables(self) -> None:
        """What the steps of an epoch read or write besides their batches, always at the same addresses."""
        runs, steps, device = len(self.courses), self.courses[0].steps_per_epoch, self.device
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._steps = torch.zeros(runs, dtype=torch.int64, device=device)
        self._epochs = torch.zeros(runs, dtype=torch.int64, device=device)
        self._rates = torch.zeros(runs, steps, device=device)
        self._losses = torch.zeros(runs, steps, device=device)
        self._correct = torch.zeros(runs, steps, dtype=torch.int64, device=device)
        self._units = torch.zeros_like(self._rates)
        self._broken = torch.zeros(runs, 2, dtype=torch.float64, device=device)  # step and loss; step 0: none
        self._scores: dict[str, Tensor] = {}

    def _changed(self) -> list[Tensor]:
        """All that a step writes to, so that one taken on trial can be undone."""
        own = [self._place, self._steps, self._losses, self._correct]
        kept = [value for values in self._memories().values() for value in values]
        return own + self.nets.changed() + self.loss.changed() + kept

    # --- the step ---

    def _step(self, shape: Any) -> None:
        if self._whole is not None:
            own = self._whole.is_of(self.task.examples(shape), self.task.rows(shape))
            assert isinstance(self.nets, Single)
            self.nets.set_row(own.start)
        shown = self.feed.batch(self._place, shape)
        self.nets.set_place(self._steps)
        with autocast(self.recipe.precision, self.device):
            said = self.nets.train(shown.inputs).flatten(1, -2)  # a row for each label
            given = None
            if self.adviser is not None:
                given = self.adviser.ask(shown, self._steps, self._epochs)
            losses = self.loss(said, shown.labels, given)
        if self._whole is not None:  # sums over these rows, as parts of the mean over those of all processes
            losses = losses / self._units.index_select(1, self._place).squeeze(1)
        whole = (losses * self._multiplier).sum()
        gradients = torch.autograd.grad(whole, self.nets.leaves, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            moved, losses = self.nets.collected(gradients), losses.detach()
            correct = None if self._fused else (said.argmax(-1) == shown.labels).sum(-1)
            if self._whole is not None:
                losses, correct = self._exchange(losses, correct)
            self._move(losses, moved)
            if correct is not None:
                self._correct.index_copy_(1, self._place, correct.unsqueeze(1))
            if isinstance(self.nets, Single) and isinstance(self.loss, SingleLoss):
                self.loss.loss.after_step(self.nets.model)
            self._place += 1
            self._steps += 1

    def _exchange(self, losses: Tensor, correct: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Add up gradients, losses and hits over all processes: everything that a step tells the others, in one go."""
        assert self._whole is not None
        sums = self._exchanged[-_SUMS:]
        sums[:1] = losses
        if correct is not None:
            sums[1:2] = correct
        self._whole.crew.added_up_(self._exchanged)
        return sums[:1].clone(), None if correct is None else sums[1:2].round().to(correct.dtype)

    def _move(self, losses: Tensor, gradients: list[Tensor]) -> None:
        """Change the weights, and note the losses with the penalties that belong to them."""
        rate, steps = self._rates.index_select(1, self._place).squeeze(1), self._steps
        if not self.nets.lead:
            rate, steps = rate[0], steps[0]
        penalty = self._change(
            self.nets.parameters, gradients, self.memory, self.averages, self.nets.shadows, rate, steps
        )
        if penalty is not None:
            losses = losses + penalty
        self._losses.index_copy_(1, self._place, losses.unsqueeze(1))

    def _look_at(self, piece: Any) -> None:
        self.feed.look(self._measured(), piece)

    def _look(self) -> None:
        for name, values in self.feed.score(self._measured()).items():
            self._scores.setdefault(name, torch.empty_like(values)).copy_(values)


def _put(values: Sequence[Any], table: Tensor) -> None:
    """Write numbers of the host into a table; it does not wait until the device has come that far."""
    there = torch.tensor(values, dtype=table.dtype, device="cpu", pin_memory=table.is_cuda)
    table.copy_(there, non_blocking=True)


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """As files want them, however they lie in a stack."""
    dense = torch.contiguous_format
    return {name: value.detach().clone(memory_format=dense) for name, value in tensors.items()}


def _is_foreign_dropout(module: torch.nn.Module) -> bool:
    """Whether a layer draws from torch's generator, as those of nets that are not ours do."""
    return "drop" in type(module).__name__.lower() and not isinstance(module, Dropout)
