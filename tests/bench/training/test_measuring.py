from __future__ import annotations

from functools import partial

import pytest
import torch
from softtargets.bench.training import contestants, measuring
from softtargets.bench.training.contestants import Ours, engine_would, prepared_for
from softtargets.bench.training.images import Images
from softtargets.bench.training.measuring import Bench, Round, Stand
from softtargets.bench.training.nets import CLASSES, SUBJECTS
from softtargets.bench.training.results import Case

CPU = torch.device("cpu")
BENCH = Bench(CPU, session=0, seconds=0.0)


def case_of(net: str, arrangement: str = "streams", runs: int = 1) -> Case:
    return Case(net, 2, 1, "fp32", arrangement, runs)


def prepared_images(net: str, train: int, test: int):
    subject = SUBJECTS[net]
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
    result = Round(case.setting, ("eager",), BENCH).measure(case)
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

    class Fake:
        images = 1

        def __init__(self, name: str) -> None:
            self._name = name

        def epoch(self) -> None:
            log.append(self._name)

    monkeypatch.setattr(measuring, "Ours", lambda case, *_: Fake(f"ours {case.runs}"))
    monkeypatch.setattr(measuring, "Eager", lambda name, *_: Fake(name))
    round_ = Round(("fcn", 2, 1), ("eager", "eager bf16"), BENCH)
    results = [round_.measure(case_of("fcn", runs=runs)) for runs in (1, 4)]
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
    class Slow:
        images = 10

        def epoch(self) -> None:
            torch.ones(400, 400).mm(torch.ones(400, 400))

    stand = Stand("ours", Slow, Bench(CPU, 0, seconds=0.05))
    stand.turn()
    (speed,) = stand.entry().speeds
    assert speed.seconds >= 0.05
    assert speed.images % 10 == 0
    assert speed.images > 10


def test_a_case_that_fails_is_written_down_and_the_rival_is_measured(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    monkeypatch.setattr(measuring, "Ours", full)
    result = Round(("fcn", 2, 1), ("eager",), BENCH).measure(case_of("fcn", runs=64))
    assert (result.entry("ours").status, result.entry("ours").reason) == ("failed", "out of memory")
    assert result.entry("eager").rate > 0
    assert result.ratio() is None


def test_who_breaks_in_its_turn_is_not_asked_again():
    class Tired:
        images = 1
        left = 2

        def epoch(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("enough")

    stand = Stand("eager", Tired, BENCH)
    for _ in range(3):
        stand.turn()
    entry = stand.entry()
    assert (entry.status, entry.reason) == ("failed", "RuntimeError: enough")
    assert len(entry.speeds) == 1
    assert entry.rate is None


def test_a_run_that_diverges_does_not_pass_for_fast():
    prepared = prepared_images("fcn", 2, 2)
    ours = Ours(case_of("fcn"), prepared, CPU)
    for slot in ours._pack.slots:
        slot.failure = "train_loss is nan at step 1"
    with pytest.raises(RuntimeError, match="a run diverged: train_loss is nan at step 1"):
        ours.epoch()


def test_ours_trains_and_evaluates_every_run_every_epoch():
    case = Case("cnn", 4, 3, "fp32", "stacked", 2)
    prepared = prepared_images("cnn", 12, 6)
    ours = Ours(case, prepared, CPU)
    ours.epoch()
    ours.epoch()
    assert ours.images == 24
    for slot in ours._pack.slots:
        assert slot.images == 24
        assert [row["epoch"] for row in slot.history] == [1, 2]
        assert all("test_accuracy" in row for row in slot.history)
    seeds = [slot.recipe.seed for slot in ours._pack.slots]
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
    bench = Bench(torch.device("cuda"), 0, 0.05)
    case = Case("cnn", 32, 5, "bf16", arrangement, runs)
    result = Round(case.setting, ("eager", "eager bf16"), bench).measure(case)
    assert [entry.status for entry in result.entries] == ["ok"] * 3
    assert all(entry.memory > 0 for entry in result.entries)
    assert result.ratio() > 0
