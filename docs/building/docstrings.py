"""Docstrings as Markdown: formulas, examples and lists of options as the site shows them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_ROLE = re.compile(r":math:`([^`]+)`")
_DIRECTIVE = re.compile(
    r"^\.\. math::[ ]*(?P<same>.*)\n(?P<body>(?:[ ]{4,}.*\n?|\n(?=[ ]{4}))*)", re.MULTILINE
)
_INDEX = re.compile(r"\[(\w+)\](?=\[\w+\])")  # of a matrix, which Markdown would take for a link
_OPTION = re.compile(r"^(?P<name>\w+):\s+(?P<text>\S.*)$")


def as_markdown(text: str) -> str:
    r"""A docstring of this package as Markdown.

    >>> as_markdown("Twice :math:`a`.\n\nfactor:  two\nother:   none,\n         or one")
    'Twice $a$.\n\n- `factor`: two\n- `other`: none, or one'
    """
    text = _DIRECTIVE.sub(
        lambda found: f"$${' '.join((found['same'] + found['body']).split())}$$\n", text + "\n"
    )
    text = _INDEX.sub(r"\\[\1]", _ROLE.sub(r"$\1$", text)).rstrip("\n")
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", text))


def _block(block: str) -> str:
    """One paragraph, example or list of options."""
    if block.lstrip().startswith(">>>"):
        return f"```pycon\n{block}\n```"
    lines = block.splitlines()
    begun = next((place for place, line in enumerate(lines) if line.startswith(">>> ")), None)
    if begun is not None:  # an example right after a sentence
        return f"{_block(chr(10).join(lines[:begun]))}\n\n{_block(chr(10).join(lines[begun:]))}"
    first = _OPTION.match(lines[0])
    listed = first and all(_OPTION.match(line) or line.startswith("    ") for line in lines)
    if not listed:
        return block
    said: list[str] = []
    for line in lines:
        option = _OPTION.match(line)
        if option:
            said.append(f"- `{option['name']}`: {option['text']}")
        else:
            said[-1] += f" {line.strip()}"
    return "\n".join(said)


class Docstrings(Extension):
    """Turns every docstring into Markdown before it is drawn."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            from docs.building.formulas import with_formulas

            obj.docstring.value = with_formulas(as_markdown(obj.docstring.value))
