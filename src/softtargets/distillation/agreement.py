"""Does a student predict what its teacher predicts, and also where the teacher is wrong?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels, as_logits, as_probabilities


@dataclass(frozen=True)
class Agreement:
    """Two models on the same examples.

    `same_class` is the share of examples for which both predict the same class; `divergence` the mean of
    KL(teacher || student) in nats; `difference` the mean of |p - q| over examples and classes.

    With labels, `teacher_errors` counts what the teacher gets wrong, and `same_class_where_teacher_wrong` is the share
    of those where the student makes the same mistake: NaN if the teacher makes none. Without
    labels both are None.
    """

    examples: int
    same_class: float
    divergence: float
    difference: float
    teacher_errors: int | None = None
    same_class_where_teacher_wrong: float | None = None


def agreement(
    teacher_logits: ArrayLike,
    student_logits: ArrayLike,
    labels: ArrayLike | None = None,
    temperature: float = 1.0,
) -> Agreement:
    r"""Agreement of two models from their logits, both divided by `temperature`.

    .. math:: \mathrm{KL}(p \| q) = \sum_k p_k (\log p_k - \log q_k),
              \quad p = \mathrm{softmax}(z^t / T), \quad q = \mathrm{softmax}(z^s / T)

    Hinton et al. 2015, section 2, minimise it in q. Computed in float64 from log-softmax, so that it stays finite
    however confident the student is. The temperature changes `divergence` and `difference`, never the classes.
    Agreement is what Stanton et al. 2021 ("Does knowledge distillation really work?") call fidelity.

    >>> teacher = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> student = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> found = agreement(teacher, student, labels=torch.tensor([1, 1, 1]))
    >>> round(found.same_class, 4), found.teacher_errors, found.same_class_where_teacher_wrong
    (0.6667, 2, 0.5)
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be a finite number above 0, not {temperature}")
    given = as_logits(teacher_logits, "teacher_logits"), as_logits(student_logits, "student_logits")
    return _agreement(*given, lambda z: (z / temperature).log_softmax(1), labels)


def agreement_of_probabilities(
    teacher_probabilities: ArrayLike, student_probabilities: ArrayLike, labels: ArrayLike | None = None
) -> Agreement:
    """`agreement` of two models of which only probabilities are known.

    The divergence is infinite where the student excludes what the teacher does not; a class that the teacher excludes
    adds nothing.

    >>> hard, fair = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    >>> round(agreement_of_probabilities(hard, fair).divergence, 6)  # log 2
    0.693147
    >>> agreement_of_probabilities(fair, hard).divergence
    inf
    """
    teacher = as_probabilities(teacher_probabilities, "teacher_probabilities")
    student = as_probabilities(student_probabilities, "student_probabilities")
    # Those of coarse precision add up to 1 only nearly, which alone would be a divergence.
    return _agreement(teacher, student, lambda p: (p / p.sum(1, keepdim=True)).log(), labels)


def _agreement(
    teacher: Tensor, student: Tensor, logarithms: Callable[[Tensor], Tensor], labels: ArrayLike | None
) -> Agreement:
    if teacher.shape != student.shape:
        raise ValueError(
            f"teacher and student must be given for the same examples and classes, not {tuple(teacher.shape)} and "
            f"{tuple(student.shape)}"
        )
    examples, classes = teacher.shape
    # Classes by what was given itself, as a division can make two logits equal.
    said, repeated = teacher.argmax(1), student.argmax(1).to(teacher.device)
    log_p, log_q = (logarithms(one.to(teacher.device, torch.float64)) for one in (teacher, student))
    p = log_p.exp()
    # Rounding may leave the divergence of equal rows a little below 0.
    divergences = torch.where(p > 0, p * (log_p - log_q), 0.0).sum(1).clamp_min(0)
    same = said == repeated
    errors, same_errors = None, None
    if labels is not None:
        wrong = said != as_labels(labels, examples, classes).to(said.device)
        errors = int(wrong.sum())
        same_errors = int((same & wrong).sum()) / errors if errors else math.nan
    return Agreement(
        examples=examples,
        same_class=int(same.sum()) / examples,
        divergence=float(divergences.mean()),
        difference=float((p - log_q.exp()).abs().mean()),
        teacher_errors=errors,
        same_class_where_teacher_wrong=same_errors,
    )
