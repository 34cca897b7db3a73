"""Out-of-fold probabilities of images by small networks, trained here: on a GPU if there is one, else on the CPU.

Schedules are short and fixed. A network that is trained for long memorises wrong labels, and stopping by the
accuracy on labels that are partly wrong would choose by their noise.

On a CPU every core trains a fold of its own with one thread. Threads that share a small network spend their time
waiting for each other, and the numbers would depend on how many there are.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softtargets.inspection.advise.network import SmallResNet
from softtargets.inspection.shared.reading import Told, quiet
from softtargets.noise import assign_folds

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]

SIDES = {"cuda": 64, "cpu": 32}  # pixels: larger images are averaged over squares first
WIDTHS = {"cuda": 64, "cpu": 32}
PASSES = {
    "cuda": 4_000_000,
    "cpu": 300_000,
}  # images that all networks see together, within the following bounds
EPOCHS = {"cuda": (20, 60), "cpu": (10, 30)}
BATCHES = (16, 256)
UPDATES = 32  # in an epoch, at least, between these bounds
RATE, WARM_UP, DECAY, MOMENTUM = 0.1, 0.25, 5e-4, 0.9
ON_DEVICE = 4 << 30  # bytes of images that may lie on a GPU; more are moved batch by batch
_INITIALISING = threading.Lock()
COMPARED = 2000  # images that say whether classes survive mirroring


@dataclass(frozen=True)
class Schedule:
    """How a network is trained on so many images."""

    epochs: int
    batch: int
    width: int


def schedule(examples: int, device: torch.device, folds: int = 5, epochs: int | None = None) -> Schedule:
    """How each of so many networks is trained on these examples: a few minutes altogether, ten epochs at least.

    >>> schedule(15_000, torch.device("cpu"), folds=2), schedule(1_000, torch.device("cpu")).epochs
    (Schedule(epochs=10, batch=256, width=32), 30)
    """
    low, high = EPOCHS[device.type]
    smallest, largest = BATCHES
    batch = min(max(smallest, 1 << max(examples // UPDATES, 1).bit_length() - 1), largest, examples)
    usual = min(max(low, round(PASSES[device.type] / folds / examples)), high)
    return Schedule(epochs or usual, batch, WIDTHS[device.type])


def cnn_out_of_fold(
    images: Images,
    labels: Labels,
    classes: int,
    folds: int = 5,
    seed: int = 0,
    device: str | torch.device = "auto",
    told: Told = quiet,
    *,
    epochs: int | None = None,
) -> NDArray[np.float64]:
    """Probabilities (N, K) of images (N, C, H, W) by networks that were trained on the other folds.

    Each is a `SmallResNet`, trained with SGD and one cycle of the rate on shifted images. Images are also mirrored if
    the data says that classes survive it (`survives_mirroring`). The same seed gives the same numbers on the same
    machine.

    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(60) % 2
    >>> images = (random.integers(0, 100, (60, 1, 8, 8)) + 100 * labels[:, None, None, None]).astype(np.uint8)
    >>> said = cnn_out_of_fold(images, labels, classes=2, folds=2, device="cpu")
    >>> bool((said.argmax(1) == labels).mean() > 0.9)
    True
    """
    where = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    pixels = torch.from_numpy(shrunk(images, SIDES[where.type]))
    given = torch.from_numpy(np.ascontiguousarray(labels))
    if where.type == "cuda" and pixels.numel() <= ON_DEVICE:
        pixels, given = pixels.to(where), given.to(where)
    mirrored = survives_mirroring(images, labels, seed)
    fold_of = torch.from_numpy(assign_folds(labels, folds, seed))
    plans = [schedule(int((fold_of != fold).sum()), where, folds, epochs) for fold in range(folds)]
    progress = Progress(told, plans, [int((fold_of != fold).sum()) for fold in range(folds)])
    found = np.empty((len(labels), classes))

    def train(fold: int) -> None:
        trainer = _Trainer(pixels, given, classes, where, mirrored, plans[fold])
        trainer.fit((fold_of != fold).nonzero()[:, 0], seed * folds + fold, progress)
        held_out = (fold_of == fold).nonzero()[:, 0]
        found[held_out.numpy()] = trainer.predict(held_out).double().numpy()

    with torch.backends.cudnn.flags(deterministic=True, benchmark=False, allow_tf32=True):
        if where.type == "cuda":
            for fold in range(folds):
                train(fold)
        else:
            _on_all_cores(train, folds, progress)
    return found


def _on_all_cores(train: Callable[[int], None], folds: int, progress: Progress) -> None:
    """One fold for each core, each with one thread; Ctrl-C stops all of them after their next update."""
    cores = torch.get_num_threads()

    def alone(fold: int) -> None:
        torch.set_num_threads(1)  # of this thread
        train(fold)

    try:
        with ThreadPoolExecutor(min(cores, folds), "advise-fold") as pool:
            try:
                left = {pool.submit(alone, fold) for fold in range(folds)}
                while left:
                    done, left = wait(left, timeout=0.1, return_when=FIRST_EXCEPTION)
                    for one in done:
                        one.result()
                    progress.tell()
            except BaseException:
                progress.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        torch.set_num_threads(cores)


class _Trainer:
    """One network, its data and the way it is trained."""

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        classes: int,
        device: torch.device,
        mirrored: bool,
        plan: Schedule,
    ) -> None:
        self.images, self.labels, self.classes = images, labels, classes
        self.device, self.mirrored, self.plan = device, mirrored, plan
        self.shift = max(images.shape[2:]) // 8
        some = images[:: max(1, len(images) // 10_000)].float()
        mean, deviation = some.mean((0, 2, 3), keepdim=True), some.std((0, 2, 3), keepdim=True)
        self.mean, self.deviation = mean.to(device), deviation.clamp(min=1.0).to(device)
        self.network: SmallResNet

    def fit(self, rest: Tensor, seed: int, progress: Progress) -> None:
        """Train on the examples at these places."""
        plan = self.plan
        shape = self.images.shape
        # The generator of initial weights is one for the whole process.
        with _INITIALISING, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = SmallResNet(shape[1], max(shape[2:]), self.classes, plan.width)
        self.network = network.to(self.device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimiser = torch.optim.SGD(
            _groups(network), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, nesterov=True
        )
        draws = torch.Generator().manual_seed(seed)
        updates = len(rest) // plan.batch  # what is left over is in another epoch's batches
        rates = torch.optim.lr_scheduler.LambdaLR(optimiser, one_cycle(updates * plan.epochs))
        for epoch in range(plan.epochs):
            order = rest[torch.randperm(len(rest), generator=draws)]
            for places in order[: updates * plan.batch].split(plan.batch):
                loss = nn.functional.cross_entropy(
                    self._logits(self._augmented(places, draws)), self._labels(places)
                )
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                rates.step()
                progress.step(epoch, len(places))
                if self.device.type == "cuda":
                    progress.tell()

    @torch.no_grad()
    def predict(self, held_out: Tensor) -> Tensor:
        """Probabilities (n, K); where images may be mirrored, the mean of both views."""
        self.network.eval()
        found = []
        for places in held_out.split(1000):
            images = self._standardised(self._images(places))
            views = (images, images.flip(3)) if self.mirrored else (images,)
            found.append(torch.stack([self._logits(view).softmax(1) for view in views]).mean(0).cpu())
        return torch.cat(found)

    def _logits(self, images: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=_has_bf16(self.device)):
            logits: Tensor = self.network(images.contiguous(memory_format=torch.channels_last))
        return logits.float()

    def _labels(self, places: Tensor) -> Tensor:
        return self.labels[places.to(self.labels.device)].to(self.device)

    def _images(self, places: Tensor) -> Tensor:
        return self.images[places.to(self.images.device)].to(self.device)

    def _standardised(self, images: Tensor) -> Tensor:
        return (images.float() - self.mean) / self.deviation

    def _augmented(self, places: Tensor, draws: torch.Generator) -> Tensor:
        images = self._images(places)
        count, _, height, width = images.shape
        rows, columns = (_moved(count, length, self.shift, draws) for length in (height, width))
        if self.mirrored:
            mirror = torch.rand(count, generator=draws) < 0.5
            columns = torch.where(mirror[:, None], columns.flip(1), columns)
        rows, columns = rows.to(self.device), columns.to(self.device)
        each = torch.arange(count, device=self.device)[:, None, None]
        # Indices on both sides of the channels put these last, as convolutions want them.
        return self._standardised(images[each, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2))


def _moved(count: int, length: int, shift: int, draws: torch.Generator) -> Tensor:
    """Places (count, length) of the pixels of shifted images; what would lie outside is reflected."""
    by = torch.randint(-shift, shift + 1, (count, 1), generator=draws)
    places = (torch.arange(length) + by).abs()
    return torch.where(places < length, places, 2 * (length - 1) - places).clamp(0, length - 1)


def one_cycle(updates: int) -> Callable[[int], float]:
    """The rate's factor at each update: linear up to 1, then linear down to 0.

    >>> [round(one_cycle(8)(update), 2) for update in (0, 1, 2, 7)]
    [0.5, 1.0, 0.86, 0.14]
    """
    up = max(1, math.ceil(WARM_UP * updates))
    down = updates - up + 1
    return lambda update: min((update + 1) / up, max(updates - update, 0) / down)


def _groups(network: nn.Module) -> list[dict[str, object]]:
    """Weights decay; what scales and shifts does not."""
    weights = [one for one in network.parameters() if one.ndim > 1]
    others = [one for one in network.parameters() if one.ndim <= 1]
    return [{"params": weights}, {"params": others, "weight_decay": 0.0}]


def _has_bf16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 itself; where it does not, it is slower than single precision."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    asked = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(asked and asked())


class Progress:
    """Images trained on in all folds together, and how fast; folds may be trained side by side."""

    def __init__(self, told: Told, plans: list[Schedule], examples: list[int]) -> None:
        self._told, self._folds = told, len(plans)
        self._each = [
            plan.epochs * (count // plan.batch) * plan.batch
            for plan, count in zip(plans, examples, strict=True)
        ]
        self._seen, self._epoch, self._epochs = 0, 1, max(plan.epochs for plan in plans)
        self._began, self._last = time.monotonic(), -math.inf
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def step(self, epoch: int, images: int) -> None:
        """One update more."""
        if self.stopped.is_set():
            raise KeyboardInterrupt
        with self._lock:
            self._seen += images
            self._epoch = epoch + 1

    def tell(self) -> None:
        """Say how far it is, a few times a second at most."""
        now = time.monotonic()
        if now - self._last < 0.1:
            return
        self._last = now
        speed, total = self._seen / max(now - self._began, 1e-9), sum(self._each)
        fold = min(self._folds, 1 + self._seen * self._folds // max(total, 1))
        self._told(
            f"training: fold {fold} of {self._folds}, epoch {self._epoch} of {self._epochs}, {speed:,.0f} images/s",
            self._seen,
            total,
        )


def shrunk(images: Images, side: int) -> Images:
    """Large images, averaged over squares of pixels until no side is longer than this.

    >>> shrunk(np.full((2, 3, 64, 48), 255, np.uint8), 32).shape
    (2, 3, 32, 24)
    """
    count, channels, height, width = images.shape
    step = -(-max(height, width) // side)
    if step == 1:
        return np.ascontiguousarray(images)
    high, wide = max(height // step, 1), max(width // step, 1)
    found = np.empty((count, channels, high, wide), np.uint8)
    for start in range(0, count, 1000):  # means are four times as large as pixels
        some = images[start : start + 1000, :, : high * step, : wide * step]
        squares = some.reshape(len(some), channels, high, some.shape[2] // high, wide, some.shape[3] // wide)
        found[start : start + 1000] = squares.mean((3, 5), dtype=np.float32).round()
    return found


def survives_mirroring(images: Images, labels: Labels, seed: int = 0) -> bool:
    """Whether mirrored images are still of their class: so for photographs, not for digits or letters.

    Asks the data: the nearest neighbour of a mirrored image, among images as they are, has the right label about as
    often as that of the image itself. Wrong labels make both rarer and do not decide.

    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2  # bright on the left, or on the right
    >>> images = random.integers(0, 100, (200, 1, 4, 4))
    >>> images[labels == 0, :, :, :2] += 100
    >>> images[labels == 1, :, :, 2:] += 100
    >>> survives_mirroring(images.astype(np.uint8), labels)
    False
    """
    some = np.random.default_rng(seed).permutation(len(labels))[: 2 * COMPARED]
    pixels = torch.from_numpy(shrunk(images[some], 16)).float()
    known, asked = pixels[::2], pixels[1::2]
    truth = torch.from_numpy(np.ascontiguousarray(labels[some]))
    right = []
    for view in (asked, asked.flip(3)):
        nearest = torch.cdist(view.flatten(1), known.flatten(1)).argmin(1)
        right.append((truth[::2][nearest] == truth[1::2]).double())
    difference = right[0] - right[1]
    error = float(difference.std()) / math.sqrt(max(len(difference), 1)) if len(difference) > 1 else math.inf
    return float(difference.mean()) <= 2 * error
