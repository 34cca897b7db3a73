"""Images on a device: splits, label noise, standardisation, and what nets are shown of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softtargets.data import Patient, decode, decoders, image_files, load
from softtargets.data.augment import AUGMENTATIONS, View, centre
from softtargets.data.augment import ResizedCrop as Parts
from softtargets.exceptions import RecipeError
from softtargets.losses import CSKD, REGULARISERS, BetaSmoothing, SoftTargetLoss
from softtargets.models import Classifier
from softtargets.noise import CORRUPTIONS
from softtargets.randomness import derive
from softtargets.recipes import Clean, Crop, Dataset, ImageDataset, Instance, Noise, Recipe, ResizedCrop
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets
from softtargets.training.pack_loss import ALONE
from softtargets.training.precision import autocast
from softtargets.training.sizing import activations, outline
from softtargets.training.tasks.images.keeping import are_kept
from softtargets.training.tasks.images.split import Split, standardiser, streamed, to_device
from softtargets.training.tasks.images.streaming import Streamed
from softtargets.training.tasks.task import Adviser, Epoch, Feed, Task, Teachers
from softtargets.training.teaching import asked_through

# Images that a net is shown at a time where it is not trained.
BATCH = 1000
# Of the draws of instance noise.
_STREAMS = {"train": 0, "validation": 1, "test": 2}
# Numbers of 8 bytes for each example: its place and its label twice, in order and as read; and for each block of
# random words that is drawn for it, those words on their way (10) and what comes of them (2).
_TABLES = 3
_DRAWN = 12
_FLOAT, _INTEGER = 4, 8


@dataclass(frozen=True)
class ImageTask(Task):
    """All a training needs to know of its images."""

    splits: dict[str, Split]
    classes: tuple[str, ...]
    standardise: Callable[[Tensor], Tensor]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of the stored images."""
        channels, height, width = self.splits["train"].images.shape[1:]
        return channels, height, width

    @classmethod
    def prepare(cls, data: Dataset, device: torch.device, data_dir: Path | None = None) -> ImageTask:
        """Read a dataset, cut its splits and move it to the device."""
        assert isinstance(data, ImageDataset)
        options = data.reader_options()
        files = {
            split: image_files(data.name, split, data_dir, progress=Patient(), **options)
            for split in ("train", "test")
        }
        listed = [found for found in files.values() if found is not None]
        if listed and not are_kept(listed, device):
            count, classes = len(listed[0][0]), listed[0][0].classes
            cut = [partial(streamed, index, how=how, device=device) for index, how in listed]
        else:
            read = [decode(*found, Patient()) for found in listed]
            read = read or [load(data.name, split, data_dir, **options) for split in files]
            count, classes = len(read[0]), read[0].classes
            cut = [partial(to_device, examples, device=device) for examples in read]
        kept = count - data.validation
        if kept < 1:
            raise RecipeError(
                f"{data.validation} leaves nothing to train on: {data.name} has {count} training examples",
                "data.validation",
            )
        limit = data.limit or kept
        if limit > kept:
            raise RecipeError(f"{limit} is more than the {kept} training examples", "data.limit")
        splits = {"train": cut[0](which=slice(0, limit))}
        if data.validation:
            splits["validation"] = cut[0](which=slice(kept, None))
        splits["test"] = cut[1](which=slice(None))
        return cls(splits, classes, standardiser(data.standardise, splits["train"]))

    @property
    def is_streamed(self) -> bool:
        """Whether images come from their files, batch by batch."""
        return isinstance(self.splits["train"].images, Streamed)

    def provenance(self) -> dict[str, Any]:
        """With what brought images that are streamed."""
        found = super().provenance()
        files = self.splits["train"].images
        return found | ({"streamed": f"decoded by {decoders()}"} if isinstance(files, Streamed) else {})

    def net_arguments(self, recipe: Recipe) -> dict[str, Any]:
        """The shape of an image and the number of classes."""
        return {"shape": self.input_shape(recipe), "classes": len(self.classes)}

    def with_noise(self, recipe: Recipe) -> ImageTask:
        """The same data with corrupted training labels, and with noise of beta type validation and test labels too.

        Labels as read are kept beside them.
        """
        noise = recipe.noise
        if isinstance(noise, Clean):
            return self
        noisy = {
            name: self._corrupted(name, split, noise, recipe.seed)
            for name, split in self.splits.items()
            if name == "train" or noise.on_held_out
        }
        return replace(self, splits=self.splits | noisy)

    def _corrupted(self, name: str, split: Split, noise: Noise, seed: int) -> Split:
        # Every split draws on its own; training labels as they were drawn before the others could be noisy.
        options = noise.options()
        if isinstance(noise, Instance):
            # One noise for all splits: the same looks are taken for the same classes.
            if isinstance(split.images, Streamed):
                raise RecipeError(
                    f"{noise.name} noise needs all images in memory at once, and these are too many; choose noise "
                    "that depends on the class only, or fewer or smaller images (data.limit, data.size)",
                    "noise",
                )
            inputs = standardiser("channel", self.splits["train"])(split.images)
            options |= {"inputs": inputs, "stream": _STREAMS[name]}
        alike = name == "train" or isinstance(noise, Instance)
        own = derive(seed, "noise") if alike else derive(seed, "noise", name)
        noisy = CORRUPTIONS[noise.name](split.clean_labels, classes=len(self.classes), seed=own, **options)
        return replace(split, labels=torch.from_numpy(noisy).to(split.labels.device))

    def frequencies(self) -> Tensor:
        """Of the labels as they were read, whatever noise a recipe puts on them."""
        counts = torch.bincount(self.splits["train"].clean_labels, minlength=len(self.classes))
        return counts.double() / counts.sum()

    def check(self, recipe: Recipe, taught: Task | None) -> None:
        """Batch, crops, noise, probes, teacher."""
        from softtargets.training.tasks.images.checks import check_images

        check_images(recipe, self, taught)

    # --- what nets are shown ---

    def input_shape(self, recipe: Recipe) -> tuple[int, int, int]:
        """The shape the net sees, which crops may have made smaller; refuses crops that cannot be cut."""
        channels, height, width = self.shape
        for position, part in enumerate(recipe.augmentation):
            if isinstance(part, ResizedCrop) and part.size:
                height = width = part.size
            if isinstance(part, Crop) and part.size:
                if part.size > min(height, width):
                    raise RecipeError(
                        f"{part.size} is larger than the image of {height} x {width}",
                        f"augmentation.{position}.size",
                    )
                height = width = part.size
        return channels, height, width

    def view(self, recipe: Recipe) -> View:
        """The recipe's augmentation, as training sees images through it."""
        return View([AUGMENTATIONS[part.name](**vars(part)) for part in recipe.augmentation], self.shape)

    def evaluation_inputs(self, recipe: Recipe, images: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Images as evaluation sees them, standardised: no randomness, the middle where training crops.

        `sizes` are those of pictures that lie in the corners of squares.
        """
        for part in recipe.augmentation:
            if isinstance(part, Crop) and part.size:
                images = centre(images, part.size)
            if isinstance(part, ResizedCrop):
                images, sizes = Parts(**vars(part)).centred(images, sizes), None
        return self.standardise(images.contiguous())  # in memory as images on the device are

    # --- training ---

    def epoch(self, recipe: Recipe, epoch: int) -> Epoch:
        """Every image once; the last batch may be smaller."""
        return _epoch(len(self.splits["train"]), recipe.batch)

    def feed(self, recipes: Sequence[Recipe], tasks: Sequence[ImageTask], machinery: Machinery) -> Feed:
        """Orders, labels and augmentation of each run."""
        from softtargets.training.tasks.images.feed import ImageFeed
        from softtargets.training.tasks.images.streamed_feed import StreamedFeed

        return (StreamedFeed if self.is_streamed else ImageFeed)(recipes, tasks, machinery)

    def adviser(
        self, recipes: Sequence[Recipe], nets: Nets, loss: SoftTargetLoss | None, teachers: Teachers
    ) -> Adviser | None:
        """Teachers, partners of the same class, or an averaged net."""
        from softtargets.training.tasks.images import advisers

        if any(teachers):
            return advisers.TeacherAdviser(recipes, self, teachers, bool(nets.lead))
        if isinstance(loss, CSKD):
            return advisers.PartnerAdviser(recipes[0], self, nets)
        return advisers.AveragedAdviser(self, loss) if isinstance(loss, BetaSmoothing) else None

    def compiles(self, recipe: Recipe, shape: torch.Size) -> bool:
        """Compiling takes a while: the one smaller batch of an epoch is not worth it."""
        return shape[0] == recipe.batch

    # --- what is kept ---

    def predict(self, recipe: Recipe, model: Classifier, split: str) -> dict[str, Tensor]:
        """Logits, labels and penultimate activations, example by example, without augmentation.

        Where the recipe puts noise on the labels of this split, the clean ones lie beside them.
        """
        return self.say(recipe, model, self.splits[split])

    @torch.no_grad()
    def say(
        self, recipe: Recipe, model: Classifier, split: Split, features: bool = True
    ) -> dict[str, Tensor]:
        """The same of any images, such as those that a student is trained on.

        What is said of streamed images is gathered in the memory of the host.
        """
        was_training = model.training
        model.eval()
        where = torch.device("cpu") if isinstance(split.images, Streamed) else split.images.device
        found: dict[str, list[Tensor]] = {"logits": [], "features": []}
        for shown in split.parts(BATCH):
            with autocast(recipe.precision, shown.images.device):
                penultimate = model.features(self.evaluation_inputs(recipe, *shown))
                found["logits"].append(model.head(penultimate).float().to(where))
            if features:
                found["features"].append(penultimate.float().to(where))
        model.train(was_training)
        said = {"logits": torch.cat(found["logits"]), "labels": split.labels}
        said |= {"features": torch.cat(found["features"])} if features else {}
        return said if split.labels is split.clean_labels else said | {"clean_labels": split.clean_labels}

    # --- memory ---

    def rows(self, shape: int) -> int:
        """One label for each image."""
        return shape

    def blank(self, recipe: Recipe, shape: int, device: torch.device) -> tuple[Tensor, ...]:
        """So many images."""
        return (torch.zeros(shape, *self.input_shape(recipe), device=device),)

    def measured_at_a_time(self, runs: int, on_gpu: bool) -> int:
        """Every run of a stack sees them, and keeps what its layers say of them."""
        return max(BATCH // 10, BATCH // (-(-runs // 16))) if on_gpu else BATCH

    def table_bytes(self, recipe: Recipe) -> int:
        """Order and labels; the order is drawn before the augmentation, and takes one block."""
        blocks = sum(kind.blocks for kind in self.view(recipe).kinds)
        files = self.splits["train"].images
        if isinstance(files, Streamed):
            # Views are drawn for a batch at a time; batches are staged and then read, some with partners.
            pictures = 2 * recipe.batch * (1 + issubclass(REGULARISERS[recipe.regulariser.name], CSKD))
            drawn = _INTEGER * recipe.batch * _DRAWN * max(1, blocks)
            return _INTEGER * len(files) + pictures * files.how.bytes + drawn
        return _INTEGER * len(self.splits["train"]) * (_TABLES + _DRAWN * max(1, blocks))

    def advice_bytes(self, recipe: Recipe, shown: int) -> int:
        """A teacher says the same of fixed images in every epoch, and else is asked in every step."""
        teacher = recipe.teacher
        if teacher is None:  # some losses ask the net itself a second time
            return shown if issubclass(REGULARISERS[recipe.regulariser.name], ALONE) else 0
        through = asked_through(recipe)
        if through is None:
            return _FLOAT * len(self.splits["train"]) * len(self.classes)
        model = outline(replace(teacher, augmentation=through.augmentation), self)
        weights = _FLOAT * sum(weight.numel() for weight in model.parameters())
        seen = activations(model, self.blank(through, recipe.batch, torch.device("meta")), teacher.precision)
        return 2 * weights + (seen.shown * recipe.batch if seen else 0)  # as it was loaded, and in the stack


@lru_cache
def _epoch(examples: int, batch: int) -> Epoch:
    sizes = tuple(min(batch, examples - begin) for begin in range(0, examples, batch))
    return Epoch(sizes, sizes)
