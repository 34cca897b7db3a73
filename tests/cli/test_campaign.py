"""``softtargets campaign`` on quickstart's digits, and ``--for`` of all commands that train."""

from __future__ import annotations

import json

import pytest

from softtargets.cli.options import seconds_of
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import RunStore

from .command import ran

WHOLE = "{study: quickstart, seeds: 1, set: {epochs: 1}}"
ENTRY = "{study: quickstart, seeds: 1, set: {epochs: 1}, only: {role: baseline, alpha: [0.0, 0.1]}}"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "campaign.yaml"
    path.write_text(f"studies: [{ENTRY}]\nplanned: [later-on]\n")
    return path


def status(capsys, file, *words):
    code, out, _ = ran(capsys, "campaign", "status", file, *words)
    assert code == 0
    return out


def test_a_stranger_continues_with_two_commands(file, tmp_path, capsys):
    """Trained, packed, written to pages; then all of it again from what lies under results alone."""
    file.write_text(f"studies: [{ENTRY}, {WHOLE}]")
    words = ("campaign", "run", file, "--for", "10m", "--device", "cpu", "--workers", 1)
    code, out, err = ran(capsys, *words, "--pack", tmp_path / "p.zip")
    assert code == 0, err
    assert "16 runs ended." in out
    assert "Nothing is left to train: 16 of 16 cells are done." in out
    assert "runs of quickstart (digits, mlp)" in err
    code, out, err = ran(capsys, "campaign", "pages", file, "--out", "results", "--device", "cpu")
    assert (code, (tmp_path / "results" / "quickstart" / "logs.jsonl.gz").exists()) == (0, True), err
    code, out, _ = ran(capsys, "runs", "merge", "results/", "--runs-dir", "fresh")
    assert code == 0
    assert "16 added" in out
    code, out, _ = ran(capsys, *words, "--runs-dir", "fresh")
    assert code == 0
    assert out.startswith("0 runs ended.\nNothing is left to train")
    code, out, _ = ran(capsys, "runs", "merge", "p.zip", "--runs-dir", "other")
    assert "16 added" in out


def test_status_for_people_and_scripts(file, capsys):
    out = status(capsys, file, "--for", "9m")
    assert max(map(len, out.splitlines())) < 80
    row = next(line for line in out.splitlines() if "quickstart" in line).split()
    assert row[:6] == ["1", "quickstart", "–", "1", "0/2", "–"]
    assert "8/8" in row
    assert "Planned, not written yet: later-on." in out
    assert "A session of 9m would train\n  2 runs of quickstart (digits, mlp): about" in out
    ran(capsys, "campaign", "run", file, "--device", "cpu", "--workers", 1)
    assert "2/2" in status(capsys, file)
    found = json.loads(status(capsys, file, "--json", "--for", "90s"))
    assert found["cells"] == {
        "done": 2,
        "missing": 0,
        "interrupted": 0,
        "running": 0,
        "failed": 0,
        "damaged": 0,
    }
    (entry,) = found["entries"]
    assert (entry["study"], entry["claims"], entry["claims_waiting"], entry["seconds"]) == (
        "quickstart",
        8,
        0,
        0,
    )
    assert found["next"] == []


def test_time_that_is_too_short_says_how_to_go_on(file, capsys):
    words = ("campaign", "run", file, "--for", "4s", "--reserve", "3", "--device", "cpu", "--workers", 1)
    code, out, _ = ran(capsys, *words)
    assert code == 0
    assert "2 cells left, about" in out
    assert out.rstrip().endswith(
        f"Go on with: softtargets campaign run {file} --for 4s --device cpu --reserve 3.0 --workers 1"
    )


