"""Losses without numbers: built and run on the meta device and in FakeTensorMode, for shapes and precisions alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from softtargets.losses import (
    LABO,
    REGULARISERS,
    Distillation,
    ForwardCorrection,
    KnowledgeRefinery,
    LabelSmoothing,
    LogitSmoothing,
    OnlineLabelSmoothing,
)
from tests.default_device import default_device

K = 4
WITHOUT_TENSORS = {
    **{name: kind for name, kind in REGULARISERS.items() if name != "forward_correction"},
    "online_label_smoothing": lambda: OnlineLabelSmoothing(K),
    "knowledge_refinery": lambda: KnowledgeRefinery(K),
    "label_smoothing, others": lambda: LabelSmoothing(0.1, "others"),
    "labo, warming up": lambda: LABO(warmup_steps=3),
    "labo, with KL": lambda: LABO(include_kl=True),
    "distillation, student's temperature": lambda: Distillation(4.0, 0.5, student_temperature=True),
}
EVERY = WITHOUT_TENSORS | {
    "forward_correction": lambda: ForwardCorrection(torch.eye(K)),
    "label_smoothing, prior": lambda: LabelSmoothing(0.1, prior=torch.full((K,), 1 / K)),
    "label_smoothing, matrix": lambda: LabelSmoothing(0.1, "others", matrix=torch.full((K, K), 1 / K)),
    "label_smoothing, in a tensor": lambda: LabelSmoothing(torch.tensor(0.1)),
    "label_smoothing, weights": lambda: LabelSmoothing(0.1, weight=torch.ones(K)),
    "logit_smoothing, matrix": lambda: LogitSmoothing(0.1, matrix=torch.eye(K)),
}


@pytest.mark.parametrize("mode", [lambda: torch.device("meta"), FakeTensorMode], ids=["meta", "fake"])
@pytest.mark.parametrize("name", EVERY)
def test_shapes_and_precisions_go_through(name, mode):
    with mode():
        for dtype, shape, reduction in (
            (torch.float32, (6, K), "mean"),
            (torch.bfloat16, (6, K, 3), "none"),
            (torch.float32, (K,), "sum"),
        ):
            logits = torch.empty(shape, dtype=dtype, requires_grad=True)
            labels = torch.zeros(shape[:1] + shape[2:] if len(shape) > 1 else (), dtype=torch.int64)
            for target in (labels, torch.empty(shape, dtype=dtype)):
                loss = EVERY[name]()
                loss.reduction = reduction
                asked = loss.needs or (name == "cs_kd" and target is not labels)
                found = loss(logits, target, *([torch.empty(shape, dtype=dtype)] if asked else []))
                (gradient,) = torch.autograd.grad(found.sum(), logits)
                assert (found.dtype, found.device) == (dtype, logits.device)
                assert found.shape == (labels.shape if reduction == "none" else ())
                assert (gradient.shape, gradient.dtype) == (logits.shape, dtype)
                loss.end_epoch()


class Model(nn.Module):
    """As others build them: with its loss inside."""

    def __init__(self, loss):
        super().__init__()
        self.net, self.loss = nn.Linear(3, K), loss
        self.register_buffer("other", torch.zeros(2))


@pytest.mark.parametrize("name", WITHOUT_TENSORS)
def test_a_model_built_without_numbers_computes_the_same_when_it_has_them(name):
    """Weights are made of nothing and then loaded; what the loss has learnt so far is nothing."""
    with torch.device("meta"):
        models = [Model(WITHOUT_TENSORS[name]()) for _ in range(2)]
    models[0].to_empty(device="cpu")
    models[1].net.to_empty(device="cpu")  # some loaders know of parameters and buffers only
    models[1].other = torch.zeros(2)
    assert {key for key, _ in models[1].named_buffers()} == {"other"}
    logits, labels = torch.randn(6, K), torch.arange(6) % K
    given = [torch.randn(6, K)] if models[0].loss.needs else []
    expected = WITHOUT_TENSORS[name]()
    for loss in (expected, *(model.loss for model in models)):
        torch.manual_seed(0)
        first = loss(logits, labels, *given)
        loss.end_epoch()
        found = first, loss(logits, labels, *given), loss.state_dict()
        if loss is expected:
            wanted = found
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", WITHOUT_TENSORS)
def test_the_default_device_does_not_matter_to_data_elsewhere(name):
    logits = torch.randn(6, K, requires_grad=True)
    labels, other, soft = torch.arange(6) % K, torch.randn(6, K), torch.randn(6, K).softmax(1)
    loss = WITHOUT_TENSORS[name]()
    given = [other] if loss.needs or name == "cs_kd" else []
    torch.manual_seed(0)
    wanted = [loss(logits, target, *given).detach() for target in (labels, soft)]
    torch.manual_seed(0)
    with default_device("meta"):
        loss = WITHOUT_TENSORS[name]()
        found = [loss(logits, target, *given) for target in (labels, soft)]
        sum(found).backward()
    torch.testing.assert_close([each.detach() for each in found], wanted)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["online_label_smoothing", "knowledge_refinery", "labo, warming up"])
def test_a_loss_is_exported(name, strict):
    logits, labels = torch.randn(6, K), torch.arange(6) % K
    loss = WITHOUT_TENSORS[name]().eval()
    exported = torch.export.export(loss, (logits, labels), strict=strict).module()
    torch.testing.assert_close(exported(logits, labels), loss(logits, labels))


def test_a_loaded_state_replaces_one_without_numbers():
    known = OnlineLabelSmoothing(K)
    known(torch.eye(K), torch.arange(K))
    known.end_epoch()
    with torch.device("meta"):
        loss = OnlineLabelSmoothing(K)
    loss.load_state_dict(known.state_dict())
    assert torch.equal(loss.table, known.table)
    torch.testing.assert_close(
        loss(torch.eye(K), torch.arange(K)), F.cross_entropy(torch.eye(K), (torch.eye(K) + known.table) / 2)
    )
