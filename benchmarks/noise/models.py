"""Who predicts: linear and fully connected networks, a small CNN, a random forest, nearest neighbours, naive Bayes.

Plain loops, apart from the engine of the package: the estimate is for probabilities of any model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Places = NDArray[np.int64]

BATCH, STEPS = 512, 400  # at most so many examples a step, at least so many steps
EPOCHS = {"logistic": 10, "mlp": 10}
CNN_EPOCHS = {8: 30, 28: 5, 32: 8}  # by height
WIDTH = {"cuda": 64, "cpu": 16}  # of a CNN
RATE = {"logistic": 3e-3, "mlp": 2e-3, "cnn": 4e-3}
SHIFT = 2  # pixels, on colour images


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, n_jobs=-1, random_state=0)


def _neighbours() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(20, weights="distance")


def _bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(var_smoothing=1e-2)


# Models of scikit-learn.
COUNTING: dict[str, Callable[[], Any]] = {"forest": _forest, "neighbours": _neighbours, "bayes": _bayes}


def predictor(
    model: str, images: NDArray[np.uint8], labels: Places, classes: int, device: str
) -> Callable[[Places, Places], NDArray[np.float64]]:
    """What `out_of_fold` calls: train on the examples at some places, predict those at others."""
    if model in COUNTING:
        flat = images.reshape(len(images), -1) / 255

        def by_counting(rest: Places, held_out: Places) -> NDArray[np.float64]:
            fitted = COUNTING[model]().fit(flat[rest], labels[rest])
            found = np.zeros((len(held_out), classes))
            found[:, fitted.classes_] = fitted.predict_proba(flat[held_out])
            return found

        return by_counting
    pixels = torch.from_numpy(images).to(device).float()
    pixels = (pixels - pixels.mean((0, 2, 3), keepdim=True)) / pixels.std((0, 2, 3), keepdim=True)
    if device == "cuda":
        pixels = pixels.bfloat16().contiguous(memory_format=torch.channels_last)
    given = torch.from_numpy(labels).to(device)

    def by_network(rest: Places, held_out: Places) -> NDArray[np.float64]:
        torch.manual_seed(0)
        net = network(model, images.shape[1:], classes, WIDTH[device]).to(device)
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        chosen = torch.from_numpy(rest).to(device)
        epochs = CNN_EPOCHS.get(images.shape[2], 8) if model == "cnn" else EPOCHS[model]
        train(net, pixels[chosen], given[chosen], epochs, RATE[model], augmented=images.shape[1] == 3)
        return predict(net, pixels[torch.from_numpy(held_out).to(device)])

    return by_network


def network(model: str, shape: tuple[int, ...], classes: int, width: int) -> nn.Module:
    """A network for images of a shape (channels, height, width)."""
    inputs = math.prod(shape)
    if model == "logistic":
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))
    if model == "mlp":
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(inputs, 256),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Linear(128, classes),
        )
    return nn.Sequential(
        _layer(shape[0], width),
        _layer(width, 2 * width, pool=True),
        _Residual(2 * width),
        _layer(2 * width, 4 * width, pool=True),
        _layer(4 * width, 4 * width, pool=True),
        _Residual(4 * width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def _layer(inputs: int, outputs: int, pool: bool = False) -> nn.Module:
    pooling = [nn.MaxPool2d(2)] if pool else []
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), *pooling, nn.BatchNorm2d(outputs), nn.ReLU()
    )


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_layer(width, width), _layer(width, width))

    def forward(self, maps: Tensor) -> Tensor:
        added: Tensor = maps + self.body(maps)
        return added


def train(
    net: nn.Module, pixels: Tensor, labels: Tensor, epochs: int, rate: float, *, augmented: bool
) -> None:
    """Adam with one cycle of rates; colour images are mirrored and shifted."""
    batch = max(16, min(BATCH, len(labels) // 8))
    per_epoch = len(labels) // batch
    epochs = max(epochs, -(-STEPS // per_epoch))
    on_gpu = pixels.is_cuda
    optimiser = torch.optim.AdamW(net.parameters(), rate, weight_decay=0.02, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, epochs * per_epoch, pct_start=0.25)
    net.train()
    for _ in range(epochs):
        order = torch.randperm(len(labels), device=pixels.device)
        shifts = torch.randint(-SHIFT, SHIFT + 1, (per_epoch, 2)).tolist()
        for step in range(per_epoch):
            chosen = order[step * batch : (step + 1) * batch]
            seen = pixels[chosen]
            if augmented:
                mirrored = torch.rand(len(chosen), 1, 1, 1, device=pixels.device) < 0.5
                seen = torch.where(mirrored, seen.flip(3), seen).roll(shifts[step], (2, 3))
            with torch.autocast(pixels.device.type, torch.bfloat16, enabled=on_gpu):
                loss = nn.functional.cross_entropy(net(seen), labels[chosen])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()


@torch.no_grad()
def predict(net: nn.Module, pixels: Tensor) -> NDArray[np.float64]:
    """Probabilities (n, K)."""
    net.eval()
    with torch.autocast(pixels.device.type, torch.bfloat16, enabled=pixels.is_cuda):
        scores = torch.cat([net(part).double() for part in pixels.split(4096)])
    found: NDArray[np.float64] = scores.softmax(1).cpu().numpy()
    return found
