"""timm: its mixup, a model of its own, and a loss of softtargets by name.

python examples/timm_mixup.py           a minute on two CPU cores
python examples/timm_mixup.py --fast    a few seconds
"""

import argparse

import timm
import torch
from sklearn.datasets import load_digits
from timm.data import Mixup
from torch.nn import functional

from softtargets.calibration import measure_calibration
from softtargets.integrations.timm import create_criterion


def main():
    """Train three times and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--mixup", type=float, default=0.2)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--num-classes", type=int, default=10)
    args = parser.parse_args()  # the names are those of timm's train.py
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images = functional.interpolate(images.float().reshape(-1, 1, 8, 8) / 8 - 1, scale_factor=4)
    for name in ("cross_entropy", "labo", "max_sup"):
        torch.manual_seed(0)
        model = timm.create_model("test_resnet", in_chans=1, num_classes=10)
        optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
        mixup = Mixup(mixup_alpha=args.mixup, label_smoothing=args.smoothing, num_classes=10)
        criterion = create_criterion(args, name)
        model.train()
        for _ in range(1 if args.fast else 6):
            for some in torch.randperm(1300)[:1280].split(64):
                x, target = mixup(images[some], labels[some])
                optimiser.zero_grad()
                criterion(model(x), target).backward()
                optimiser.step()
        model.eval()
        with torch.no_grad():
            logits = torch.cat([model(part) for part in images[1300:].split(100)])
        found = measure_calibration(logits, labels[1300:], from_logits=True, level=None)
        print(
            f"{name} with mixup: {100 * found.accuracy:.1f} % of the test digits are right and the smooth calibration "
            f"error is {100 * found.smooth_calibration_error:.1f} %."
        )


if __name__ == "__main__":
    main()
