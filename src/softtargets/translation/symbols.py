"""The four tokens that are no text, and where they stand in every vocabulary."""

from __future__ import annotations

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SYMBOLS = ("<pad>", "<s>", "</s>", "<unk>")
# A label that does not count: what stands for padding in targets, as in torch's cross-entropy.
IGNORED = -100
