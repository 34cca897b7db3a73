"""Tensors in files of ``torch.save``, found without executing what the file asks for.

Such a file is a zip archive: a pickle that says which tensors there are, and their bytes. The pickle is a program. It
runs here with every door closed: the names it may mention stand for small objects of ours that remember where a
tensor lies, and anything else is refused by name. That is stricter than ``torch.load(weights_only=True)``, and no
numbers are read before they are asked for.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from softtargets.predictions.archive import content_offset, members, zip_errors
from softtargets.predictions.array import FileArray
from softtargets.predictions.failing import PredictionFileError
from softtargets.predictions.raw import RawArray, row_major

PICKLE_BYTES = 1 << 24  # of names and shapes; tensors are not in it
STORAGES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": "bf16",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "b1",
}
# They reach for things outside the pickle or make objects of classes; no tensor needs them.
FORBIDDEN = frozenset(
    {"PERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "NEXT_BUFFER", "READONLY_BUFFER"}
)


class _Refused(Exception):
    """What a pickle asked for that it is not given."""


def open_torch(path: Path, size: int) -> dict[str, FileArray]:
    """The tensors of a dictionary by name; nested names are joined by dots, those of lists are numbers."""
    found = members(path, size)
    pickles = [name for name in found if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1 or any(name.endswith("/constants.pkl") for name in found):
        raise PredictionFileError(
            path, "is not a file of torch.save", "save a dictionary of tensors, not a compiled model"
        )
    for info in found.values():
        if info.compress_type != zipfile.ZIP_STORED:
            raise PredictionFileError(
                path,
                "is refused: it is compressed, which torch.save never does",
                "save it again with torch.save",
            )
    program = _member(path, found[pickles[0]], PICKLE_BYTES)
    root = pickles[0].removesuffix("data.pkl")
    order = _member(path, found[f"{root}byteorder"], 16) if f"{root}byteorder" in found else b"little"
    try:
        content = _run(program)
    except _Refused as refused:
        raise PredictionFileError(
            path,
            f"is refused: it {refused}, and only tensors and plain containers are read",
            "save the tensors alone: torch.save({'logits': ..., 'labels': ...}, path)",
        ) from None
    except Exception as problem:  # a hostile pickle can make the unpickler raise nearly anything
        raise PredictionFileError(
            path, f"is damaged: its pickle cannot be read ({type(problem).__name__})", "save it again"
        ) from None
    places = {name.removeprefix(f"{root}data/"): info for name, info in found.items()}
    tensors: dict[str, _Tensor] = {}
    _collect(content, "", tensors, set())
    return {
        name: _array(path, name, tensor, places, size, "<" if order.strip() == b"little" else ">")
        for name, tensor in tensors.items()
    }


def _member(path: Path, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.file_size > most:
        raise PredictionFileError(
            path,
            f"is refused: '{info.filename}' has {info.file_size} bytes, more than {most}",
            "save the tensors alone",
        )
    with zip_errors(path), zipfile.ZipFile(path) as archive:
        return archive.read(info)


def _run(program: bytes) -> Any:
    for opcode, argument, _ in pickletools.genops(program):
        if opcode.name in FORBIDDEN:
            raise _Refused(f"uses the operation {opcode.name}")
        # The memo is an array as long as its largest index: one of 4 billion would take 32 GB.
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= len(program):
            raise _Refused(f"numbers an object {argument}")
    return _Unpickler(io.BytesIO(program)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage") and name in STORAGES:
            return _StorageType(STORAGES[name])
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]()
        raise _Refused(f"asks for '{module}.{name}'")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise _Refused("has an unknown reference")
        _, kind, key, _, count = pid
        if not isinstance(kind, _StorageType) or not isinstance(key, str) or type(count) is not int:
            raise _Refused("has a tensor of a type that is not read")
        return _Storage(kind.code, key, count)


class _StandIn:
    """Takes the place of an allowed name; a fresh one each time, so that no pickle can alter the next."""

    __slots__ = ()

    def __setstate__(self, state: object) -> NoReturn:
        raise _Refused("sets the state of a name")

    def __call__(self, *arguments: Any) -> Any:
        raise _Refused("calls what is not a function")


class _StorageType(_StandIn):
    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code


class _Nothing(_StandIn):
    """A device, a shape, a type: harmless, and of no use here."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        return None


