"""Reports: a study, or a file of predictions, as one page that a person wants to read."""

from softtargets.report.charts import Curve, Line, Map, Marker, Panel, lines, maps
from softtargets.report.claim_words import ours, ours_long, unbroken
from softtargets.report.kept_claims import kept_judgement
from softtargets.report.look import look
from softtargets.report.numbers import number, percent, plural
from softtargets.report.page import Code, Column, Figure, Page, Section, Table, Tone, Verdict, Widget, columns
from softtargets.report.strip import SIGNS, strip_row
from softtargets.report.widgets import plain_data, policy_for
from softtargets.report.writing import write_page

__all__ = [
    "SIGNS",
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
    "kept_judgement",
    "lines",
    "look",
    "maps",
    "number",
    "ours",
    "ours_long",
    "percent",
    "plain_data",
    "plural",
    "policy_for",
    "strip_row",
    "unbroken",
    "write_page",
]
