"""How far crops from pictures that were made smaller first are from torchvision's, cut from the whole file."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.images.files import QUALITY, photograph
from softtargets.data import Decoding, decode_file
from softtargets.data.augment import ResizedCrop
from softtargets.randomness import key_words, words

CROP = 224


@dataclass(frozen=True)
class Difference:
    """Of shades from 0 to 255, over all pixels of some crops: the mean distance, and what it is compared with.

    distance:  between ours and torchvision's.
    detail:    between torchvision's and its blur by two pixels: how much fine detail there is to be lost.
    """

    distance: float
    detail: float


def difference(
    size: int, keep: str = "picture", draft: bool = False, pictures: int = 16, crops: int = 8
) -> Difference:
    """The mean distance of crops by the same draws, ours from at most `size` x `size` stored pixels."""
    from PIL import Image, ImageFilter

    kind = ResizedCrop(size=CROP)
    found, detail = [], []
    for seed in range(pictures):
        file = io.BytesIO()
        photograph(seed).save(file, "jpeg", quality=QUALITY)
        picture = Image.open(file).convert("RGB")
        how = Decoding(size, keep=keep, draft=draft)  # type: ignore[arg-type]
        kept = torch.from_numpy(decode_file(file, how).copy()).permute(2, 0, 1)  # type: ignore[arg-type]
        words_ = words(
            key_words(seed, "difference"), torch.arange(crops)[:, None], 0, torch.arange(kind.blocks)
        ).flatten(-2)
        boxes = kind.draw(words_, (3, picture.height, picture.width))
        ours = kind.apply(kept.expand(crops, -1, -1, -1), kind.draw(words_, (3, *kept.shape[1:])))
        for place in range(crops):
            top, left, rows, columns = (
                int(boxes[name][place]) for name in ("top", "left", "rows", "columns")
            )
            part = picture.crop((left, top, left + columns, top + rows))
            theirs = part.resize((CROP, CROP), Image.Resampling.BILINEAR)
            blurred = theirs.filter(ImageFilter.GaussianBlur(2))
            whole = np.asarray(theirs, np.float64)
            found.append(np.abs(whole - ours[place].permute(1, 2, 0).numpy()).mean())
            detail.append(np.abs(whole - np.asarray(blurred, np.float64)).mean())
    return Difference(float(np.mean(found)), float(np.mean(detail)))
