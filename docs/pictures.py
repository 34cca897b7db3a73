"""The pictures of the README: pages that the commands write, photographed; ``make pictures`` makes them again.

Beside the pictures lies ``pictures.json``: the words and numbers of the pages as they were. ``make check-pictures``
makes the pages anew and fails where they say something else, so that pictures and README cannot age. Pixels are not
compared, since fonts differ; nor are numbers to the last digit, since processors do.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
KEPT = DOCS / "pictures.json"
VERDICTS = ("reproduced", "contradicted", "no effect", "inconclusive", "not run yet")
LEVEL = 0.05
# From one processor to another roundings differ, and trainings of other roundings are like trainings of other seeds:
# numbers may differ by this share, and by a few of their last digits, and verdicts may turn where p is near the level.
CLOSE, LAST_DIGITS, EDGE = 0.25, 5, 5
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def made_up(path: Path) -> None:
    """Predictions of a model that does not exist: right if its logits were divided by 1.8."""
    import numpy as np

    generator = np.random.default_rng(7)
    logits = 3.0 * generator.standard_normal((4000, 10))
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = [generator.choice(10, p=row) for row in probabilities]
    np.savez(path, logits=(1.8 * logits).astype(np.float32), labels=np.array(labels))


def pages(directory: Path) -> dict[str, Path]:
    """The pages, made in this directory."""
    made_up(directory / "predictions.npz")
    command(directory, "calibrate", "predictions.npz")
    command(directory, "study", "run", "quickstart")
    reports = directory / "reports"
    return {"calibrate": reports / "calibrate-predictions", "quickstart": reports / "quickstart"}


def command(directory: Path, *words: str) -> None:
    """One of our commands, run in a directory of its own."""
    code = "from softtargets.cli import main; main()"
    path = os.pathsep.join(filter(None, [str(DOCS.parent / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}  # what is photographed is this checkout
    subprocess.run([sys.executable, "-c", code, *words], cwd=directory, env=environment, check=True)


SIZES = {"calibrate": (1100, 1000), "quickstart": (1400, 1100)}


def photograph(page: Path, picture: Path, size: tuple[int, int]) -> bool:
    """The top of a page as a picture; False where there is no browser."""
    browser = next((found for found in map(shutil.which, CHROMIUM) if found), None)
    if browser is None:
        return False
    width, height = size
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
    ]
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                *options,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "--virtual-time-budget=3000",
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
    return picture.stat().st_size > 10_000


class _Text(HTMLParser):
    """What a reader reads: no scripts, no styles."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("script", "style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "title")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def content(directory: Path) -> dict[str, Any]:
    """The words of a page without its numbers and verdicts, and those beside them."""
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    reader = _Text()
    reader.feed((directory / "index.html").read_text(encoding="utf-8"))
    text = " ".join(" ".join(reader.parts).split())
    # When, where and by which commit a page was made. A short number, such as the engine's, is masked with all others;
    # here it would be cut out of the ids of runs.
    told = [value for value in map(str, results["provenance"].values()) if len(value) > 3]
    for value in sorted(told, key=len, reverse=True):
        text = text.replace(value, "")
    claims = [
        {
            "statement": one["statement"],
            "verdict": one["verdict"],
            "shown": one["shown"],
            "p": _least(one["p"]),
        }
        for one in results.get("claims", [])
    ]
    verdict = results.get("verdict") or {}
    return {
        "words": _masked(text),
        "claims": claims,
        "headline": verdict.get("headline", ""),
        "sentences": list(verdict.get("sentences", [])),
    }


def _least(p: dict[str, dict[str, float]]) -> float | None:
    """The least p of a claim on its page: what its verdict turns on."""
    found = [one["on_page"] for one in p.values() if one.get("on_page") is not None]
    return min(found) if found else None


def _masked(text: str) -> str:
    """Every word of a page once, without numbers, run ids and verdicts."""
    text = re.sub(r"\b[0-9a-f]{12,16}\b", "#", text)
    for verdict in VERDICTS:
        text = text.replace(verdict, "@")
    text = re.sub(r"[−+-]?\d[\d,]*(?:\.\d+)?(?:e[−+-]?\d+)?", "#", text)
    return " ".join(sorted(set(re.findall(r"[^\W_]{2,}", text))))


