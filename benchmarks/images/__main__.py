"""``python -m benchmarks.images``: from JPEG files to batches, against torchvision with torch's DataLoader.

Makes synthetic photographs of ImageNet's size, measures how fast either way brings augmented batches to the device
and, with ``--train``, how fast a ResNet is trained on them and how long the device waits. Writes results.json and
prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
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
    """Measure, print and write: after each measurement, so that nothing is lost if the time is over."""
    asked = _parser().parse_args(arguments)
    begun, device = time.perf_counter(), choose_device(asked.device)
    os.environ["SOFTTARGETS_IMAGES"] = "streamed"
    about = describe(device, shlex.join(["python", "-m", "benchmarks.images", *(arguments or sys.argv[1:])]))
    found: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as made:
        root = make_folder(asked.files or Path(made) / "photographs", asked.images)
        _say(f"{asked.images} files are there after {time.perf_counter() - begun:.0f} s")
        setting = Setting(root, asked.size, asked.crop, asked.batch, asked.workers, device, depth=asked.depth)
        results: dict[str, object] = {
            "about": about,
            "setting": {
                "images": asked.images,
                **{k: str(v) for k, v in asdict(setting).items() if k != "root"},
            },
            "rival": rival(),
        }
        for name, measure in _measurements(setting, asked.epochs, asked.turns, asked.train):
            if time.perf_counter() - begun > asked.within:
                _say(f"{name} is left out: {asked.within:g} s are over (--within)")
                continue
            one, before = measure(), found.get(name)
            if before is None or one.images_per_second > before.images_per_second:
                found[name] = one
            waited = "" if one.waited is None else f", the device waited for {one.waited:.1%} of the time"
            _say(f"{name:34} {one.images_per_second:8.0f} images/s{waited}")
            results["measured"] = {name: asdict(one) for name, one in found.items()}
            _write(results, asked.out)
        host = results["host_milliseconds"] = host_milliseconds(setting)
    for name, spent in host.items():
        _say(f"host: {name:28} {spent:8.2f} ms of a core for each image")
    results["difference"] = {str(size): asdict(difference(size)) for size in (256, 320, 384, 512)}
    _write(results, asked.out)
    _say(f"all of it took {time.perf_counter() - begun:.0f} s")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _write(results: dict[str, object], out: Path | None) -> None:
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _measurements(
    setting: Setting, epochs: int, turns: int, training: bool
) -> Iterator[tuple[str, Callable[[], Measured]]]:
    """What is measured, in turns; the best of them counts, since whatever else runs on a machine only makes slower.

    Training is measured once. What is likely to be slow comes last, so that it can be left out (``--within``).
    """
    drafts = replace(setting, draft=True, size=144, crop=128)
    ways: dict[str, Callable[[], Iterator[tuple[Tensor, Tensor]]]] = {
        "ours, processes": lambda: ours(setting, "processes", epochs),
        "torchvision": lambda: theirs(setting, epochs),
        "ours, threads": lambda: ours(setting, "threads", epochs),
    }
    trainings: dict[str, Callable[[], Measured]] = {}
    if training:
        trainings = {
            "ours, processes": lambda: our_training(setting, "processes", epochs),
            "torchvision": lambda: plain_training(theirs(setting, epochs), setting, CLASSES),
            "ours, threads": lambda: our_training(setting, "threads", epochs),
        }
    else:
        ways["ours, processes, drafts of 144"] = lambda: ours(drafts, "processes", epochs)
    for turn in range(turns):
        for name, make in ways.items():
            yield f"input: {name}", partial(_input, make, setting)
            if not turn and name in trainings:
                yield f"training: {name}", trainings[name]


def _input(make: Callable[[], Iterator[tuple[Tensor, Tensor]]], setting: Setting) -> Measured:
    return input_alone(make(), setting.device)


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
    parser.add_argument(
        "--turns", type=int, default=2, help="how often input alone is measured; the best counts"
    )
    parser.add_argument(
        "--within", type=float, default=100, help="seconds after which no further measurement is begun"
    )
    parser.add_argument(
        "--workers", type=int, default=len(os.sched_getaffinity(0)), help="threads or processes"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--train", action="store_true", help="also train a ResNet")
    parser.add_argument(
        "--depth", type=int, default=50, help="of the ResNet that is trained: 18 to 152 layers"
    )
    parser.add_argument("--out", type=Path, help="a directory for results.json")
    return parser


if __name__ == "__main__":
    main()
