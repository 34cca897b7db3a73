"""Lightning with a loss of softtargets, and a callback that watches calibration and the template plane.

python examples/lightning_digits.py           a quarter of a minute
python examples/lightning_digits.py --fast    a few seconds
"""

import argparse
import logging
import tempfile
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from softtargets.integrations.lightning import CalibrationCallback, LossCallback
from softtargets.losses import CrossEntropy, LabelSmoothing, OnlineLabelSmoothing

warnings.filterwarnings("ignore", category=UserWarning)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Digits(LightningModule):
    """A small network whose loss is one of softtargets."""

    def __init__(self, loss):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
        self.fc = nn.Linear(32, 10)
        self.loss = loss

    def forward(self, images):
        """Logits."""
        return self.fc(self.body(images))

    def training_step(self, batch, place):
        """The loss."""
        images, labels = batch
        return self.loss(self(images), labels)

    def validation_step(self, batch, place):
        """What the callback measures."""
        images, labels = batch
        return {"logits": self(images), "labels": labels}

    def configure_optimizers(self):
        """Adam."""
        return torch.optim.Adam(self.parameters(), 2e-3)


def loaders():
    """Training and validation batches."""
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images = images.float() / 16
    training, validation = (
        TensorDataset(images[:1300], labels[:1300]),
        TensorDataset(images[1300:], labels[1300:]),
    )
    return DataLoader(training, 64, shuffle=True), DataLoader(validation, 256)


def main():
    """Train three times and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    epochs = 2 if parser.parse_args().fast else 30
    for loss in (CrossEntropy(), LabelSmoothing(0.1), OnlineLabelSmoothing(10, alpha=0.3)):
        torch.manual_seed(0)
        watching = CalibrationCallback(head="fc", plane=(1, 4, 7))
        with tempfile.TemporaryDirectory() as directory:
            trainer = Trainer(
                max_epochs=epochs,
                check_val_every_n_epoch=epochs // 2,
                accelerator="cpu",
                callbacks=[watching, LossCallback()],
                logger=CSVLogger(directory),
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
            trainer.fit(Digits(loss), *loaders())
            pictures = len(list(Path(directory).rglob("*.png")))
        found = {
            name.removeprefix("val_calibration/"): float(value)
            for name, value in trainer.callback_metrics.items()
        }
        print(
            f"{type(loss).__name__}: {100 * found['accuracy']:.1f} % of the test digits are right, the smooth "
            f"calibration error is {100 * found['smooth_calibration_error']:.1f} %, and on the plane of 1, 4 and "
            f"7 clusters have a spread of {found['plane_spread']:.2f} ({pictures} pictures were drawn)."
        )


if __name__ == "__main__":
    main()
