"""What only a GPU can show: recorded steps, compiled links, kernels, streams."""

from __future__ import annotations

import warnings

import pytest
import torch

from softtargets.models import Transformer
from softtargets.models.short_attention import MOST_KEYS
from softtargets.recipes import LABO
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.tasks import prepare

from ...making import advanced, finished, same, states
from .counting import recipe

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")]
CUDA = torch.device("cuda")


@pytest.fixture(scope="module")
def task(corpus):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare(recipe().data, CUDA, corpus)


def started(given, task, plain=False, checkpoint=None):
    machinery = Machinery(given, task, CUDA, stacked=False, plain=plain)
    return Pack([Start(given, task, None, checkpoint)], machinery)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("regulariser", ["label_smoothing", "labo"])
def test_recorded_steps_are_the_plain_ones(task, precision, regulariser):
    given = recipe(regulariser={"name": regulariser}, precision=precision)
    recorded, plain = (finished(started(given, task, plain=plain)) for plain in (False, True))
    shapes = set(task.epoch(given, 0).shapes)
    assert len(recorded.on_device._recorder._graphs) == len(shapes)
    for ours, theirs in zip(recorded.slots[0].history, plain.slots[0].history, strict=True):
        tolerance = 1e-3 if precision == "fp32" else 3e-2
        assert ours["train_loss"] == pytest.approx(theirs["train_loss"], rel=tolerance)
        assert ours["validation_loss"] == pytest.approx(theirs["validation_loss"], rel=tolerance)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_training_is_the_same_bits_again_after_a_cut_and_in_company(task, precision):
    given = recipe(precision=precision)
    whole = finished(started(given, task))
    assert same(states(whole), states(finished(started(given, task))))
    saved = advanced(started(given, task), 5).save(0)
    assert same(states(whole), states(finished(started(given, task, checkpoint=saved))))
    machinery = Machinery(given, task, CUDA, stacked=False)
    others = [given.replace({"seed": 7}), given.replace({"regulariser": LABO()})]
    fleet = finished(Fleet([Start(each, task) for each in (given, *others)], machinery))
    assert same(whole.weights(0), fleet.weights(0))


def test_a_step_never_waits_for_the_host(task):
    """Recording fails where it does; here also the trials before, which no recording would show."""
    pack = started(recipe(precision="bf16"), task)
    advanced(pack, 1)
    torch.cuda.synchronize()
    shape = task.epoch(pack.slots[0].recipe, 0).shapes[1]
    with pack.on_device._at_work():
        pack.on_device._recorder.ready(pack.on_device._step, shape)
        torch.cuda.set_sync_debug_mode("error")
        try:
            pack.on_device._step(shape)
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("length", [48, 65, MOST_KEYS, MOST_KEYS + 1, 2 * MOST_KEYS])
@pytest.mark.parametrize("heads", [2, 4])
def test_gradients_of_attention_are_the_same_bits_every_time(length, heads):
    torch.manual_seed(0)
    sizes = {"width": 256, "heads": heads, "inner": 64, "encoder_layers": 1, "decoder_layers": 1}
    net = Transformer(vocabulary=50, dropout=0.0, **sizes).cuda().train()
    source, prefix = torch.randint(3, 50, (2, 24, length), device="cuda")
    source[:, -5:] = 0
    found = []
    for _ in range(5):
        with torch.autocast("cuda", torch.bfloat16):
            said = net.features(source, prefix)
        found.append(
            torch.autograd.grad(said.float().square().sum(), list(net.parameters()), allow_unused=True)
        )
    for again in found[1:]:
        for one, other in zip(found[0], again, strict=True):
            assert one is other is None or torch.equal(one, other)
