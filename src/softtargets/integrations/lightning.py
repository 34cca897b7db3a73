"""Lightning: callbacks that measure calibration and the template plane on validation, and that tell losses of epochs.

Losses are used as they are. ::

    Trainer(callbacks=[CalibrationCallback()])                                  # numbers and the reliability diagram
    Trainer(callbacks=[CalibrationCallback(head="model.fc", plane=(3, 8, 9))])  # and three classes on their plane
    Trainer(callbacks=[LossCallback()])                                         # for losses that learn between epochs
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn

from softtargets.arrays import several_processes
from softtargets.calibration import Calibration, CalibrationMetric
from softtargets.geometry import PlaneView, draw_panels, plane_view
from softtargets.integrations.needs import needs
from softtargets.losses import SoftTargetLoss

needs("lightning", "lightning", "lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = ("labels", "target", "targets", "y")


class CalibrationCallback(Callback):
    """Calibration of the validation examples, logged after every epoch as numbers and as a reliability diagram.

    Logits and labels are taken from what ``validation_step`` returns, if that is a dictionary with ``"logits"``
    (..., K) and ``"labels"`` (...; ``"target"``, ``"targets"`` and ``"y"`` do as well). If it is not, the module is
    called once more with the first part of a batch (inputs, labels), which costs a second forward pass.

    Numbers are named ``val_calibration/...`` (`prefix`) and go through ``log_dict``, so that a checkpoint or early
    stopping can watch them. Figures go to loggers that take them (TensorBoard, Weights & Biases, MLflow), to the
    directory of others, and are kept as `figures` until the next validation. With several processes all examples count
    once; those that a distributed sampler repeats to fill a batch count again, as everywhere in Lightning.

    With `head`, the name of the last linear layer in the module, and `plane`, three classes, activations before
    that layer are projected on the plane of its templates (Müller et al. 2019): a picture, and their spread.
    `ignore_index` is the label that does not count, -100 unless told. If no example counts, or one of the three
    classes has none, a warning says so, and the metrics that need them are left out; the sanity check, which sees
    only a few batches, is silent.
    """

    def __init__(
        self,
        *,
        head: str | None = None,
        plane: Sequence[int] | None = None,
        bins: int = 15,
        ignore_index: int | None = -100,
        prefix: str = "val_calibration/",
        most: int = 300,
    ) -> None:
        if (head is None) != (plane is None):
            raise ValueError(
                "give both head (the name of the last linear layer) and plane (three classes), or neither"
            )
        if plane is not None and (len(plane) != 3 or len(set(plane)) != 3 or min(plane) < 0):
            raise ValueError(f"plane must be three different classes, not {tuple(plane)}")
        self.head, self.plane = head, None if plane is None else tuple(plane)
        self.bins, self.ignore_index, self.prefix, self.most = bins, ignore_index, prefix, most
        self.figures: dict[str, Figure] = {}
        self.found: dict[str, Any] = {}
        self._metrics: dict[int, CalibrationMetric] = {}
        self._activations: list[tuple[Tensor, Tensor]] = []
        self._seen: Tensor | None = None
        self._hook: Any = None

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the last epoch, and look at what goes into the last layer."""
        self._metrics, self._activations = {}, []
        self._unhook()  # what a validation that was interrupted has left
        if self.head is not None and self.plane is not None:
            layer = _linear(pl_module, self.head)
            if max(self.plane) >= layer.out_features:
                raise ValueError(
                    f"plane must be three classes from 0 to {layer.out_features - 1}, the outputs of {self.head!r}, "
                    f"not {self.plane}"
                )
            self._hook = layer.register_forward_pre_hook(self._look)

    def _unhook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _look(self, layer: nn.Module, given: tuple[Any, ...]) -> None:
        self._seen = given[0].detach()

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add a batch."""
        logits, labels = _scores(pl_module, outputs, batch)
        metric = self._metrics.get(dataloader_idx)
        if metric is None:
            metric = CalibrationMetric(
                logits.shape[-1], from_logits=True, bins=self.bins, ignore_index=self.ignore_index
            ).to(logits.device)
            self._metrics[dataloader_idx] = metric
        if not labels.numel():
            return
        metric.update(logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits, labels)
        if self.plane is not None and dataloader_idx == 0:
            self._keep(labels)

    def _keep(self, labels: Tensor) -> None:
        assert self.plane is not None
        if self._seen is None:
            raise ValueError(
                f"the layer {self.head!r} was not called in validation: head must be the last layer"
            )
        seen, self._seen = self._seen.reshape(-1, self._seen.shape[-1]), None
        flat = labels.reshape(-1)
        if len(seen) != len(flat):
            raise ValueError(
                f"the layer {self.head!r} was given {len(seen)} activations for {len(flat)} labels: head must be the "
                "last layer, called once for each batch"
            )
        chosen = torch.isin(flat, torch.tensor(self.plane, device=flat.device))
        self._activations.append((seen[chosen].float().cpu(), flat[chosen].cpu()))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measure, log and draw."""
        self._unhook()
        numbers: dict[str, float] = {}
        self.figures, self.found = {}, {}
        for place, metric in sorted(self._metrics.items()):
            name = f"dataloader_{place}/" if len(self._metrics) > 1 else ""
            found = _measured(metric)
            if found is None:
                self._left_out(trainer, f"no example counts in validation {name}".rstrip(" /"))
                continue
            self.found[f"{name}calibration"] = found
            numbers |= {name + key: value for key, value in found.scalars().items()}
            self.figures[f"{name}reliability"] = _reliability(found)
        if self.plane is not None and self.head is not None:
            view = self._view(_linear(pl_module, self.head).weight)
            if isinstance(view, PlaneView):
                self.found["plane"] = view
                numbers |= {
                    "plane_spread": view.measures.spread,
                    "plane_equilateral": view.measures.centres_equilateral,
                }
                self.figures["plane"] = _picture(view)
            else:
                which = ", ".join(map(str, view))
                self._left_out(trainer, f"validation has no example of class {which}")
        if trainer.sanity_checking:
            return
        pl_module.log_dict({self.prefix + name: value for name, value in numbers.items()})
        if trainer.is_global_zero:
            for name, figure in self.figures.items():
                for logger in trainer.loggers:
                    show(logger, self.prefix + name, figure, trainer.global_step)

    def _left_out(self, trainer: Trainer, why: str) -> None:
        if not trainer.sanity_checking and trainer.is_global_zero:
            warnings.warn(f"{why}: {self.prefix} leaves out the metrics that need them", stacklevel=2)

    def _view(self, templates: Tensor) -> PlaneView | list[int]:
        """The plane, or which of its classes have no example, as in the few batches of a sanity check."""
        assert self.plane is not None
        kept = self._activations
        if several_processes():
            everyones: list[Any] = [None] * distributed.get_world_size()
            distributed.all_gather_object(everyones, kept)
            kept = [pair for own in everyones for pair in own]
        seen = {int(label) for _, some in kept for label in some.unique()}
        if missing := [label for label in self.plane if label not in seen]:
            return missing
        activations, labels = (torch.cat(parts) for parts in zip(*kept, strict=True))
        weights = templates.detach().float().cpu()
        return plane_view(activations, labels, weights, self.plane, most=self.most, split="validation")


