"""A page on disk: one HTML file that needs no network, and beside it the figures and the numbers."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from softtargets.claims import COMPUTED_RULE, RULE, VERDICTS, Sample, judge
from softtargets.report.charts import CHARTS
from softtargets.report.drawing import KINDS, house_style, rendered
from softtargets.report.kept_claims import claim_data
from softtargets.report.look import look
from softtargets.report.page import Code, Figure, Page, Table, Widget
from softtargets.report.strip import headline, strip_row
from softtargets.report.widgets import check_widget, plain_data, policy_for, scripts_for
from softtargets.storage import make_directory, write_atomically, write_json


def write_page(page: Page, directory: Path) -> Path:
    """Write ``index.html``, ``figures/*.png|svg``, ``tables/*.csv`` and ``results.json``; return the page."""
    for widget in _widgets(page).values():
        check_widget(widget)
    pictures = {figure.name: _render(figure, directory / "figures") for figure in _figures(page)}
    for table in page.tables:
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
    tested = {"rule": _rule(page), "claims": [claim_data(judged) for judged in judge(page.claims)]}
    extra = {"answer": page.answer, "kept": plain_data(page.kept)}
    results = {
        **({"study": page.name} if study else {"kind": page.kind, "name": page.name}),
        "title": page.title,
        **{key: value for key, value in extra.items() if value},
        "command": page.command,
        "provenance": plain_data(page.provenance),
        "warnings": list(page.warnings),
        **(tested if study or page.claims else {}),
        "tables": {table.name: plain_data(table.rows) for table in page.tables},
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
    from markupsafe import Markup

    environment = look()
    environment.tests["figure"] = lambda exhibit: isinstance(exhibit, Figure)
    environment.tests["code"] = lambda exhibit: isinstance(exhibit, Code)
    anchor = _Anchors(page)
    environment.filters |= {"cited": _cited, "anchor": anchor}
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
        computed_only=all(claim.computed for claim in page.claims),
        contents=_contents(page, anchor),
        policy=Markup(policy_for(scripts)),  # quotes belong in it; nothing in it comes from outside
        scripts=[Markup(script) for script in scripts],
    )
