from __future__ import annotations

import json

import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.view.class_names import find_classes, read_names

NAMES = {0: "cat", 1: "dog", 2: "ship"}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("names.txt", "cat\ndog\nship\n"),
        ("names.txt", "\ufeffcat\r\ndog\r\nship"),
        ("names.json", json.dumps(["cat", "dog", "ship"])),
        ("names.json", json.dumps({"0": "cat", "1": "dog", "2": "ship"})),
        ("vocab.json", json.dumps({"cat": 0, "dog": 1, "ship": 2})),
    ],
)
def test_names_are_read_from_files(tmp_path, file, content):
    path = tmp_path / file
    path.write_bytes(content.encode())
    assert read_names(str(path), 3) == NAMES


def test_a_token_may_be_a_strange_line_break(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("a\u2028b\n\x0c\n\n".encode())
    assert read_names(str(path), 3) == {0: "a\u2028b", 1: "\x0c", 2: "2"}


def test_a_dictionary_may_leave_classes_without_name(tmp_path):
    path = tmp_path / "names.json"
    path.write_text('{"1": "dog"}')
    assert read_names(str(path), 3) == {1: "dog"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"cat\ndog\n", "has 2 names, but there are 3 classes"),
        (b"\xff\xfe", "not text in UTF-8"),
    ],
)
def test_a_file_without_the_right_names_is_refused(tmp_path, content, words):
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    with pytest.raises(SofttargetsError, match=words):
        read_names(str(path), 3)


@pytest.mark.parametrize(
    ("content", "words"), [("{", "is not JSON"), ("3", "no names"), ('{"a": "b"}', "no names")]
)
def test_json_without_names_is_refused(tmp_path, content, words):
    path = tmp_path / "names.json"
    path.write_text(content)
    with pytest.raises(SofttargetsError, match=words):
        read_names(str(path), 3)


def test_a_missing_file_is_refused():
    with pytest.raises(SofttargetsError, match=r"names cannot be read from nowhere\.txt"):
        read_names("nowhere.txt", 3)


def test_classes_are_found_by_number_or_name():
    assert find_classes("ship,0,1", NAMES, 3) == (2, 0, 1)
    assert find_classes("2,1,0", {}, 3) == (2, 1, 0)
    assert find_classes("7,0,1", {0: "7", 7: "0"}, 8) == (0, 7, 1)  # a name comes before a number


@pytest.mark.parametrize(
    ("given", "names", "words"),
    [
        ("1,2", NAMES, "give three classes"),
        ("cat,dog,shop", NAMES, r"no class 'shop' of 3 \(did you mean 'ship'\?\)"),
        ("0,1,3", NAMES, "no class '3'"),
        ("cat,1,2", {}, "--names"),
        ("0,1,-1", {}, "no class '-1'"),
    ],
)
def test_classes_that_are_not_there_are_refused(given, names, words):
    with pytest.raises(SofttargetsError, match=words):
        find_classes(given, names, 3)
