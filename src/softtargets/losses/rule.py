"""How the loss of a row follows from its logits, as data: the seam between losses and all that computes them."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

# The last number of LABO's rule where the loss is its whole objective, and alpha is followed too.
WHOLE = 2.0


class Rule(NamedTuple):
    """A kind of computation and its hyper-parameters; `reference`, `analytic` and `kernels` understand it.

    | kind | values | loss of a row |
    |---|---|---|
    | mixture | hard mass n0, soft mass n1 | n0 H(y, p) + n1 H(q, p), q uniform, the table, or its row y |
    | penalty | beta | H(y, p) - beta H(p) |
    | focal | gamma, slope, 1 if the factor is a constant | (1 + slope p_y) ** gamma H(y, p) |
    | labo | offset and slope of alpha over H(p) / log K, 1 / tau, 1 to add the KL term (2: see `WHOLE`) | see `LABO` |
    | distillation | hard mass n0, soft mass n1, 1 / T, 1 / T' of the student | n0 H(y, p) + n1 H(q(T), p(T')) |
    | matching | hard mass n0, weight of the squares n1 | n0 H(y, p) + n1 |z - t|^2 / 2 |

    Each of the `values` is a number, a tensor with one value, or (mixture) one per row.
    """

    kind: str
    values: tuple[float | Tensor, ...]
    table: Tensor | None = None
    teacher: Tensor | None = None
    # Whether kernels know it too.
    fused: bool = True


def is_learnt(rule: Rule) -> bool:
    """Whether somebody wants the gradient of a hyper-parameter, which only autograd has."""
    # No property of a rule: the compiler of torch 2.7 does not look into those of named tuples.
    return any(isinstance(each, Tensor) and each.requires_grad for each in rule.values)
