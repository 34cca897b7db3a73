"""A training step of a pack: everything that happens on the device.

All randomness (order, augmentation, partners, dropout) is a function of a run's seed and the place in its training, so
there is no generator state, and what a run sees does not depend on who shares its pack. The step reads its place from
the device and never asks the host: so it can be recorded once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError
from softtargets.losses import BetaSmoothing, DisturbLabel
from softtargets.models import Classifier, Dropout
from softtargets.randomness import derive, key_words, permutation
from softtargets.training.building import build_model
from softtargets.training.changing import Change
from softtargets.training.course import Course
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets, Single, Stacked
from softtargets.training.optimisers import bucketed, make_update
from softtargets.training.pack_loss import SingleLoss, StackedLoss
from softtargets.training.precision import autocast
from softtargets.training.prediction import score
from softtargets.training.preparation import Prepared, input_shape
from softtargets.training.recording import Recorder
from softtargets.training.targets import Adviser, Shown, Teacher, TeacherAdviser, lone_adviser


class Stepping:
    """The tensors of several trainings, and the step that changes them; the first dimension is the runs."""

    def __init__(
        self,
        courses: Sequence[Course],
        prepared: Sequence[Prepared],
        teachers: Sequence[Teacher | None],
        device: torch.device,
        machinery: Machinery,
    ) -> None:
        self.device = device
        self.courses = courses
        self.recipe = courses[0].recipe  # for what all have in common
        self.prepared = prepared[0]
        self.machinery = machinery
        self.images = self.prepared.splits["train"].images
        self.labels = torch.stack([each.splits["train"].labels for each in prepared])
        # Held-out labels differ between runs only where some recipe corrupts them.
        noisy = [name for name in self.prepared.splits if name != "train"]
        noisy = noisy if any(course.recipe.noise.on_held_out for course in courses) else []
        self._own = {name: torch.stack([each.splits[name].labels for each in prepared]) for name in noisy}
        self._make_nets()
        self._make_loss(teachers)
        self._make_tables()
        self._recorder: Recorder | None = None
        self._looker: Recorder | None = None
        self._stream: torch.cuda.Stream | None = None
        recipe = self.recipe
        self._change: Callable[..., Tensor | None] = Change(
            self.update, recipe.clip, recipe.average, self.nets.lead
        )
        if machinery.recorded:
            self._change = torch.compile(self._change, dynamic=False)
            self._recorder = Recorder(self._changed())
            self._looker = Recorder([])
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
        """Draw all that an epoch draws: orders and augmentations."""
        per_epoch = self.courses[0].steps_per_epoch
        epochs = [step // per_epoch for step in steps]
        rates = [course.rates(epoch) for course, epoch in zip(self.courses, epochs, strict=True)]
        with self._at_work():
            self._epochs.copy_(torch.tensor(epochs))
            self._steps.copy_(torch.tensor(steps))
            self._place.fill_(place)
            self._rates.copy_(torch.tensor(rates))
            self._order.copy_(permutation(self._order_keys, len(self.images), self._epochs))
            self._epoch_labels.copy_(self.labels.gather(1, self._order))
            for table, drawn in zip(self._views, self._draw(), strict=True):
                for name, values in drawn.items():
                    table[name].copy_(values)

    def close_epoch(self) -> None:
        """All examples have been seen once more."""
        with self._at_work():
            self.loss.end_epoch()

    def step(self, size: int, number: int) -> None:
        """Take the next step in every run, on batches of so many examples; `number` is the first run's."""
        with self._at_work():
            if self._recorder is not None:
                self._recorder.ready(self._step, size)
            if self._draws_at_random:
                torch.manual_seed(derive(self.recipe.seed, "loss", number))
            if self._recorder is None:
                self._step(size)
            else:
                self._recorder.run(self._step, size)

    def look(self) -> None:
        """Measure all splits but the training set."""
        with self._at_work():
            if self._looker is None:
                self._look()
            else:
                self._looker.run(self._look)

    def seen(self) -> tuple[dict[str, list[float]], Tensor, Tensor]:
        """What was measured of each run: scores by name, and the losses and hits of every step of the epoch so far.

        The latter are on the host, in double precision.
        """
        with self._at_work():
            scores = {name: values.tolist() for name, values in self._scores.items()}
            return scores, self._losses.double().cpu(), self._correct.double().cpu()

    # --- states ---

    def state(self, run: int) -> dict[str, Tensor]:
        """Everything that starting again from here needs, copied; the host does not wait for it."""
        with self._at_work():
            # As files want them, however they lie in a stack.
            dense = torch.contiguous_format
            state = {name: value.clone(memory_format=dense) for name, value in self._state(run).items()}
        if self._stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return state

    def _state(self, run: int) -> dict[str, Tensor]:
        tensors = {f"model.{name}": value for name, value in self.nets.state(run).items()}
        tensors |= {f"loss.{name}": value for name, value in self.loss.state(run).items()}
        for kind, values in self._memories().items():
            for name, value in zip(self.nets.names, self.nets.apart(values), strict=True):
                tensors[f"memory.{kind}.{name}"] = value[run] if self.nets.lead else value
        tensors |= {"trace.losses": self._losses[run], "trace.correct": self._correct[run]}
        return {name: value.detach() for name, value in tensors.items()}

    def restore(self, run: int, tensors: dict[str, Tensor]) -> None:
        """Go back to a state."""
        with self._at_work(waiting=True), torch.no_grad():
            self._restore(run, tensors)

    def _restore(self, run: int, tensors: dict[str, Tensor]) -> None:
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "loss": {}, "memory": {}, "trace": {}}
        for name, value in tensors.items():
            owner, _, rest = name.partition(".")
            groups[owner][rest] = value
        self.nets.load(run, groups["model"])
        self.loss.load(run, groups["loss"])
        apart = {kind: self.nets.apart(values) for kind, values in self._memories().items()}
        for name, value in groups["memory"].items():
            kind, _, parameter = name.partition(".")
            if kind in apart:  # a run without momentum has one beside runs that have
                stored = apart[kind][self.nets.names.index(parameter)]
                (stored[run] if self.nets.lead else stored).copy_(value)
        self._losses[run].copy_(groups["trace"]["losses"])
        self._correct[run].copy_(groups["trace"]["correct"])

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that evaluation uses."""
        with self._at_work(waiting=True):
            states = self._measured().state(run).items()
            return {
                name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in states
            }

    def _memories(self) -> dict[str, list[Tensor]]:
        return self.memory | ({"average": self.averages} if self.averages else {})

    def _measured(self) -> Nets:
        return self.nets.swapped(self.averages) if self.averages else self.nets

    # --- making ---

    def _make_nets(self) -> None:
        recipes = [course.recipe for course in self.courses]
        shape, classes = input_shape(self.recipe, self.prepared), len(self.prepared.classes)
        models = [build_model(recipe, shape, classes).to(self.device) for recipe in recipes]
        keys, forward = self._keys("dropout"), self.machinery.forward(models[0])
        names = [name for name, _ in models[0].named_parameters()]
        lead = 1 if self.machinery.stacked else 0
        try:
            self.update = make_update([recipe.optimiser for recipe in recipes], names, lead, self.device)
        except ValueError as error:
            raise RecipeError(str(error), "optimiser") from None
        self.nets: Nets
        if self.machinery.stacked:
            in_bf16 = self.machinery.recorded and self.recipe.precision == "bf16"
            self.nets = Stacked(models, keys, forward, torch.bfloat16 if in_bf16 else None)
        else:
            (model,) = models
            self.nets = Single(model, keys, forward, bucketed(self.update, len(names)))
        self.memory = self.update.initial(self.nets.parameters)
        kept = self.nets.parameters if self.recipe.average is not None else []
        self.averages = [value.detach().clone() for value in kept]
        self._multiplier = torch.tensor([recipe.multiplier for recipe in recipes], device=self.device)

    def _make_loss(self, teachers: Sequence[Teacher | None]) -> None:
        recipes, classes = [course.recipe for course in self.courses], len(self.prepared.classes)
        self.loss: SingleLoss | StackedLoss
        self.adviser: Adviser | None = None
        self._draws_at_random = False
        if isinstance(self.nets, Single):
            self.loss = SingleLoss(recipes[0], classes, self.device)
            kept = self.loss.loss
            foreign = any(_is_foreign_dropout(module) for module in self.nets.model.modules())
            self._draws_at_random = foreign or isinstance(kept, (BetaSmoothing, DisturbLabel))
            if isinstance(kept, BetaSmoothing):
                kept.attach(self.nets.model)
                assert isinstance(kept.averaged, Classifier)
                kept.averaged.draw_from(self.nets.place)
            self.adviser = lone_adviser(recipes[0], self.prepared, self.nets, kept)
        else:
            self.loss = StackedLoss(recipes, classes, self.device)
        if any(teacher is not None for teacher in teachers):
            self.adviser = TeacherAdviser(recipes, self.prepared, teachers, self.machinery.stacked)

    def _make_tables(self) -> None:
        """Everything that the steps of an epoch read or write, always at the same addresses."""
        runs, examples, device = len(self.courses), len(self.images), self.device
        steps = self.courses[0].steps_per_epoch
        self._order_keys, self._view_keys = self._keys("order"), self._keys("augmentation")
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._steps = torch.zeros(runs, dtype=torch.int64, device=device)
        self._epochs = torch.zeros(runs, dtype=torch.int64, device=device)
        self._order = torch.zeros(runs, examples, dtype=torch.int64, device=device)
        self._epoch_labels = torch.zeros(runs, examples, dtype=torch.int64, device=device)
        self._views: list[dict[str, Tensor]] = self._draw()
        self._rates = torch.zeros(runs, steps, device=device)
        self._losses = torch.zeros(runs, steps, device=device)
        self._correct = torch.zeros(runs, steps, dtype=torch.int64, device=device)
        self._batch = torch.arange(self.recipe.batch, device=device)
        self._scores: dict[str, Tensor] = {}

    def _keys(self, purpose: str) -> Tensor:
        return torch.stack([key_words(course.recipe.seed, purpose, self.device) for course in self.courses])

    def _draw(self) -> list[dict[str, Tensor]]:
        return self.machinery.view.draw(self._view_keys, self._order, self._epochs)

    def _changed(self) -> list[Tensor]:
        """All that a step writes to, so that one taken on trial can be undone."""
        own = [self._place, self._steps, self._losses, self._correct]
        return (
            own
            + self.nets.changed()
            + self.loss.changed()
            + [v for vs in self._memories().values() for v in vs]
        )

    # --- the step ---

    def _step(self, size: int) -> None:
        runs = len(self.courses)
        where = self._place * self.recipe.batch + self._batch[:size]
        chosen, labels = self._order.index_select(1, where), self._epoch_labels.index_select(1, where)
        views = [
            {name: values.index_select(1, where).flatten() for name, values in drawn.items()}
            for drawn in self._views
        ]
        images, inputs = self.machinery.inputs(self.images, chosen.flatten(), views, size)
        self.nets.set_place(self._steps)
        with autocast(self.recipe.precision, self.device):
            logits = self.nets.train(inputs.unflatten(0, (runs, size)))
            given = None
            if self.adviser is not None:
                seen = images.unflatten(0, (runs, size))
                given = self.adviser.ask(Shown(self._steps, self._epochs, seen, labels, chosen))
            losses = self.loss(logits.float(), labels, given)
        whole = (losses * self._multiplier).sum()
        gradients = torch.autograd.grad(whole, self.nets.leaves, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            self._move(losses.detach(), self.nets.collected(gradients))
            correct = (logits.argmax(-1) == labels).sum(-1)
            self._correct.index_copy_(1, self._place, correct.unsqueeze(1))
            if isinstance(self.nets, Single):
                assert isinstance(self.loss, SingleLoss)
                self.loss.loss.after_step(self.nets.model)
            self._place += 1
            self._steps += 1

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

    def _look(self) -> None:
        nets = self._measured()
        for name, split in self.prepared.splits.items():
            if name != "train":
                found = score(self.recipe, nets, split, self.prepared, self._own.get(name))
                for key, values in found.items():
                    kept = self._scores.setdefault(f"{name}_{key}", torch.empty_like(values))
                    kept.copy_(values)


def _is_foreign_dropout(module: torch.nn.Module) -> bool:
    """Whether a layer draws from torch's generator, as those of nets that are not ours do."""
    return "drop" in type(module).__name__.lower() and not isinstance(module, Dropout)
