"""The callbacks in the real Lightning, on sklearn's digits."""

from __future__ import annotations

import logging

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from sklearn.datasets import load_digits
from torch import distributed, multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection

from leaving import leave
from softtargets.calibration import measure_calibration
from softtargets.geometry import plane_view
from softtargets.integrations import torchmetrics as metrics
from softtargets.integrations.lightning import CalibrationCallback, LossCallback, show
from softtargets.losses import BetaSmoothing, LabelSmoothing, OnlineLabelSmoothing
from softtargets.selection import measure_selection

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def digits(part):
    images, labels = (torch.as_tensor(array) for array in load_digits(return_X_y=True))
    return TensorDataset(images[part].float() / 16, labels[part].long())


TRAINING, VALIDATION = slice(0, 600), slice(1500, 1797)


class Module(LightningModule):
    """A small network; `returns` says what validation_step gives back."""

    def __init__(self, loss=None, returns="scores"):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(64, 16), nn.ReLU())
        self.fc = nn.Linear(16, 10)
        self.loss = loss or LabelSmoothing(0.1)
        self.returns = returns

    def forward(self, images):
        return self.fc(self.body(images))

    def training_step(self, batch, place):
        images, labels = batch
        return self.loss(self(images), labels)

    def validation_step(self, batch, place, dataloader_idx=0):
        images, labels = batch
        logits = self(images)
        if self.returns == "scores":
            return {"logits": logits, "labels": labels}
        return {"logits": logits} if self.returns == "no labels" else None

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.01)


