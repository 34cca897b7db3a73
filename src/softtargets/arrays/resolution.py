"""Scores of images and labels that have another size: what SegFormer and its like give, in words that help."""

from __future__ import annotations

from collections.abc import Sequence

MODES = {2: "bilinear", 3: "trilinear"}  # of `torch.nn.functional.interpolate`, by the dimensions of an image


def resolution_advice(
    scores: Sequence[int], labels: Sequence[int], name: str = "logits", labels_name: str = "labels"
) -> str:
    """What to do if scores have other places than the labels of the same images; empty if that is not what is wrong.

    Models for semantic segmentation may predict every fourth place in each direction, and their own loss enlarges the
    logits. Sentences of another length are no images: their positions cannot be interpolated. The classes of the scores
    may be second or last. Labels may be distributions, with the classes where the scores have them.

    >>> print(resolution_advice((2, 5, 8, 8), (2, 32, 32)))
    ; the logits have 8 x 8 places and the labels 32 x 32, as with SegFormer: first enlarge them, logits =
    torch.nn.functional.interpolate(logits, size=labels.shape[-2:], mode="bilinear")
    >>> resolution_advice((2, 9, 5), (2, 8))
    ''
    """
    places = len(scores) - 2
    if places not in MODES or len(labels) not in (places + 1, places + 2) or scores[0] != labels[0]:
        return ""
    whole = tuple(labels[1:]) if len(labels) == places + 1 else tuple(labels[2:])
    if len(labels) == places + 2 and labels[1] != scores[1]:
        return ""
    second, last = tuple(scores[2:]), tuple(scores[1:-1])
    if second == whole or (len(labels) == places + 1 and last == whole):
        return ""
    is_last = _zoom(last, whole) and not _zoom(second, whole) and len(labels) == places + 1
    given = f"{name}.movedim(-1, 1)" if is_last else name
    back = ".movedim(1, -1)" if is_last else ""
    seen = _times(last if is_last else second)
    return (
        f"; the {name} have {seen} places and the {labels_name} {_times(whole)}, as with SegFormer: first enlarge "
        f"them, {name} = torch.nn.functional.interpolate({given}, "
        f'size={labels_name}.shape[-{places}:], mode="{MODES[places]}"){back}'
    )


def _zoom(small: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether one is the other by one factor, as far as whole numbers go."""
    factors = [b / max(a, 1) for a, b in zip(small, whole, strict=True)]
    return max(factors) < 1.5 * min(factors)


def _times(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
