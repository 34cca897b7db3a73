"""Claims that are about nothing but a printed number: ours lies within a margin of it that was stated beforehand."""

from __future__ import annotations

from softtargets.claims import Claim, Region, Sample, published, sources, two_standard_errors
from softtargets.studies.words import percent


def printed_accuracy(
    statement: str, key: str, found: Sample, *, quantity: str, seeds: int, examples: int = 10_000
) -> Claim:
    """An accuracy or error as printed, within two standard errors of its own test set; in per cent.

    >>> sample = Sample.of([0.72, 0.721, 0.722])
    >>> claim = printed_accuracy("It is {}.", "muller-2019/accuracy/cifar100/hard", sample, quantity="it", seeds=3)
    >>> claim.statement, claim.printed, claim.margin
    ('It is 72.10 %.', 72.1, 0.9)
    """
    value = published(key).value or 0.0
    margin = round(100 * two_standard_errors(value, examples), 2)
    remark = (
        f"The margin is two standard errors of the printed figure, which was measured on {examples:,} images."
    )
    return _near(
        (statement.format(percent(value, 2)), key, quantity, remark),
        (round(100 * value, 6), margin),
        found.times(100),
        percent(found.first(seeds).mean, 2),
        seeds=seeds,
        digits=2,
        unit="%",
    )


def printed_number(
    statement: str,
    key: str,
    found: Sample,
    margin: float,
    *,
    quantity: str,
    seeds: int,
    remark: str = "",
    digits: int = 3,
) -> Claim:
    """Any other number as printed, within a margin.

    >>> claim = printed_number("ECE is {}.", "muller-2019/ece/cifar100/hard", Sample(()), 0.02, quantity="it", seeds=3)
    >>> claim.statement, claim.verdict, claim.is_number
    ('ECE is 0.150.', 'not run yet', True)
    """
    value = published(key).value or 0.0
    shown = found.first(seeds).mean
    measured = "–" if shown != shown else f"{shown:.{digits}f}".replace("-", "−")
    said = statement.format(f"{value:.{digits}f}")
    return _near((said, key, quantity, remark), (value, margin), found, measured, seeds=seeds, digits=digits)


def _near(
    words: tuple[str, str, str, str],
    near: tuple[float, float],
    found: Sample,
    measured: str,
    *,
    seeds: int,
    digits: int,
    unit: str = "",
) -> Claim:
    statement, key, quantity, remark = words
    printed, margin = near
    region = Region(printed - margin, printed + margin)
    return Claim(
        statement,
        sources(key),
        quantity,
        found,
        region,
        measured,
        remark,
        digits=digits,
        seeds=seeds,
        printed=printed,
        margin=margin,
        unit=unit,
    )