class _Dictionary(dict[Any, Any]):
    def __setstate__(self, state: object) -> None:
        """Metadata of a module's state; not needed."""


class _MakeDictionary(_StandIn):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        if arguments:
            raise _Refused("makes a dictionary in an unknown way")
        return _Dictionary()


class _MakeTensor(_StandIn):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) < 4 or not isinstance(arguments[0], _Storage):
            raise _Refused("makes a tensor in an unknown way")
        storage, offset, shape, strides = arguments[:4]
        for sizes in (shape, strides, (offset,)):
            if not isinstance(sizes, tuple) or not all(type(n) is int and n >= 0 for n in sizes):
                raise _Refused("makes a tensor of an impossible shape")
        if len(shape) != len(strides):
            raise _Refused("makes a tensor of an impossible shape")
        return _Tensor(storage, offset, shape, strides)


class _MakeParameter(_StandIn):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        if not arguments or not isinstance(arguments[0], _Tensor):
            raise _Refused("makes a parameter in an unknown way")
        return arguments[0]


class _Storage:
    __slots__ = ("code", "count", "key")

    def __init__(self, code: str, key: str, count: int) -> None:
        self.code, self.key, self.count = code, key, count

    def __setstate__(self, state: object) -> NoReturn:
        raise _Refused("sets the state of a tensor")


class _Tensor:
    __slots__ = ("offset", "shape", "storage", "strides")

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self.storage, self.offset, self.shape, self.strides = storage, offset, shape, strides

    def __setstate__(self, state: object) -> NoReturn:
        raise _Refused("sets the state of a tensor")


_DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
_ALLOWED: dict[tuple[str, str], type[_StandIn]] = {
    ("collections", "OrderedDict"): _MakeDictionary,
    ("torch._utils", "_rebuild_tensor_v2"): _MakeTensor,
    ("torch._utils", "_rebuild_parameter"): _MakeParameter,
    ("torch", "device"): _Nothing,
    ("torch", "Size"): _Nothing,
    **{("torch", name): _Nothing for name in _DTYPES},
}


def _collect(value: Any, name: str, found: dict[str, _Tensor], seen: set[int]) -> None:
    if isinstance(value, _Tensor):
        found[name or "tensor"] = value
    elif isinstance(value, (dict, list, tuple)) and id(value) not in seen and name.count(".") < 20:
        seen.add(id(value))  # a container in itself, or in a thousand places, is looked at once
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            _collect(item, f"{name}.{key}" if name else str(key), found, seen)


def _array(
    path: Path, name: str, tensor: _Tensor, places: dict[str, zipfile.ZipInfo], size: int, order: str
) -> FileArray:
    bfloat16 = tensor.storage.code == "bf16"
    dtype: np.dtype[np.generic] = np.dtype(order + ("u2" if bfloat16 else tensor.storage.code))
    info = places.get(tensor.storage.key)
    extent = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
    empty = math.prod(tensor.shape) == 0
    if info is None or (not empty and (extent + 1) * dtype.itemsize > info.file_size):
        raise PredictionFileError(
            path,
            f"is damaged: the tensor '{name}' {tensor.shape} does not lie within the file",
            "save it again",
        )
    # The stride of a dimension of length 1 means nothing, and torch writes what it likes.
    plain = row_major(tensor.shape, 1)
    strides = tuple(
        dtype.itemsize * (own if n > 1 else usual)
        for n, own, usual in zip(tensor.shape, tensor.strides, plain, strict=True)
    )
    offset = content_offset(path, info, size) + tensor.offset * dtype.itemsize
    return RawArray(path, name, tensor.shape, dtype, offset, strides, bfloat16)
