"""Augmentation of a batch of images on their device, by place: any sample of any epoch can be made again.

Each kind first turns random words into the numbers of each sample (`draw`), then changes images by these numbers
(`apply`). Both work on whole batches, synchronise nothing with the host and can be compiled.
"""

from softtargets.data.augment.affine import Affine, Rotation
from softtargets.data.augment.base import Augmentation, exact_mean
from softtargets.data.augment.colour import Brightness, Colour, Contrast
from softtargets.data.augment.resized_crop import ResizedCrop
from softtargets.data.augment.view import View
from softtargets.data.augment.windows import Crop, Flip, Shift, centre

# The names by which recipes call them; each is made with the options of the part of that name.
AUGMENTATIONS: dict[str, type[Augmentation]] = {
    "shift": Shift,
    "flip": Flip,
    "crop": Crop,
    "resized_crop": ResizedCrop,
    "colour": Colour,
    "brightness": Brightness,
    "contrast": Contrast,
    "affine": Affine,
    "rotation": Rotation,
}

__all__ = [
    "AUGMENTATIONS",
    "Affine",
    "Augmentation",
    "Brightness",
    "Colour",
    "Contrast",
    "Crop",
    "Flip",
    "ResizedCrop",
    "Rotation",
    "Shift",
    "View",
    "centre",
    "exact_mean",
]