def stale(kept: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What a page says now that its picture does not, and the other way round."""
    found = []
    old, new = set(kept["words"].split()), set(now["words"].split())
    turned = any(
        one["verdict"] != two["verdict"] for one, two in zip(kept["claims"], now["claims"], strict=False)
    )
    if old != new and not turned:  # other verdicts have other sentences
        gone, come = sorted(old - new), sorted(new - old)
        found.append(f"other words: {', '.join(gone) or 'none'} gone, {', '.join(come) or 'none'} new")
    if [one["statement"] for one in kept["claims"]] != [one["statement"] for one in now["claims"]]:
        return [*found, "other claims"]
    for before, after in zip(kept["claims"], now["claims"], strict=True):
        if before["verdict"] != after["verdict"] and not _on_the_edge(before, after):
            found.append(f"“{before['statement']}” was {before['verdict']} and is {after['verdict']}")
        if not same_numbers(before["shown"], after["shown"]):
            found.append(f"“{before['statement']}”: {before['shown']!r} is now {after['shown']!r}")
    for before, after in zip(
        [kept["headline"], *kept["sentences"]], [now["headline"], *now["sentences"]], strict=False
    ):
        if not same_numbers(before, after):
            found.append(f"{before!r} is now {after!r}")
    if len(kept["sentences"]) != len(now["sentences"]):
        found.append("another number of sentences")
    return found


def _on_the_edge(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a verdict turns with the roundings of a processor: p near the level, before or after."""
    known = [one["p"] for one in (before, after) if one["p"] is not None]
    return any(LEVEL / EDGE <= p <= LEVEL * EDGE for p in known)


def same_numbers(before: str, after: str) -> bool:
    """Whether two sentences are the same but for small differences in their numbers.

    >>> same_numbers("0.043, then 0.023 at T = 1.52", "0.044, then 0.023 at T = 1.51"), same_numbers("T = 2", "T is 2")
    (True, False)
    """
    pattern = r"\d[\d,]*(?:\.\d+)?"
    if re.sub(pattern, "#", before) != re.sub(pattern, "#", after):
        return False
    pairs = zip(re.findall(pattern, before), re.findall(pattern, after), strict=True)
    return all(_near(one.replace(",", ""), two.replace(",", "")) for one, two in pairs)


def _near(one: str, two: str) -> bool:
    digits = len(one.partition(".")[2])
    a, b = float(one), float(two)
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=(LAST_DIGITS + 0.001) * 10.0**-digits if digits else 0.0)


def sentence(kept: dict[str, Any]) -> str:
    """What the README says of the quickstart's claims."""
    counts = Counter(one["verdict"] for one in kept["quickstart"]["claims"])
    said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"{sum(counts.values())} claims: {', '.join(said[:-1])} and {said[-1]}"


def main() -> int:
    """Make the pictures, or check that they are what the program shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a picture is stale")
    check = parser.parse_args().check
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    problems, found = [], {}
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for picture, page in pages(directory).items():
            found[picture] = content(page)
            target = directory / f"{picture}.png" if check else DOCS / f"{picture}.png"
            if not photograph(page / "index.html", target, SIZES[picture]):
                print(f"note: no picture of {picture}: there is no Chromium", file=sys.stderr)
                if not check:
                    return 1
            if check and picture not in kept:
                problems.append(f"docs/{picture}.png: nothing is known of its content")
            elif check:
                problems += [
                    f"docs/{picture}.png: {problem}" for problem in stale(kept[picture], found[picture])
                ]
    if not check:
        KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if sentence(kept if check and kept else found) not in " ".join(
        README.read_text(encoding="utf-8").split()
    ):
        problems.append(f"README.md does not say “{sentence(kept or found)}” of the quickstart")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems and check:
        print("make the pictures again with: make pictures", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
