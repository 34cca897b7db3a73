"""A run by several processes is the run of one process, but for rounding."""

from __future__ import annotations

import pytest
import torch

from forking import finish, start
from softtargets.recipes import PreActResNet
from softtargets.runs import RunStore

from ..tasks.images.files import folder
from ..tasks.images.files import recipe as pictures
from ..tasks.translation.counting import write_corpus
from .launching import together
from .trainings import ALL, LOSSES, OTHERS, TRANSLATIONS, trained

# In double precision nothing but rounding is left that could differ, and it is this small.
DOUBLE = 1e-10
# Adam divides the gradient of a bias of attention's keys, which is 0 but for rounding, by its own size.
ADAM = 1e-7
# What is stated of single precision, for a few steps of small nets: docs/ranks.md.
SINGLE = 1e-5


def apart(one, other):
    """The largest difference of two runs' weights, as a share of the largest weight of each tensor."""
    weights, others = one.weights(), other.weights()
    assert weights.keys() == others.keys()
    sizes = {name: float(value.double().abs().max()) or 1.0 for name, value in weights.items()}
    return max(float((weights[n].double() - others[n].double()).abs().max()) / sizes[n] for n in weights)


def rows_apart(one, other):
    rows, others = one.history(), other.history()
    assert [row.keys() for row in rows] == [row.keys() for row in others]
    return max(abs(row[key] - found[key]) for row, found in zip(rows, others, strict=True) for key in row)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same recipes by one, two and four processes, in double precision."""
    root = tmp_path_factory.mktemp("runs")
    assert finish(start(trained, list(ALL.values()), root / "1", True)) == 0
    assert together(2, trained, list(ALL.values()), root / "2", True) == [0, 0]
    some = [ALL[name] for name in FOUR]
    assert together(4, trained, some, root / "4", True) == [0, 0, 0, 0]
    return {ranks: RunStore(root / str(ranks)) for ranks in (1, 2, 4)}


FOUR = ("beta_smoothing", "cs_kd", "distillation", "knowledge_refinery", "online_label_smoothing", "dropout")


@pytest.mark.parametrize("name", [*LOSSES, *OTHERS])
def test_two_processes_train_what_one_trains(stores, name):
    one, two = stores[1].find(ALL[name]), stores[2].find(ALL[name])
    assert one.status == two.status == "finished"
    assert apart(one, two) < DOUBLE
    assert rows_apart(one, two) < 1e-6  # losses are kept in single precision
    assert two.provenance["ranks"] == [2]
    assert "ranks" not in one.provenance
    for split in ("validation", "test"):
        ours, theirs = one.predictions(split), two.predictions(split)
        assert torch.equal(ours.labels, theirs.labels)
        assert torch.allclose(ours.logits, theirs.logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", FOUR)
def test_so_do_four_of_which_one_has_no_rows_of_the_last_batch(stores, name):
    one, four = stores[1].find(ALL[name]), stores[4].find(ALL[name])
    assert apart(one, four) < DOUBLE
    assert rows_apart(one, four) < 1e-6


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Translations by one, two and four processes, in double precision."""
    root = tmp_path_factory.mktemp("translated")
    data, recipes = write_corpus(root / "data"), list(TRANSLATIONS.values())
    assert finish(start(trained, recipes, root / "1", True, data)) == 0
    for ranks in (2, 4):
        assert together(ranks, trained, recipes, root / str(ranks), True, data) == [0] * ranks
    return {ranks: RunStore(root / str(ranks)) for ranks in (1, 2, 4)}


@pytest.mark.parametrize("name", TRANSLATIONS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_tokens_count_alike_however_many_processes_share_them(translated, ranks, name):
    one, several = translated[1].find(TRANSLATIONS[name]), translated[ranks].find(TRANSLATIONS[name])
    assert apart(one, several) < ADAM
    assert rows_apart(one, several) < 1e-6
    assert several.provenance["tokens"] == one.provenance["tokens"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_in_single_precision_the_difference_is_rounding_of_which_a_few_steps_make_little(ranks, tmp_path):
    recipe = ALL["dropout"].replace({"epochs": 4})
    one = finish(start(trained, [recipe], tmp_path / "1"))
    several = together(ranks, trained, [recipe], tmp_path / "several")
    assert one == 0
    assert several == [0] * ranks
    found = apart(RunStore(tmp_path / "1").find(recipe), RunStore(tmp_path / "several").find(recipe))
    assert 0 < found < SINGLE


@pytest.mark.parametrize("regulariser", ["label_smoothing", "cs_kd"])
def test_images_that_stay_in_their_files_are_shared_too(regulariser, tmp_path):
    given = {"SOFTTARGETS_IMAGES": "streamed", "SOFTTARGETS_DECODERS": "1", "XDG_CACHE_HOME": str(tmp_path)}
    own, picture = folder(tmp_path / "data"), pictures(batch=8, regulariser={"name": regulariser})
    recipe = picture.replace({"model": PreActResNet(depth=8, stages=(2, 4, 4), stem_channels=2)})
    alone = {**given, "RANK": "absent"}
    assert together(1, trained, [recipe], tmp_path / "1", True, own, environment=alone) == [0]
    assert together(4, trained, [recipe], tmp_path / "4", True, own, environment=given) == [0] * 4
    one, four = (RunStore(tmp_path / ranks).find(recipe) for ranks in "14")
    assert "waited" in four.provenance
    assert apart(one, four) < DOUBLE
    assert rows_apart(one, four) < 1e-6
