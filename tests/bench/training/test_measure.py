from __future__ import annotations

from functools import partial

import pytest
import torch

from benchmarks.bench import Contestant
from benchmarks.clocks import WallClock
from benchmarks.training import contestants, measure
from benchmarks.training.contestants import engine_would, ours, packed, prepared_for
from benchmarks.training.images import Images
from benchmarks.training.measure import NetRound, Stand
from benchmarks.training.nets import CLASSES, TRAINED
from benchmarks.training.results import TrainingCase

CPU = torch.device("cpu")
CLOCK = WallClock(CPU)


def case_of(net: str, arrangement: str = "streams", runs: int = 1) -> TrainingCase:
    return TrainingCase(net, 2, 1, "fp32", arrangement, runs)


def prepared_images(net: str, train: int, test: int):
    subject = TRAINED[net]
    return prepared_for(subject.recipe, Images.random(subject.shape, train, test, CLASSES, CPU))


@pytest.mark.parametrize(
    ("net", "arrangement", "runs"),
    [
        ("fcn", "stacked", 2),
        ("fcn", "streams", 2),
        ("cnn", "stacked", 2),
        ("alexnet", "streams", 2),
        ("resnet56", "streams", 1),
        ("resnet18", "streams", 1),
    ],
)
def test_every_net_is_trained_by_both_sides(net, arrangement, runs):
    case = case_of(net, arrangement, runs)
    result = NetRound(case.setting, ("eager",), CLOCK, 0.0).measure(case, 0)
    ours, eager = result.entries
    assert [(entry.name, entry.status, entry.reason) for entry in result.entries] == [
        ("ours", "ok", ""),
        ("eager", "ok", ""),
    ]
    assert [speed.images for speed in ours.speeds] == [2 * runs]
    assert [speed.images for speed in eager.speeds] == [2, 2]  # before and after ours
    assert result.ratio() == pytest.approx(ours.rate / eager.rate)
    assert ours.setup > 0
    assert ours.memory is None


def test_rivals_take_turns_before_the_first_case_and_after_each(monkeypatch):
    log = []

    def fake(name: str) -> Contestant:
        return Contestant(name, lambda: log.append(name), images=1)

    monkeypatch.setattr(measure, "ours", lambda case, *_: fake(f"ours {case.runs}"))
    monkeypatch.setattr(measure, "eager", lambda name, *_: fake(name))
    round_ = NetRound(("fcn", 2, 1), ("eager", "eager bf16"), CLOCK, 0.0)
    results = [round_.measure(case_of("fcn", runs=runs), 0) for runs in (1, 4)]
    # Everybody's first epoch is the warm-up.
    assert log == [
        "eager",
        "eager bf16",
        "eager",
        "eager bf16",
        *["ours 1"] * 2,
        "eager",
        "eager bf16",
        *["ours 4"] * 2,
        "eager",
        "eager bf16",
    ]
    first, second = (result.entry("eager").speeds for result in results)
    assert first[1] == second[0]  # the turn between two cases is beside both
    assert len(first) == len(second) == 2


def test_whole_epochs_until_the_time_is_up():
    def slow() -> None:
        torch.ones(400, 400).mm(torch.ones(400, 400))

    stand = Stand("ours", lambda: Contestant("ours", slow, images=10), CLOCK, seconds=0.05)
    stand.turn()
    (speed,) = stand.entry().speeds
    assert speed.seconds >= 0.05
    assert speed.images % 10 == 0
    assert speed.images > 10


def test_a_case_that_fails_is_written_down_and_the_rival_is_measured(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    monkeypatch.setattr(measure, "ours", full)
    result = NetRound(("fcn", 2, 1), ("eager",), CLOCK, 0.0).measure(case_of("fcn", runs=64), 0)
    assert (result.entry("ours").status, result.entry("ours").reason) == ("failed", "out of memory")
    assert result.entry("eager").rate > 0
    assert result.ratio() is None


def test_who_breaks_in_its_turn_is_not_asked_again():
    strength = [1, 1]

    def tired() -> None:
        if not strength:
            raise RuntimeError("enough")
        strength.pop()

    stand = Stand("eager", lambda: Contestant("eager", tired, images=1), CLOCK, 0.0)
    for _ in range(3):
        stand.turn()
    entry = stand.entry()
    assert (entry.status, entry.reason) == ("failed", "RuntimeError: enough")
    assert len(entry.speeds) == 1
    assert entry.rate is None


def test_a_run_that_diverges_does_not_pass_for_fast(monkeypatch):
    case, prepared = case_of("fcn"), prepared_images("fcn", 2, 2)
    pack = packed(case, prepared, CPU)
    for slot in pack.slots:
        slot.failure = "train_loss is nan at step 1"
    monkeypatch.setattr(contestants, "packed", lambda *_: pack)
    with pytest.raises(RuntimeError, match="a run diverged: train_loss is nan at step 1"):
        ours(case, prepared, CPU).call()


def test_ours_trains_and_evaluates_every_run_every_epoch(monkeypatch):
    case = TrainingCase("cnn", 4, 3, "fp32", "stacked", 2)
    prepared = prepared_images("cnn", 12, 6)
    pack = packed(case, prepared, CPU)
    monkeypatch.setattr(contestants, "packed", lambda *_: pack)
    competitor = ours(case, prepared, CPU)
    competitor.call()
    competitor.call()
    assert competitor.images == 24
    for slot in pack.slots:
        assert slot.units == 24
        assert [row["epoch"] for row in slot.history] == [1, 2]
        assert all("test_accuracy" in row for row in slot.history)
    seeds = [slot.recipe.seed for slot in pack.slots]
    assert seeds == [0, 1]


def test_it_is_known_what_the_engine_would_do():
    prepared = prepared_images("fcn", 2, 2)
    gpu = torch.device("cuda")  # only asked for its type
    would = partial(engine_would, prepared=prepared)
    assert would(case_of("fcn", "stacked", 128), device=gpu)
    assert not would(case_of("fcn", "stacked", 129), device=gpu)
    assert not would(case_of("fcn", "streams", 1), device=gpu)
    assert would(case_of("resnet18", "streams", 16), device=gpu)
    assert not would(case_of("resnet18", "streams", 17), device=gpu)
    assert would(case_of("fcn", "streams", 1), device=CPU)
    assert not would(case_of("fcn", "streams", 2), device=CPU)


def test_the_eager_side_may_use_tf32_on_a_gpu_only():
    with contestants.eager_products(torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
    with contestants.eager_products(CPU):
        assert torch.get_float32_matmul_precision() == "highest"


def test_random_images_are_the_same_every_time():
    one, again = (Images.random((3, 4, 4), 5, 2, 10, CPU) for _ in range(2))
    assert torch.equal(one.train, again.train)
    assert one.train.shape == (5, 3, 4, 4)
    assert one.train.dtype == torch.uint8
    assert one.train.float().std() > 50
    assert not torch.equal(one.train[:2], one.test)


@pytest.mark.cuda
@pytest.mark.parametrize(("arrangement", "runs"), [("stacked", 4), ("streams", 1), ("streams", 3)])
def test_a_case_on_a_gpu(arrangement, runs):
    case = TrainingCase("cnn", 32, 5, "bf16", arrangement, runs)
    round_ = NetRound(case.setting, ("eager", "eager bf16"), WallClock(torch.device("cuda")), 0.05)
    result = round_.measure(case, 0)
    assert [entry.status for entry in result.entries] == ["ok"] * 3
    assert all(entry.memory > 0 for entry in result.entries)
    assert result.ratio() > 0
