"""A calibration report in TensorBoard, after every few epochs; Weights & Biases and MLflow take the same two things.

python examples/tensorboard_report.py --out logs     then: tensorboard --logdir logs
"""

import argparse
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from softtargets.integrations.trackers import calibration_report
from softtargets.losses import LabelSmoothing


def main():
    """Train, report and say where to look."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "softtargets-tensorboard")
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images = images.float() / 16
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser, loss = torch.optim.Adam(model.parameters(), 2e-3), LabelSmoothing(0.1)
    writer = SummaryWriter(str(options.out))
    for epoch in range(2 if options.fast else 20):
        for some in torch.randperm(1300).split(64):
            optimiser.zero_grad()
            loss(model(images[some]), labels[some]).backward()
            optimiser.step()
        with torch.no_grad():
            report = calibration_report(model(images[1300:]), labels[1300:], from_logits=True, prefix="test/")
        for name, value in report.numbers.items():
            writer.add_scalar(name, value, epoch)
        writer.add_figure("test/reliability", report.figure, epoch)
    writer.close()
    error = 100 * report.numbers["test/smooth_calibration_error"]
    print(f"After the last epoch the smooth calibration error is {error:.1f} %.")
    print(f"All epochs: tensorboard --logdir {options.out}")


if __name__ == "__main__":
    main()
