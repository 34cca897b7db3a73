"""Hugging Face: losses, metrics and distillation for ``transformers.Trainer``.

One line each::

    Trainer(model, args, ..., compute_loss_func=loss_function("label_smoothing", alpha=0.1))
    Trainer(model, args, ..., compute_metrics=compute_metrics)
    DistillationTrainer(model, args, ..., teacher=teacher, loss=Distillation.hinton(2.0))
"""

from softtargets.integrations.needs import needs

needs("huggingface", "huggingface", "transformers", "accelerate")

from softtargets.integrations.huggingface.distilling import DistillationTrainer  # noqa: E402
from softtargets.integrations.huggingface.loss import LossFunction, loss_function  # noqa: E402
from softtargets.integrations.huggingface.metrics import Metrics, compute_metrics  # noqa: E402
from softtargets.integrations.huggingface.stored import StoredTeacher, store_teacher  # noqa: E402

__all__ = [
    "DistillationTrainer",
    "LossFunction",
    "Metrics",
    "StoredTeacher",
    "compute_metrics",
    "loss_function",
    "store_teacher",
]
