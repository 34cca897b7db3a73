"""The templates of pages with all that they need to write numbers and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softtargets.report.claim_words import claim_number, ours, ours_long, short, unbroken, with_unit
from softtargets.report.strip import SIGNS
from softtargets.report.widgets import embedded

if TYPE_CHECKING:
    from jinja2 import Environment


def look() -> Environment:
    """An environment for templates of this room: what they are given is data, never markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("softtargets.report"),
        autoescape=True,  # class names, run names and commands are data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "embedded": lambda data: Markup(embedded(data)),
        "number": claim_number,
        "short": short,
        "with_unit": with_unit,
        "ours": ours,
        "ours_long": ours_long,
        "unbroken": unbroken,
        "zip": zip,
    }
    environment.globals["signs"] = SIGNS
    return environment
