"""A page on disk: one HTML file that needs no network, and beside it the figures and the numbers."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from softtargets.claims import COMPUTED_RULE, RULE, VERDICTS, Claim, Judgement, Region, Sample, judge
from softtargets.report.charts import CHARTS
from softtargets.report.drawing import KINDS, house_style, rendered
from softtargets.report.numbers import number
from softtargets.report.page import Code, Figure, Page, Table, Widget
from softtargets.report.strip import SIGNS, headline, strip_row
from softtargets.report.widgets import check_widget, embedded, plain_data, policy_for, scripts_for
from softtargets.storage import make_directory, write_atomically, write_json


def write_page(page: Page, directory: Path) -> Path:
    """Write ``index.html``, ``figures/*.png|svg``, ``tables/*.csv`` and ``results.json``; return the page."""
    for widget in _widgets(page).values():
        check_widget(widget)
    pictures = {figure.name: _render(figure, directory / "figures") for figure in _figures(page)}
    for table in _tables(page):
        make_directory(directory / "tables")
        write_atomically(
            directory / "tables" / f"{table.name}.csv", _csv(table).encode(errors="backslashreplace")
        )
    write_json(directory / "results.json", _results(page))
    path = directory / "index.html"
    write_atomically(path, _html(page, pictures).encode(errors="backslashreplace"))
    return path


def _figures(page: Page) -> Iterator[Figure]:
    for section in page.sections:
        yield from (exhibit for exhibit in section.exhibits if isinstance(exhibit, Figure))


def _widgets(page: Page) -> dict[str, Widget]:
    return {figure.name: figure.widget for figure in _figures(page) if figure.widget}


def _tables(page: Page) -> Iterator[Table]:
    for section in page.sections:
        for item in section.exhibits:
            if not isinstance(item, Code):
                yield item.data if isinstance(item, Figure) else item
    if page.runs:
        yield page.runs


def _render(figure: Figure, directory: Path) -> str:
    """Draw a figure, write it as PNG and SVG, and return the SVG as a data address."""
    make_directory(directory)
    with house_style():
        drawing = figure.draw()
        pictures = {kind: rendered(drawing, kind, bbox_inches="tight") for kind in KINDS}
    for kind, content in pictures.items():
        write_atomically(directory / f"{figure.name}.{kind}", content)
    return "data:image/svg+xml;base64," + base64.b64encode(pictures["svg"]).decode()


def _csv(table: Table) -> str:
    """Samples become three columns: mean, standard deviation, n."""
    flat = [_flat(row) for row in table.rows]
    keys = dict.fromkeys(key for row in flat for key in row)
    header = list(keys) or [column.key for column in table.columns]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return buffer.getvalue()


def _flat(row: Any) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Sample):
            flat |= {f"{key}_mean": value.mean, f"{key}_sd": value.spread, f"{key}_n": value.n}
        else:
            flat[key] = value
    return flat


def _results(page: Page) -> dict[str, Any]:
    study = page.kind == "study"
    tested = {"rule": _rule(page), "claims": [_claim(judged) for judged in judge(page.claims)]}
    extra = {"answer": page.answer, "kept": plain_data(page.kept)}
    results = {
        **({"study": page.name} if study else {"kind": page.kind, "name": page.name}),
        "title": page.title,
        **{key: value for key, value in extra.items() if value},
        "command": page.command,
        "provenance": plain_data(page.provenance),
        "warnings": list(page.warnings),
        **(tested if study or page.claims else {}),
        "tables": {table.name: plain_data(table.rows) for table in _tables(page)},
    }
    if page.verdict:
        results["verdict"] = vars(page.verdict)
    if widgets := {name: one for name, one in _widgets(page).items() if one.kind not in CHARTS}:
        results["widgets"] = {name: plain_data(widget.data) for name, widget in widgets.items()}
    return results


def _rule(page: Page) -> str:
    """How verdicts of this page come about: over seeds, by computing, or both."""
    kinds = {claim.computed for claim in page.claims}
    rules = ([] if kinds == {True} else [RULE]) + ([COMPUTED_RULE] if True in kinds else [])
    return " ".join(rules)


def _claim(judged: Judgement) -> dict[str, Any]:
    """A claim as data: all that a chart of it needs, and what its verdicts rest on."""
    claim = judged.claim
    return {
        "statement": claim.statement,
        "published": [vars(item) for item in claim.published],
        "quantity": claim.quantity,
        "unit": claim.unit,
        "region": str(claim.region),
        "ends": _ends(claim.region),
        "zone": _ends(claim.zone),
        "seeds": None if claim.computed else claim.seeds,
        "measured": plain_data(claim.sample if claim.computed else claim.deciding),
        "interval": None if claim.computed else plain_data(claim.interval),
        "over_examples": claim.sample.examples is not None,
        "other_seeds": plain_data(claim.others) if claim.others.n and not claim.computed else None,
        "cells": {name: plain_data(sample) for name, sample in claim.cells},
        "worst": claim.worst,
        "computed": claim.computed,
        "shown": claim.measured,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "p": {name: {"alone": alone, "on_page": on_page} for name, (alone, on_page) in judged.p.items()},
        "printed": None
        if judged.value is None
        else {
            "value": claim.printed,
            "margin": claim.margin,
            "verdict": judged.value,
            "whole_claim": claim.is_number,
        },
        "remark": claim.remark,
    }


def _ends(region: Region | None) -> Any:
    """Both ends of a region, null where it has none."""
    return None if region is None else plain_data((region.low, region.high))


def _number(value: float, claim: Claim, plus: bool = True, unit: bool = True) -> str:
    """A number of a claim; differences, whose region ends at 0 or below, carry their sign."""
    if not math.isfinite(value):
        return "–"
    ends = (claim.region.low, claim.region.high)
    sign = "+" if plus and any(math.isfinite(end) and end <= 0 for end in ends) else ""
    shown = number(value, claim.digits, bool(sign))
    return _with_unit(shown, claim) if unit else shown


def _with_unit(value: object, claim: Claim | None) -> str:
    """A number of a claim, or a region, with the claim's unit: ``1 point``, ``below 3 points``; None has no unit."""
    unit = claim.unit if claim else ""
    if unit == "points" and re.search(r"(?<![\d.])1$", str(value)):
        unit = "point"
    return _unbroken(f"{value} {unit}") if unit else str(value)


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−").replace("e−0", "e−")


def _unbroken(text: str) -> str:
    """Without a line break between a number and its per cent sign."""
    return text.replace(" %", "\u00a0%")


def _ours(judged: Judgement) -> str:
    """The number of a strip: the mean over seeds, or what was computed."""
    claim = judged.claim
    if not claim.computed:
        return "–" if judged.verdict == "not run yet" else _number(claim.deciding.mean, claim)
    return _short(min(claim.sample.values, key=claim.region.room, default=math.nan))


def _ours_long(judged: Judgement) -> str:
    """The same with its interval and seeds."""
    claim = judged.claim
    if claim.computed:
        return f"{_ours(judged)}, computed"
    low, high = claim.interval
    between = f"95 % interval {_number(low, claim, unit=False)} to {_number(high, claim)}"
    seeds = f"{claim.deciding.n} seed{'' if claim.deciding.n == 1 else 's'}"
    worst = f" at {claim.worst}" if claim.worst else ""
    return f"{_number(claim.deciding.mean, claim)}{worst}, {between}, {seeds}"


def _cited(papers: Sequence[str]) -> list[tuple[str, str]]:
    """Citations and the addresses at their ends.

    >>> _cited(["Chen et al. 2020, https://arxiv.org/abs/2010.12648", "A letter"])
    [('Chen et al. 2020', 'https://arxiv.org/abs/2010.12648'), ('A letter', '')]
    """
    found = [re.fullmatch(r"(.*?)(?:, (https://\S+))?", paper, re.DOTALL) for paper in papers]
    return [(one[1], one[2] or "") for one in found if one]


class _Anchors:
    """An id for each section, table and figure: what is pointed at does not move when others come."""

    def __init__(self, page: Page) -> None:
        self._ids: dict[int, str] = {}
        taken = {"claims", "claim-details", "how-this-page-was-made"}
        for section in page.sections:
            self._add(section, section.title, taken)
            for item in section.exhibits:
                if isinstance(item, Figure):
                    self._add(item, f"figure-{item.name}", taken)
                elif isinstance(item, Table):
                    self._add(item, f"table-{item.name}", taken)
        if page.runs:
            self._add(page.runs, f"table-{page.runs.name}", taken)

    def __call__(self, item: Any) -> str:
        return self._ids[id(item)]

    def _add(self, item: Any, name: str, taken: set[str]) -> None:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "part"
        number = next(i for i in itertools.count(1) if (slug if i == 1 else f"{slug}-{i}") not in taken)
        self._ids[id(item)] = slug if number == 1 else f"{slug}-{number}"
        taken.add(self._ids[id(item)])


def _contents(page: Page, anchor: _Anchors) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """What the page has: sections with their figures and tables. A page of one section needs none."""
    if len(page.sections) < 2:
        return []
    entries: list[tuple[str, str, list[tuple[str, str]]]] = []
    for section in page.sections:
        shown = [item for item in section.exhibits if not isinstance(item, Code)]
        entries.append(
            (anchor(section), section.title, [(anchor(item), _brief(item.title)) for item in shown])
        )
    if page.claims:
        entries = [("claims", "Claims", []), *entries, ("claim-details", "The claims in detail", [])]
    return [*entries, ("how-this-page-was-made", "How this page was made", [])]


def _brief(title: str) -> str:
    return title if len(title) <= 60 else title[:57].rsplit(" ", 1)[0] + " …"


def _html(page: Page, pictures: dict[str, str]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("softtargets.report"),
        autoescape=True,  # class names, run names and commands are data, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["figure"] = lambda exhibit: isinstance(exhibit, Figure)
    environment.tests["code"] = lambda exhibit: isinstance(exhibit, Code)
    environment.filters["embedded"] = lambda data: Markup(embedded(data))
    anchor = _Anchors(page)
    environment.filters |= {
        "number": _number,
        "short": _short,
        "with_unit": _with_unit,
        "ours": _ours,
        "ours_long": _ours_long,
        "unbroken": _unbroken,
    }
    environment.filters |= {"cited": _cited, "anchor": anchor, "zip": zip}
    judged = judge(page.claims)
    counts = {verdict: sum(one.verdict == verdict for one in judged) for verdict in VERDICTS}
    scripts = scripts_for(_widgets(page).values())
    return environment.get_template("page.html").render(
        page=page,
        pictures=pictures,
        rule=_rule(page),
        counts=counts,
        judged=judged,
        strips=[strip_row(one) for one in judged],
        headline=headline(judged),
        signs=SIGNS,
        computed_only=all(claim.computed for claim in page.claims),
        contents=_contents(page, anchor),
        policy=Markup(policy_for(scripts)),  # quotes belong in it; nothing in it comes from outside
        scripts=[Markup(script) for script in scripts],
    )
