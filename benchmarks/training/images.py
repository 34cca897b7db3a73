"""Images on the device, for both sides: random ones to measure speed, real ones to measure accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from softtargets.data import load
from softtargets.recipes import Dataset


@dataclass(frozen=True)
class Images:
    """Pictures as stored (uint8) and their labels, to train on and to test with."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]

    @classmethod
    def random(
        cls, shape: tuple[int, int, int], train: int, test: int, classes: int, device: torch.device
    ) -> Images:
        """Noise, the same every time: how fast a net trains does not depend on what it sees."""
        generator = torch.Generator(device).manual_seed(0)

        def draw(high: int, *size: int, dtype: torch.dtype) -> Tensor:
            return torch.randint(high, size, dtype=dtype, device=device, generator=generator)

        return cls(
            draw(256, train, *shape, dtype=torch.uint8),
            draw(classes, train, dtype=torch.int64),
            draw(256, test, *shape, dtype=torch.uint8),
            draw(classes, test, dtype=torch.int64),
            tuple(map(str, range(classes))),
        )

    @classmethod
    def read(cls, data: Dataset, device: torch.device, data_dir: Path | None = None) -> Images:
        """A dataset from disk."""
        train, test = (load(data.name, half, data_dir, **data.reader_options()) for half in ("train", "test"))
        arrays = (train.images, train.labels, test.images, test.labels)
        images, labels, test_images, test_labels = (torch.from_numpy(each).to(device) for each in arrays)
        return cls(images, labels, test_images, test_labels, train.classes)

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.train.device
