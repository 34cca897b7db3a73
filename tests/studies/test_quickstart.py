"""The quickstart on two seeds and few epochs: everything but the patience."""

from __future__ import annotations

import csv
import json
import os
import shutil

import pytest

from softtargets.calibration import expected_calibration_error
from softtargets.exceptions import StorageError, StudyError
from softtargets.runs import Run, RunStore, export_logs, export_predictions, recomputed
from softtargets.studies import STUDIES, Outcome, Results, find_study, redraw_study, run_study
from softtargets.training import train
from tests.studies.making import Told

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A small quickstart, made once for this module."""
    directory = tmp_path_factory.mktemp("quickstart")
    study = find_study(STUDIES, "quickstart")
    settings = study.settings(seeds=2, changes={"epochs": 2})
    store = RunStore(directory / "runs")
    page = run_study(
        study,
        settings,
        store,
        directory / "report",
        command="softtargets study run <b>",
        train=train,
        device="cpu",
    )
    return page, store, study, settings


def test_the_report_is_complete(quick):
    page, _, _, _ = quick
    html = page.read_text()
    results = json.loads((page.parent / "results.json").read_text())
    assert len(results["claims"]) == 8
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    for name in ("sweep", "reliability", "planes", "distillation"):
        for kind in ("png", "svg"):
            assert (page.parent / "figures" / f"{name}.{kind}").stat().st_size > 5_000
        assert (page.parent / "tables" / f"{name}.csv").exists()
    assert "softtargets study run &lt;b&gt;" in html
    assert "What digits cannot show" in html
    assert len(list(csv.DictReader((page.parent / "tables" / "runs.csv").open()))) == 32


def test_a_page_is_not_replaced_by_one_that_has_less(quick, tmp_path):
    """Two of its figures need predictions and weights, which are not kept beside it."""
    page, store, study, _ = quick
    directory = tmp_path / "report"
    shutil.copytree(page.parent, directory)
    export_logs((Run(store.root / entry.id) for entry in store.entries()), directory / "logs.jsonl.gz")
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    with pytest.raises(
        StudyError, match=r"would lose reliability, planes, .* with --out, or .* study run quickstart"
    ):
        redraw_study(study, directory, directory, command="again")
    assert before == {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    again = redraw_study(study, directory, tmp_path / "elsewhere", command="again")
    assert "The reliability diagram: not stored." in again.read_text(encoding="utf-8")
    redraw_study(study, again.parent, again.parent, command="again")  # which loses nothing more


def test_numbers_on_the_page_can_be_recomputed_from_stored_predictions_alone(quick, tmp_path):
    """In the file that is published: predicted classes and probabilities in 16 bits."""
    page, store, _, _ = quick
    file = tmp_path / "predictions.npz"
    export_predictions((Run(store.root / entry.id) for entry in store.entries()), file)
    found = recomputed(file)
    rows = list(csv.DictReader((page.parent / "tables" / "runs.csv").open()))
    assert {row["run"] for row in rows} == found.keys()
    for row in rows:
        assert float(row["accuracy"]) == pytest.approx(found[row["run"]]["accuracy"], abs=1e-12)
        assert float(row["ece"]) == pytest.approx(found[row["run"]]["ece"], abs=1e-4)
        assert float(row["nll"]) == pytest.approx(found[row["run"]]["nll"], abs=1e-4)


def test_numbers_on_the_page_are_those_of_the_runs(quick):
    page, store, study, settings = quick
    rows = list(csv.DictReader((page.parent / "tables" / "nets.csv").open()))
    trials = [t for t in study.trials(settings) if t.labels["role"] == "model" and t.labels["alpha"] == 0.1]
    found = []
    for trial in trials:
        test = store.find(trial.recipe).predictions("test")
        found.append(expected_calibration_error(test.logits.softmax(-1), test.labels))
    row = next(row for row in rows if row["alpha"] == "0.1")
    assert float(row["ece_mean"]) == pytest.approx(sum(found) / 2)
    assert row["ece_n"] == "2"


def _without(store: RunStore, directory, leave_out) -> RunStore:
    """A copy of a store in which some runs are not there."""
    other = RunStore(directory / "runs")
    shutil.copytree(store.root, other.root)
    for recipe in leave_out:
        other.delete(recipe.id)
    return other


def test_a_page_while_some_runs_are_missing(quick, tmp_path):
    _, store, study, settings = quick
    missing = [
        t.recipe for t in study.trials(settings) if t.labels["role"] == "model" and t.labels["alpha"] == 0.2
    ]
    other = _without(store, tmp_path, missing)
    page = run_study(study, settings, other, tmp_path / "report", command="c", train=None, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == ["2 of 32 runs have not been trained to their end and are left out."]
    assert "nan" not in json.dumps(results["claims"])
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}


def test_no_strength_is_chosen_before_the_first_seed_has_them_all():
    study = find_study(STUDIES, "quickstart")
    keys = (
        "temperature",
        "ece",
        "ece_scaled",
        "ece_validation",
        "nll",
        "accuracy",
        "spread_train",
        "spread_test",
    )

    def measures(trial):
        alpha = trial.labels["alpha"] if trial.labels["role"] == "model" else 0.0
        return dict.fromkeys(keys, 0.1 - 0.1 * alpha + 0.001 * (trial.recipe.seed % 3))

    trials = study.trials(study.settings())
    results = Results(tuple(Outcome(one, Told([{"epoch": 1}]), measures(one)) for one in trials))

    def suitable(there):
        (claim,) = (
            one for one in study.claims(Results(tuple(there))) if "suitable strength" in one.statement
        )
        return claim

    assert suitable(results.outcomes).quantity == "ECE at alpha 0.2 minus ECE at alpha 0"
    early = [one for one in results.outcomes if one.seed or one.trial.labels.get("alpha") != 0.2]
    assert (suitable(early).quantity, suitable(early).verdict) == (
        "ECE at alpha – minus ECE at alpha 0",
        "not run yet",
    )


def test_too_few_runs_for_a_page_are_told_and_leave_nothing_behind(quick, tmp_path):
    _, store, study, settings = quick
    other = _without(store, tmp_path, [t.recipe for t in study.trials(settings)][1:])
    with pytest.raises(
        StudyError, match="1 of 32 runs are too few for the page of 'quickstart'; leave out --no-t"
    ):
        run_study(study, settings, other, tmp_path / "report", command="c", train=None, device="cpu")
    assert not (tmp_path / "report").exists()


def test_degenerate_nets_are_warned_about_and_the_numbers_stay_valid_json(tmp_path):
    """One hidden unit has no template plane; with so little training nothing may crash or turn into NaN on disk."""
    study = find_study(STUDIES, "quickstart")
    settings = study.settings(seeds=1, changes={"model.hidden": [1], "steps": 1})
    with pytest.raises(StudyError, match="no finished run"):
        run_study(
            study, settings, RunStore(tmp_path / "a"), tmp_path / "b", command="c", train=train, device="cpu"
        )


def test_a_study_that_needs_validation_says_so_before_training(tmp_path):
    study = find_study(STUDIES, "quickstart")
    settings = study.settings(changes={"data.validation": 0})
    with pytest.raises(StudyError, match=r"needs validation examples; keep data\.validation above 0"):
        run_study(study, settings, RunStore(tmp_path / "a"), tmp_path / "b", command="c", train=train)
    assert not (tmp_path / "a").exists()


def test_a_report_that_cannot_be_written_is_refused_before_training(tmp_path):
    (tmp_path / "file").write_text("in the way")
    study = find_study(STUDIES, "quickstart")
    with pytest.raises(StorageError, match="cannot create"):
        run_study(
            study, study.settings(), RunStore(tmp_path / "a"), tmp_path / "file", command="c", train=train
        )
    assert not (tmp_path / "a").exists()


class Fewer:
    """A run that says it has seen other numbers of examples."""

    def __init__(self, run):
        self._run = run
        self.provenance = run.provenance | {"examples": {"train": 61, "test": 17}}

    def __getattr__(self, name):
        return getattr(self._run, name)


def test_captions_speak_of_what_was_trained(quick):
    _, store, study, settings = quick
    runs = [(trial, store.find(trial.recipe)) for trial in study.trials(settings)]
    outcomes = tuple(Outcome(trial, Fewer(run), study.measure(trial, run)) for trial, run in runs)
    sections = study.findings(Results(outcomes)).sections
    captions = [exhibit.caption for section in sections for exhibit in section.exhibits]
    assert any(caption.startswith("Students see 61 digits") for caption in captions)
    assert "trained on 61 of" in sections[0].paragraphs[0]
    assert "With 17 test digits" in sections[-1].paragraphs[0]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; install Debian's `chromium` package")
def test_the_page_opens_in_a_browser_without_network_errors_or_overflow(quick, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    page_file, _, _, _ = quick
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ],
        )
        complaints: list[str] = []
        requests: list[str] = []
        for width in (1200, 420):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(page_file.as_uri())
            assert page.title().startswith("When does label smoothing help?")
            assert page.locator("figure img").count() == 4
            sizes = page.eval_on_selector_all("figure img", "images => images.map(i => i.naturalWidth)")
            assert min(sizes) > 300, "a figure did not load"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("a.strip").count() == 8
            page.locator("details summary").click()
            assert page.locator("details table tbody tr").first.is_visible()
            page.screenshot(path=os.fspath(tmp_path / f"{width}.png"), full_page=True)
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
