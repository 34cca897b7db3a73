"""torchmetrics in a plain loop: all metrics of calibration and risk over coverage in one collection.

python examples/torchmetrics_digits.py           a few seconds
python examples/torchmetrics_digits.py --fast    the same, fewer epochs
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

from softtargets.integrations.torchmetrics import calibration_metrics
from softtargets.losses import CrossEntropy, FocalLoss, LabelSmoothing


def main():
    """Train three times and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    epochs = 5 if parser.parse_args().fast else 60
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images = images.float() / 16
    for loss in (CrossEntropy(), LabelSmoothing(0.1), FocalLoss(2.0)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        optimiser = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(epochs):
            for some in torch.randperm(1300).split(64):
                optimiser.zero_grad()
                loss(model(images[some]), labels[some]).backward()
                optimiser.step()
        metrics = calibration_metrics(num_classes=10, from_logits=True)
        with torch.no_grad():
            for some in torch.arange(1300, len(images)).split(100):
                metrics.update(model(images[some]), labels[some])
        found = {name: float(value) for name, value in metrics.compute().items()}
        print(
            f"{type(loss).__name__}: {100 * found['accuracy']:.1f} % of the test digits are right; expected, debiased "
            f"and smooth calibration errors are {100 * found['expected_calibration_error']:.1f} %, "
            f"{100 * found['debiased_calibration_error']:.1f} % and {100 * found['smooth_calibration_error']:.1f} %, "
            f"the AURC is {found['aurc']:.4f}."
        )


if __name__ == "__main__":
    main()
