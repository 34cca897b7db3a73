"""Numbers as text: three digits and a unit. No torch here."""

from __future__ import annotations

NOTHING = "–"


def duration(seconds: float | None) -> str:
    """Three digits and a unit.

    >>> duration(0.000535), duration(0.0123), duration(2.1e-8)
    ('535 µs', '12.3 ms', '21.0 ns')
    """
    if seconds is None:
        return NOTHING
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * factor:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds / 1e-9)} ns"


def times(value: float | None) -> str:
    """How many times as much.

    >>> times(2.134), times(13.81), times(133.0), times(None)
    ('2.13x', '13.8x', '133x', '–')
    """
    return NOTHING if value is None else f"{digits(value)}x"


def rate(per_second: float | None) -> str:
    """So many a second, with three digits.

    >>> rate(23776), rate(1.25e6), rate(312.0), rate(None)
    ('23.8 k/s', '1.25 M/s', '312 /s', '–')
    """
    if per_second is None:
        return NOTHING
    for factor, unit in ((1e6, " M/s"), (1e3, " k/s")):
        if per_second >= 0.9995 * factor:
            return f"{digits(per_second / factor)}{unit}"
    return f"{digits(per_second)} /s"


def memory(count: int | None) -> str:
    """Bytes.

    >>> memory(400_000_000), memory(1500)
    ('0.40 GB', '1.5 kB')
    """
    if count is None:
        return NOTHING
    return f"{count / 1e9:.2f} GB" if count >= 1e7 else f"{count / 1e3:.1f} kB"


def megabytes(count: int | None) -> str:
    """Bytes in millions, where that unit suits all.

    >>> megabytes(17_400_000), megabytes(11_400_000_000), megabytes(None)
    ('17.4 MB', '11,400 MB', '–')
    """
    return NOTHING if count is None else f"{digits(count / 1e6)} MB"


def scientific(value: float | None) -> str:
    """One digit and the power of ten.

    >>> scientific(1.23e-6), scientific(None)
    ('1e-06', '–')
    """
    return NOTHING if value is None else f"{value:.0e}"


def digits(value: float) -> str:
    """Three digits of a number that is not much below 1.

    >>> digits(9.994), digits(99.94), digits(12345.6)
    ('9.99', '99.9', '12,346')
    """
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}" if value < 1e4 else f"{value:,.0f}"
