"""Lessons beside the pages: of teachers whose students are not all trained, so that no teacher is trained twice.

Results have no weights, so a teacher that came from there would have to be trained again for its students. Those that
learn from what it says of their training examples, as they are, need no more than that: some hundred kilobytes.
"""

from __future__ import annotations

import re
from pathlib import Path

from softtargets.campaign.cells import cells_of, states, wanted_lessons
from softtargets.campaign.file import Campaign
from softtargets.runs import TEACHERS, Run, RunStore, pack_runs
from softtargets.storage import make_directory
from softtargets.training import LESSONS, has_lessons

_OURS = re.compile(r"[0-9a-f]{16}\.zip")


def write_lessons(campaign: Campaign, store: RunStore, out: Path) -> list[Path]:
    """Pack each teacher that has lessons which a student waits for into a file of its own; returns these files.

    They lie in a directory beside the pages, where `merge_runs` finds them. One whose students are all trained is
    removed. One that is there stays as it is unless its run was trained in this store.
    """
    cells = cells_of(campaign)
    wanted = wanted_lessons(cells, states(cells, store))
    there = [run for key in sorted(wanted) if (run := store.find(cells[key].recipe)) is not None]
    teaching = [run for run in there if run.status == "finished" and has_lessons(run)]
    directory = out / TEACHERS
    for path in directory.glob("*.zip"):
        if _OURS.fullmatch(path.name) and path.stem in cells and path.stem not in wanted:
            path.unlink()
    if teaching:
        make_directory(directory)
    written = [_file_of(run, directory) for run in teaching]
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
    return written


def _file_of(run: Run, directory: Path) -> Path:
    path = directory / f"{run.id}.zip"
    if not (run.is_light and path.exists()):
        pack_runs([run], path, splits={run.id: (LESSONS,)})
    return path
