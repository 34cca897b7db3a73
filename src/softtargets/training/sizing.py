"""How many runs fit into the memory of a device, told before any of them is trained.

A run takes memory for its weights and all that is like them, for what its layers remember until the backward pass, for
evaluation, and for tables that say what each example of an epoch is. The first and the last follow from the recipe.
What layers remember is found by computing the net on tensors that have a shape and no content ("meta"): it takes no
memory and a fraction of a second. Data are shared, and on the device before; they do not count.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.building import build_model
from softtargets.training.optimisers import make_update

if TYPE_CHECKING:
    from softtargets.training.tasks.task import Task

# Of the memory that is free, packs may fill so much: allocators cannot use every byte, and estimates err.
USED = 0.9
# Beside what layers remember there are gradients of what they said: up to a fifth more in our nets (the CNN), a
# hundredth in deep ones. The rest is for the libraries that compute them. (The words that masks of dropout are drawn
# from are more, for a moment; on a GPU they are compiled away, and a CPU has room.)
BACKWARD = 1.25
# What a loss makes of logits: log-probabilities, targets, their product and its gradient.
_LIKE_LOGITS = 4
# What CUDA's libraries want for each stream on which they work.
_WORKSPACE = 128 * 2**20
_FLOAT = 4


@dataclass(frozen=True)
class Footprint:
    """The bytes that runs of one kind take.

    run:        each run, whatever it shares.
    example:    each example that a net is measured on at a time, of the `measured` that there are.
    at_a_time:  how many of them a stack of so many runs is shown at most.
    workspace:  each stream: runs that are stacked share one.
    """

    run: int
    example: int
    measured: int
    at_a_time: Callable[[int], int]
    workspace: int
    stacked: bool

    def of(self, runs: int) -> int:
        """All that so many runs take together; fewer never take more."""
        streams, stack = (1, runs) if self.stacked else (runs, 1)
        shown = max(size * min(self.measured, self.at_a_time(size)) for size in range(1, stack + 1))
        # A run that has ended says what it has learnt while the others go on.
        ended = self.at_a_time(1) * self.example
        return runs * self.run + streams * (self.workspace + shown * self.example) + ended


@dataclass(frozen=True)
class ActivationBytes:
    """The bytes of what the layers of a net say.

    saved:  in a training step, and until the backward pass is done.
    shown:  of one example that the net is only shown, itself included: as much as there is at any one time.
    """

    saved: int
    shown: int


def fitting(need: Footprint | None, wanted: int, free: int | None) -> int:
    """How many runs, up to those wanted, train together in so many free bytes: at least one; all, if nothing is known.

    >>> need = Footprint(1000, 0, 0, at_a_time=int, workspace=0, stacked=True)
    >>> fitting(need, wanted=32, free=8000), fitting(need, wanted=32, free=10), fitting(need, wanted=32, free=None)
    (7, 1, 32)
    """
    if need is None or free is None:
        return wanted
    return next((runs for runs in range(wanted, 1, -1) if need.of(runs) <= USED * free), 1)


def footprint(recipe: Recipe, task: Task, device: torch.device, stacked: bool) -> Footprint | None:
    """What runs of this kind take; None for nets that cannot be computed without content."""
    model = outline(recipe, task)
    shapes = set(task.epoch(recipe, 0).shapes)
    largest = max(shapes, key=task.rows)
    rows, inputs = task.rows(largest), task.blank(recipe, largest, torch.device("meta"))
    seen = activations(model, inputs, recipe.precision)
    if seen is None:
        return None
    on_gpu = device.type == "cuda"
    training = BACKWARD * (seen.saved + _LIKE_LOGITS * _FLOAT * rows * len(task.classes))
    if on_gpu:
        # Steps are recorded: those of all shapes share memory, and what the trials before had is kept too.
        training *= min(2, sum(map(task.rows, shapes)) / rows)
    advice = task.advice_bytes(recipe, seen.shown * len(inputs[0]))
    run = _weights(recipe, model) + int(training) + task.table_bytes(recipe) + advice
    measured = max(len(split) for name, split in task.splits.items() if name != "train")
    at_a_time = partial(task.measured_at_a_time, on_gpu=on_gpu)
    return Footprint(run, seen.shown, measured, at_a_time, _WORKSPACE if on_gpu else 0, stacked)


def activations(model: Classifier, inputs: Sequence[Tensor], precision: str) -> ActivationBytes | None:
    """What the layers of a net say of a batch without content; None if they cannot say so.

    Lower precision is that of the whole net here, where autocast keeps weights and statistics in float32.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = model.to(dtype)
    model.draw_from(torch.zeros(3, dtype=torch.int64, device=inputs[0].device))

    def shown() -> list[Tensor]:
        return [each.to(dtype, copy=True) if each.is_floating_point() else each.clone() for each in inputs]

    try:
        saved = _saved(model.train(), shown())
        with torch.no_grad(), MemoryCounter() as counter:
            model.eval()(*shown())
    except Exception:  # nets that are not ours may ask a tensor for its values, and fail in any way
        return None
    return ActivationBytes(saved, -(-counter.most // len(inputs[0])))


def outline(recipe: Recipe, task: Task) -> Classifier:
    """The net with shapes and no content: a large one costs nothing."""
    with torch.device("meta"):
        return build_model(recipe, task)


def _saved(model: Classifier, inputs: Sequence[Tensor]) -> int:
    """The bytes of all that is kept for the backward pass, weights not counted; what is kept twice counts once."""
    own = {each.untyped_storage()._cdata for each in (*model.parameters(), *model.buffers())}
    found: dict[int, torch.UntypedStorage] = {}  # kept, or another could come to lie at the same address

    def note(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage._cdata not in own:
            found[storage._cdata] = storage
        return saved

    with torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        model(*inputs)
    return sum(storage.nbytes() for storage in found.values())


def _weights(recipe: Recipe, model: Classifier) -> int:
    names = [name for name, _ in model.named_parameters()]
    weights = _FLOAT * sum(weight.numel() for weight in model.parameters())
    # One of a stack may have momentum; then all have.
    slots = max(1, len(make_update([recipe.optimiser], names, lead=0).slots))
    averages = recipe.average is not None
    gathered = weights if recipe.average_last is not None or recipe.best_by is not None else 0
    # Checkpoints, and recordings on a GPU, begin with a copy of all that a step changes.
    state = 2 * weights * (1 + slots + averages)
    gradients = 2 * weights  # as they come, and side by side or with decay
    low = weights // 2 if recipe.precision == "bf16" else 0
    return state + gradients + low + gathered


class MemoryCounter(TorchDispatchMode):
    """Counts the tensors that are made inside this context; `most` is what there was of them at any one time.

    It counts what they would take, also of tensors that have a shape and no content (on "meta").

    >>> with MemoryCounter() as counter:
    ...     total = torch.zeros(100)
    ...     for _ in range(5):
    ...         total = total + torch.ones(100)
    >>> counter.most, counter.now  # the total, what is added and the sum, of 4 bytes a number; then the total alone
    (1200, 400)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._sizes: dict[int, int] = {}  # by address

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = func(*args, **kwargs)
        for storage in _storages(result):
            address = storage._cdata
            if address not in given and address not in self._sizes:  # others are views, or changed in place
                self._sizes[address] = storage.nbytes()
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._gone, address)
        return result

    def _gone(self, address: int) -> None:
        self.now -= self._sizes.pop(address)


def _storages(values: Any) -> list[torch.UntypedStorage]:
    return [value.untyped_storage() for value in tree_leaves(values) if isinstance(value, Tensor)]
