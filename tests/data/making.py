"""Make small files in the canonical formats, independently of the code that reads them."""

from __future__ import annotations

import struct

import numpy as np

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, CODES[array.dtype.str[1:]], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def python2_string(text: bytes) -> bytes:
    return b"T" + struct.pack("<I", len(text)) + text


def python2_array(array: np.ndarray) -> bytes:
    """The protocol-2 opcodes Python 2's numpy wrote, strings as byte strings."""
    shape = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in array.shape) + b"t"
    dtype = (
        b"cnumpy\ndtype\n" + python2_string(array.dtype.str[1:].encode()) + b"K\x00K\x01\x87R"
        b"(K\x03"
        + python2_string(array.dtype.str[:1].encode())
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    start = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + python2_string(b"b") + b"\x87R"
    )
    return start + b"(K\x01" + shape + dtype + b"\x89" + python2_string(array.tobytes()) + b"tb"


def python2_batch(**values: bytes) -> bytes:
    """A protocol-2 dictionary with byte-string keys; values are opcodes."""
    items = b"".join(python2_string(key.encode()) + value for key, value in values.items())
    return b"\x80\x02}(" + items + b"u."
