"""The lists of mutations still fit the source; trying them takes minutes (`make mutations`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations.run import LISTS, Mutation, read


@pytest.mark.parametrize("path", sorted(LISTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_mutation_fits_the_source(path: Path):
    mutations = read(path)
    assert mutations
    assert {mutation.what: mutation.problem() for mutation in mutations if mutation.problem()} == {}


def test_a_mutation_that_does_not_fit_is_named(tmp_path):
    (tmp_path / "source.py").write_text("x = 1\ny = 1\n")
    (tmp_path / "test_source.py").touch()
    fits = Mutation("x is 2", "source.py", "x = 1", "x = 2", "test_source.py::test_x", "killed")
    assert fits.problem(tmp_path) == ""

    def problem(**changes: str) -> str:
        return Mutation(**{**vars(fits), **changes}).problem(tmp_path)

    assert problem(old="z = 1") == "old stands 0 times in source.py, not once"
    assert problem(old="= 1") == "old stands 2 times in source.py, not once"
    assert problem(new="x = 1") == "old and new are the same"
    assert problem(file="other.py") == "other.py does not exist"
    assert problem(tests="test_source.py test_other.py") == "test_other.py does not exist"
    assert problem(first="perhaps") == "first must be killed or survived, not 'perhaps'"
