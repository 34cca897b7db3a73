"""What every room is given: scores, labels and distributions, from torch, numpy or lists, checked once and in one way.

Nothing here is imported before it is asked for: `stochastic` and `tolerances` do without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softtargets.arrays.codes import Codes, decoded, encoded
    from softtargets.arrays.compiler import has_room, has_triton
    from softtargets.arrays.labels import (
        as_labels,
        counts_of_classes,
        labels_of,
        predicted_classes,
        whole_numbers,
    )
    from softtargets.arrays.process_state import ProcessState, added_up, several_processes
    from softtargets.arrays.resolution import resolution_advice
    from softtargets.arrays.scores import (
        ArrayLike,
        ScoreFault,
        as_floating,
        as_logits,
        as_probabilities,
        as_tensor,
        find_fault,
        refuse_fault,
        single_or_double,
        sum_tolerance,
    )
    from softtargets.arrays.seeds import over_seeds
    from softtargets.arrays.stochastic import as_numbers, as_stochastic, check_distributions, wrong_row
    from softtargets.arrays.tolerances import ROUNDED, SAVED, TARGET, THROUGH_HALF, WRITTEN

__all__ = [
    "ROUNDED",
    "SAVED",
    "TARGET",
    "THROUGH_HALF",
    "WRITTEN",
    "ArrayLike",
    "Codes",
    "ProcessState",
    "ScoreFault",
    "added_up",
    "as_floating",
    "as_labels",
    "as_logits",
    "as_numbers",
    "as_probabilities",
    "as_stochastic",
    "as_tensor",
    "check_distributions",
    "counts_of_classes",
    "decoded",
    "encoded",
    "find_fault",
    "has_room",
    "has_triton",
    "labels_of",
    "over_seeds",
    "predicted_classes",
    "refuse_fault",
    "resolution_advice",
    "several_processes",
    "single_or_double",
    "sum_tolerance",
    "whole_numbers",
    "wrong_row",
]

HOMES = (
    "compiler",
    "tolerances",
    "resolution",
    "stochastic",
    "seeds",
    "codes",
    "scores",
    "labels",
    "process_state",
)


def __getattr__(name: str) -> Any:
    for home in HOMES if name in __all__ else ():
        module = import_module(f"softtargets.arrays.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'softtargets.arrays' has no attribute {name!r}")
