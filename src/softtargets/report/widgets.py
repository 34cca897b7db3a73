"""Figures that answer: which kinds there are, what numbers each needs, and how they get into a page safely.

A kind is one script, ``templates/widgets/KIND.js``, that draws its numbers as SVG; ``common.js`` is what they share.
Both stand in the page itself, and the page's policy allows exactly them, by their hashes. The numbers stand beside
them as JSON in which nothing can be taken for markup: a class may be called ``</script>``.

``reliability``
    ``edges`` of the bins (B + 1), ``temperatures`` (T, from the lowest), ``start`` and ``best``: the places among them
    of 1 and of the fitted one (or None), ``unit`` of what is counted, and ``curves``: ``name``, ``colour``, then
    ``counts``, ``confidence``, ``accuracy``, ``low`` and ``high`` (T lists of B; the last two, the interval of the
    accuracy, may be None) and ``ece`` and ``nll`` (T). A curve may have a ``best`` of its own.
``sweep``
    ``temperatures`` (T), ``curves``: ``name``, ``colour``, ``ece`` and ``nll`` (T), and ``best``: for each curve the
    temperature itself that was fitted, or None.
``coverage``
    ``coverages`` (C, rising, above 0 to 1), ``curves``: ``name``, ``colour``, ``risk``, ``low`` and ``high`` (C), the
    error rate of the most confident share and its interval, and ``best`` (C): the least it could be, or None.
``lines``
    ``panels``: ``title``, ``x`` and ``y`` (names of the axes), ``digits``, ``ticks`` (pairs of place and name),
    ``limits`` and ``xlimits`` (each or None), and ``curves``: ``name``, ``colour``, ``line``, ``marker``, ``group``,
    ``x`` and ``y`` (N; a y may be None), and ``low``, ``high`` and ``dots`` (N, or None).
``maps``
    ``panels``: ``title``, ``x``, ``y``, ``xs`` (A), ``ys`` (B), ``values`` (B rows of A, each or None), ``low`` and
    ``high`` of the colours, ``palette``, ``digits``, ``unit``, ``line`` (points), ``downwards`` and ``numbers``.
``plane``
    ``classes``: ``name`` and ``colour``, ``unit``: what one unit of the axes is, and ``panels``: ``title``, ``points``
    (x, y, place of the class, number of the example), ``templates`` (x, y of each class), ``limits`` ((x0, x1),
    (y0, y1)) and ``notes`` (lines under the panel); ``centres`` (x, y of each class mean) may be there too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from softtargets.claims import Sample
from softtargets.report.page import Widget

# What a page without widgets may do, and one with them beside their scripts.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

# What the picture is drawn from: more digits than these are less than a pixel.
DIGITS = 6


def check_widget(widget: Widget) -> None:
    """Refuse what the script of its kind could not draw.

    >>> check_widget(Widget("pie", {}))
    Traceback (most recent call last):
        ...
    ValueError: there is no widget of the kind 'pie'; there are coverage, lines, maps, plane, reliability, sweep
    """
    if widget.kind not in _CHECKS:
        there = ", ".join(sorted(_CHECKS))
        raise ValueError(f"there is no widget of the kind {widget.kind!r}; there are {there}")
    _CHECKS[widget.kind](_Part(f"the widget {widget.kind!r}", plain_data(widget.data)))


def scripts_for(widgets: Iterable[Widget]) -> tuple[str, ...]:
    """The scripts a page with these widgets needs, each once, in the order in which they must run."""
    kinds = sorted({widget.kind for widget in widgets})
    return tuple(_script(name) for name in ("common", *kinds)) if kinds else ()


def policy_for(scripts: Sequence[str]) -> str:
    """A content-security policy that allows exactly these inline scripts, by the hashes of their bytes.

    >>> policy_for(["alert(1)"])[-64:]
    "script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"{POLICY}; script-src {allowed}" if hashes else POLICY


def embedded(data: Any) -> str:
    """Data as JSON that may stand inside a script element of a page, whatever the names in it.

    >>> embedded({"name": "</script>", "value": float("nan")})
    '{"name":"\\\\u003c/script\\\\u003e","value":null}'
    """
    text = json.dumps(plain_data(data, DIGITS), separators=(",", ":"), allow_nan=False)
    return text.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"})


def plain_data(value: Any, digits: int = 0) -> Any:
    """Mappings, samples, arrays of numpy and torch, tuples and numbers as what JSON has; NaN and infinity become null.

    With `digits`, numbers are rounded to so many that count.

    >>> plain_data({"a": (1, float("inf"))}), plain_data(2 / 3, digits=2)
    ({'a': [1, None]}, 0.67)
    """
    if isinstance(value, Sample):
        told = {"mean": value.mean, "sd": value.spread, "n": value.n, "values": value.values}
        return plain_data(told, digits)
    if hasattr(value, "tolist"):
        return plain_data(value.tolist(), digits)
    if isinstance(value, Mapping):
        return {str(key): plain_data(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item, digits) for item in value]
    return _rounded(value, digits) if isinstance(value, float) else value


def _rounded(value: float, digits: int) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") if digits else value


def _script(name: str) -> str:
    path = files("softtargets.report") / "templates" / "widgets" / f"{name}.js"
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")  # the hash is that of what a browser reads


