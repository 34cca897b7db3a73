"""Distillation with Hugging Face Trainer: from a live teacher, and from its three most probable classes on disk.

python examples/huggingface_distillation.py           a minute on two CPU cores
python examples/huggingface_distillation.py --fast    a few seconds
"""

import argparse
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification
from transformers.trainer_callback import PrinterCallback

from softtargets.integrations.huggingface import DistillationTrainer, compute_metrics, store_teacher
from softtargets.losses import Distillation


def digits():
    """Training and test examples as Trainer takes them."""
    images, labels = load_digits(return_X_y=True)
    pixels = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
    examples = [{"pixel_values": x, "labels": int(y)} for x, y in zip(pixels, labels, strict=True)]
    return examples[:1300], examples[1300:]


def vit(width, layers, seed=0):
    """A small vision transformer."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 4}
    config = ViTConfig(
        image_size=8, patch_size=2, num_channels=1, num_labels=10, intermediate_size=2 * width, **sizes
    )
    return ViTForImageClassification(config)


def trained(kind, model, examples, test, epochs, seed=0, **options):
    """The metrics of the test examples after training with a kind of Trainer."""
    with tempfile.TemporaryDirectory() as directory:
        args = TrainingArguments(
            directory,
            seed=seed,
            num_train_epochs=epochs,
            per_device_train_batch_size=64,
            per_device_eval_batch_size=256,
            learning_rate=2e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        options |= {"train_dataset": examples, "eval_dataset": test, "compute_metrics": compute_metrics}
        trainer = kind(model, args, **options)
        trainer.remove_callback(PrinterCallback)  # we say ourselves what came out
        trainer.train()
        return trainer.evaluate()


def main():
    """Train a teacher with all examples and students with few of them, and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    fast = parser.parse_args().fast
    training, test = digits()
    few, seeds, epochs = training[:200], range(1 if fast else 4), 2 if fast else 120
    teacher, loss = vit(48, 2), Distillation.hinton(temperature=2.0, beta=0.9)
    found = trained(Trainer, teacher, training, test, 2 if fast else 25)
    print(f"The teacher saw 1300 digits: {100 * found['eval_accuracy']:.0f} % of the test digits are right.")

    def students(what, kind, **options):
        all_found = [trained(kind, vit(32, 1, seed), few, test, epochs, seed, **options) for seed in seeds]
        accuracy, nll = (
            sum(found[name] for found in all_found) / len(seeds)
            for name in ("eval_accuracy", "eval_negative_log_likelihood")
        )
        print(f"{what}: {100 * accuracy:.0f} % are right on average, at {nll:.2f} nats each.")

    students(f"{len(seeds)} students saw 200 digits", Trainer)
    students("With the teacher beside them", DistillationTrainer, teacher=teacher, loss=loss)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "teacher.safetensors"
        stored = store_teacher(teacher, few, path, k=3, temperature=2.0)
        size = path.stat().st_size / 1024
        students(
            f"With its 3 likeliest classes, {size:.0f} KiB", DistillationTrainer, teacher=stored, loss=loss
        )


if __name__ == "__main__":
    main()
