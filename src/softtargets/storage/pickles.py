"""Pickles of plain containers: looked at before they run, and run so that no key of a dictionary can hold them up.

A pickle is a program. Whoever reads one says which names it may mention (`PlainUnpickler.find_class`). What is refused
here has nothing to do with names: operations that reach outside, a memo larger than memory, and keys. A tuple of two
tuples of two tuples ... has 2^60 leaves in 200 bytes, and Python goes through all of them to compute its hash, where
no signal is heard.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable, Collection
from typing import Any, ClassVar

# They reach for things outside the pickle or make objects of classes, and sets have hashes; no array needs them.
FORBIDDEN = frozenset(
    {"PERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "NEXT_BUFFER", "READONLY_BUFFER"}
    | {"EMPTY_SET", "ADDITEMS", "FROZENSET"}
)
_PLAIN = (str, bytes, int, float, type(None))
_LARGEST_KEY = 1 << 60  # up to here a number is its own hash, so that no two of them are made to collide


class RefusedPickle(Exception):
    """What a pickle does that it may not, in words that follow "it"."""


def check_operations(program: bytes, forbidden: Collection[str] = FORBIDDEN) -> None:
    """Walk the operations before running them: no forbidden ones, no claims larger than the program."""
    for operation, argument, _ in pickletools.genops(program):
        if operation.name in forbidden:
            raise RefusedPickle(f"uses the operation {operation.name}")
        # The memo may be an array as long as its largest index: one of 4 billion would take 32 GB.
        numbers = operation.name in ("PUT", "BINPUT", "LONG_BINPUT")
        if numbers and not 0 <= int(argument or 0) <= len(program):
            raise RefusedPickle(f"numbers an object {argument}")


class PlainUnpickler(pickle._Unpickler):
    """Python's own unpickler in Python, since only that one can be asked about keys.

    >>> import io
    >>> PlainUnpickler(io.BytesIO(pickle.dumps({"a": 1, (2, "b"): 3}))).load()
    {'a': 1, "(2, 'b')": 3}
    """

    stack: list[Any]
    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(pickle._Unpickler.dispatch)

    def load_setitem(self) -> None:
        """One key and its value."""
        self.stack[-2] = plain_key(self.stack[-2])
        super().load_setitem()  # type: ignore[misc]

    def load_setitems(self) -> None:
        """All keys and values since the last mark."""
        self.stack[::2] = map(plain_key, self.stack[::2])
        super().load_setitems()  # type: ignore[misc]

    def load_dict(self) -> None:
        """The same for a new dictionary."""
        self.stack[::2] = map(plain_key, self.stack[::2])
        super().load_dict()  # type: ignore[misc]

    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.DICT[0]] = load_dict


def plain_key(key: Any) -> Any:
    """A key that is hashed at once; a tuple becomes the text of it."""
    if isinstance(key, tuple):
        if not all(isinstance(part, _PLAIN) for part in key):
            raise RefusedPickle("has a tuple of tuples as the key of a dictionary")
        return repr(key)
    if isinstance(key, int) and abs(key) > _LARGEST_KEY:
        raise RefusedPickle(f"has a number of {key.bit_length()} bits as the key of a dictionary")
    return key
