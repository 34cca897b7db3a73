"""Words that the guide in CONTRIBUTING.md ("Prose for readers") forbids are in nothing that a reader sees."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "softtargets"

# What must not be said, and what is said instead.
FORBIDDEN = {
    r"\bby heart\b": "memorised",
    r"\b[Ss]urer\b|\btoo sure\b|\bis sure of\b|\bhow sure\b": "confident, more confident, overconfident",
    r"\b(over|under)-confiden": "overconfident, underconfident",
    r"\bcannot be told\b|\bcan no longer be told\b": "indistinguishable from",
    r"\bcannot be said\b|\bcould be said\b": "as far as these examples show",
    r"\bin the mean\b|\bon the average\b": "on average",
    r"\bis one of 95 %": "95 % interval",
    r"\b(noise|that|much) asks for\b|\bdoes that ask for\b": "is best for",
    r"\bgrows without end\b": "grows without bound",
    r"\blies? away\b|\bdenies the right one\b": "the distance from",
    r"\bnot enough seeds\b|\bstayed undecided\b": "inconclusive",
    r"\bmore examples would tell\b|\bsee below\b": "say it here",
    r"\bhardly\b": "barely, rarely, or a number",
    r"\bis taken for none\b|\bbears? (it |them )?out\b": "counts as none, confirms",
    r"(?<![\w-])1 (runs|seeds|examples|classes|claims)\b": "1 run",
    r"(?<![\w`./:={(-])[Nn]ets?\b(?![`.(=:_/\w-]|\\)": "model, network",
}
# In sentences with numbers in them; formats of Python end in % too.
IN_TEXTS = {r"\d%": "a space before the per cent sign", r"(?<=[ (])-\d": "a real minus sign, −"}

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
# Rooms whose strings and docstrings people read on pages, on a terminal, or by help().
ROOMS = [
    "atlas",
    "calibration",
    "claims",
    "cli",
    "distillation",
    "errors",
    "geometry",
    "information",
    "inspection/advise",
    "inspection/calibrate",
    "inspection/compare",
    "inspection/shared",
    "inspection/translate",
    "inspection/view",
    "losses",
    "noise",
    "recipes",
    "report",
    "runs",
    "selection",
    "studies",
    "theory",
]


def found(text: str, forbidden: dict[str, str]) -> list[str]:
    """Each forbidden phrase with some words around it, and what to write."""
    said = []
    for pattern, instead in forbidden.items():
        for match in re.finditer(pattern, text):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 30].split())
            said.append(f"…{around}…  ({instead})")
    return said


def strings(path: Path) -> str:
    """The texts in a file of ours, docstrings included, without code in them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    prose = [text for text in texts if len(text.split()) > 2 and " | " not in text]
    lines = [
        line for text in prose for line in text.split("\n") if not re.match(r"\s*(>>>|\.\.\. |\|)", line)
    ]
    return re.sub(r"`[^`\n]+`", "``", "\n".join(lines))


def without_code(markdown: str) -> str:
    return re.sub(r"`[^`\n]+`", "``", re.sub(r"```.*?```", "", markdown, flags=re.S))


@pytest.mark.parametrize(
    "said",
    [
        "every interval is one of 95 %.",
        "It cannot be told from perfectly calibrated",
        "Which is more accurate cannot be said",
        "It is the most that noise asks for, by a net",
        "a model that learns every label by heart",
        "What it lies away from the prediction",
        "It is so in the mean.",
        "since they are hardly known better.",
        "Nets are large, and a net's logits too.",
        "1 runs, 0 of them",
    ],
)
def test_the_worst_sentences_would_be_found(said):
    assert found(said, FORBIDDEN)


def test_names_in_code_are_not_words():
    assert (
        found("net.eval(), `net` and timm:resnet50 of the K-1 classes, net=None, by_heart", FORBIDDEN) == []
    )


@pytest.mark.parametrize("page", PAGES)
def test_pages_for_readers(page):
    text = without_code((ROOT / page).read_text(encoding="utf-8"))
    assert found(text, FORBIDDEN | IN_TEXTS) == []


@pytest.mark.parametrize("room", ROOMS)
def test_texts_in_the_code(room):
    texts = {path: strings(path) for path in sorted((PACKAGE / room).rglob("*.py"))}
    assert texts
    assert {str(path): said for path, text in texts.items() if (said := found(text, FORBIDDEN))} == {}


def test_widgets_and_templates():
    for path in sorted((PACKAGE / "report" / "templates").rglob("*.*")):
        text = re.sub(r"^\s*(//|\*|/\*).*$", "", path.read_text(encoding="utf-8"), flags=re.M)
        assert found(text, FORBIDDEN) == [], path


def test_help_of_every_command(capsys):
    from cli.command import ran
    from cli.test_help import COMMANDS

    for words in COMMANDS:
        assert found(ran(capsys, *words.split(), "--help")[1], FORBIDDEN) == [], words


def test_claims_of_studies():
    from softtargets.studies import STUDIES, Results

    for study in STUDIES:
        claims = study.claims(Results(()))
        texts = [study.title, study.lead, *(f"{one.statement} {one.quantity} {one.remark}" for one in claims)]
        assert found("\n".join(texts), FORBIDDEN | IN_TEXTS) == [], study.name


def test_parts_of_recipes(capsys):
    from cli.command import ran

    assert found(ran(capsys, "recipe", "parts")[1], FORBIDDEN) == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "results").glob("*/index.html")), ids=lambda page: page.parent.name
)
def test_committed_pages_say_what_people_say(page):
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.S)
    assert found(re.sub(r"<[^>]+>", " ", shown), FORBIDDEN) == []
