"""Reports: a study as one page that a person wants to read."""

from softtargets.report.page import Column, Figure, Page, Section, Table
from softtargets.report.writing import write_page

__all__ = ["Column", "Figure", "Page", "Section", "Table", "write_page"]
