from __future__ import annotations

import contextlib
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.data.unpickle import restricted_loads
from softtargets.exceptions import DataError

from .making import python2_array, python2_batch, python2_string


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "<f4", "?"])
def test_arrays_and_containers_come_back(protocol, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    value = {
        "a": array,
        "b": [1, 2.5, None, True, ("x", b"y", b"")],
        "again": array,
        "f": np.asfortranarray(array),
    }
    if protocol < 3:
        value["b"][4] = ("x", "y", b"")
    read = restricted_loads(pickle.dumps(value, protocol), "x")
    np.testing.assert_array_equal(read["a"], array)
    np.testing.assert_array_equal(read["f"], array)
    assert read["a"].dtype == array.dtype
    assert read["again"] is read["a"]
    assert read["b"] == value["b"]


def test_python_2_pickles_keep_their_bytes():
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    data = python2_batch(data=python2_array(array), labels=b"](K\x03K\x07e")
    assert pickle.loads(data, encoding="bytes")[b"labels"] == [3, 7]  # the real thing agrees that it is one
    read = restricted_loads(data, "x")
    assert read.keys() == {b"data", b"labels"}
    assert read[b"labels"] == [3, 7]
    np.testing.assert_array_equal(read[b"data"], array)


def test_numpy_scalars_become_numbers():
    assert restricted_loads(pickle.dumps([np.int64(-7), np.float32(0.5)], 2), "x") == [-7, 0.5]


def test_shared_and_circular_lists_survive():
    circle: list = [np.arange(3)]
    circle.append(circle)
    read = restricted_loads(pickle.dumps(circle), "x")
    assert read[1] is read
    np.testing.assert_array_equal(read[0], np.arange(3))


def test_nesting_that_doubles_is_visited_once():
    value: tuple = (np.arange(2),)
    for _ in range(200):
        value = (value, value)
    found = restricted_loads(pickle.dumps(value), "x")  # 2**200 visits otherwise
    for _ in range(200):
        left, found = found
        assert left is found
    np.testing.assert_array_equal(found[0], np.arange(2))


def doubling(depth: int) -> tuple:
    value: tuple = (1,)
    for _ in range(depth):
        value = (value, value)
    return value


# With 60 levels Python computes hashes for ever, and hears no signal meanwhile.
@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
@pytest.mark.parametrize("value", [{"a": 1, 2: {}}, {}], ids=["many items", "one item"])
def test_a_tuple_of_tuples_is_no_key(protocol, value):
    data = pickle.dumps(value | {"key": doubling(20)}, protocol)
    assert restricted_loads(data, "x")["key"] == doubling(20)
    with pytest.raises(DataError, match="x is refused: its pickle has a tuple of tuples as the key"):
        restricted_loads(pickle.dumps(value | {doubling(20): 1}, protocol), "x")


def test_neither_sets_nor_huge_numbers_are_keys():
    with pytest.raises(DataError, match="uses the operation EMPTY_SET"):
        restricted_loads(pickle.dumps({doubling(20)}, 4), "x")
    with pytest.raises(DataError, match="FROZENSET"):
        restricted_loads(pickle.dumps(frozenset({1}), 4), "x")
    with pytest.raises(DataError, match="a number of 2001 bits as the key"):
        restricted_loads(pickle.dumps({1 << 2000: 1}, 2), "x")


def test_plain_keys_stay_as_they_are():
    value = {"a": 1, 2: 3, None: 4, 0.5: 6, -(1 << 60): 7}
    assert restricted_loads(pickle.dumps(value, 2), "x") == value


@pytest.mark.parametrize("where", ["dtype", "shape"])
def test_what_is_wrong_with_a_huge_tuple_is_said_at_once(where):
    # The text of 2^60 leaves is never finished either.
    class Monster:
        def __reduce__(self):
            return (
                np.empty(0).__reduce__()[0],  # numpy 1 has it elsewhere
                (np.ndarray, (0,), b"b"),
                (1, doubling(60), 0, False, b""),
            )

    monster = Call(np.dtype, doubling(60)) if where == "dtype" else Monster()
    with pytest.raises(DataError, match=r"dtype 'tuple'|impossible shape"):
        restricted_loads(pickle.dumps(monster, 2), "x")


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("touch {0}",), "system"),
        (eval, ("open({0!r}, 'w')",), "eval"),
        (exec, ("open({0!r}, 'w')",), "exec"),
        (getattr, ("", "join"), "getattr"),
        (open, ("{0}", "w"), "open"),
        (__import__, ("os",), "__import__"),
        (bytearray, (10**15,), "bytearray"),
        (np.load, ("{0}",), "load"),
        (np.frombuffer, (b"abc", "u1"), "numpy"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_calls_are_refused_by_name_and_not_made(tmp_path, protocol, function, arguments, name):
    mark = tmp_path / "executed"
    filled = [argument.format(str(mark)) if isinstance(argument, str) else argument for argument in arguments]
    data = pickle.dumps({"data": Call(function, *filled)}, protocol)
    with pytest.raises(DataError, match=f"evil.pkl is refused: its pickle asks for '.*{name}.*'"):
        restricted_loads(data, "evil.pkl")
    assert not mark.exists()


def test_the_same_pickle_does_execute_with_pickle_itself(tmp_path):
    mark = tmp_path / "executed"
    pickle.loads(pickle.dumps(Call(open, str(mark), "w"))).close()
    assert mark.exists()  # so the refusals above refuse something real


def test_object_arrays_are_refused():
    array = np.array([{"a": 1}, None], dtype=object)
    with pytest.raises(DataError, match="dtype 'O8'"):
        restricted_loads(pickle.dumps(array, 2), "x")


@pytest.mark.parametrize("dtype", ["U3", "S3", "V4", "M8[s]", [("a", "u1")], "c8"])
def test_arrays_that_are_not_numbers_are_refused(dtype):
    with pytest.raises(DataError, match="only numbers are read"):
        restricted_loads(pickle.dumps(np.zeros(2, dtype), 2), "x")


def test_a_number_type_with_a_list_of_objects_is_refused():
    data = pickle.dumps(np.array([7], np.int64), 2)
    # Replace the raw bytes by a list, as an object array has it.
    start = data.index(b"X\x08\x00\x00\x00\x07")
    end = data.index(b"R", start) + 1
    forged = data[: data.rindex(b"c_codecs", 0, start)] + b"]K\x01a" + data[end:]
    with pytest.raises(DataError):
        restricted_loads(forged, "x")


def test_an_array_whose_bytes_do_not_fit_is_refused():
    data = python2_array(np.arange(6, dtype=np.uint8)).replace(
        python2_string(bytes(range(6))), python2_string(b"abc")
    )
    with pytest.raises(DataError, match="an array of 6 bytes comes with 3"):
        restricted_loads(b"\x80\x02" + data + b".", "x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x02Nr\xff\xff\xff\xff.", "numbers an object 4294967295"),
        (b"\x80\x02U\x01aQ.", "BINPERSID"),
        (b"(S'a'\nios\nsystem\n.", "INST"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "NEWOBJ"),
        (b"\x82\x01.", "EXT1"),
        (b"\x80\x02cnumpy\nndarray\n.", "a type where a value should be"),
        (b"\x80\x02cnumpy\nndarray\n}b.", "sets the state of a name"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "not a function"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.", "encodes text as 'zip'"),
        (b"\x80\x02cbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85R.", "bytes from an argument"),
        (b"", "not a readable pickle"),
        (b"\x80\x02}q\x00(X", "not a readable pickle"),
        (b"just some text", "is refused"),
        (b"\x80\x02]]}s.", "not a readable pickle"),
    ],
)
def test_hostile_and_broken_streams_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        restricted_loads(data, "x")


@settings(max_examples=150, deadline=None)
@given(position=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_flipped_byte_never_raises_anything_but_data_error(position, value):
    data = bytearray(pickle.dumps({"data": np.arange(5), "labels": [1, 2]}, 2))
    data[position % len(data)] = value
    with contextlib.suppress(DataError):
        restricted_loads(bytes(data), "x")
