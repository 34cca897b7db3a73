"""What is trained by one process and by several, to be compared; run in processes of their own."""

from __future__ import annotations

import torch

from softtargets.losses import REGULARISERS
from softtargets.recipes import (
    CNN,
    MLP,
    SGD,
    Adam,
    Calibration,
    Digits,
    PreActResNet,
    Recipe,
    Shift,
    Symmetric,
)
from softtargets.runs import RunStore
from softtargets.training import train

from ..tasks.translation import counting

# Batches of 8, 8 and 3 rows: shares of different lengths, and with 4 processes one without any.
BASE = Recipe(
    data=Digits(validation=50, limit=19),
    model=PreActResNet(depth=8, stages=(2, 4, 4), stem_channels=2),
    epochs=2,
    batch=8,
    optimiser=SGD(lr=0.05, momentum=0.9, weight_decay=1e-3),
    augmentation=(Shift(pixels=1),),
    noise=Symmetric(rate=0.1),
)
OPTIONS = {
    "labo": {"warmup_steps": 4},
    "beta_smoothing": {"decay": 0.9},
    "disturb_label": {"alpha": 0.5},
    "distillation": {"teacher": BASE.replace({"epochs": 1}).to_dict()},
}
LOSSES = {
    name: BASE.replace({"regulariser": {"name": name, **OPTIONS.get(name, {})}}) for name in REGULARISERS
}
LOSSES["distillation of own views"] = LOSSES["distillation"].replace({"regulariser.view": "teacher"})
DROPPING = MLP(hidden=(16,), dropout=0.3)
OTHERS = {
    "dropout": BASE.replace({"model": DROPPING}),
    "dropout of odd rows": BASE.replace({"model": CNN(channels=(3, 5), hidden=7, dropout=0.3)}),
    "partners through dropout": BASE.replace({"model": DROPPING, "regulariser": {"name": "cs_kd"}}),
    "an averaged net with dropout": BASE.replace(
        {"model": DROPPING, "regulariser": {"name": "beta_smoothing"}}
    ),
    "clipped, averaged": BASE.replace({"clip": 0.5, "average": 0.8}),
    "adam, decay in the loss": BASE.replace(
        {"optimiser": Adam(lr=0.01, weight_decay=1e-3, decay_form="loss"), "multiplier": 2.0}
    ),
    "last epochs": BASE.replace({"average_last": 2, "measure_every": 2}),
    # The first of three epochs ends without a measurement.
    "every other epoch": BASE.replace(
        {"measure_epochs": 2, "epochs": 3, "regulariser": "online_label_smoothing"}
    ),
    "the best": BASE.replace({"best_by": "validation_loss", "probes": (Calibration(every=2),)}),
}
ALL = LOSSES | OTHERS
# Sentences in batches of 32 tokens, of which the longest have two: padding, tokens that do not count, and processes
# without a sentence.
TRANSLATION = counting.recipe(epochs=1, batch=32)
TRANSLATION = TRANSLATION.replace({"model.attention_dropout": 0.2, "data.limit": 60})
TRANSLATIONS = {
    "label smoothing": TRANSLATION.replace({"regulariser": {"name": "label_smoothing"}}),
    "beta smoothing": TRANSLATION.replace({"regulariser": {"name": "beta_smoothing"}}),
    "online label smoothing": TRANSLATION.replace({"regulariser": {"name": "online_label_smoothing"}}),
    "distillation": TRANSLATION.replace(
        {"regulariser": {"name": "distillation", "teacher": TRANSLATION.replace({"seed": 1}).to_dict()}}
    ),
}


def in_double() -> None:
    """Make this process train in double precision, in which rounding is nine digits smaller."""
    from softtargets.training import device_state, pack, pack_loss
    from softtargets.training.scheduling import resources

    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    build, update, loss = device_state.build_model, device_state.make_update, pack_loss.build_loss
    for module in (device_state, pack, resources):
        module.build_model = lambda *given: build(*given).double()
    device_state.make_update = lambda *given: update(*given, dtype=torch.float64)
    pack_loss.build_loss = lambda *given, **named: loss(*given, **named).double()


def trained(recipes, root, double=False, data_dir=None, **how):
    if double:
        in_double()
    return train(recipes, RunStore(root), device="cpu", progress=False, data_dir=data_dir, **how)
