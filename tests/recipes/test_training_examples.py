from __future__ import annotations

import re

import pytest

from softtargets.data import CATALOGUE, load
from softtargets.recipes import Dataset, kinds

KNOWN = {name: part for name, part in kinds(Dataset).items() if part.training_examples is not None}


# The publishers of Tatoeba have no split; how many pairs ours trains on is counted in the tests of the corpora.
@pytest.mark.parametrize("name", sorted(set(KNOWN) - {"digits", "cub200", "tatoeba"}))
def test_sizes_of_training_sets_are_those_of_the_catalogue(name):
    said = re.search(r"([\d,]+) train", CATALOGUE[name].what)
    assert int(said[1].replace(",", "")) == KNOWN[name].training_examples


def test_digits_are_counted():
    assert len(load("digits", "train")) == KNOWN["digits"].training_examples
