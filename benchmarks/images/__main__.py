"""``python -m benchmarks.images``: from JPEG files to batches, against torchvision with torch's DataLoader.

Makes synthetic photographs of ImageNet's size, measures how fast either way brings augmented batches to the device
and, with ``--train``, how fast a ResNet-50 is trained on them and how long the device waits. Writes results.json and
prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from torch import Tensor

from benchmarks.images.contestants import Setting, ours, rival, theirs
from benchmarks.images.difference import difference
from benchmarks.images.files import CLASSES, make_folder
from benchmarks.images.measure import (
    Measured,
    host_milliseconds,
    input_alone,
    our_training,
    plain_training,
)
from benchmarks.machine import describe
from softtargets.training.devices import choose_device


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    asked = _parser().parse_args(arguments)
    device = choose_device(asked.device)
    os.environ["SOFTTARGETS_IMAGES"] = "streamed"
    with tempfile.TemporaryDirectory() as made:
        root = make_folder(asked.files or Path(made) / "photographs", asked.images)
        setting = Setting(root, asked.size, asked.crop, asked.batch, asked.workers, device)
        found = dict(_measured(setting, asked.epochs, asked.turns, asked.train))
        host = host_milliseconds(setting)
    about = describe(device, shlex.join(["python", "-m", "benchmarks.images", *(arguments or sys.argv[1:])]))
    results = {
        "about": about,
        "setting": {"images": asked.images, **{k: str(v) for k, v in asdict(setting).items() if k != "root"}},
        "rival": rival(),
        "measured": {name: asdict(one) for name, one in found.items()},
        "host_milliseconds": host,
        "difference": {str(size): asdict(difference(size)) for size in (256, 320, 384, 512)},
    }
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for name, one in found.items():
        waited = "" if one.waited is None else f", waited {one.waited:.0%}"
        sys.stdout.write(f"{name:34} {one.images_per_second:8.0f} images/s{waited}\n")
    for name, spent in host.items():
        sys.stdout.write(f"host: {name:28} {spent:8.2f} ms of a core for each image\n")


def _measured(setting: Setting, epochs: int, turns: int, training: bool) -> list[tuple[str, Measured]]:
    """The best of several turns, since whatever else runs on a machine only makes slower."""
    ways: dict[str, Callable[[], Iterator[tuple[Tensor, Tensor]]]] = {
        "ours, threads": lambda: ours(setting, "threads", epochs),
        "ours, processes": lambda: ours(setting, "processes", epochs),
        "ours, processes, drafts of 144": lambda: ours(
            replace(setting, draft=True, size=144, crop=128), "processes", epochs
        ),
        "torchvision": lambda: theirs(setting, epochs),
    }
    best: dict[str, Measured] = {}
    for _ in range(turns):
        for name, make in ways.items():
            one = input_alone(make(), setting.device)
            if name not in best or one.images_per_second > best[name].images_per_second:
                best[name] = one
    found = [(f"input: {name}", one) for name, one in best.items()]
    if training:
        found.append(
            ("training: torchvision", plain_training(theirs(setting, epochs), setting.device, CLASSES))
        )
        for kind in ("threads", "processes"):
            os.environ |= {"SOFTTARGETS_DECODERS": str(setting.workers), "SOFTTARGETS_DECODE_IN": kind}
            found.append((f"training: ours, {kind}", our_training(setting, epochs)))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.images", description=__doc__)
    parser.add_argument("--images", type=int, default=2048, help="how many files")
    parser.add_argument(
        "--files", type=Path, help="where they are or will be made; else in a temporary directory"
    )
    parser.add_argument(
        "--size", type=int, default=512, help="pixels that we keep of each at most, in both directions"
    )
    parser.add_argument("--crop", type=int, default=224, help="pixels of a crop")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2, help="how often each is measured; the best counts")
    parser.add_argument(
        "--workers", type=int, default=len(os.sched_getaffinity(0)), help="threads or processes"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--train", action="store_true", help="also train a ResNet-50; for a GPU")
    parser.add_argument("--out", type=Path, help="a directory for results.json")
    return parser


if __name__ == "__main__":
    main()
