"""The results that are committed: every number can be followed to its run, and some are computed here once more."""

from __future__ import annotations

import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from softtargets.atlas import gather, headline, stale, untraced
from softtargets.atlas.coverage import mentions
from softtargets.claims import judge, papers, printed_by
from softtargets.recipes import Recipe
from softtargets.runs import RunStore, export_predictions, recomputed
from softtargets.studies import STUDIES, Results, find_study
from softtargets.studies.recorded import read_record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
DIRECTORIES = sorted(path.parent.name for path in RESULTS.glob("*/results.json"))

# Results of before something was kept, with the reason; whoever makes them again takes them out of here.
UNTRACED: dict[str, str] = {}


# The rows of the table of errors: which runs they are of.
ERRORS = {
    "teacher, hard targets and dropout": {"role": "table teacher", "alpha": 0.0},
    "teacher, label smoothing 0.1": {"role": "table teacher", "alpha": 0.1},
    "student of the teacher with hard targets": {"role": "table student", "alpha": 0.0},
    "student of the teacher with smoothing": {"role": "table student", "alpha": 0.1},
}


@pytest.fixture(scope="module")
def atlas():
    return gather(RESULTS)


def test_no_number_is_without_recipe_seed_code_and_device():
    found = untraced(RESULTS)
    unexplained = [said for said in found if said.partition(":")[0] not in UNTRACED]
    assert unexplained == []
    needless = set(UNTRACED) - {said.partition(":")[0] for said in found}
    assert not needless, f"can be followed now, so take out of UNTRACED: {needless}"


@pytest.mark.parametrize(
    "name", [name for name in DIRECTORIES if (RESULTS / name / "logs.jsonl.gz").exists()]
)
def test_every_run_of_a_page_has_its_predictions_beside_it(name):
    """So that a reader can recompute every number of the page (results/README.md)."""
    with gzip.open(RESULTS / name / "logs.jsonl.gz", "rt", encoding="utf-8") as lines:
        finished = {log["id"] for log in map(json.loads, lines) if log["status"] == "finished"}
    with np.load(RESULTS / name / "predictions.npz") as file:
        kept = {key.partition(".")[0] for key in file.files}
    assert finished <= kept


def test_the_committed_atlas_is_what_the_results_give():
    """Who changes results, claims or the page writes it again: make atlas."""
    assert stale(RESULTS) == []


def test_the_readme_opens_with_the_counts(atlas):
    beginning = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install")[0]
    assert headline(atlas) in beginning
    assert "results/atlas.svg" in beginning
    assert "results/atlas-dark.svg" in beginning


