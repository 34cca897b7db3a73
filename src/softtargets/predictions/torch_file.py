"""Tensors in files of ``torch.save``, found without executing what the file asks for.

Such a file is a zip archive: a pickle that says which tensors there are, and their bytes. The pickle is a program. It
runs here with every door closed: the names it may mention stand for small objects of ours that remember where a
tensor lies, and anything else is refused by name. Why not ``torch.load(weights_only=True, mmap=True)``: up to torch 2.9
a hostile file can corrupt memory through it (CVE-2026-24747), and we allow torch from 2.6 on; in every version a file
of 300 bytes can make it fill any amount of memory (``bytearray(10**11)``); and what is mapped counts as memory.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from softtargets.predictions.archive import content_offset, members, opened
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import FoundFile
from softtargets.predictions.raw import RawArray, row_major
from softtargets.storage import PlainUnpickler, RefusedPickle, check_operations

PICKLE_BYTES = 1 << 24  # of names and shapes; tensors are not in it
DEEPEST = 40  # containers in containers
STORAGES = {
    **{"DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "BFloat16Storage": "bf16"},
    **{"LongStorage": "i8", "IntStorage": "i4", "ShortStorage": "i2", "CharStorage": "i1"},
    **{"ByteStorage": "u1", "BoolStorage": "b1"},
}
DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")


class _Storage(NamedTuple):
    code: str
    key: str


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Name:
    """Takes the place of an allowed name; a fresh one each time, so that no pickle can alter the next."""

    __slots__ = ("call", "code")

    def __init__(self, call: Callable[..., Any] | None = None, code: str = "") -> None:
        self.call, self.code = call, code

    def __call__(self, *arguments: Any) -> Any:
        if self.call is None:
            raise RefusedPickle("calls what is not a function")
        return self.call(*arguments)

    def __setstate__(self, state: object) -> NoReturn:
        raise RefusedPickle("sets the state of a name")


class _Dictionary(dict[Any, Any]):
    def __setstate__(self, state: object) -> None:
        """Metadata of a module's state; not needed."""


def _tensor(*arguments: Any) -> _Tensor:
    if len(arguments) < 4 or not isinstance(arguments[0], _Storage):
        raise RefusedPickle("makes a tensor in an unknown way")
    storage, offset, shape, strides = arguments[:4]
    tuples = isinstance(shape, tuple) and isinstance(strides, tuple) and len(shape) == len(strides)
    if not tuples or not all(type(n) is int and 0 <= n < 1 << 63 for n in (*shape, *strides, offset)):
        raise RefusedPickle("makes a tensor of an impossible shape")
    return _Tensor(storage, offset, shape, strides)


def _parameter(*arguments: Any) -> _Tensor:
    if not arguments or not isinstance(arguments[0], _Tensor):
        raise RefusedPickle("makes a parameter in an unknown way")
    return arguments[0]


# What a pickle may mention, and what comes of calling it. A device, a shape, a type: harmless, and of no use here.
ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): lambda: _Dictionary(),
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    **{("torch", name): lambda *_: None for name in ("device", "Size", *DTYPES)},
}


class _Unpickler(PlainUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage") and name in STORAGES:
            return _Name(code=STORAGES[name])
        if (module, name) in ALLOWED:
            return _Name(ALLOWED[module, name])
        raise RefusedPickle(f"asks for '{module}.{name}'")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise RefusedPickle("has an unknown reference")
        if not isinstance(pid[1], _Name) or not pid[1].code or not isinstance(pid[2], str):
            raise RefusedPickle("has a tensor of a type that is not read")
        return _Storage(pid[1].code, pid[2])


def open_torch(file: FoundFile) -> dict[str, FileArray]:
    """The tensors of a dictionary by name; nested names are joined by dots, those of lists are numbers."""
    found = members(file)
    pickle_name = _pickle_name(file, found)
    root = pickle_name.removesuffix("data.pkl")
    order = _member(file, found[f"{root}byteorder"], 16) if f"{root}byteorder" in found else b"little"
    places = {name.removeprefix(f"{root}data/"): info for name, info in found.items()}
    tensors: dict[str, _Tensor] = {}
    _collect(_content(file, _member(file, found[pickle_name], PICKLE_BYTES)), "", tensors, set())
    mark = "<" if order.strip() == b"little" else ">"
    return {
        name: _array(file, name, tensor, places.get(tensor.storage.key), mark)
        for name, tensor in tensors.items()
    }


def _pickle_name(file: FoundFile, found: dict[str, zipfile.ZipInfo]) -> str:
    pickles = [name for name in found if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1 or any(name.endswith("/constants.pkl") for name in found):
        raise file.refused(
            "was not written by torch.save", "save a dictionary of tensors, not a compiled model"
        )
    if any(info.compress_type != zipfile.ZIP_STORED for info in found.values()):
        raise file.refused(
            "is refused: it is compressed, which torch.save never does", "save it again with torch.save"
        )
    return pickles[0]


def _member(file: FoundFile, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.file_size > most:
        raise file.refused(
            f"is refused: '{info.filename}' has {info.file_size} bytes, more than {most}",
            "save the tensors alone",
        )
    with opened(file.path, info) as stream:
        return stream.read()


def _content(file: FoundFile, program: bytes) -> Any:
    try:
        check_operations(program)
        return _Unpickler(io.BytesIO(program)).load()
    except RefusedPickle as refused:
        raise file.refused(
            f"is refused: it {refused}, and only tensors and plain containers are read",
            "save the tensors alone: torch.save({'logits': ..., 'labels': ...}, path)",
        ) from None
    except Exception as problem:  # a hostile pickle can make the unpickler raise nearly anything
        raise file.refused(
            f"is damaged: its pickle cannot be read ({type(problem).__name__})", "save it again"
        ) from None


def _collect(value: Any, name: str, found: dict[str, _Tensor], seen: set[int], depth: int = 0) -> None:
    if isinstance(value, _Tensor):
        found[name or "tensor"] = value
    elif isinstance(value, (dict, list, tuple)) and id(value) not in seen and depth < DEEPEST:
        seen.add(id(value))  # a container in itself, or in a thousand places, is looked at once
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _collect(item, f"{name}.{key}" if name else str(key), found, seen, depth + 1)


def _array(
    file: FoundFile, name: str, tensor: _Tensor, info: zipfile.ZipInfo | None, order: str
) -> FileArray:
    shape, bfloat16 = tensor.shape, tensor.storage.code == "bf16"
    dtype: np.dtype[np.generic] = np.dtype(order + ("u2" if bfloat16 else tensor.storage.code))
    end = 1 + tensor.offset + sum((n - 1) * s for n, s in zip(shape, tensor.strides, strict=True))
    if info is None or (0 not in shape and end * dtype.itemsize > info.file_size):
        raise file.refused(
            f"is damaged: the tensor '{name}' {shape} does not lie within the file", "save it again"
        )
    # The stride of a dimension of length 1 means nothing, and torch writes what it likes.
    strides = tuple(
        dtype.itemsize * (own if n > 1 else usual)
        for n, own, usual in zip(shape, tensor.strides, row_major(shape, 1), strict=True)
    )
    offset = content_offset(file, info) + tensor.offset * dtype.itemsize
    return RawArray(file.path, name, shape, dtype, offset, strides, bfloat16)
