"""What pages say of how their trainings differ from the papers': each guess of ours that their recipes contain."""

from __future__ import annotations

import pytest

from softtargets.studies import STUDIES, Results, find_study
from softtargets.studies.protocols import ALEXNET_CIFAR10, RESNET56_CIFAR10
from softtargets.studies.wagner.networks import NETWORKS

from .making import told

# By study: what its page has to say, in any words around.
DEEP = ("64,165 steps", "after clipping", "bf16")
ALEXNET = ("389,998 steps", "brightness and contrast", "that the tutorial decays")
SAID = {
    "muller-table-2": (*DEEP, *ALEXNET),
    "muller-figure-1": (*DEEP, *ALEXNET),
    "muller-figure-2": DEEP,
    "muller-figure-5": (*DEEP, *ALEXNET),
    "muller-figure-6": DEEP,
    "muller-text": DEEP,
    "response-errors": DEEP,
    "muller-logit-matching": ("128 digits", "standard deviation of 0.03", "bf16"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_page_tells_what_its_recipes_add_to_the_paper(name):
    study = find_study(STUDIES, name)
    words = " ".join(text for section in study.findings(Results(())).sections for text in section.paragraphs)
    for said in SAID[name]:
        assert said in words, said


def test_the_trainings_are_as_pages_tell():
    deep, alexnet = RESNET56_CIFAR10, ALEXNET_CIFAR10
    steps = -(-40_000 // 128)
    assert (205 * steps, 1246 * steps) == (64_165, 389_998)
    assert (deep.epochs, alexnet.epochs) == (205, 1246)
    assert (deep.optimiser.decay_form, deep.optimiser.decay_on, deep.clip) == ("gradient", (), 1.0)
    assert alexnet.optimiser.decay_on == ("local3.weight", "local4.weight")
    assert [part.name for part in alexnet.augmentation] == ["crop", "flip", "brightness", "contrast"]
    assert {deep.precision, alexnet.precision} == {"bf16"}


def test_human_noise_tells_how_its_network_is_trained():
    study = find_study(STUDIES, "chen-human-noise")
    measures = {"loss": 1.0, "accuracy": 0.5, "early_accuracy": 0.6, "by_heart": 0.9, "clean_rate": 0.9}
    page = study.findings(told(study, lambda trial: measures | {"predicted": 1.0, "averaging": 1.0}, "core"))
    words = " ".join(text for section in page.sections for text in section.paragraphs)
    for said in ("1,000,000 parameters", "no augmentation", "19, 38, 76 and 152", "bf16"):
        assert said in words


def test_networks_of_the_replication_tell_what_differs():
    assert "fan-out" in NETWORKS["cifar100-resnet56"].differs
    assert "fan-out" in NETWORKS["cifar10-resnet56"].differs
    assert "pads all sides" in NETWORKS["cifar10-alexnet"].differs