def test_cost_for_people_and_scripts(file, capsys):
    unknown = "{study: labo-table-5, size: full, seeds: 1}"
    file.write_text(f"studies: [{ENTRY}, {unknown}]")
    code, out, _ = ran(capsys, "campaign", "cost", file, "--gpus", "2,1")
    assert code == 0
    assert max(map(len, out.splitlines())) < 80
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert rows["quickstart"][1:] == ["2", rows["quickstart"][2], "100", "%", "–"]
    assert rows["labo-table-5"][2:] == ["?", "–", rows["labo-table-5"][1]]
    assert rows["all"][-1] == rows["labo-table-5"][1]
    assert [line.split()[0] for line in out.splitlines() if line.endswith("%") and "h" not in line] == [
        "1",
        "2",
    ]
    assert "Of the GPU hours, 100 % are guessed" in out
    assert "Of unknown length, and not included in these numbers: 12 on imagenet." in " ".join(out.split())
    _, out, _ = ran(capsys, "campaign", "cost", file, "--json", "--gpus", "1,2")
    found = json.loads(out)
    assert [one["gpus"] for one in found["gpus"]] == [1, 2]
    assert found["unknown"] == {"imagenet": 12}
    assert (
        found["seconds"]
        == pytest.approx(found["gpus"][0]["gpu_seconds"])
        == pytest.approx(sum(sum(one["seconds"].values()) for one in found["studies"]))
    )
    assert found["shares"] == pytest.approx({"measured": 0.0, "table": 0.0, "guessed": 1.0})


def test_cost_is_of_the_whole_campaign_unless_what_is_left_is_asked_for(file, capsys):
    ran(capsys, "campaign", "run", file, "--device", "cpu", "--workers", 1, "--sharing", 2)
    for words, count in (((), 2), (("--left",), 0)):
        _, out, _ = ran(capsys, "campaign", "cost", file, "--json", *words)
        assert sum(one["runs"] for one in json.loads(out)["studies"]) == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("run", "--for", "30s"),
            "--for 30s leaves no time for training: 30 s of it are reserved for writing (--reserve)",
        ),
        (("run", "--for", "9"), "--for 9: give a time with its units, such as 90s, 9m or 1h30m"),
        (("run", "--pack", "p.tar"), "does not end in .zip"),
        (
            ("run", "--with", "wights"),
            "--with must be one of weights, predictions, checkpoints, not wights",
        ),
        (("run", "--device", "tpu"), "there is no device"),
        (("status", "--for", "0s"), "the time must be above 0"),
        (
            ("cost", "--gpus", "1,none"),
            "'none' is not a number of GPUs from 1 to 10,000; write for example 1,8,64",
        ),
        (("cost", "--gpus", "0"), "'0' is not a number of GPUs"),
        (("run", "--sharing", "0"), "--sharing"),
        (("pages", "--study", "quick"), "the campaign has no study 'quick' (did you mean 'quickstart'?)"),
    ],
)
def test_refusals(file, capsys, words, said):
    command, *rest = words
    code, _, err = ran(capsys, "campaign", command, file, *rest)
    assert code == 2
    assert said in err


def test_a_mistake_in_the_file_names_its_entry(file, capsys):
    file.write_text(f"studies: [{ENTRY}, {{study: quikstart}}]")
    code, _, err = ran(capsys, "campaign", "status", file)
    assert code == 2
    assert "entry 2 (quikstart): there is no study 'quikstart' (did you mean 'quickstart'?)" in err


@pytest.mark.parametrize("text", ["", "9", "m", "1m1h", "-3s", "9 minutes", "1.5.2m", "0m"])
def test_durations_that_are_none_are_refused(text):
    with pytest.raises(SofttargetsError, match="--for"):
        seconds_of(text)


def test_a_training_that_is_out_of_time_goes_on(tmp_path, capsys):
    recipe = Recipe(data=Digits(limit=64), model=MLP(hidden=(8,)), epochs=100_000, batch=32)
    path = tmp_path / "recipe.yaml"
    path.write_text(json.dumps(recipe.to_dict()))
    words = ("train", path, "--device", "cpu", "--for", "3s")
    code, _, err = ran(capsys, *words)
    assert code == 3
    assert (
        f"the time is up and 1 run is not finished; run {recipe.id} is saved; the same command resumes it"
        in err
    )
    (entry,) = RunStore(tmp_path / "runs").entries()
    assert entry.status == "interrupted"
    code, _, err = ran(capsys, *words)
    assert code == 3
    assert "resumed at step" in err


def test_a_study_that_is_out_of_time_has_no_page_yet(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (
        "study",
        "run",
        "quickstart",
        "--seeds",
        1,
        "--set",
        "epochs=100000",
        "--workers",
        1,
        "--device",
        "cpu",
    )
    code, _, err = ran(capsys, *words, "--for", "3s")
    assert code == 3
    assert (
        "runs are not finished; everything so far is saved. Go on with: softtargets study run quickstart"
        in err
    )
    assert "--for 3s" in err
    assert not (tmp_path / "reports" / "quickstart" / "index.html").exists()
