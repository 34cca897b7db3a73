"""Reports: a study, or a file of predictions, as one page that a person wants to read."""

from softtargets.report.charts import Curve, Line, Map, Marker, Panel, lines, maps
from softtargets.report.numbers import number, percent, plural
from softtargets.report.page import Code, Column, Figure, Page, Section, Table, Tone, Verdict, Widget, columns
from softtargets.report.widgets import plain_data
from softtargets.report.writing import write_page

__all__ = [
    "Code",
    "Column",
    "Curve",
    "Figure",
    "Line",
    "Map",
    "Marker",
    "Page",
    "Panel",
    "Section",
    "Table",
    "Tone",
    "Verdict",
    "Widget",
    "columns",
    "lines",
    "maps",
    "number",
    "percent",
    "plain_data",
    "plural",
    "write_page",
]
