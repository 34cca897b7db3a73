"""From an image file to the pixels that are kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from softtargets.data.boxes import Tries, box
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
    """What is kept of a picture: at most `size` x `size` pixels in three colours.

    keep:     ``middle`` resizes the picture so that its shorter side is `size` and cuts the middle out; ``picture``
              keeps all of it as it is, and makes smaller only what does not fit into the square.
    draft:    decode JPEG files at a half, a quarter or an eighth of their size where that is still enough. Faster for
              pictures that are at least twice as large as what is kept, and not quite the same pixels.
    upright:  turn photographs as their EXIF says. The known datasets are used as they lie, as everybody does.
    cut:      not what is kept is wanted, but a part of it, resized to `cut` x `cut`; which one is said with each file.
    """

    size: int
    keep: Literal["middle", "picture"] = "middle"
    draft: bool = False
    upright: bool = False
    cut: int | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise DataError(f"size must be at least 1, not {self.size}")

    @property
    def bytes(self) -> int:
        """What one picture has room in."""
        return 3 * self.side * self.side

    @property
    def side(self) -> int:
        """Of the square that one picture has room in."""
        return self.cut or self.size


def decode_file(path: Path | str, how: Decoding, tries: Tries | None = None) -> NDArray[np.uint8]:
    """The pixels that are kept (height, width, 3): `size` x `size` of the middle, or a picture that fits into that.

    Where a part of it is wanted (`how.cut`), `tries` say which.

    Grey, CMYK, palettes and sixteen bits become RGB, transparency is dropped (as torchvision does), and of moving
    pictures the first frame is taken. Resized is bilinear with antialiasing. What is no image, or not all of one, is
    refused with the name of its file.
    """
    from PIL import Image

    try:
        with Image.open(path) as opened:
            if how.draft:
                opened.draft("RGB", _needed(opened.size, how))
            image = _in_colour(opened)
            if how.upright:
                image = _upright(image, opened)
    except FileNotFoundError:
        raise DataError(f"{path} is in the list of images but does not exist") from None
    except DataError as problem:
        raise DataError(f"{path} {problem}") from None
    except MemoryError:
        raise DataError(f"{path} is too large an image for the memory that is left") from None
    # Pillow's decoders raise a wide and changing choice of exceptions on damaged files.
    except Exception as problem:
        raise DataError(f"{path} could not be decoded as an image: {problem}") from None
    kept = _fitted(image, how.size) if how.keep == "picture" else _middle(image, how.size)
    if how.cut is not None:
        assert tries is not None
        top, left, rows, columns = box(tries, kept.height, kept.width)
        kept = resized(kept.crop((left, top, left + columns, top + rows)), how.cut, how.cut)
    return np.asarray(kept, np.uint8)


def resized(image: Image.Image, width: int, height: int) -> Image.Image:
    """Bilinear with antialiasing, across and then down: which comes first is Pillow's choice by version and by size."""
    from PIL import Image

    for size in ((width, image.height), (width, height)):
        if image.size != size:
            image = image.resize(size, Image.Resampling.BILINEAR)
    return image


def put(pixels: NDArray[np.uint8], square: NDArray[np.uint8]) -> Size:
    """Put a picture into the upper left corner of a square, of which the rest becomes black; returns its size.

    >>> square = np.ones((2, 2, 3), np.uint8)
    >>> put(np.full((1, 2, 3), 7, np.uint8), square), square[..., 0].tolist()
    ((1, 2), [[7, 7], [0, 0]])
    """
    height, width, _ = pixels.shape
    square[:height, :width] = pixels
    square[:height, width:] = 0
    square[height:] = 0
    return height, width


def _needed(size: tuple[int, int], how: Decoding) -> tuple[int, int]:
    """The least size that a draft must have: that of the picture where all of it is kept, or of what is cut."""
    width, height = size
    if how.keep == "picture":
        return _fit(width, height, how.size)
    shorter = min(width, height)
    return -(-width * how.size // shorter), -(-height * how.size // shorter)


def _fit(width: int, height: int, size: int) -> tuple[int, int]:
    """The width and height of a picture that fits into a square, in the proportions that it has."""
    longer = max(width, height, size)
    return max(1, round(width * size / longer)), max(1, round(height * size / longer))


def _in_colour(image: Image.Image) -> Image.Image:
    """As RGB; Pillow would cut sixteen bits off at 255."""
    if image.mode.startswith("I;16") or image.mode == "I":
        values = np.asarray(image, np.int64)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise DataError("has values beyond sixteen bits, so it is not an ordinary image")
        return _from_grey((values // _SIXTEEN).astype(np.uint8))
    if image.mode == "F":
        raise DataError("has floating-point pixels, and nothing says which value is white")
    return image.convert("RGB")


def _from_grey(values: NDArray[np.uint8]) -> Image.Image:
    from PIL import Image

    return Image.fromarray(values).convert("RGB")


def _upright(image: Image.Image, opened: Image.Image) -> Image.Image:
    """The picture as EXIF wants it shown."""
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
    return image.transpose(turns[way]) if way in turns else image


def _fitted(image: Image.Image, size: int) -> Any:
    return resized(image, *_fit(*image.size, size))


def _middle(image: Image.Image, size: int) -> Any:
    width, height = image.size
    shorter, longer = min(width, height), max(width, height)
    if longer > _STRIP * shorter:  # resized as a whole it could fill the memory
        left, top = (width - shorter) // 2, (height - shorter) // 2
        return resized(image.crop((left, top, left + shorter, top + shorter)), size, size)
    width, height = round(width * size / shorter), round(height * size / shorter)
    image = resized(image, width, height)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))
