"""From an image file to the square of pixels that is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import DataError

if TYPE_CHECKING:
    from PIL import Image

Size = tuple[int, int]  # height, width

# A strip whose long side is so many times the short one is cut before it is resized: the rest is never looked at.
_STRIP = 8
# Sixteen bits to eight: 65535 becomes 255, and every shade is 257 of them.
_SIXTEEN = 257


@dataclass(frozen=True)
class Decoding:
    """What is kept of a picture: `size` x `size` pixels in three colours.

    keep:     ``middle`` resizes the picture so that its shorter side is `size` and cuts the middle out; ``whole``
              squeezes all of it into the square, for crops that know what its proportions were.
    draft:    decode JPEG files at a half, a quarter or an eighth of their size where that is still enough. Faster for
              pictures that are at least twice as large as what is kept, and not quite the same pixels.
    upright:  turn photographs as their EXIF says. The known datasets are used as they lie, as everybody does.
    """

    size: int
    keep: Literal["middle", "whole"] = "middle"
    draft: bool = False
    upright: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise DataError(f"size must be at least 1, not {self.size}")

    @property
    def bytes(self) -> int:
        """What one picture takes."""
        return 3 * self.size * self.size


def decode_file(path: Path | str, how: Decoding) -> tuple[NDArray[np.uint8], Size]:
    """The pixels that are kept (size, size, 3), and the height and width of the whole picture.

    Grey, CMYK, palettes and sixteen bits become RGB, transparency is dropped (as torchvision does), and of moving
    pictures the first frame is taken. Resized is bilinear with antialiasing. What is no image, or not all of one, is
    refused with the name of its file.
    """
    from PIL import Image

    try:
        with Image.open(path) as opened:
            width, height = opened.size
            if how.draft:
                opened.draft("RGB", _needed(opened.size, how))
            image = _in_colour(opened)
            if how.upright:
                image, turned = _upright(image, opened)
                height, width = (width, height) if turned else (height, width)
    except FileNotFoundError:
        raise DataError(f"{path} is listed but does not exist") from None
    except DataError as problem:
        raise DataError(f"{path} {problem}") from None
    except MemoryError:
        raise DataError(f"{path} is too large a picture for the memory that is left") from None
    # Pillow's decoders raise a wide and changing choice of exceptions on damaged files.
    except Exception as problem:
        raise DataError(f"{path} could not be decoded as an image: {problem}") from None
    square = _squeezed(image, how.size) if how.keep == "whole" else _middle(image, how.size)
    return np.asarray(square, np.uint8), (height, width)


def _needed(size: tuple[int, int], how: Decoding) -> tuple[int, int]:
    """The least size that a draft must have, in its proportions or, squeezed, in both directions."""
    width, height = size
    if how.keep == "whole":
        return how.size, how.size
    shorter = min(width, height)
    return -(-width * how.size // shorter), -(-height * how.size // shorter)


def _in_colour(image: Image.Image) -> Image.Image:
    """As RGB; Pillow would cut sixteen bits off at 255."""
    if image.mode.startswith("I;16") or image.mode == "I":
        values = np.asarray(image, np.int64)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise DataError("has shades beyond sixteen bits, which no picture that can be shown has")
        return _from_grey((values // _SIXTEEN).astype(np.uint8))
    if image.mode == "F":
        raise DataError("is made of floating-point numbers, and nobody says which of them is white")
    return image.convert("RGB")


def _from_grey(values: NDArray[np.uint8]) -> Image.Image:
    from PIL import Image

    return Image.fromarray(values).convert("RGB")


def _upright(image: Image.Image, opened: Image.Image) -> tuple[Image.Image, bool]:
    """The picture as EXIF wants it shown, and whether that exchanges its sides."""
    from PIL import ExifTags, Image

    way = opened.getexif().get(ExifTags.Base.Orientation, 1)
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
    return (image.transpose(turns[way]), way >= 5) if way in turns else (image, False)


def _squeezed(image: Image.Image, size: int) -> Any:
    from PIL import Image

    return image if image.size == (size, size) else image.resize((size, size), Image.Resampling.BILINEAR)


def _middle(image: Image.Image, size: int) -> Any:
    from PIL import Image

    width, height = image.size
    shorter, longer = min(width, height), max(width, height)
    if longer > _STRIP * shorter:  # resized as a whole it could fill the memory
        left, top = (width - shorter) / 2, (height - shorter) / 2
        box = (left, top, left + shorter, top + shorter)
        return image.resize((size, size), Image.Resampling.BILINEAR, box=box)
    if shorter != size:
        width, height = round(width * size / shorter), round(height * size / shorter)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))
