r"""Three ways to say how much smoothing, and how to get from one to another.

| name | mass on the label | mass on each other class | who says it so |
|---|---|---|---|
| ``alpha``, ``spread="all"`` | 1 - alpha + alpha / K | alpha / K | Szegedy et al., PyTorch, timm, Hugging Face |
| ``alpha``, ``spread="others"`` | 1 - alpha | alpha / (K - 1) | tensor2tensor, fairseq, TF-KD, Beta-LS |
| ``p`` | p | (1 - p) / (K - 1) | Chen et al. |

All three describe the same targets; only the number differs, by K / (K - 1). With K = 2 that is a factor of two.
Every function takes numbers, arrays or tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from softtargets.losses.arguments import choice
from softtargets.losses.batch import is_plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

N = TypeVar("N", float, Tensor, "NDArray[np.floating[Any]]")


def convert_alpha(alpha: N, classes: int, source: str, target: str) -> N:
    """Convert the alpha of one convention to another: ``"all"`` (over K classes) or ``"others"`` (over K - 1).

    >>> convert_alpha(0.1, classes=10, source="others", target="all")
    0.1111111111111111
    """
    for name, value in (("source", source), ("target", target)):
        choice(name, value, ("all", "others"))
    # Over all classes, a little more than 1 takes from the label what it would be given back.
    most = classes / (classes - 1) if source == "all" and classes > 1 else 1.0
    _check_share("alpha", alpha, most)
    if source == target:
        return alpha
    _at_least_two(classes)
    if source == "others":
        return alpha * classes / (classes - 1)
    return alpha * (classes - 1) / classes


def alpha_from_p(p: N, classes: int, spread: str = "all") -> N:
    """Chen et al.'s p, the mass left on the label, as the alpha of a convention.

    >>> round(alpha_from_p(0.91, classes=10, spread="all"), 12)
    0.1
    """
    _at_least_two(classes)
    _check_share("p", p, 1.0)
    return convert_alpha(1 - p, classes, "others", spread)


def p_from_alpha(alpha: N, classes: int, spread: str = "all") -> N:
    """The mass that an alpha of either convention leaves on the label: Chen et al.'s p.

    >>> round(p_from_alpha(0.1, classes=10, spread="all"), 12)
    0.91
    """
    _at_least_two(classes)
    return 1 - convert_alpha(alpha, classes, spread, "others")


def _check_share(name: str, value: Any, most: float) -> None:
    """Refuse what is no share of the mass; what cannot be looked at without waiting for it is taken."""
    if isinstance(value, Tensor) and (
        torch.compiler.is_compiling() or not value.is_cpu or not is_plain(value)
    ):
        return
    inside = (value >= 0) & (value <= most * (1 + 1e-6))
    if not (inside.all() if hasattr(inside, "all") else inside):
        raise ValueError(f"{name} must be between 0 and {most:.6g}, not {value}")


def _at_least_two(classes: int) -> None:
    if classes < 2:
        raise ValueError(f"classes must be at least 2, not {classes}: with one class there are no others")
