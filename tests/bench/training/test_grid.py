from __future__ import annotations

import pytest

from benchmarks.training.grid import DEFAULT_PACKS, grid
from benchmarks.training.results import AccuracyCase, TrainingCase
from softtargets.exceptions import SofttargetsError
from softtargets.training.packing import GPU_STREAMS


def test_the_default_on_a_gpu():
    found = grid("cuda")
    assert len(found.cases) == 7 + 7 + 7 + 3 + 3
    assert found.cases[0] == TrainingCase("fcn", 128, 100, "bf16", "stacked", 1)
    assert list(dict.fromkeys(case.net for case in found.cases)) == [
        "fcn",
        "cnn",
        "alexnet",
        "resnet56",
        "resnet18",
    ]
    assert {case.arrangement for case in found.cases if case.net == "cnn"} == {"stacked", "streams"}
    assert {case.arrangement for case in found.cases if case.net == "resnet56"} == {"streams"}
    assert found.names(found.cases[0]) == ("ours", "eager")
    assert found.seconds == 2.0


def test_streams_end_where_the_engine_ends_unless_packs_are_given():
    assert DEFAULT_PACKS["cuda"]["streams"].endswith(f",{GPU_STREAMS}")
    assert max(case.runs for case in grid("cuda", nets="resnet56").cases) == GPU_STREAMS
    assert [case.runs for case in grid("cuda", nets="resnet56", packs="64,2").cases] == [2, 64]


def test_packs_of_one_net_come_together_small_ones_first():
    found = grid("cpu", nets="cnn,fcn", packs="4,1").cases
    assert [(case.net, case.runs) for case in found] == [
        *[("cnn", 1)] * 2,
        *[("cnn", 4)] * 2,
        *[("fcn", 1)] * 2,
        *[("fcn", 4)] * 2,
    ]


def test_an_arrangement_that_is_asked_for_is_tried_with_every_net():
    found = grid("cuda", nets="resnet56", arrangements="stacked").cases
    assert {(case.net, case.arrangement) for case in found} == {("resnet56", "stacked")}
    assert [case.runs for case in found] == [1, 16, 64, 128]


def test_everything_that_can_be_said():
    found = grid(
        "cuda",
        nets="fcn",
        packs="1",
        arrangements="streams",
        batch=8,
        batches=3,
        precision="tf32",
        eager_precision="bf16",
        seconds=0.5,
        accuracy=True,
        data="mnist",
        epochs=2,
        seeds=3,
    )
    speed, accuracy = found.cases
    assert speed == TrainingCase("fcn", 8, 3, "tf32", "streams", 1)
    assert accuracy == AccuracyCase("mnist", 2, "tf32", 3)
    assert found.names(speed) == ("ours", "eager", "eager bf16")
    assert found.names(accuracy) == ()
    assert found.seconds == 0.5


def test_accuracy_has_defaults_and_is_meant_by_its_options():
    assert grid("cpu", nets="none", accuracy=True).cases == (AccuracyCase("digits", 30, "fp32", 5),)
    assert grid("cuda", seeds=2).cases[-1] == AccuracyCase("digits", 30, "bf16", 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nets": "alexnett"}, "--nets: no 'alexnett' (did you mean 'alexnet'?)"),
        ({"nets": "none"}, "--nets none makes sense only with --accuracy"),
        ({"packs": "0"}, "--packs: '0' is not a whole number from 1"),
        ({"arrangements": "stack"}, "--arrangements: no 'stack' (did you mean 'stacked'?)"),
        ({"precision": "bf61"}, "--precision: no 'bf61' (did you mean 'bf16'?)"),
        ({"precision": "bf16,fp32"}, "--precision: give one of bf16, tf32, fp32, not bf16,fp32"),
        ({"eager_precision": "fp8"}, "--eager-precision: no 'fp8'"),
        ({"data": "minst"}, "--data: no 'minst' (did you mean 'mnist'?)"),
        ({"data": "mnist,digits"}, "--data: give one of digits, mnist, cifar10, not mnist,digits"),
    ],
)
def test_words_that_mean_nothing_are_refused(options, message):
    with pytest.raises(SofttargetsError) as refusal:
        grid("cpu", **options)
    assert message in str(refusal.value)
