from __future__ import annotations

import json

import pytest

from softtargets.cli import main

SMALL = ("--device", "cpu", "--examples", "200", "--classes", "5", "--batch", "64", "--repeats", "1")
QUICK = (*SMALL, "--rivals", "none", "--no-memory")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command line in this process and an empty directory: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(["bench", "calibration", *words])
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run


def test_the_command_measures_prints_a_table_and_says_where_the_files_are(run, tmp_path):
    code, out, err = run(*SMALL, "--no-memory", "--threads", "1")
    assert code == 0
    directory = tmp_path / "benchmarks" / "calibration" / "cpu"
    names = {"results.json", "results.csv", "results.md", "calibration.png", "calibration.svg"}
    assert {file.name for file in directory.iterdir()} == names
    for name in names:
        assert f"benchmarks/calibration/cpu/{name}" in out
    assert "time / ours" in out
    assert "ours: all, with intervals" in out
    assert "\x1b" not in out + err
    assert err.startswith("1 cases\n[1/1] cpu, 200 x 5: ours ")
    content = json.loads((directory / "results.json").read_text())
    assert content["sessions"][0]["command"] == (
        "softtargets bench calibration --device cpu --examples 200 --classes 5 --batch 64 --repeats 1 --threads 1 "
        "--no-memory"
    )
    assert len(content["cases"][0]["entries"]) == 6


def test_json_holds_everything_and_from_draws_again(run, tmp_path):
    code, out, _ = run(*QUICK, "--out", "here", "--json")
    assert code == 0
    assert json.loads(out)["results"]["cases"][0]["entries"][0]["name"] == "ours"
    (tmp_path / "here" / "calibration.png").unlink()
    code, out, err = run("--from", "here/results.json")
    assert (code, err) == (0, "")
    assert "all metrics" in out
    assert (tmp_path / "here" / "calibration.png").stat().st_size > 1000


def test_a_wrong_number_fails_loudly_after_saving(run, tmp_path, monkeypatch):
    from softtargets.bench.calibration import contestants

    real = contestants.measure_calibration

    def biased(logits, labels, **options):
        return real(-logits, labels, **options)

    monkeypatch.setattr(contestants, "measure_calibration", biased)
    code, out, err = run(*QUICK, "--out", "here")
    assert code == 2
    assert (
        "not everybody computes the same, so the times mean nothing: ours on cpu, 200 x 5: its ECE is" in err
    )
    assert "ours disagrees: " in out
    assert (tmp_path / "here" / "results.json").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--classes", "1"), "--classes must be at least 2, not 1"),
        (("--examples", "0"), "--examples must be at least 8, not 0"),
        (("--rivals", "relplot"), "--rivals: no 'relplot'"),
        (("--resume", "--overwrite"), "exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, words, complaint):
    code, _, err = run(*words)
    assert code == 2
    assert complaint in err


def test_ctrl_c_says_how_to_go_on(run, monkeypatch):
    from softtargets.bench.calibration import running

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "measure", pressed)
    code, _, err = run(*QUICK)
    assert code == 130
    assert "Go on with: softtargets bench calibration --device cpu" in err
    assert err.endswith("--no-memory --resume\n")
