"""On a GPU no loss makes the host wait, and sums over a batch are the same every time."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.losses import (
    CSKD,
    BetaSmoothing,
    DisturbLabel,
    ForwardCorrection,
    KnowledgeRefinery,
    LogitSmoothing,
    MaxSup,
    OnlineLabelSmoothing,
    TFReg,
)

from .making import batch, matrix

pytestmark = pytest.mark.cuda

CLASSES = 10
MAKERS = {
    "tf_reg": TFReg,
    "cs_kd": CSKD,
    "beta_smoothing": BetaSmoothing,
    "online_label_smoothing": lambda **more: OnlineLabelSmoothing(CLASSES, freeze=0.88, **more),
    "knowledge_refinery": lambda **more: KnowledgeRefinery(CLASSES, **more),
    "forward_correction": lambda **more: ForwardCorrection(matrix(CLASSES), **more),
    "logit_smoothing": LogitSmoothing,
    "logit_smoothing with a matrix": lambda **more: LogitSmoothing(0.1, matrix(CLASSES), **more),
    "disturb_label": DisturbLabel,
    "max_sup": MaxSup,
}


@pytest.fixture
def without_waiting():
    torch.zeros(1, device="cuda").add_(1)  # the context is there before anything is forbidden
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_host_never_waits(name, weighted, request):
    weight = torch.linspace(0.5, 2, CLASSES) if weighted else None
    loss = MAKERS[name](weight=weight).cuda()
    logits, labels = batch(64, CLASSES, torch.float32)
    labels[::7] = -100
    soft = torch.softmax(logits.flip(0), -1)
    logits, labels, soft = logits.cuda().requires_grad_(), labels.cuda(), soft.cuda()
    third = [logits.detach().flip(0)] if name in ("cs_kd", "beta_smoothing") else []
    net = nn.Linear(3, CLASSES).cuda()
    if name == "beta_smoothing":
        loss.attach(net)
    for _ in range(2):  # the first time libraries set themselves up
        losses = [loss(logits, labels), loss(logits, labels, *third), loss(logits, soft, *third)]
        torch.autograd.grad(sum(losses), logits)
        loss.after_step(net)
        loss.end_epoch()
        request.getfixturevalue("without_waiting")
    torch.cuda.set_sync_debug_mode("default")
    assert all(bool(value.isfinite()) for value in losses)


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("beta_smoothing", "disturb_label")])
def test_a_gpu_says_what_a_cpu_says(name):
    logits, labels = batch(64, CLASSES, torch.float64)
    labels[::7] = -100
    there, here = MAKERS[name]().cuda(), MAKERS[name]()
    for _ in range(3):
        torch.testing.assert_close(there(logits.cuda(), labels.cuda()).cpu(), here(logits, labels))
        there.end_epoch()
        here.end_epoch()
    for key, value in here.state_dict().items():
        torch.testing.assert_close(there.state_dict()[key].cpu(), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["online_label_smoothing", "knowledge_refinery"])
def test_tables_are_the_same_every_time(name):
    logits, labels = batch(50_000, CLASSES, torch.float32)
    logits, labels = logits.cuda(), labels.cuda()
    losses = [MAKERS[name]().cuda() for _ in range(5)]
    for loss in losses:
        loss(logits, labels)
        loss.end_epoch()
    assert all(torch.equal(loss.table, losses[0].table) for loss in losses)
