"""Parameters that an update treats alike, so that their numbers may lie in one tensor."""

from __future__ import annotations

from softtargets.training.optimisers.update import Update


def bucketed(update: Update, count: int) -> list[list[int]]:
    """Group the `count` parameters of one net by rate and decay; from now on the update expects one tensor a group.

    Norms are of each parameter: with ``decay_form: norm`` those that are decayed stay by themselves.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in range(count):
        factor, decay = update.treatment(index)
        alone = index if update.decay_form == "norm" and decay != 0 else -1
        groups.setdefault((factor, decay, alone), []).append(index)
    chosen = list(groups.values())
    update.keep([group[0] for group in chosen])
    return chosen