class LossCallback(Callback):
    """Tells every softtargets loss in a module of steps and epochs, as those that learn between them need.

    `OnlineLabelSmoothing` makes its table at the end of an epoch, and an attached `BetaSmoothing` averages the model
    after each step. The losses must be attributes of the module; their state is then part of its checkpoints.
    """

    def __init__(self) -> None:
        self._step = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count from here, and refuse a module without a loss that could be told."""
        if not _losses(pl_module):
            raise ValueError(
                f"{type(pl_module).__name__} has no loss of softtargets: make the loss an attribute, self.loss = ..."
            )
        self._step = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A step, if the optimiser has made one: it does not after each batch where gradients are accumulated."""
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            for loss in _losses(pl_module):
                loss.after_step(_averaged_of(loss, pl_module))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """An epoch."""
        for loss in _losses(pl_module):
            loss.end_epoch()


def show(logger: Any, name: str, figure: Figure, step: int) -> None:
    """Give a figure to a logger of Lightning; one that takes none gets a file in its directory."""
    experiment: Any = getattr(logger, "experiment", None)
    if hasattr(experiment, "add_figure"):  # TensorBoard
        experiment.add_figure(name, figure, step)
    elif hasattr(logger, "log_image"):  # Weights & Biases
        import matplotlib.pyplot  # noqa: F401  it asks matplotlib for this without importing it

        logger.log_image(name, [figure], step=step)
    elif hasattr(experiment, "log_figure") and hasattr(logger, "run_id"):  # MLflow
        experiment.log_figure(logger.run_id, figure, f"{name}-{step}.png")
    elif directory := (getattr(logger, "log_dir", None) or getattr(logger, "save_dir", None)):
        path = Path(directory) / f"{name}-{step}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def _measured(metric: CalibrationMetric) -> Calibration | None:
    """All numbers, or None if no process has an example that counts."""
    try:
        return metric.compute()
    except ValueError:
        if metric.sums.examples:
            raise
        return None


