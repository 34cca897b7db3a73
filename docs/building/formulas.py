"""Formulas as MathML, which browsers draw themselves: the site needs no script and no network for them."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

# A fence or a span of code, which is left as it is, or a formula between dollars.
_CODE_OR_FORMULA = re.compile(
    r"(?P<fence>^(?P<mark>[ ]*(?:```+|~~~+)).*?^(?P=mark)[ ]*$)|(?P<code>`+[^`]*`+)"
    r"|\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\d\w])",
    re.DOTALL | re.MULTILINE,
)


def with_formulas(markdown: str) -> str:
    r"""Markdown whose formulas, between single or double dollars, are MathML.

    >>> with_formulas("costs `$5$`, and $a^2$")[:30]
    'costs `$5$`, and <math xmlns="'
    """

    def drawn(found: re.Match[str]) -> str:
        if found["block"] is not None:
            return f'\n<div class="formula">{convert(found["block"].strip(), display="block")}</div>\n'
        return convert(found["inline"]) if found["inline"] is not None else found[0]

    return _CODE_OR_FORMULA.sub(drawn, markdown)
