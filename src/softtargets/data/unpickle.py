"""Read pickles of plain containers and numpy arrays without executing anything they ask for.

A pickle is a program. This one runs it with every door closed: the few names it may mention stand for
small objects of ours that check their arguments and remember them, and numpy builds the arrays only
afterwards, from bytes whose type and length have been compared. Anything else is refused by name.

CIFAR comes as such pickles, and so does CIFAR-N, of which nobody publishes a checksum: a file from its address
may be anything. numpy's own reader runs what a pickle asks for, and torch's safe one would bring all of torch.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from softtargets.exceptions import DataError

_NUMERIC = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
# They reach for things outside the pickle or make objects of classes; no array needs them.
_FORBIDDEN = frozenset(
    {"PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
    | {"NEXT_BUFFER", "READONLY_BUFFER"}
)


def restricted_loads(data: bytes, origin: str) -> Any:
    """Return what the pickle holds; `origin` is what to call it in errors, usually its path.

    Byte strings written by Python 2 stay bytes, so a dictionary from there has bytes for keys.

    >>> restricted_loads(b"cos\\nsystem\\n(S'true'\\ntR.", "evil.pkl")
    Traceback (most recent call last):
        ...
    softtargets.exceptions.DataError: evil.pkl is refused: its pickle asks for 'os.system', and only plain
    containers and numpy arrays are read
    """
    try:
        _scan(data, origin)
        return _materialise(_ArrayUnpickler(data, origin).load(), {})
    except DataError:
        raise
    except Exception as problem:  # a hostile pickle can make the unpickler raise nearly anything
        reason = f"{type(problem).__name__}: {problem}"
        raise DataError(f"{origin} is not a readable pickle ({reason})") from None


def read_dictionary(data: bytes, origin: str) -> dict[str, Any]:
    """The same for a dictionary, with text for keys: written by Python 2 they come as bytes."""
    value = restricted_loads(data, origin)
    if not isinstance(value, dict):
        raise DataError(f"{origin} holds a {type(value).__name__}, expected a dictionary")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): item for key, item in value.items()}


def _scan(data: bytes, origin: str) -> None:
    """Walk the opcodes before running them: no forbidden ones, no claims larger than the file."""
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in _FORBIDDEN:
            _refuse(origin, f"uses the operation {opcode.name}")
        # The memo is an array as long as its largest index, so an index of 4 billion takes 32 GB.
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= len(data):
            _refuse(origin, f"numbers an object {argument}")


class _ArrayUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, origin: str) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self._origin = origin

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            _refuse(
                self._origin,
                f"asks for '{module}.{name}', and only plain containers and numpy arrays are read",
            )
        return _StandIn(self._origin, _ALLOWED[module, name])


def _refuse(origin: str, what: str) -> NoReturn:
    raise DataError(f"{origin} is refused: its pickle {what}")


class _StandIn:
    """Takes the place of one allowed name; a fresh one each time, so that no pickle can alter the next."""

    __slots__ = ("_origin", "make")

    def __init__(self, origin: str, make: Callable[..., Any] | None) -> None:
        self._origin = origin
        self.make = make

    def __setstate__(self, state: object) -> None:
        _refuse(self._origin, "sets the state of a name")

    def __call__(self, *arguments: object) -> Any:
        if self.make is None:
            _refuse(self._origin, "calls what is not a function")
        return self.make(self._origin, *arguments)


def _reconstruct(origin: str, *arguments: object) -> _Array:
    kind = arguments[0] if len(arguments) == 3 else None
    if not isinstance(kind, _StandIn) or kind.make is not None:
        _refuse(origin, "rebuilds an array in an unknown way")
    return _Array(origin)


def _dtype(origin: str, *arguments: object) -> _Dtype:
    code = _text(arguments[0]) if arguments else ""
    if not _NUMERIC.fullmatch(code):
        _refuse(origin, f"has an array of dtype '{code}', and only numbers are read")
    return _Dtype(origin, code)


def _scalar(origin: str, *arguments: object) -> Any:
    import numpy as np

    if len(arguments) != 2 or not isinstance(arguments[0], _Dtype):
        _refuse(origin, "has a number of unknown type")
    dtype, raw = np.dtype(arguments[0].code), arguments[1]
    if not isinstance(raw, bytes) or len(raw) != dtype.itemsize:
        _refuse(origin, "has a number whose bytes do not fit its type")
    return np.frombuffer(raw, dtype)[0].item()


def _encode(origin: str, *arguments: object) -> bytes:
    """Python 3 writes bytes into old pickles as ``_codecs.encode(text, "latin1")``."""
    if len(arguments) != 2 or not isinstance(arguments[0], str):
        _refuse(origin, "encodes what is not text")
    if _text(arguments[1]).replace("-", "") != "latin1":
        _refuse(origin, f"encodes text as '{_text(arguments[1])}'")
    return arguments[0].encode("latin1")


def _no_bytes(origin: str, *arguments: object) -> bytes:
    """... and empty bytes as ``bytes()``; with an argument it could claim any amount of memory."""
    if arguments:
        _refuse(origin, "makes bytes from an argument")
    return b""


class _Dtype:
    __slots__ = ("_origin", "code")

    def __init__(self, origin: str, code: str) -> None:
        self._origin = origin
        self.code = code.lstrip("<>=|")

    def __setstate__(self, state: object) -> None:
        # (version, byte order, subdtype, names, fields, size, alignment, flags[, metadata])
        if not isinstance(state, tuple) or len(state) not in (8, 9) or state[2:5] != (None, None, None):
            _refuse(self._origin, "has an array of structured dtype")
        order = _text(state[1])
        if order not in ("<", ">", "=", "|"):
            _refuse(self._origin, f"has the byte order '{order}'")
        # "=" would mean whatever machine wrote the file; in practice that is little-endian.
        self.code = ("<" if order == "=" else order) + self.code.lstrip("<>=|")


class _Array:
    __slots__ = ("_origin", "state")

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.state: tuple[tuple[int, ...], str, bool, bytes] | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            _refuse(self._origin, "has an array of unknown version")
        _, shape, dtype, fortran, raw = state
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            _refuse(self._origin, f"has an array of shape {shape!r:.80}")
        if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
            _refuse(self._origin, "has an array of objects")
        size = math.prod(shape) * int(dtype.code[-1])
        if size != len(raw):
            raise DataError(f"{self._origin} is damaged: an array of {size} bytes comes with {len(raw)}")
        self.state = (shape, dtype.code, bool(fortran), raw)

    def build(self) -> Any:
        import numpy as np

        if self.state is None:
            raise DataError(f"{self._origin} is damaged: its pickle has an array without content")
        shape, code, fortran, raw = self.state
        return np.frombuffer(raw, code).reshape(shape, order="F" if fortran else "C").copy()


def _materialise(value: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """Put real arrays where stand-ins are.

    `done` maps identities to (original, result): shared and circular parts are visited once, and keeping
    the originals alive keeps their identities from being used again.
    """
    if id(value) in done:
        return done[id(value)][1]
    if isinstance(value, _Array):
        done[id(value)] = value, value.build()
    elif isinstance(value, list):
        done[id(value)] = value, value
        value[:] = [_materialise(item, done) for item in value]
    elif isinstance(value, dict):
        done[id(value)] = value, value
        for key, item in value.items():
            value[key] = _materialise(item, done)
    elif isinstance(value, tuple):
        done[id(value)] = value, tuple(_materialise(item, done) for item in value)
    elif isinstance(value, (_StandIn, _Dtype)):
        raise DataError("a pickle is refused: it holds a type where a value should be")
    else:
        return value
    return done[id(value)][1]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin1")
    return value if isinstance(value, str) else repr(value)


_ALLOWED: dict[tuple[str, str], Callable[..., Any] | None] = {
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("_codecs", "encode"): _encode,
    ("builtins", "bytes"): _no_bytes,
    ("__builtin__", "bytes"): _no_bytes,  # Python 3 writes Python 2's names into old protocols
}
