"""Break the source in one place after another, and see whether the tests notice.

python tests/mutations/run.py                                 every list beside this file
python tests/mutations/run.py tests/mutations/data.yaml       one of them

Each mutation is tried in a copy of the tree, after its tests have passed there without it. The last line counts them,
and the exit code is 1 if a mutation survived, or if one no longer fits the source or its tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import yaml

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent
SECONDS = 900  # a mutation under which the tests take longer has been noticed


@dataclass(frozen=True)
class Mutation:
    """One plausible bug: the text `old` of a file becomes `new`, and then `tests` must fail."""

    what: str
    file: str
    old: str
    new: str
    tests: str
    first: (
        str  # what happened when it was tried for the first time: killed, or survived until a test was added
    )

    def problem(self, root: Path = ROOT) -> str:
        """Why it cannot be tried on this source, or nothing."""
        if self.first not in ("killed", "survived"):
            return f"first must be killed or survived, not {self.first!r}"
        if self.old == self.new:
            return "old and new are the same"
        path = root / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        if (found := path.read_text(encoding="utf-8").count(self.old)) != 1:
            return f"old stands {found} times in {self.file}, not once"
        missing = [test for test in self.tests.split() if not (root / test.partition("::")[0]).exists()]
        return f"{', '.join(missing)} does not exist" if missing or not self.tests.split() else ""


def read(path: Path) -> list[Mutation]:
    """The mutations of one list."""
    return [Mutation(**entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []]


def copy_tree(to: Path) -> Path:
    """What git knows of the tree, or would take in; all of it where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        return shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def run_tests(root: Path, tests: str, *, write: bool = False) -> tuple[int, str]:
    """pytest's exit code and the end of what it printed; `write` leaves compiled files for the next time."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    if not write:
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, "took too long"
    return done.returncode, (done.stdout + done.stderr).strip()[-2000:]


class Workshop:
    """A copy of the tree in which one mutation at a time is tried."""

    def __init__(self, root: Path) -> None:
        self.root = copy_tree(root)
        self._clean: dict[str, str] = {}

    def attempt(self, mutation: Mutation) -> tuple[str, str]:
        """Killed, survived, broken (it cannot be judged) or skipped (its tests do not run here), and why."""
        if problem := mutation.problem(self.root):
            return "broken", problem
        if mutation.tests not in self._clean:
            code, said = run_tests(self.root, mutation.tests, write=True)
            self._clean[mutation.tests] = (
                said if code else ("" if re.search(r"\d+ passed", said) else "skipped")
            )
        if (clean := self._clean[mutation.tests]) == "skipped":
            return "skipped", "all its tests are skipped on this machine"
        if clean:
            return "broken", f"its tests fail without it:\n{clean}"
        path = self.root / mutation.file
        source = path.read_text(encoding="utf-8")
        Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
        path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            code, said = run_tests(self.root, mutation.tests)
        finally:
            path.write_text(source, encoding="utf-8")
        return ("survived", "") if code == 0 else ("killed", said.splitlines()[-1] if said else "")


def main() -> int:
    """Try all, say what became of each."""
    parser = argparse.ArgumentParser(description="Break the source and see whether the tests notice.")
    parser.add_argument("lists", nargs="*", type=Path, help="lists of mutations [all beside this file]")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at a time [2]")
    options = parser.parse_args()
    mutations = [
        mutation for path in options.lists or sorted(LISTS.glob("*.yaml")) for mutation in read(path)
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        free: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(options.jobs):
            free.put(Workshop(Path(folder) / str(number)))

        def attempt(mutation: Mutation) -> tuple[str, str]:
            workshop = free.get()
            try:
                return workshop.attempt(mutation)
            finally:
                free.put(workshop)

        outcomes: Counter[str] = Counter()
        for mutation, (outcome, reason) in zip(mutations, pool.map(attempt, mutations), strict=True):
            outcomes[outcome] += 1
            print(
                f"{outcome:9s}{mutation.file}: {mutation.what}" + (f"  ({reason})" if reason else ""),
                flush=True,
            )
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "no mutations")
    return 1 if outcomes["survived"] or outcomes["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
