"""How many runs fit into the memory of a device, told before any of them is trained.

A run takes memory for its weights and all that is like them, for what its layers remember until the backward pass, for
evaluation, and for tables that say what each example of an epoch is. The first and the last follow from the recipe.
What layers remember is found by computing the net on tensors that have a shape and no content ("meta"): it takes no
memory and a fraction of a second. Data are shared, and on the device before; they do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.losses import REGULARISERS
from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.alive import Alive
from softtargets.training.building import build_model
from softtargets.training.optimisers import make_update
from softtargets.training.pack_loss import ALONE
from softtargets.training.prediction import BATCH, images_at_a_time
from softtargets.training.preparation import Prepared, input_shape, view_of

# Of the memory that is free, packs may fill so much: allocators cannot use every byte, and estimates err.
USED = 0.9
# Beside what layers remember there are gradients of what they said: up to a fifth more in our nets (the CNN), a
# hundredth in deep ones. The rest is for the libraries that compute them. (The words that masks of dropout are drawn
# from are more, for a moment; on a GPU they are compiled away, and a CPU has room.)
BACKWARD = 1.25
# What a loss makes of logits: log-probabilities, targets, their product and its gradient.
_LIKE_LOGITS = 4
# Numbers of 8 bytes for each example: its place and its label twice, in order and as read; and for each block of
# random words that is drawn for it, those words on their way (10) and what comes of them (2).
_TABLES = 3
_DRAWN = 12
# What CUDA's libraries want for each stream on which they work.
_WORKSPACE = 128 * 2**20
_FLOAT, _INTEGER = 4, 8


@dataclass(frozen=True)
class Footprint:
    """The bytes that runs of one kind take.

    run:        each run, whatever it shares.
    image:      each image that a net is measured on at a time, of the `measured` that there are.
    workspace:  each stream: runs that are stacked share one.
    """

    run: int
    image: int
    measured: int
    workspace: int
    stacked: bool
    on_gpu: bool

    def of(self, runs: int) -> int:
        """All that so many runs take together; fewer never take more."""
        streams, stack = (1, runs) if self.stacked else (runs, 1)
        shown = max(size * self._images_of(size) for size in range(1, stack + 1))
        # A run that has ended says what it has learnt while the others go on.
        return runs * self.run + streams * (self.workspace + shown * self.image) + BATCH * self.image

    def _images_of(self, stack: int) -> int:
        return min(self.measured, images_at_a_time(stack, self.on_gpu))


@dataclass(frozen=True)
class Activations:
    """The bytes of what the layers of a net say.

    saved:  in a training step, and until the backward pass is done.
    shown:  of one image that the net is only shown, the image included: as much as there is at any one time.
    """

    saved: int
    shown: int


def fitting(need: Footprint | None, wanted: int, free: int | None) -> int:
    """How many runs, up to those wanted, train together in so many free bytes: at least one; all, if nothing is known.

    >>> need = Footprint(run=1000, image=0, measured=0, workspace=0, stacked=True, on_gpu=False)
    >>> fitting(need, wanted=32, free=8000), fitting(need, wanted=32, free=10), fitting(need, wanted=32, free=None)
    (7, 1, 32)
    """
    if need is None or free is None:
        return wanted
    return next((runs for runs in range(wanted, 1, -1) if need.of(runs) <= USED * free), 1)


def footprint(recipe: Recipe, prepared: Prepared, device: torch.device, stacked: bool) -> Footprint | None:
    """What runs of this kind take; None for nets that cannot be computed without content."""
    shape, classes = input_shape(recipe, prepared), len(prepared.classes)
    model = _outline(recipe, shape, classes)
    seen = activations(model, shape, recipe.batch, recipe.precision)
    if seen is None:
        return None
    on_gpu = device.type == "cuda"
    examples = len(prepared.splits["train"])
    training = BACKWARD * (seen.saved + _LIKE_LOGITS * _FLOAT * recipe.batch * classes)
    if on_gpu:  # steps are recorded, and the one on the last, smaller batch keeps memory of its own
        training *= 1 + examples % recipe.batch / recipe.batch
    run = _weights(recipe, model) + int(training) + _tables(recipe, prepared)
    if recipe.teacher is not None:
        run += _teacher(recipe, recipe.teacher, shape, classes, examples)
    elif issubclass(REGULARISERS[recipe.regulariser.name], ALONE):
        run += seen.shown * recipe.batch  # the loss asks the net a second time
    measured = max(len(split) for name, split in prepared.splits.items() if name != "train")
    workspace = _WORKSPACE if on_gpu else 0
    return Footprint(run, seen.shown, measured, workspace, stacked, on_gpu)


def activations(
    model: Classifier, shape: tuple[int, int, int], batch: int, precision: str
) -> Activations | None:
    """What the layers of a net, wherever it is, say of a batch; None if they cannot say so without content.

    Lower precision is that of the whole net here, where autocast keeps weights and statistics in float32.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = model.to(dtype)
    device = model.head.weight.device
    model.draw_from(torch.zeros(3, dtype=torch.int64, device=device))
    try:
        saved = _saved(model.train(), torch.zeros(batch, *shape, dtype=dtype, device=device))
        with torch.no_grad(), Alive() as alive:
            model.eval()(torch.zeros(batch, *shape, dtype=dtype, device=device))
    except Exception:  # nets that are not ours may ask a tensor for its values, and fail in any way
        return None
    return Activations(saved, -(-alive.most // batch))


def _saved(model: Classifier, images: Tensor) -> int:
    """The bytes of all that is kept for the backward pass, weights not counted; what is kept twice counts once."""
    own = {each.untyped_storage()._cdata for each in (*model.parameters(), *model.buffers())}
    found: dict[int, torch.UntypedStorage] = {}  # kept, or another could come to lie at the same address

    def note(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage._cdata not in own:
            found[storage._cdata] = storage
        return saved

    with torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        model(images)
    return sum(storage.nbytes() for storage in found.values())


def _outline(recipe: Recipe, shape: tuple[int, int, int], classes: int) -> Classifier:
    with torch.device("meta"):
        return build_model(recipe, shape, classes)


def _weights(recipe: Recipe, model: Classifier) -> int:
    names = [name for name, _ in model.named_parameters()]
    weights = _FLOAT * sum(weight.numel() for weight in model.parameters())
    # One of a stack may have momentum; then all have.
    slots = max(1, len(make_update([recipe.optimiser], names, lead=0).slots))
    averages = recipe.average is not None
    # Checkpoints, and recordings on a GPU, begin with a copy of all that a step changes.
    state = 2 * weights * (1 + slots + averages)
    gradients = 2 * weights  # as they come, and side by side or with decay
    low = weights // 2 if recipe.precision == "bf16" else 0
    return state + gradients + low


def _tables(recipe: Recipe, prepared: Prepared) -> int:
    blocks = sum(kind.blocks for kind in view_of(recipe, prepared).kinds)
    # The order is drawn before the augmentation, and takes one block.
    return _INTEGER * len(prepared.splits["train"]) * (_TABLES + _DRAWN * max(1, blocks))


def _teacher(
    recipe: Recipe, teacher: Recipe, shape: tuple[int, int, int], classes: int, examples: int
) -> int:
    if not recipe.augmentation:
        return _FLOAT * examples * classes  # asked once
    model = _outline(teacher, shape, classes)
    weights = _FLOAT * sum(weight.numel() for weight in model.parameters())
    seen = activations(model, shape, recipe.batch, teacher.precision)
    looked = seen.shown * recipe.batch if seen else 0
    return 2 * weights + looked  # as it was loaded, and in the stack
