"""A run that was never trained, for what studies measure on runs."""

from __future__ import annotations

import json
import shutil


class Written:
    """A run that says what it is told to: of the test set, and of its epochs."""

    def __init__(self, logits, labels, history=None):
        self.logits, self.labels = logits, labels
        self._history = history or [
            {"test_accuracy": 0.6, "train_accuracy": 0.5},
            {"test_accuracy": 0.5, "train_accuracy": 0.75},
        ]
        self.summary = self._history[-1]

    def predictions(self, split):
        assert split == "test"
        return self

    def history(self):
        return self._history


def page_with_and_without_runs(study, settings, directory):
    """Train and write a page, then write it again from what is kept beside it; the results of both."""
    from softtargets.runs import RunStore, export_logs
    from softtargets.studies import redraw_study, run_study
    from softtargets.training import train

    store = RunStore(directory / "runs")
    page = run_study(study, settings, store, directory / "report", command="c", train=train, device="cpu")
    runs = {run.id: run for trial in study.trials(settings) if (run := store.find(trial.recipe)) is not None}
    export_logs(runs.values(), page.parent / "logs.jsonl.gz", [])
    shutil.rmtree(directory / "runs")
    again = redraw_study(study, page.parent, directory / "again", command="again")
    return tuple(
        json.loads((path.parent / "results.json").read_text(encoding="utf-8")) for path in (page, again)
    )
