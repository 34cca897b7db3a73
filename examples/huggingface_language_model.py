"""A causal language model of characters in Hugging Face Trainer: its losses, and the calibration of its tokens.

The text is Python's own help (``pydoc_data.topics``), which everybody has. Logits are never kept in evaluation.

python examples/huggingface_language_model.py           a minute on two CPU cores
python examples/huggingface_language_model.py --fast    a few seconds
"""

import argparse
import tempfile
from pydoc_data.topics import topics

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from softtargets.integrations.huggingface import Metrics, loss_function
from softtargets.losses import LABO, CrossEntropy, LabelSmoothing

LENGTH = 64


def text():
    """Pieces of LENGTH characters as Trainer takes them, and how many different characters there are."""
    whole = "\n".join(topics[name] for name in sorted(topics))[:200_000]
    known = {character: place for place, character in enumerate(sorted(set(whole)))}
    codes = torch.tensor([known[character] for character in whole])
    pieces = codes[: len(codes) // LENGTH * LENGTH].reshape(-1, LENGTH)
    examples = [{"input_ids": piece, "labels": piece.clone()} for piece in pieces]
    return examples[:-400], examples[-400:], len(known)


def train(loss, steps):
    """The metrics of held-out text after training with a loss."""
    training, test, characters = text()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=characters,
        n_positions=LENGTH,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
    metrics = Metrics(shift=True)
    with tempfile.TemporaryDirectory() as directory:
        args = TrainingArguments(
            directory,
            max_steps=steps,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            per_device_eval_batch_size=50,
            learning_rate=3e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            GPT2LMHeadModel(config),
            args,
            train_dataset=training,
            eval_dataset=test,
            compute_loss_func=loss_function(loss),
            compute_metrics=metrics,
            preprocess_logits_for_metrics=metrics.preprocess,
        )
        trainer.remove_callback(PrinterCallback)  # we say ourselves what came out
        trainer.train()
        return trainer.evaluate()


def main():
    """Train three times and say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    steps = 10 if parser.parse_args().fast else 300
    for loss in (CrossEntropy(), LabelSmoothing(0.1), LABO(tau=1.25, alpha=0.1)):
        found = train(loss, steps)
        print(
            f"{type(loss).__name__}: {100 * found['eval_accuracy']:.1f} % of held-out characters are predicted, at "
            f"{found['eval_negative_log_likelihood']:.3f} nats each; the expected calibration error is "
            f"{100 * found['eval_expected_calibration_error']:.1f} %."
        )


if __name__ == "__main__":
    main()
