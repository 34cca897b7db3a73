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
# A wide space behind a comma: formulas side by side, which stand below each other where there is no room.
_SPACED = re.compile(r"(?<=[,;])\s*\\q?quad\s*")
_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")


def with_formulas(markdown: str) -> str:
    r"""Markdown whose formulas, between single or double dollars, are MathML.

    >>> with_formulas("costs `$5$`, and $a^2$")[:30]
    'costs `$5$`, and <math xmlns="'
    """

    def drawn(found: re.Match[str]) -> str:
        if found["block"] is not None:
            drawn = "".join(_math(part, "block") for part in _SPACED.split(found["block"].strip()))
            return f'\n<div class="formula">{drawn}</div>\n'
        return _math(found["inline"], "inline") if found["inline"] is not None else found[0]

    return _CODE_OR_FORMULA.sub(drawn, markdown)


def _math(formula: str, display: str) -> str:
    """One formula; a command that the converter does not know, and would print as it is, is refused."""
    known = re.sub(r"\\arg\s*\\(max|min)", r"\\operatorname{arg\1}", formula)
    made = convert(known, display=display)
    if unknown := re.search(r"\\[a-zA-Z]+", made):
        raise ValueError(f"{unknown[0]} in the formula {formula!r} cannot be drawn as MathML")
    # A prime is small and high up by itself; as an exponent it would be a speck.
    return _PRIME.sub(r"<mrow>\1<mo lspace='0' rspace='0'>&#x02032;</mo></mrow>", str(made))
