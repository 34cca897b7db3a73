"""How far probabilities that should add up to 1 may be off: every number of this kind, and its reason.

| what | off by at most | why |
|---|---|---|
| scores in memory | `BY_PRECISION` | a softmax of 1000 classes, rounded to this precision, comes this close |
| scores in files | `SAVED` | they may have been in single precision before they were saved in double |
| | `THROUGH_HALF` | they may have been in half precision; such rows are divided by their sums |
| | `ROUNDED` | text with few digits: half a unit of the last digit for each class, but never more than this |
| matrices and priors | `WRITTEN` | people write 0.333 three times; they are divided by their sums |
| targets of losses | `TARGET` | kernels take them as they are: what is missing would be missing in the loss |

In single precision 262,144 targets still add up much closer than that. No number is above 1 by more than the same, and
none is below 0.
"""

from __future__ import annotations

BY_PRECISION = {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, "bfloat16": 2e-2}
SAVED = 1e-4
THROUGH_HALF = 5e-3
ROUNDED = 0.05
WRITTEN = 1e-3
TARGET = 1e-4
