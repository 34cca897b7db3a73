from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.exceptions import RecipeError
from softtargets.recipes.yaml import parse_yaml, read_text


def read_yaml(path):
    return parse_yaml(read_text(path), str(path))


def refusal(call, *arguments):
    with pytest.raises(RecipeError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E-3", 0.001),
        ("1e5", 100000.0),
        ("-2.5e+3", -2500.0),
        ("+1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("0.1", 0.1),
        ("1_000.5", 1000.5),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_numbers_with_a_point_or_an_exponent_are_floats(text, value):
    found = parse_yaml(text)
    assert (type(found), found) == (float, value)


def test_not_a_number_is_one():
    assert math.isnan(parse_yaml(".nan"))


@pytest.mark.parametrize(("text", "value"), [("60", 60), ("-3", -3), ("0", 0), ("1_000", 1000)])
def test_whole_numbers_stay_whole(text, value):
    found = parse_yaml(text)
    assert (type(found), found) == (int, value)


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "No",
        "NO",
        "yes",
        "on",
        "off",
        "y",
        "n",
        "1e",
        "e3",
        "1e-",
        "--1",
        "1.2.3",
        ".",
        "1:2.5",
        "inf",
        "nan",
    ],
)
def test_words_are_words(word):
    assert parse_yaml(word) == word


def test_dates_are_words():
    assert parse_yaml("2020-01-01") == "2020-01-01"


@pytest.mark.parametrize("word", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_true_and_false_are_truth_values(word):
    assert parse_yaml(word) is (word.lower() == "true")


@pytest.mark.parametrize("word", ["tRUE", "truth", "falsey"])
def test_what_only_looks_like_a_truth_value_is_a_word(word):
    assert parse_yaml(word) == word


def test_quoted_values_are_text():
    assert parse_yaml("{a: '1e-3', b: \"true\", c: '5'}") == {"a": "1e-3", "b": "true", "c": "5"}


def test_nothing_is_none():
    assert parse_yaml("") is None
    assert parse_yaml("{a: , b: ~, c: null}") == {"a": None, "b": None, "c": None}


def test_an_anchor_may_be_used_again():
    assert parse_yaml("a: &one {x: [1, 2]}\nb: *one") == {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}}


# No figures: PyYAML writes the text 1e5 without quotes, since to YAML 1.1 it is no number.
WORDS = st.text(alphabet="abnoyé :#-{}[],&*!|>'\"%@`\n", max_size=8)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
        max_leaves=6,
    )
)
def test_what_pyyaml_writes_is_read_back(value):
    assert parse_yaml(yaml.safe_dump(value)) == value


def test_pyyaml_itself_is_left_as_it_was():
    assert yaml.safe_load("[no, 1e-3, 2020-01-01]")[:2] == [False, "1e-3"]


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("lr: 1\nbatch: 2\nlr: 3\n", "lr", 3),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", "b", 4),
        ("x: [1, {a: 1, a: 2}]", "a", 1),
        ("{1: a, 1: b}", "1", 1),
    ],
)
def test_a_key_given_twice_is_refused_with_its_line(text, key, line):
    assert refusal(parse_yaml, text, "mine") == (
        f"mine is not readable YAML: '{key}' is given twice (line {line})"
    )


def test_the_same_key_in_two_mappings_is_fine():
    assert parse_yaml("a: {x: 1}\nb: {x: 1}") == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n  b: 2\n", 2),
        ("a: 1\nb:\n\t- 1\n", 3),
        ("a: 1\nb: *nowhere\n", 2),
        ("---\na: 1\n---\nb: 2\n", 3),
        ("a: {b: 1}}", 1),
    ],
)
def test_a_syntax_error_names_its_line(text, line):
    assert refusal(parse_yaml, text, "mine").startswith(f"mine is not readable YAML on line {line}: ")


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system ['echo broken > {}']",
        "!!python/object/new:os.system ['echo broken > {}']",
        "!!python/name:os.system",
        "!!python/tuple [1, 2]",
        "!custom {a: 1}",
    ],
)
def test_objects_are_refused_and_nothing_is_run(tag, tmp_path):
    trap = tmp_path / "trap"
    message = refusal(parse_yaml, f"a: {tag.replace('{}', str(trap))}", "mine")
    assert message.startswith("mine is not readable YAML on line 1: could not determine a constructor")
    assert not trap.exists()


@pytest.mark.parametrize(
    "text", ["{[1]: 2}", "{{a: 1}: 2}", "a: \x00", "[" * 2000, "a: " + "9" * 5000, "!!int words", "!!float x"]
)
def test_other_unreadable_text_is_one_line(text):
    message = refusal(parse_yaml, text, "mine")
    assert message.startswith("mine is not readable YAML")
    assert "\n" not in message


def test_a_file_is_read_as_utf_8(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("name: Müller\nlr: 1e-3\n".encode())
    assert read_yaml(path) == read_yaml(str(path)) == {"name": "Müller", "lr": 0.001}
    path.write_bytes(b"\xef\xbb\xbfname: marked\r\nlr: 1e-3\r\n")
    assert read_yaml(path) == {"name": "marked", "lr": 0.001}


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("name: Müller".encode("latin-1"))
    assert refusal(read_yaml, path) == f"{path} is not a text file in UTF-8"


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    missing = tmp_path / "none.yaml"
    assert refusal(read_yaml, missing) == f"cannot read {missing}: No such file or directory"
    assert refusal(read_yaml, tmp_path) == f"cannot read {tmp_path}: Is a directory"


def test_errors_in_a_file_name_the_file(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\na: 2\n")
    assert refusal(read_yaml, path) == f"{path} is not readable YAML: 'a' is given twice (line 2)"


def test_an_empty_file_is_nothing(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("")
    assert read_yaml(path) is None
