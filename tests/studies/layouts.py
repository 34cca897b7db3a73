"""Small files in the layouts of ImageNet, CUB-200-2011 and Tiny ImageNet: photographs of noise, real decoders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 3
TRAIN, TEST = 5, 2  # of each class


def photograph(path: Path, draw: np.random.Generator, size=None) -> None:
    height, width = size or draw.integers(60, 110, 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(draw.integers(0, 255, (height, width, 3), np.uint8)).save(path)


def imagenet(root: Path) -> Path:
    draw = np.random.default_rng(0)
    for split, count in (("train", TRAIN), ("val", TEST)):
        for label in range(CLASSES):
            for place in range(count):
                photograph(root / "imagenet" / split / f"n0144{label}" / f"{split}_{place}.JPEG", draw)
    return root


def cub200(root: Path) -> Path:
    draw, folder = np.random.default_rng(1), root / "CUB_200_2011"
    lists: dict[str, list[str]] = {
        "images": [],
        "image_class_labels": [],
        "train_test_split": [],
        "classes": [],
    }
    for label in range(CLASSES):
        lists["classes"].append(f"{label + 1} {label + 1:03d}.Some_Bird_{label}")
        for place in range(TRAIN + TEST):
            name, number = f"{label + 1:03d}.Some_Bird_{label}/{place}.jpg", len(lists["images"]) + 1
            photograph(folder / "images" / name, draw)
            lists["images"].append(f"{number} {name}")
            lists["image_class_labels"].append(f"{number} {label + 1}")
            lists["train_test_split"].append(f"{number} {int(place < TRAIN)}")
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return root


def tiny_imagenet(root: Path) -> Path:
    draw, folder = np.random.default_rng(2), root / "tiny-imagenet-200"
    wnids = [f"n0{label}" for label in range(CLASSES)]
    annotations = []
    for wnid in wnids:
        for place in range(TRAIN):
            photograph(folder / "train" / wnid / "images" / f"{wnid}_{place}.JPEG", draw, (64, 64))
        for place in range(TEST):
            photograph(folder / "val" / "images" / f"{wnid}_{place}.JPEG", draw, (64, 64))
            annotations.append(f"{wnid}_{place}.JPEG\t{wnid}\t0\t0\t62\t62")
    (folder / "wnids.txt").write_text("\n".join(wnids) + "\n")
    (folder / "words.txt").write_text("".join(f"{wnid}\tthing {wnid}, other\n" for wnid in wnids))
    (folder / "val" / "val_annotations.txt").write_text("\n".join(annotations) + "\n")
    return root
