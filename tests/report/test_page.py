"""Tables, figures and sections written short."""

from __future__ import annotations

import pytest

from softtargets.report import Code, Column, Figure, Section, Table, columns


def test_columns_in_one_line_are_those_written_out():
    assert columns(
        "alpha .2f | test_error .2% | nll: NLL | t .0f: M1: T, fitted | n | share .1%: share of it"
    ) == (
        Column("alpha", "alpha", 2),
        Column("test_error", "test error", 4, percent=True),
        Column("nll", "NLL"),
        Column("t", "M1: T, fitted", 0),
        Column("n", "n"),
        Column("share", "share of it", percent=True),
    )


@pytest.mark.parametrize(
    "spec", ["", "a |", "a b", "a .2x", "a .f: b", "a: ", "a .2f b", "two words: heading"]
)
def test_columns_that_cannot_be_read_are_refused_with_how_they_are_written(spec):
    with pytest.raises(ValueError, match=r"a column is written 'key \.2f: heading'.*; got"):
        columns(spec)


def test_a_table_takes_its_rows_from_anything_that_gives_them():
    table = Table.of("name", "Title.", "a .1f | b", ({"a": a, "b": 1} for a in (0.25, 0.5)), "Said.")
    assert table == Table(
        "name", "Title.", columns("a .1f | b"), ({"a": 0.25, "b": 1}, {"a": 0.5, "b": 1}), "Said."
    )


def test_numbers_of_a_figure_have_all_keys_of_its_rows():
    rows = ({"a": 1}, {"a": 2, "long_key": 3})
    figure = Figure.of("name", "Title.", lambda: None, iter(rows), "Caption.", "Alt.")
    assert (figure.name, figure.title, figure.caption, figure.alt) == ("name", "Title.", "Caption.", "Alt.")
    assert figure.data == Table("name", "Title.", (Column("a", "a"), Column("long_key", "long key")), rows)


def test_a_section_holds_texts_first_and_leaves_empty_ones_out():
    code, table = Code("x = 1"), Table("t", "T", (), ())
    assert Section.of("Title", "one", code, "", "two", table) == Section(
        "Title", ("one", "two"), (code, table)
    )
