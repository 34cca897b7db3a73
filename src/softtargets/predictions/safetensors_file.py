"""The safetensors format: eight bytes of length, a JSON header, plain bytes. https://github.com/huggingface/safetensors"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from softtargets.predictions.array import FileArray
from softtargets.predictions.failing import PredictionFileError, reading
from softtargets.predictions.raw import RawArray

HEADER_BYTES = 100_000_000  # the format's own limit
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def open_safetensors(path: Path, size: int) -> dict[str, FileArray]:
    """The tensors of a file by name; types with fewer than 8 bits are listed but not read."""
    with reading(path), open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size - 8, HEADER_BYTES):
            raise PredictionFileError(
                path,
                f"is damaged: its header claims {length} bytes of a file of {size}",
                "it was cut off or is no safetensors file; save it again",
            )
        text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise PredictionFileError(path, "is damaged: its header is no JSON", "save it again")
    header.pop("__metadata__", None)
    return {name: _array(path, name, entry, 8 + length, size) for name, entry in header.items()}


def _array(path: Path, name: str, entry: object, base: int, size: int) -> FileArray:
    try:
        assert isinstance(entry, dict)
        code, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        assert all(type(n) is int and n >= 0 for n in (*shape, first, last))
    except (AssertionError, KeyError, TypeError, ValueError):
        raise PredictionFileError(
            path, f"is damaged: the header of '{name}' is unreadable", "save it again"
        ) from None
    known = TYPES.get(code) if isinstance(code, str) else None
    dtype: np.dtype[np.generic] = np.dtype(known or "V1")
    if base + last > size or (known and last - first != math.prod(shape) * dtype.itemsize):
        raise PredictionFileError(
            path,
            f"is damaged or cut off: '{name}' {shape} {code} does not lie within the file",
            "save or download it again",
        )
    return RawArray(path, name, shape, dtype, base + first, bfloat16=code == "BF16")
