"""A plain loop with accelerate and a loss that learns: it is not prepared, it is moved, told of epochs and saved.

python examples/accelerate_loop.py           a few seconds
python examples/accelerate_loop.py --fast    the same, fewer epochs
torchrun --nproc_per_node 2 examples/accelerate_loop.py
"""

import argparse
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from softtargets.calibration import CalibrationMetric
from softtargets.losses import OnlineLabelSmoothing


def main():
    """Train with accumulated gradients, save and load, and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    epochs = 4 if parser.parse_args().fast else 40
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images = images.float() / 16
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    training = DataLoader(TensorDataset(images[:1300], labels[:1300]), 32, shuffle=True)
    test = DataLoader(TensorDataset(images[1300:], labels[1300:]), 200)
    model, optimiser, training, test = accelerator.prepare(model, optimiser, training, test)

    loss = OnlineLabelSmoothing(classes=10, alpha=0.3).to(accelerator.device)
    accelerator.register_for_checkpointing(loss)  # its table is saved and loaded with everything else

    for _ in range(epochs):
        for x, y in training:
            with accelerator.accumulate(model):
                optimiser.zero_grad()
                accelerator.backward(loss(model(x), y))
                optimiser.step()
        loss.end_epoch()  # puts together what all processes have seen

    with tempfile.TemporaryDirectory() as own:
        (directory,) = broadcast_object_list([own])  # that of the first process, for all
        table = loss.table.clone()
        accelerator.save_state(directory)
        accelerator.wait_for_everyone()
        loss.begin()
        accelerator.load_state(directory)
        assert torch.equal(loss.table, table)
        accelerator.wait_for_everyone()

    metric = CalibrationMetric(classes=10, from_logits=True)  # adds up what all processes have seen
    model.eval()
    with torch.no_grad():
        for x, y in test:
            metric.update(model(x), y)
    found = metric.compute()
    confused = loss.table.clone().fill_diagonal_(0)
    most, like = divmod(int(confused.argmax()), 10)
    processes = accelerator.num_processes
    accelerator.print(
        f"OnlineLabelSmoothing, {processes} process{'es' if processes > 1 else ''}: {100 * found.accuracy:.1f} % of "
        f"the test digits are right and the smooth calibration error is {100 * found.smooth_calibration_error:.1f} %. "
        f"To this model {most} looks most like {like}."
    )


if __name__ == "__main__":
    main()