def _scores(module: LightningModule, outputs: Any, batch: Any) -> tuple[Tensor, Tensor]:
    if isinstance(outputs, Mapping) and "logits" in outputs:
        labels = next((outputs[name] for name in _LABELS if name in outputs), None)
        if labels is None:
            raise ValueError(
                f"validation_step returned logits without labels, only {', '.join(outputs)}: return "
                '{"logits": logits, "labels": labels}'
            )
        logits = outputs["logits"]
        if not isinstance(logits, Tensor) or not isinstance(labels, Tensor):
            raise TypeError(
                'validation_step must return tensors as "logits" and "labels", not '
                f"{type(logits).__name__} and {type(labels).__name__}"
            )
        return logits.detach(), labels
    if isinstance(batch, list | tuple) and len(batch) == 2 and isinstance(batch[1], Tensor):
        with torch.no_grad():
            logits = module(batch[0])
        if isinstance(logits, Tensor):
            return logits, batch[1]
    raise ValueError(
        "neither validation_step nor its batch shows what to measure: return "
        '{"logits": logits, "labels": labels} from validation_step'
    )


def _linear(module: LightningModule, name: str) -> nn.Linear:
    try:
        layer = module.get_submodule(name)
    except AttributeError:
        names = [own for own, part in module.named_modules() if isinstance(part, nn.Linear)]
        raise ValueError(
            f"there is no layer {name!r}; linear layers are {', '.join(names) or 'none'}"
        ) from None
    if not isinstance(layer, nn.Linear):
        raise ValueError(f"head must be the last linear layer, but {name!r} is a {type(layer).__name__}")
    return layer


def _losses(module: nn.Module) -> list[SoftTargetLoss]:
    return [part for part in module.modules() if isinstance(part, SoftTargetLoss)]


def _averaged_of(loss: SoftTargetLoss, module: nn.Module) -> nn.Module:
    """The part of a module that an averaged copy was made of: the one that has as many parameters."""
    averaged = getattr(loss, "averaged", None)
    if averaged is None:
        return module
    shapes = [parameter.shape for parameter in averaged.parameters()]
    inside = {id(part) for part in loss.modules()}
    for part in module.modules():
        if id(part) not in inside and [parameter.shape for parameter in part.parameters()] == shapes:
            return part
    raise ValueError(
        f"the model that {type(loss).__name__} averages is not a submodule of {type(module).__name__}"
    )


def _reliability(found: Any) -> Figure:
    from softtargets.calibration.drawing import reliability_figure

    return reliability_figure(found.reliability)


def _picture(view: PlaneView) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2, 3.8), layout="constrained")
    draw_panels(figure, [view])
    return figure
