"""Pictures of what each method asks of a classifier, computed by the losses themselves.

Every loss pulls a logit by the gradient. That of cross-entropy with a target t is p - t, so p minus the gradient is the
target that a method has, whether it is written as one or not. It need not be a distribution.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import matplotlib
import torch
from matplotlib.figure import Figure
from torch import Tensor

from softtargets.losses import (
    CSKD,
    LABO,
    AntiFocalLoss,
    BetaSmoothing,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    DisturbLabel,
    FocalLoss,
    ForwardCorrection,
    KnowledgeRefinery,
    LabelSmoothing,
    LogitSmoothing,
    MaxSup,
    OnlineLabelSmoothing,
    SoftTargetLoss,
    TFReg,
)

CLASSES = ("cat", "dog", "fox", "car", "van")
# What a network says of three pictures of cats: it knows them, wavers, or takes them for dogs.
EXAMPLES = {
    "learnt": (4.0, 1.5, 0.5, -1.0, -1.5),
    "uncertain": (1.2, 1.0, 0.2, -0.8, -1.0),
    "wrong": (0.5, 3.0, 0.5, -1.0, -1.5),
}
# What a teacher, a partner or an averaged network says of the same.
OTHER = (3.0, 1.5, 0.5, -1.5, -1.5)
_LABEL, _PREDICTION = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class Pull:
    """The target that a method has for one example, and what the network predicts."""

    target: Tensor
    prediction: Tensor


def example(name: str) -> SoftTargetLoss:
    """A loss with its defaults, for the five classes of the pictures."""
    made: dict[str, SoftTargetLoss] = {
        "cross_entropy": CrossEntropy(),
        "label_smoothing": LabelSmoothing(),
        "distillation": Distillation(temperature=2.0),
        "confidence_penalty": ConfidencePenalty(),
        "focal": FocalLoss(),
        "anti_focal": AntiFocalLoss(),
        "labo": LABO(),
        "tf_reg": TFReg(),
        "cs_kd": CSKD(),
        "beta_smoothing": BetaSmoothing(),
        "online_label_smoothing": OnlineLabelSmoothing(classes=5),
        "knowledge_refinery": KnowledgeRefinery(classes=5),
        "forward_correction": ForwardCorrection(0.75 * torch.eye(5) + 0.05),
        "logit_smoothing": LogitSmoothing(),
        "disturb_label": DisturbLabel(),
        "max_sup": MaxSup(),
    }
    loss = made[name]
    if isinstance(loss, (OnlineLabelSmoothing, KnowledgeRefinery)):
        loss(
            torch.tensor([EXAMPLES["learnt"]]), torch.tensor([0])
        )  # an epoch in which the network knows its cats
        loss.end_epoch()
    return loss


def pull(loss: SoftTargetLoss, logits: tuple[float, ...], label: int = 0) -> Pull:
    """p minus the gradient of the loss, and p.

    >>> pull(LabelSmoothing(alpha=0.1), EXAMPLES["learnt"]).target
    tensor([0.9200, 0.0200, 0.0200, 0.0200, 0.0200])
    """
    own = torch.tensor([logits], requires_grad=True)
    given = [torch.tensor([OTHER])] if loss.needs or isinstance(loss, (CSKD, BetaSmoothing)) else []
    torch.manual_seed(0)  # for those that draw
    (gradient,) = torch.autograd.grad(loss(own, torch.tensor([label]), *given), own)
    prediction = own.detach().softmax(-1)[0]
    return Pull(prediction - gradient[0], prediction)


def picture(name: str, narrow: bool = False) -> bytes:
    """An SVG with a panel for each of the three examples, side by side or, for phones, below each other."""
    loss = example(name)
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path", "font.size": 11}):
        figure = Figure(figsize=(4.2, 5.2) if narrow else (7.6, 2.6), layout="constrained")
        many = (len(EXAMPLES), 1) if narrow else (1, len(EXAMPLES))
        axes = figure.subplots(*many, sharex=True, sharey=True)
        places = range(len(CLASSES))
        for ax, (told, logits) in zip(axes, EXAMPLES.items(), strict=True):
            found = pull(loss, logits)
            ax.bar(places, found.target.tolist(), width=0.7, color=_LABEL, label="target")
            ax.plot(places, found.prediction.tolist(), "o", color=_PREDICTION, label="prediction")
            ax.axhline(0, color="#666666", linewidth=0.6)
            ax.set_title(f"{told} cat", fontsize=11)
            ax.set_xticks(places, CLASSES)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].legend(frameon=False, fontsize=10)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
