"""The rival: a training loop as people write it in plain PyTorch. Nothing of our engine is in here.

A module, ``torch.optim.SGD``, ``F.cross_entropy`` and eager kernels, as in the replication of Müller et al. 2019; but
without a data loader to wait for: the data lies on the device, whole batches are augmented there, and the host waits
for the device once an epoch, to read what was measured. It counts training losses, not hits, which our engine does too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.training.images import Images
from softtargets.models import MODELS
from softtargets.recipes import (
    SGD,
    Augmentation,
    Constant,
    Crop,
    Flip,
    ImageDataset,
    LabelSmoothing,
    Linear,
    Recipe,
    Shift,
)

EVALUATION_BATCH = 1000


class Epoch(NamedTuple):
    """What a loop prints after an epoch."""

    train_loss: float
    test_loss: float
    test_accuracy: float


class EagerLoop:
    """One training of a recipe, epoch after epoch, with random numbers of torch's generators.

    >>> from softtargets.recipes import Digits, MLP
    >>> recipe = Recipe(data=Digits(), model=MLP(hidden=(16,)), regulariser=LabelSmoothing(alpha=0.1), epochs=1)
    >>> EagerLoop(recipe, Images.read(Digits(), torch.device("cpu"))).epoch().test_accuracy > 0.2
    True
    """

    def __init__(self, recipe: Recipe, images: Images, bf16: bool = False) -> None:
        self.optimiser_part, self._alpha = _known(recipe)
        self.recipe, self.images, self._bf16 = recipe, images, bf16
        self._generator = torch.Generator(images.device).manual_seed(recipe.seed)
        assert isinstance(recipe.data, ImageDataset)
        self._standardise = standardiser(recipe.data.standardise, images.train)
        self.net = self._make_net()
        part = self.optimiser_part
        in_loss = part.decay_form == "loss"
        self._decayed = [weight for name, weight in self.net.named_parameters() if name in part.decay_on]
        self.optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=part.lr,
            momentum=part.momentum,
            dampening=part.dampening,
            nesterov=part.nesterov,
            weight_decay=0.0 if in_loss else part.weight_decay,
        )
        self._schedule: torch.optim.lr_scheduler.LinearLR | None = None
        if isinstance(recipe.schedule, Linear):
            steps = (recipe.epochs or 0) * -(-len(images.train) // recipe.batch)
            self._schedule = torch.optim.lr_scheduler.LinearLR(self.optimiser, 1.0, 0.0, steps)

    def epoch(self) -> Epoch:
        """Every example once, in random order; then a look at the test set."""
        self.net.train()
        images, labels = self.images.train, self.images.train_labels
        order = torch.randperm(len(images), generator=self._generator, device=images.device)
        total = torch.zeros((), device=images.device)
        for chosen in order.split(self.recipe.batch):
            loss = self._step(images[chosen], labels[chosen])
            total.add_(loss, alpha=len(chosen))
        # The one place where the host waits.
        train_loss, test_loss, correct = torch.stack((total, *self._evaluate())).tolist()
        return Epoch(
            train_loss / len(images), test_loss / len(self.images.test), correct / len(self.images.test)
        )

    def _step(self, images: Tensor, labels: Tensor) -> Tensor:
        inputs = self._standardise(self._augment(images))
        with self._autocast():
            logits = self.net(inputs)
            loss = F.cross_entropy(logits, labels, label_smoothing=self._alpha)
        objective = loss if self.recipe.multiplier == 1 else self.recipe.multiplier * loss
        for weight in self._decayed:
            objective = objective + 0.5 * self.optimiser_part.weight_decay * weight.square().sum()
        self.optimiser.zero_grad()
        objective.backward()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.recipe.clip)
        self.optimiser.step()
        if self._schedule is not None:
            self._schedule.step()
        return loss.detach()

    @torch.no_grad()
    def _evaluate(self) -> tuple[Tensor, Tensor]:
        """Of the test set, summed up on the device: negative log-likelihood, and how many are right."""
        self.net.eval()
        device = self.images.device
        loss, correct = torch.zeros((), device=device), torch.zeros((), device=device)
        pairs = zip(
            self.images.test.split(EVALUATION_BATCH),
            self.images.test_labels.split(EVALUATION_BATCH),
            strict=True,
        )
        for images, labels in pairs:
            with self._autocast():
                logits = self.net(self._standardise(self._centre(images)))
            loss += F.cross_entropy(logits.float(), labels, reduction="sum")
            correct += (logits.argmax(-1) == labels).sum()
        return loss, correct

    def _augment(self, images: Tensor) -> Tensor:
        for part in self.recipe.augmentation:
            images = self._augmented(images, part)
        return images

    def _augmented(self, images: Tensor, part: Augmentation) -> Tensor:
        if isinstance(part, Flip):
            drawn = torch.rand(len(images), generator=self._generator, device=images.device)
            mirrored = (drawn < part.probability)[:, None, None, None]
            return torch.where(mirrored, images.flip(-1), images)
        size = images.shape[-1]
        if isinstance(part, Shift):
            return self._window(images, part.pixels, size)
        assert isinstance(part, Crop)
        return self._window(images, part.padding, part.size or size)

    def _window(self, images: Tensor, padding: int, size: int) -> Tensor:
        """A random window of each image after padding with zeros."""
        if padding:
            images = F.pad(images, (padding,) * 4)
        count, places = len(images), images.shape[-1] - size + 1
        top, left = torch.randint(places, (2, count), generator=self._generator, device=images.device)
        # A view of every window there is, of which one per image is copied.
        windows = images.unfold(2, size, 1).unfold(3, size, 1)
        return windows[torch.arange(count, device=images.device), :, top, left]

    def _centre(self, images: Tensor) -> Tensor:
        for part in self.recipe.augmentation:
            if isinstance(part, Crop) and part.size:
                edge = (images.shape[-1] - part.size) // 2
                images = images[..., edge : edge + part.size, edge : edge + part.size]
        return images

    def _make_net(self) -> nn.Module:
        shape = self._centre(self.images.train[:1]).shape[1:]
        options = {key: value for key, value in vars(self.recipe.model).items() if key != "name"}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.recipe.seed)
            net = MODELS[self.recipe.model.name](
                shape=tuple(shape), classes=len(self.images.classes), **options
            )
        return net.to(self.images.device)

    def _autocast(self) -> AbstractContextManager[object]:
        return torch.autocast(self.images.device.type, torch.bfloat16) if self._bf16 else nullcontext()


def standardiser(kind: str, training_images: Tensor) -> Callable[[Tensor], Tensor]:
    """Pixels as the net sees them: ``unit`` from 0 to 1, ``channel`` and ``image`` with mean 0 and deviation 1."""
    if kind == "unit":
        return lambda images: images.float() / 255
    if kind == "channel":
        deviation, mean = torch.std_mean(training_images.float(), (0, 2, 3), correction=0, keepdim=True)
        return lambda images: (images.float() - mean) / deviation

    def by_image(images: Tensor) -> Tensor:
        values = images.float()
        deviation, mean = torch.std_mean(values, (1, 2, 3), correction=0, keepdim=True)
        return (values - mean) / deviation.clamp_min(values[0].numel() ** -0.5)

    return by_image


def _known(recipe: Recipe) -> tuple[SGD, float]:
    """The optimiser and the smoothing; refuses what this loop does not do, rather than train something else."""
    optimiser, loss, schedule = recipe.optimiser, recipe.regulariser, recipe.schedule
    if not isinstance(optimiser, SGD) or not isinstance(loss, LabelSmoothing):
        raise ValueError("the eager loop knows SGD and label smoothing only")
    simple = {
        "the smoothing goes to all classes": loss.spread == "all",
        "the schedule is constant or falls to 0": schedule in (Constant(), Linear()),
        "all layers have one rate": not optimiser.rates,
        "chosen layers are decayed in the loss": bool(optimiser.decay_on) == (optimiser.decay_form == "loss"),
        "images are cropped, shifted or mirrored": all(
            isinstance(part, (Crop, Shift, Flip)) for part in recipe.augmentation
        ),
        "labels are clean": recipe.noise.name == "none",
        "weights are not averaged": recipe.average is None,
        "the length is given in epochs": recipe.epochs is not None,
    }
    for condition, met in simple.items():
        if not met:
            raise ValueError(f"the eager loop trains only where {condition}")
    return optimiser, loss.alpha
