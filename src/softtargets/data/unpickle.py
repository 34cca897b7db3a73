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
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from softtargets.exceptions import DataError
from softtargets.storage import FORBIDDEN_OPERATIONS, PlainUnpickler, RefusedPickle, check_operations

_NUMERIC = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
_FORBIDDEN = FORBIDDEN_OPERATIONS | {"BINPERSID"}


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
        check_operations(data, _FORBIDDEN)
        return _materialise(_ArrayUnpickler(io.BytesIO(data), encoding="bytes").load(), {})
    except _Problem as problem:
        raise DataError(f"{origin} {problem}") from None
    except RefusedPickle as problem:
        raise DataError(f"{origin} is refused: its pickle {problem}") from None
    except Exception as problem:  # a hostile pickle can make the unpickler raise nearly anything
        reason = f"{type(problem).__name__}: {problem}"
        raise DataError(f"{origin} is not a readable pickle ({reason})") from None


def read_dictionary(data: bytes, origin: str) -> dict[str, Any]:
    """The same for a dictionary, with text for keys: written by Python 2 they come as bytes."""
    value = restricted_loads(data, origin)
    if not isinstance(value, dict):
        raise DataError(f"{origin} holds a {type(value).__name__}, expected a dictionary")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): item for key, item in value.items()}


class _Problem(Exception):
    """What is wrong with a pickle: a sentence that begins with where it is from."""


def _refuse(what: str) -> NoReturn:
    raise RefusedPickle(what)


class _ArrayUnpickler(PlainUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            _refuse(f"asks for '{module}.{name}', and only plain containers and numpy arrays are read")
        return _StandIn(_ALLOWED[module, name])


class _StandIn:
    """Takes the place of one allowed name; a fresh one each time, so that no pickle can alter the next."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self.make = make

    def __setstate__(self, state: object) -> None:
        _refuse("sets the state of a name")

    def __call__(self, *arguments: object) -> Any:
        if self.make is None:
            _refuse("calls what is not a function")
        return self.make(*arguments)


def _reconstruct(*arguments: object) -> _Array:
    kind = arguments[0] if len(arguments) == 3 else None
    if not isinstance(kind, _StandIn) or kind.make is not None:
        _refuse("rebuilds an array in an unknown way")
    return _Array()


def _dtype(*arguments: object) -> _Dtype:
    code = _text(arguments[0]) if arguments else ""
    if not _NUMERIC.fullmatch(code):
        _refuse(f"has an array of dtype '{code}', and only numbers are read")
    return _Dtype(code)


def _scalar(*arguments: object) -> Any:
    if len(arguments) != 2 or not isinstance(arguments[0], _Dtype):
        _refuse("has a number of unknown type")
    dtype, raw = np.dtype(arguments[0].code), arguments[1]
    if not isinstance(raw, bytes) or len(raw) != dtype.itemsize:
        _refuse("has a number whose bytes do not fit its type")
    return np.frombuffer(raw, dtype)[0].item()


def _encode(*arguments: object) -> bytes:
    """Python 3 writes bytes into old pickles as ``_codecs.encode(text, "latin1")``."""
    if len(arguments) != 2 or not isinstance(arguments[0], str):
        _refuse("encodes what is not text")
    if _text(arguments[1]).replace("-", "") != "latin1":
        _refuse(f"encodes text as '{_text(arguments[1])}'")
    return arguments[0].encode("latin1")


def _no_bytes(*arguments: object) -> bytes:
    """... and empty bytes as ``bytes()``; with an argument it could claim any amount of memory."""
    if arguments:
        _refuse("makes bytes from an argument")
    return b""


class _Dtype:
    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code.lstrip("<>=|")

    def __setstate__(self, state: object) -> None:
        # (version, byte order, subdtype, names, fields, size, alignment, flags[, metadata])
        if not isinstance(state, tuple) or len(state) not in (8, 9) or state[2:5] != (None, None, None):
            _refuse("has an array of structured dtype")
        order = _text(state[1])
        if order not in ("<", ">", "=", "|"):
            _refuse(f"has the byte order '{order}'")
        # "=" would mean whatever machine wrote the file; in practice that is little-endian.
        self.code = ("<" if order == "=" else order) + self.code.lstrip("<>=|")


class _Array:
    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[tuple[int, ...], str, bool, bytes] | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            _refuse("has an array of unknown version")
        _, shape, dtype, fortran, raw = state
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            _refuse("has an array of an impossible shape")
        if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
            _refuse("has an array of objects")
        size = math.prod(shape) * int(dtype.code[-1])
        if size != len(raw):
            raise _Problem(f"is damaged: an array of {size} bytes comes with {len(raw)}")
        self.state = (shape, dtype.code, bool(fortran), raw)

    def build(self) -> Any:
        if self.state is None:
            raise _Problem("is damaged: its pickle has an array without content")
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
        raise _Problem("is refused: it holds a type where a value should be")
    else:
        return value
    return done[id(value)][1]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin1")
    return value if isinstance(value, str) else type(value).__name__  # a tuple's text may be endless


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
