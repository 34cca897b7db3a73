"""A dictionary of plain numbers and a figure, as trackers take them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from softtargets.calibration import measure_calibration
from softtargets.integrations.trackers import calibration_report
from softtargets.selection import measure_selection


def report(**options):
    torch.manual_seed(0)
    logits = 2 * torch.randn(400, 5)
    labels = torch.where(torch.rand(400) < 0.6, logits.argmax(-1), torch.randint(5, (400,)))
    return calibration_report(logits, labels, from_logits=True, **options), logits, labels


def test_numbers_are_plain_and_those_of_the_instruments():
    found, logits, labels = report(prefix="val/")
    assert json.loads(json.dumps(found.numbers)) == found.numbers
    assert {type(value) for value in found.numbers.values()} == {float}
    wanted = measure_calibration(logits, labels, from_logits=True, level=None).scalars()
    assert found.numbers["val/aurc"] == measure_selection(logits, labels, from_logits=True).aurc
    assert {name.removeprefix("val/") for name in found.numbers} == {*wanted, "aurc", "excess_aurc", "augrc"}
    assert all(found.numbers[f"val/{name}"] == value for name, value in wanted.items())


def test_the_figure_is_drawn_from_the_same_numbers():
    found, _, _ = report()
    figure = found.figure
    assert isinstance(figure, Figure)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert f"ECE {100 * found.numbers['expected_calibration_error']:.2f} %" in words


def test_tensorboard_takes_both(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    found, _, _ = report()
    writer = SummaryWriter(str(tmp_path))
    writer.add_figure("reliability", found.figure, 3)
    for name, value in found.numbers.items():
        writer.add_scalar(name, value, 3)
    writer.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert events.Tags()["images"] == ["reliability"]
    (error,) = events.Scalars("smooth_calibration_error")
    assert (error.step, error.value) == (
        3,
        pytest.approx(found.numbers["smooth_calibration_error"], rel=1e-6),
    )


def test_weights_and_biases_takes_both(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.chdir(tmp_path)
    found, _, _ = report()
    run = wandb.init(mode="offline", project="p", dir=str(tmp_path))
    run.log({**found.numbers, "reliability": wandb.Image(found.figure)}, step=3)
    run.finish()
    assert list(tmp_path.rglob("*.png"))


def test_mlflow_takes_both(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("e", artifact_location=str(tmp_path / "files"))
    mlflow.set_experiment("e")
    found, _, _ = report()
    with mlflow.start_run() as run:
        mlflow.log_metrics(found.numbers, step=3)
        mlflow.log_figure(found.figure, "reliability.png")
    kept = mlflow.get_run(run.info.run_id).data.metrics
    assert kept == pytest.approx(found.numbers)
    assert list(tmp_path.rglob("reliability.png"))


def test_padding_does_not_count():
    found, logits, labels = report()
    padded = calibration_report(
        np.concatenate([logits, np.full((10, 5), 3.0)]),
        np.concatenate([labels, np.full(10, -100)]),
        from_logits=True,
        ignore_index=-100,
    )
    assert padded.numbers == pytest.approx(found.numbers)