class Anchors(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.ids |= {value for name, value in attrs if name == "id"}


def test_every_link_of_the_atlas_leads_to_its_claim(atlas):
    ids = {origin.page: Anchors(RESULTS / origin.page).ids for origin in atlas.origins if origin.page}
    assert len(ids) == len(DIRECTORIES)
    for entry in atlas.entries:
        if entry.link:
            page, _, anchor = entry.link.partition("#")
            assert anchor in ids[page]
    listed = [entry.id for entry in atlas.entries]
    assert set(listed) <= Anchors(RESULTS / "index.html").ids
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_verdicts_in_the_atlas_are_those_of_todays_rule(directory, atlas):
    """Who changes a claim or the rule redraws: softtargets study page NAME --from results/NAME."""
    entries = [entry for entry in atlas.entries if entry.origin.directory == directory]
    name = json.loads((RESULTS / directory / "results.json").read_text(encoding="utf-8"))["study"]
    chosen = find_study(STUDIES, name)
    record = read_record(chosen, RESULTS / directory)
    today = judge(chosen.claims(Results(record.outcomes, dict(record.chances))))
    shown = {entry.place: entry.judged for entry in entries}
    assert [
        (shown[place].claim.statement, shown[place].verdict, shown[place].value) for place in sorted(shown)
    ] == [(one.claim.statement, one.verdict, one.value) for one in today]
    for place, one in enumerate(today, 1):
        kept = shown[place].claim
        assert kept.deciding.values == pytest.approx(one.claim.deciding.values)
        assert kept.digits == one.claim.digits
        if not one.claim.computed and one.claim.deciding.n > 1:
            assert kept.interval == pytest.approx(one.claim.interval)


def test_every_table_and_figure_that_something_is_printed_in_is_listed(atlas):
    there = {(one.paper, one.name) for one in atlas.exhibits}
    for paper in papers():
        for item in printed_by(paper).values():
            for kind in re.findall(r"\b(?:table|figure) \w+", item.source.partition(", ")[2]):
                assert (paper, kind) in there, f"{item.source} is not in atlas/exhibits.yaml"
    assert mentions("Müller et al. 2019, section 4 and figure 6", "figure 6")


def test_untraced_names_what_is_missing(tmp_path):
    source = RESULTS / "wagner-figure-2"
    results = json.loads((source / "results.json").read_text(encoding="utf-8"))
    with gzip.open(source / "logs.jsonl.gz", "rt", encoding="utf-8") as lines:
        logs = [json.loads(line) for line in lines]

    def found(results, logs) -> list[str]:
        place = tmp_path / "x"
        place.mkdir(exist_ok=True)
        (place / "results.json").write_text(json.dumps(results))
        with gzip.open(place / "logs.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in logs)
        return untraced(tmp_path)

    assert found(results, logs) == []
    run = logs[0]["id"]
    assert found(results, logs[1:]) == [f"x: run {run} has no line in the logs"]
    told = logs[0]["provenance"]
    without = [{**logs[0], "provenance": {**told, "commit": None, "device": ""}}, *logs[1:]]
    assert found(results, without) == [
        f"x: run {run} has no commit of the code that trained it",
        f"x: run {run} does not say its device",
    ]
    other = [{**logs[0], "recipe": {**logs[0]["recipe"], "seed": 77}}, *logs[1:]]
    assert "another in its recipe" in found(results, other)[0]
    assert "has a recipe whose id is" in found(results, other)[1]
    broken = [{**logs[0], "recipe": {**logs[0]["recipe"], "epochs": "many"}}, *logs[1:]]
    assert "has no recipe that can be read" in found(results, broken)[0]
    nameless = {**results, "tables": {"runs": [{**results["tables"]["runs"][0], "run": "?"}]}}
    assert found(nameless, logs) == ["x: a row of its runs has no id: '?'"]
    silent = {**results, "provenance": {}, "command": ""}
    assert len(found(silent, logs)) == 2
    np.savez(tmp_path / "x" / "predictions.npz", labels=np.zeros(3), abc=np.zeros(3))
    assert untraced(tmp_path)[-1] == "x: 1 runs have predictions and no logs, the first abc"
    (tmp_path / "x" / "logs.jsonl.gz").unlink()
    assert untraced(tmp_path)[-1] == f"x: {len(logs)} runs have no logs"


def test_a_run_of_the_quickstart_trained_again_gives_the_committed_numbers(tmp_path):
    """From nothing but the committed recipe, up to roundings.

    These differ from processor to processor, and forty epochs amplify them. The first epoch has had no time for that.
    """
    from softtargets.training import train

    row = json.loads((RESULTS / "quickstart" / "results.json").read_text(encoding="utf-8"))["tables"]["runs"][
        0
    ]
    with gzip.open(RESULTS / "quickstart" / "logs.jsonl.gz", "rt", encoding="utf-8") as lines:
        log = next(line for line in map(json.loads, lines) if line["id"] == row["run"])
    (run,) = train([Recipe.from_dict(log["recipe"])], RunStore(tmp_path), keep=("test",), device="cpu")
    assert run.id == row["run"]
    first, again = log["history"][0], run.history()[0]
    assert again["train_loss"] == pytest.approx(first["train_loss"], rel=1e-3)
    assert len(run.history()) == len(log["history"])
    export_predictions([run], tmp_path / "again.npz")
    found = recomputed(tmp_path / "again.npz")[run.id]
    assert found["accuracy"] == pytest.approx(row["accuracy"], abs=0.01)  # 5 of 500 digits
    assert found["nll"] == pytest.approx(row["nll"], rel=0.05)
    with np.load(tmp_path / "again.npz") as new, np.load(RESULTS / "quickstart" / "predictions.npz") as old:
        assert (new[run.id][0] == old[run.id][0]).mean() > 0.98


def test_the_figure_of_mnist_distillation_is_that_of_the_compact_predictions():
    """Every point of the figure and all of the table of errors, from classes and labels alone."""
    results = json.loads((RESULTS / "mnist-distillation" / "results.json").read_text(encoding="utf-8"))
    with np.load(RESULTS / "mnist-distillation" / "predictions.npz") as file:
        error = {run: float((file[run][0] != file["labels"]).mean()) for run in file.files if run != "labels"}
    rows = results["tables"]["runs"]
    assert {row["run"] for row in rows} == error.keys()
    for row in rows:
        assert error[row["run"]] == pytest.approx(row["error"], abs=1e-12)

    def over_seeds(**labels) -> list[float]:
        chosen = [row for row in rows if all(row.get(key) == value for key, value in labels.items())]
        return [error[row["run"]] for row in sorted(chosen, key=lambda row: row["seed"])]

    role = {"M1": "teacher", "M2": "baseline", "M3": "student", "M4": "student"}
    points = results["tables"]["distillation"]
    assert len(points) == 24
    for point in points:
        labels = {"role": role[point["curve"]], "alpha": point["alpha"]}
        if point["temperature"] is not None:
            labels["temperature"] = point["temperature"]
        found = over_seeds(**labels)
        assert found == pytest.approx(point["error"]["values"], abs=1e-12)
        assert 1 - np.mean(found) == pytest.approx(point["accuracy"]["mean"], abs=1e-12)
    for row in results["tables"]["errors"]:
        found = over_seeds(**ERRORS[row["net"]])
        assert found == pytest.approx(row["ours"]["values"], abs=1e-12)