def fitted(module, *callbacks, validation=None, batch_size=64, **options):
    quiet = {
        "accelerator": "cpu",
        "max_epochs": 2,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = Trainer(callbacks=list(callbacks), **(quiet | options))
    validation = validation or DataLoader(digits(VALIDATION), batch_size)
    trainer.fit(module, DataLoader(digits(TRAINING), 50), validation)
    return trainer


def logits_of(module):
    images, labels = digits(VALIDATION).tensors
    with torch.no_grad():
        return module(images), labels


@pytest.mark.parametrize("returns", ["scores", "nothing"])
def test_numbers_are_those_of_all_validation_examples(returns):
    module, callback = Module(returns=returns), CalibrationCallback()
    trainer = fitted(module, callback)
    wanted = measure_calibration(*logits_of(module), from_logits=True, level=None).scalars()
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert logged == pytest.approx(
        {f"val_calibration/{name}": value for name, value in wanted.items()}, rel=1e-5
    )
    assert callback.found["calibration"].examples == 297
    assert set(callback.figures) == {"reliability"}


class Logging(Module):
    """Logs metrics as people do; `seen` are the logits and labels of each validation, in turn."""

    def __init__(self, how):
        super().__init__()
        self.how, self.seen = how, []
        self.calibration = metrics.CalibrationMetric(10, from_logits=True)
        self.smooth = metrics.SmoothCalibrationError(10, from_logits=True)
        self.many = metrics.calibration_metrics(10, from_logits=True, prefix="val_")
        self.trained = metrics.CalibrationMetric(10, from_logits=True)
        self.mixed = MetricCollection(
            [metrics.CalibrationMetric(10, from_logits=True), metrics.AURC(10, from_logits=True)]
        )

    def training_step(self, batch, place):
        if self.how == "steps":
            with torch.no_grad():
                logits = self(batch[0])
            self.trained(logits, batch[1])
            self.log("brier", self.trained["brier_score"], on_step=True, on_epoch=True)
            self.seen.append((logits, batch[1]))
        return super().training_step(batch, place)

    def on_validation_epoch_start(self):
        if self.how != "steps":
            self.seen.append(logits_of(self))

    def validation_step(self, batch, place):
        logits, labels = self(batch[0]), batch[1]
        if self.how == "all":
            self.calibration.update(logits, labels)
            self.log_dict(self.calibration)
        elif self.how == "named":
            self.calibration.update(logits, labels)
            self.log("val_ece", self.calibration["expected_calibration_error"], prog_bar=True)
            self.log_dict({f"val/{name}": one for name, one in self.calibration.items()})
        elif self.how == "single":
            self.smooth(logits, labels)
            self.log("smooth", self.smooth)
        elif self.how == "collection":
            self.many.update(logits, labels)
            self.log_dict(self.many)
        elif self.how == "computed":
            self.mixed.update(logits, labels)

    def on_validation_epoch_end(self):
        if self.how == "computed":
            self.log_dict(self.mixed.compute())
            self.mixed.reset()


class Watching(Callback):
    """Keeps what was logged, epoch after epoch."""

    def __init__(self):
        self.epochs, self.steps = [], []

    def on_train_batch_end(self, trainer, module, outputs, batch, place):
        self.steps.append({name: float(value) for name, value in trainer.callback_metrics.items()})

    def on_train_epoch_end(self, trainer, module):  # after the validation of the epoch
        self.epochs.append({name: float(value) for name, value in trainer.callback_metrics.items()})


def numbers(logits, labels):
    found = measure_calibration(logits, labels, from_logits=True, level=None).scalars()
    return found | measure_selection(logits, labels, from_logits=True).numbers()


@pytest.mark.parametrize("how", ["all", "named", "single", "collection", "computed"])
def test_metrics_are_logged_and_forgotten_after_each_epoch(how):
    module, watching = Logging(how), Watching()
    fitted(module, watching, num_sanity_val_steps=0)
    assert len(watching.epochs) == len(module.seen) == 2
    for logged, seen in zip(watching.epochs, module.seen, strict=True):
        whole = numbers(*seen)
        names = {
            "all": {name: name for name in metrics._NAMES},
            "named": {"val_ece": "expected_calibration_error"}
            | {f"val/{name}": name for name in metrics._NAMES},
            "single": {"smooth": "smooth_calibration_error"},
            "collection": {f"val_{kind.value}": kind.value for kind in metrics.ALL},
            "computed": {name: name for name in metrics._NAMES} | {"AURC": "aurc"},
        }[how]
        assert logged == pytest.approx({name: whole[own] for name, own in names.items()}, rel=1e-5, abs=1e-7)
    assert watching.epochs[0] != watching.epochs[1]
    assert module.calibration.update_count == 0  # forgotten after the last one too


def test_an_entry_is_logged_after_steps_and_epochs():
    module, watching = Logging("steps"), Watching()
    fitted(module, watching)
    assert len(module.seen) == 24
    found = [step["brier_step"] for step in watching.steps]
    assert found == pytest.approx([numbers(*seen)["brier_score"] for seen in module.seen], rel=1e-5)
    last = [torch.cat(parts) for parts in zip(*module.seen[12:], strict=True)]
    assert float(module.trainer.callback_metrics["brier_epoch"]) == pytest.approx(
        numbers(*last)["brier_score"], rel=1e-5
    )


def test_the_plane():
    module, callback = Module(), CalibrationCallback(head="fc", plane=(1, 4, 7))
    trainer = fitted(module, callback)
    images, labels = digits(VALIDATION).tensors
    with torch.no_grad():
        view = plane_view(module.body(images), labels, module.fc.weight, (1, 4, 7))
    assert float(trainer.callback_metrics["val_calibration/plane_spread"]) == pytest.approx(
        view.measures.spread, rel=1e-4
    )
    torch.testing.assert_close(callback.found["plane"].points, view.points, rtol=1e-4, atol=1e-5)
    assert set(callback.figures) == {"reliability", "plane"}
    assert not module.fc._forward_pre_hooks  # nothing is left behind


def test_a_validation_that_was_interrupted_leaves_nothing_behind_for_the_next():
    module, callback = Module(), CalibrationCallback(head="fc", plane=(1, 4, 7))
    whole, module.validation_step = module.validation_step, lambda *batch: 1 / 0
    with pytest.raises(ZeroDivisionError):
        fitted(module, callback)
    module.validation_step = whole
    fitted(module, callback)
    assert not module.fc._forward_pre_hooks


def test_figures_go_to_tensorboard_and_to_files(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board, csv = TensorBoardLogger(tmp_path, name="board"), CSVLogger(tmp_path, name="csv")
    fitted(Module(), CalibrationCallback(head="fc", plane=(1, 4, 7)), logger=[board, csv])
    events = EventAccumulator(board.log_dir)
    events.Reload()
    assert events.Tags()["images"] == ["val_calibration/reliability", "val_calibration/plane"]
    assert [one.step for one in events.Images("val_calibration/plane")] == [12, 24]
    assert "val_calibration/smooth_calibration_error" in events.Tags()["scalars"]
    assert sorted(path.name for path in (tmp_path / "csv").rglob("*.png")) == [
        "plane-12.png",
        "plane-24.png",
        "reliability-12.png",
        "reliability-24.png",
    ]


def test_figures_go_to_loggers_with_methods_of_their_own():
    calls = []

    class Wandb:
        experiment = object()

        def log_image(self, key, images, step):
            calls.append((key, images, step))

    class Mlflow:
        run_id = "r"

        class experiment:
            @staticmethod
            def log_figure(run, figure, file):
                calls.append((run, figure, file))

    show(Wandb(), "a/b", "figure", 3)
    show(Mlflow(), "a/b", "figure", 3)
    assert calls == [("a/b", ["figure"], 3), ("r", "figure", "a/b-3.png")]


def test_several_loaders_are_measured_apart():
    module = Module()
    parts = [DataLoader(digits(slice(1500, 1600)), 32), DataLoader(digits(slice(1600, 1797)), 32)]
    trainer = fitted(module, CalibrationCallback(), validation=parts)
    logits, labels = logits_of(module)
    for place, part in enumerate((slice(0, 100), slice(100, 297))):
        wanted = measure_calibration(logits[part], labels[part], from_logits=True, level=None)
        found = float(trainer.callback_metrics[f"val_calibration/dataloader_{place}/brier_score"])
        assert found == pytest.approx(wanted.brier_score, rel=1e-5)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match='"labels": labels'):
        fitted(Module(returns="no labels"), CalibrationCallback())
    with pytest.raises(ValueError, match=r"linear layers are body\.0, fc"):
        fitted(Module(), CalibrationCallback(head="head", plane=(0, 1, 2)))
    with pytest.raises(ValueError, match="'body' is a Sequential"):
        fitted(Module(), CalibrationCallback(head="body", plane=(0, 1, 2)))
    with pytest.raises(ValueError, match=r"give both head .* and plane .*, or neither"):
        CalibrationCallback(head="fc")
    for plane in ((0, 1), (0, 1, 1), (-1, 0, 1)):
        with pytest.raises(ValueError, match="plane must be three different classes"):
            CalibrationCallback(head="fc", plane=plane)
    with pytest.raises(ValueError, match=r"three classes from 0 to 9, the outputs of 'fc', not \(0, 1, 10\)"):
        fitted(Module(), CalibrationCallback(head="fc", plane=(0, 1, 10)))

    class Bare(Module):
        def validation_step(self, batch, place):
            return {"logits": None, "labels": batch[1]}

    with pytest.raises(TypeError, match='tensors as "logits" and "labels", not NoneType and Tensor'):
        fitted(Bare(), CalibrationCallback())


def test_a_sanity_check_need_not_have_examples_of_the_plane():
    """Its two batches seldom have examples of three classes; sorted ones never do."""
    data = digits(VALIDATION)
    sorted_by_label = data.tensors[1].argsort()
    data = TensorDataset(*(column[sorted_by_label] for column in data.tensors))
    callback = CalibrationCallback(head="fc", plane=(1, 4, 7))
    trainer = fitted(Module(), callback, validation=DataLoader(data, 16))
    assert "val_calibration/plane_spread" in trainer.callback_metrics
    assert set(callback.figures) == {"reliability", "plane"}


def test_what_no_example_is_of_is_left_out_with_a_warning():
    zeros = TensorDataset(
        *(column[digits(VALIDATION).tensors[1] == 0] for column in digits(VALIDATION).tensors)
    )
    callback = CalibrationCallback(head="fc", plane=(0, 4, 7))
    with pytest.warns(UserWarning, match="no example of class 4, 7: val_calibration/ leaves out"):
        trainer = fitted(Module(), callback, validation=DataLoader(zeros, 16))
    assert "val_calibration/plane_spread" not in trainer.callback_metrics
    assert "val_calibration/accuracy" in trainer.callback_metrics
    images, labels = digits(VALIDATION).tensors
    nothing = TensorDataset(images, torch.full_like(labels, -100))
    with pytest.warns(UserWarning, match="no example counts in validation dataloader_1: val_calibration/"):
        trainer = fitted(
            Module(),
            CalibrationCallback(),
            validation=[DataLoader(digits(VALIDATION), 64), DataLoader(nothing, 64)],
        )
    assert "val_calibration/dataloader_0/accuracy" in trainer.callback_metrics
    assert not any("dataloader_1" in name for name in trainer.callback_metrics)


def test_a_batch_without_examples_changes_nothing():
    class Emptying(Module):
        def validation_step(self, batch, place):
            images, labels = batch
            kept = slice(0, 0) if place == 1 else slice(None)
            return {"logits": self(images[kept]), "labels": labels[kept]}

    callback = CalibrationCallback()
    fitted(Emptying(), callback)
    assert callback.found["calibration"].examples == 297 - 64


def test_a_loss_that_learns_is_told_of_epochs_and_kept_in_checkpoints(tmp_path):
    module = Module(OnlineLabelSmoothing(10))
    trainer = fitted(module, LossCallback())
    assert not torch.allclose(module.loss.table, torch.full((10, 10), 0.1))
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    again = Module.load_from_checkpoint(tmp_path / "last.ckpt", loss=OnlineLabelSmoothing(10))
    assert torch.equal(again.loss.table, module.loss.table)
    plain = Module()
    plain.loss = nn.CrossEntropyLoss()
    with pytest.raises(ValueError, match="make the loss an attribute"):
        fitted(plain, LossCallback())


def test_steps_are_those_of_the_optimiser():
    module = Module(BetaSmoothing())
    module.loss.attach(nn.Sequential(module.body, module.fc))
    module.net = nn.Sequential(module.body, module.fc)
    fitted(module, LossCallback(), accumulate_grad_batches=3, max_epochs=1)
    assert int(module.loss.steps) == 4  # of 12 batches


def _process(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    callback = CalibrationCallback(head="fc", plane=(0, 1, 2))
    activations, labels = plane_points()
    for part in (slice(0, 10), slice(10, 25)) if rank else (slice(25, 60),):
        callback._activations.append((activations[part], labels[part]))
    torch.save(callback._view(torch.eye(3, 8)).measures, f"{results}/{rank}")
    leave(rank, 2, results)


def plane_points():
    torch.manual_seed(0)
    return torch.randn(60, 8), torch.arange(60) % 3


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_the_plane_shows_the_examples_of_all_processes(tmp_path):
    multiprocessing.spawn(_process, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    wanted = plane_view(*plane_points(), torch.eye(3, 8), (0, 1, 2)).measures
    for rank in range(2):
        found = torch.load(tmp_path / str(rank), weights_only=False)
        assert found.examples == 60
        assert found.spread == pytest.approx(wanted.spread, rel=1e-6)
