"""Hugging Face Trainer with a loss and the metrics of softtargets: a small ViT on sklearn's digits.

python examples/huggingface_classification.py           half a minute on two CPU cores
python examples/huggingface_classification.py --fast    a few seconds
"""

import argparse
import tempfile

import torch
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification
from transformers.trainer_callback import PrinterCallback

from softtargets.integrations.huggingface import compute_metrics, loss_function
from softtargets.losses import CrossEntropy, LabelSmoothing, OnlineLabelSmoothing


def digits():
    """Training and test examples as Trainer takes them."""
    images, labels = load_digits(return_X_y=True)
    pixels = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
    examples = [{"pixel_values": x, "labels": int(y)} for x, y in zip(pixels, labels, strict=True)]
    return examples[:1300], examples[1300:]


def train(loss, epochs):
    """The metrics of the test examples after training with a loss."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    model = ViTForImageClassification(
        ViTConfig(image_size=8, patch_size=2, num_channels=1, num_labels=10, **sizes)
    )
    training, test = digits()
    function = loss_function(loss)
    with tempfile.TemporaryDirectory() as directory:
        args = TrainingArguments(
            directory,
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
        trainer = Trainer(
            model,
            args,
            train_dataset=training,
            eval_dataset=test,
            compute_loss_func=function,
            compute_metrics=compute_metrics,
            callbacks=[function],  # only losses that learn between epochs need this
        )
        trainer.remove_callback(PrinterCallback)  # we say ourselves what came out
        trainer.train()
        return trainer.evaluate()


def main():
    """Train three times and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    epochs = 4 if parser.parse_args().fast else 25
    for loss in (CrossEntropy(), LabelSmoothing(0.1), OnlineLabelSmoothing(10, alpha=0.3)):
        found = train(loss, epochs)
        print(
            f"{type(loss).__name__}: {100 * found['eval_accuracy']:.1f} % of the test digits are right, "
            f"the smooth calibration error is {100 * found['eval_smooth_calibration_error']:.1f} % "
            f"and the AURC {found['eval_aurc']:.4f}."
        )


if __name__ == "__main__":
    main()
