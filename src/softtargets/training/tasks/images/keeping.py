"""Whether image files are decoded once and kept on the device, or streamed from their files in every epoch."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from softtargets.data import Decoding, ImageIndex
from softtargets.exceptions import DataError
from softtargets.training.devices import free_memory

VARIABLE = "SOFTTARGETS_IMAGES"
CHOICES = ("auto", "kept", "streamed")
# Of the memory that is free, on the device and here, images may fill so much: the rest is for trainings.
SHARE = 0.5


def are_kept(files: Sequence[tuple[ImageIndex, Decoding]], device: torch.device) -> bool:
    """Whether these images are kept on the device: if they fit, unless the environment says otherwise.

    Which of the two it is changes no number of a run.
    """
    said = os.environ.get(VARIABLE, "") or "auto"
    if said not in CHOICES:
        raise DataError(f"{VARIABLE} is {said!r}; it must be one of {', '.join(CHOICES)}")
    if said != "auto":
        return said == "kept"
    needed = sum(len(index) * how.bytes for index, how in files)
    here = {free_memory(device), free_memory(torch.device("cpu"))}  # they pass through the memory of the host
    return all(free is None or needed <= SHARE * free for free in here)
