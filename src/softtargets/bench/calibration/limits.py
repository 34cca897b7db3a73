"""How far from float64 an ECE may be. No torch here."""

from __future__ import annotations

# Single precision in, sums in double precision: rounding moves ours by much less. torchmetrics adds up confidences in
# single precision, which is noticeable with a million of them, and nobody's mistake here.
OURS_WITHIN, OTHERS_WITHIN = 1e-6, 2e-3