class _Part:
    """A piece of a widget's data with its place, so that a refusal can say where."""

    def __init__(self, place: str, data: Any) -> None:
        self.place, self.data = place, data

    def require(self, met: bool, what: str) -> None:
        if not met:
            raise ValueError(f"{self.place} needs {what}")

    def need(self, *keys: str) -> Any:
        """The value of the last of these keys, all of which must be there."""
        for key in keys:
            self.require(isinstance(self.data, dict) and key in self.data, f"{key!r} in its data")
        return self.data[keys[-1]]

    def rows(self, key: str, *shape: int | None) -> Any:
        """A list, of lists perhaps, of these lengths; None is any length but 0."""
        value = self.need(key)
        self._fits(key, value, shape)
        return value

    def parts(self, key: str) -> list[_Part]:
        return [_Part(f"{self.place}, {key}[{i}],", item) for i, item in enumerate(self.rows(key, None))]

    def index(self, key: str, size: int, optional: bool = False) -> None:
        value = self.data.get(key) if optional else self.need(key)
        if not (value is None and optional):
            whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < size
            self.require(whole, f"a whole number from 0 to {size - 1} for {key!r}; got {value!r}")

    def _fits(self, key: str, value: Any, shape: tuple[int | None, ...]) -> None:
        if not shape:
            return
        size = len(value) if isinstance(value, list) else -1
        wanted = "a list that is not empty" if shape[0] is None else f"a list of {shape[0]}"
        found = f"one of {size}" if size >= 0 else repr(value)
        self.require(size > 0 if shape[0] is None else size == shape[0], f"{wanted} for {key!r}; got {found}")
        for item in value:
            self._fits(key, item, shape[1:])


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _curves(part: _Part) -> tuple[int, list[_Part]]:
    """How many temperatures there are, and the curves over them."""
    values = part.rows("temperatures", None)
    for value in values:
        part.require(_positive(value), f"temperatures above 0; got {value!r}")
    curves = part.parts("curves")
    for curve in curves:
        curve.need("name", "colour")
        for key in ("ece", "nll"):
            curve.rows(key, len(values))
    return len(values), curves


def _check_reliability(part: _Part) -> None:
    bins = len(part.rows("edges", None)) - 1
    part.require(bins >= 1, "at least 2 edges; got 1")
    size, curves = _curves(part)
    rising = part.data["temperatures"] == sorted(part.data["temperatures"])
    part.require(rising, "its temperatures from the lowest to the highest, as on its slider")
    part.index("start", size)
    part.index("best", size, optional=True)
    part.need("unit")
    for curve in curves:
        curve.need("low", "high")
        curve.index("best", size, optional=True)
        bounds = [key for key in ("low", "high") if curve.data[key] is not None]
        for key in ("counts", "confidence", "accuracy", *bounds):
            curve.rows(key, size, bins)


def _check_sweep(part: _Part) -> None:
    _, curves = _curves(part)
    for best in part.rows("best", len(curves)):
        part.require(
            best is None or _positive(best), f"a temperature above 0 or None in 'best'; got {best!r}"
        )


def _check_coverage(part: _Part) -> None:
    coverages = part.rows("coverages", None)
    within = all(_positive(value) and value <= 1 for value in coverages)
    part.require(within and coverages == sorted(coverages), "rising coverages above 0 and up to 1")
    for curve in part.parts("curves"):
        curve.need("name", "colour")
        for key in ("risk", "low", "high"):
            curve.rows(key, len(coverages))
    if part.need("best") is not None:
        part.rows("best", len(coverages))


def _check_lines(part: _Part) -> None:
    for panel in part.parts("panels"):
        panel.need("title", "x", "y", "digits", "ticks", "limits", "xlimits")
        for curve in panel.parts("curves"):
            curve.need("name", "colour", "line", "marker", "group")
            size = len(curve.need("x"))
            for key in ("y", *(key for key in ("low", "high", "dots") if curve.need(key) is not None)):
                curve.require(len(curve.need(key)) == size, f"as many {key!r} as 'x', {size}")


def _check_maps(part: _Part) -> None:
    for panel in part.parts("panels"):
        panel.need("title", "x", "y", "palette", "digits", "unit", "line", "downwards", "numbers")
        panel.rows("values", len(panel.rows("ys", None)), len(panel.rows("xs", None)))
        low, high = panel.need("low"), panel.need("high")
        numbers = all(isinstance(end, (int, float)) for end in (low, high))
        panel.require(
            numbers and low < high, f"colours from a lower to a higher end; got {low!r} and {high!r}"
        )


def _check_plane(part: _Part) -> None:
    classes = part.parts("classes")
    for entry in classes:
        entry.need("name", "colour")
    part.need("unit")
    wanted = f"points (x, y, class from 0 to {len(classes) - 1}, example)"
    for panel in part.parts("panels"):
        panel.need("title", "notes")
        panel.rows("limits", 2, 2)
        panel.rows("templates", len(classes), 2)
        if panel.data.get("centres") is not None:
            panel.rows("centres", len(classes), 2)
        for point in panel.need("points"):
            fits = isinstance(point, list) and len(point) == 4 and point[2] in range(len(classes))
            panel.require(fits, f"{wanted}; got {point!r}")


_CHECKS: dict[str, Callable[[_Part], None]] = {
    "coverage": _check_coverage,
    "lines": _check_lines,
    "maps": _check_maps,
    "plane": _check_plane,
    "reliability": _check_reliability,
    "sweep": _check_sweep,
}
