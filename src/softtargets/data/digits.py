"""scikit-learn's 8x8 digits: real handwriting that is always there.

No canonical split exists, so this is ours: 500 test examples, as many of each class as its share of the
1,797 asks for, chosen by a hash of their position. The training examples are dealt out class by class, so
that any first or last so many, which is what recipes cut off, hold all classes in proportion; the original
order goes writer by writer. No random number generator is involved, hence the same split on every machine and
with every version of everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softtargets.data.examples import Examples
from softtargets.data.ordering import by_class, dealt_out, rank

TEST_EXAMPLES = 500


def read_digits(split: str) -> Examples:
    """Return the train (1,297) or test (500) digits; pixel values 0..16 are scaled to 0..255."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    labels = np.asarray(bunch.target, np.int64)
    images = np.rint(np.asarray(bunch.images) * (255 / 16)).astype(np.uint8)[:, None]
    whole = Examples(np.ascontiguousarray(images), labels, tuple("0123456789"))
    test = held_out(labels.tolist(), TEST_EXAMPLES)
    if split == "test":
        return whole.take(test)
    rest = whole.take(sorted(set(range(len(labels))) - set(test)))
    return rest.take(dealt_out(rest.labels.tolist(), "softtargets digits order"))


def held_out(labels: Sequence[int], count: int) -> list[int]:
    """Choose `count` positions, stratified by label, by hash; sorted.

    Each class gets its exact share rounded down, and the places left over go to the largest remainders.

    >>> sum(position >= 4 for position in held_out([0, 0, 0, 0, 1, 1], 3))
    1
    """
    members = by_class(labels)
    shares = {label: divmod(count * len(group), len(labels)) for label, group in sorted(members.items())}
    quota = {label: whole for label, (whole, _) in shares.items()}
    by_remainder = sorted(shares, key=lambda label: (-shares[label][1], label))
    for label in by_remainder[: count - sum(quota.values())]:
        quota[label] += 1
    chosen = []
    for label, group in members.items():
        chosen += sorted(group, key=lambda item: rank(item, "softtargets digits test"))[: quota[label]]
    return sorted(chosen)
