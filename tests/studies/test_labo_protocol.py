"""What LABO's studies share: recipes as the paper and the methods' authors have them, and what is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from softtargets.recipes import CIFAR100, LABO, SGD, Crop, Flip, ResNet18, Step
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Place, Results, Settings, Trial
from softtargets.studies.labo import protocol
from softtargets.studies.labo.measures import OnTrainingImages, RelativeTime, details, measure
from softtargets.studies.labo.telling import what_differs
from softtargets.studies.labo_table_3 import study as table_3
from softtargets.studies.sizes import by_protocol
from softtargets.training import train
from softtargets.training.scheduling import Resources

from .labo import TINY, made_up

MINE = [study for study in STUDIES if "labo" in study.name and study.name != "beyond-labo-teacher"]


def test_the_training_is_the_papers():
    recipe = protocol.training("cifar100", "resnet18")
    assert recipe.data == CIFAR100(standardise="channel", validation=5_000)
    assert recipe.model == ResNet18()
    assert recipe.augmentation == (Crop(padding=4), Flip())
    assert recipe.optimiser == SGD(lr=0.1, momentum=0.9, weight_decay=5e-4)
    assert recipe.schedule == Step(milestones=(60, 120, 160), factor=0.2, unit="epoch")
    assert (recipe.epochs, recipe.batch, recipe.precision, recipe.clip) == (200, 128, "bf16", None)
    assert {protocol.training(*each).model.name for each in protocol.SETTINGS} == {"resnet18", "mobilenet_v2"}


def parts(data, model):
    recipe = protocol.training(data, model)
    return {name: make(recipe, "full") for name, make in protocol.PARTS.items()}


def test_methods_have_the_numbers_of_their_authors():
    large = parts("cifar100", "resnet18")
    assert set(large) == set(protocol.NAMES) == {*protocol.PRINTED, *protocol.ADDED}
    assert large["hard"].name == "cross_entropy"
    assert (large["ls"].alpha, large["cp"].beta, large["maxsup"].alpha, large["ols"].alpha) == (
        0.1,
        0.1,
        0.1,
        0.5,
    )
    assert (large["cs-kd"].temperature, large["cs-kd"].strength) == (4.0, 1.0)
    assert (large["beta-ls"].alpha, large["beta-ls"].beta, large["beta-ls"].decay) == (0.6, 3.0, 0.999)
    assert (large["kr-ls"].alpha, large["kr-ls"].table_lr) == (1.0, 0.1)
    assert large["labo"] == LABO(tau=1.25, rho=0.5, warmup_steps=5000)
    taught = large["kd"].teacher
    assert (taught.model.name, taught.seed, taught.regulariser.name) == ("resnext29", 0, "cross_entropy")
    assert (large["kd"].temperature, large["kd"].beta) == (20.0, 0.5)
    assert large["kd"].student_temperature
    assert large["kd"].scale_gradients
    assert parts("cifar100", "mobilenetv2")["kd"].beta == 0.9


def test_tf_reg_is_as_strong_with_ten_classes_as_with_a_hundred():
    """Its divergence is a mean over classes: alpha * multiplier / K is what counts."""
    for model, alpha, T, strength in (("resnet18", 0.1, 20.0, 0.1), ("mobilenetv2", 0.95, 40.0, 0.0095)):
        for data, classes in (("cifar100", 100), ("cifar10", 10)):
            part = parts(data, model)["tf-reg"]
            assert (part.alpha, part.temperature) == (alpha, T)
            assert part.alpha * part.multiplier / classes == pytest.approx(strength)


def test_a_shorter_training_has_a_shorter_warm_up_and_drops_at_the_same_shares():
    settings = Settings(1, {"epochs": 20}, "full")
    recipe = protocol.base(settings, "cifar100", "resnet18")
    assert recipe.schedule.milestones == (6, 12, 16)
    assert protocol.warm_up(recipe) == 500
    assert protocol.steps(recipe.replace({"epochs": None, "steps": 77, "schedule": Step()})) == 77
    assert protocol.steps(protocol.SMALL) == 10 * 32  # 2,000 images in batches of 64


@pytest.mark.parametrize("study", MINE, ids=lambda study: study.name)
def test_every_study_has_both_sizes_and_claims_without_runs(study):
    assert study.sizes[:2] == ("small", "full")
    assert study.settings().size == "small"
    measured = [claim for claim in study.claims(Results(())) if not claim.computed]
    assert measured
    assert {claim.verdict for claim in measured} == {"not run yet"}
    found = study.findings(Results(()))
    assert found.answer
    assert found.sections
    for size in study.sizes:
        trials = study.trials(study.settings(changes={"size": size}))
        assert {trial.labels["size"] for trial in trials} == {size}
        assert {trial.recipe.seed for trial in trials} == set(range(study.seeds))


def ids(name, size="full", **labels):
    study = next(study for study in MINE if study.name == name)
    trials = study.trials(study.settings(changes={"size": size}))
    return {
        trial.recipe.id
        for trial in trials
        if all(trial.labels.get(key) == value for key, value in labels.items())
    }


def test_studies_share_their_runs():
    setting = {"data": "cifar100", "model": "resnet18"}
    for method in ("hard", "ls"):  # table 3 has two seeds more
        assert ids("labo-table-3", method=method, **setting) > ids("labo-readings", method=method)
    literal = ids("labo-readings", reading="literal")
    assert len(literal) == 3
    assert literal < ids("labo-table-3", method="labo", **setting)
    assert literal == ids("labo-sweeps", tau=1.25, rho=0.5)
    assert ids("beyond-labo", part="calibration") <= ids("labo-readings")
    assert ids("labo-table-5", "small") <= ids("labo-table-3", "small")


def test_claims_are_about_the_protocol_alone():
    def numbers(labels, seed):
        return {"accuracy": 0.7} if labels["method"] in ("hard", "labo") else None

    whole = made_up(table_3, numbers)
    assert by_protocol(whole, table_3.trials).outcomes == whole.outcomes
    changed = made_up(table_3, numbers, changes={"epochs": 3})
    assert by_protocol(changed, table_3.trials).outcomes == ()
    ended = tuple(one.outcomes[0].trial for one in (whole, changed))
    failed = by_protocol(replace(whole, failed=ended), table_3.trials).failed
    assert failed == ended[:1], "of the runs that failed those of the protocol count too"
    small = made_up(table_3, numbers, size="small")
    assert by_protocol(small, table_3.trials).outcomes == ()
    assert "decides nothing" in what_differs(small)[0]
    assert "45,000 training images" in what_differs(whole)[0]


# --- what is measured ---


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("labo"))
    recipe = TINY.replace({"regulariser": LABO(warmup_steps=2)})
    (run,) = train([recipe], store, keep=protocol.KEEP, device="cpu")
    return Trial(recipe, {"model": "mlp"}), run


def test_measures_are_what_they_say(trained):
    trial, run = trained
    found = measure(trial, run)
    test, held_out = run.predictions("test"), run.predictions("validation")
    p = test.logits.double().softmax(-1)
    own = [float(p[place, label]) for place, label in enumerate(test.labels.tolist())]
    assert found["label_probability"] == pytest.approx(sum(own) / len(own))
    right = [int(p[place].argmax()) == label for place, label in enumerate(test.labels.tolist())]
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))
    T = found["temperature"]

    def loss(temperature):
        return float(F.cross_entropy(held_out.logits.double() / temperature, held_out.labels.long()))

    assert loss(T) <= min(loss(0.98 * T), loss(1.02 * T))
    scaled = float(F.cross_entropy(test.logits.double() / T, test.labels.long()))
    assert found["nll_scaled"] == pytest.approx(scaled, rel=1e-5)
    shares = details(trial, run)["label_probabilities"]
    assert len(shares) == 20
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    assert shares[3] == pytest.approx(sum(0.15 <= value < 0.2 for value in own) / len(own), abs=1e-5)


def test_label_probabilities_on_training_images(trained):
    trial, run = trained
    place = Place(None, "cpu")
    (found,) = OnTrainingImages(place)(trial, run).values()
    resources = Resources(RunStore(run.directory.parent), torch.device("cpu"), None)
    task = resources.task(trial.recipe.data)
    split, model = task.splits["train"], resources.finished(trial.recipe).eval()
    with torch.no_grad():
        p = model(split.images.float() / 255).softmax(-1)
    expected = float(p.gather(1, split.labels.long().unsqueeze(1)).mean())
    assert found == pytest.approx(expected, abs=1e-4)


def test_times_are_multiples_of_hard_targets(trained):
    trial, run = trained
    found = RelativeTime(Place(None, "cpu"))(trial, run)
    assert found["relative_time"] > 0
    assert 0 < found["step_seconds"] < 1
    late = Trial(trial.recipe.replace({"seed": 3}), trial.labels)
    assert RelativeTime(Place(None, "cpu"))(late, run) == {}
    assert RelativeTime(Place(None, "cpu"))(Trial(trial.recipe, {"model": "teacher"}), run) == {}


def test_without_images_or_a_teacher_there_is_no_time(trained, tmp_path):
    _, run = trained
    place = Place(tmp_path, "cpu")  # where no data is
    unread = Trial(protocol.SMALL.replace({"regulariser": LABO()}), {"model": "mlp"})
    assert RelativeTime(place)(unread, run) == {}
    assert OnTrainingImages(place)(unread, run) == {}
    untaught = protocol.PARTS["kd"](TINY, "small")
    assert RelativeTime(place)(Trial(TINY.replace({"regulariser": untaught}), {"model": "mlp"}), run) == {}
