from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softtargets.cli import main

TINY = ("--device", "cpu", "--sizes", "4x5,3x2", "--losses", "label_smoothing,labo", "--rivals", "eager")
FAST = (*TINY, "--seconds", "0")
SMALL = ("--device", "cpu", "--nets", "fcn,alexnet", "--packs", "1,2", "--batch", "2", "--batches", "1")
QUICK = (*SMALL, "--seconds", "0")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command line in this process and an empty directory: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(["bench", *words])
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run


def test_the_command_measures_prints_a_table_and_says_where_the_files_are(run, tmp_path):
    code, out, err = run("losses", *FAST, "--linear", "--linear-size", "6x4x8", "--in-place")
    assert code == 0
    directory = tmp_path / "benchmarks" / "losses" / "cpu"
    names = {
        "results.json",
        "results.csv",
        "results.md",
        "losses.png",
        "losses.svg",
        "linear.png",
        "linear.svg",
    }
    assert {file.name for file in directory.iterdir()} == names
    for name in names:
        assert f"benchmarks/losses/cpu/{name}" in out
    assert "rows x classes" in out
    assert "best rival / ours" in out
    assert "labo" in out
    assert "6 x 4 x 8" in out
    assert "6 cases" in err
    assert "[6/6] linear + labo 6 x 4 x 8 fp32" in err
    assert "\x1b" not in out + err
    session = json.loads((directory / "results.json").read_text())["sessions"][0]
    assert session["command"] == (
        "python -m benchmarks losses --device cpu --sizes 4x5,3x2 --losses label_smoothing,labo --rivals eager "
        "--seconds 0.0 --in-place --linear --linear-size 6x4x8"
    )


def test_json_holds_everything(run):
    code, out, _ = run("losses", *FAST, "--out", "here", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["files"][0] == "here/results.json"
    assert len(found["results"]["cases"]) == 4
    assert found["results"]["cases"][0]["entries"][0]["name"] == "ours"


def test_from_draws_again_without_measuring(run, tmp_path):
    run("losses", *FAST, "--out", "here")
    before = (tmp_path / "here" / "results.json").read_bytes()
    (tmp_path / "here" / "losses.png").unlink()
    code, out, err = run("losses", "--from", "here/results.json")
    assert code == 0
    assert err == ""
    assert "best rival / ours" in out
    assert (tmp_path / "here" / "losses.png").stat().st_size > 1000
    assert (tmp_path / "here" / "results.json").read_bytes() == before
    run("losses", "--from", "here/results.json", "--out", "there")
    assert (tmp_path / "there" / "results.md").exists()


def test_resume_and_overwrite(run):
    run("losses", *FAST)
    code, _, err = run("losses", *FAST)
    assert code == 2
    assert "add --resume" in err
    code, _, err = run("losses", *FAST, "--resume")
    assert code == 0
    assert err == "4 cases, 4 of them measured before\n"
    code, _, err = run("losses", *FAST, "--overwrite")
    assert code == 0
    assert err.startswith("4 cases\n")


def test_ctrl_c_says_how_to_go_on(run, monkeypatch):
    from benchmarks.losses import measure

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "measure_loss", pressed)
    code, _, err = run("losses", *TINY)
    assert code == 130
    assert err.endswith(
        "interrupted; what was measured is in benchmarks/losses/cpu/results.json. Go on with: python -m benchmarks "
        "losses --device cpu --sizes 4x5,3x2 --losses label_smoothing,labo --rivals eager --resume\n"
    )


def test_training_measures_prints_tables_and_says_where_the_files_are(run, tmp_path):
    code, out, err = run("training", *QUICK, "--eager-precision", "bf16", "--epochs", "1", "--seeds", "2")
    assert code == 0
    directory = tmp_path / "benchmarks" / "training" / "cpu"
    names = {"results.json", "results.csv", "results.md", "accuracy.csv", "training.png", "training.svg"}
    assert {file.name for file in directory.iterdir()} == names
    for name in names:
        assert f"benchmarks/training/cpu/{name}" in out
    assert "ours / torch eager, bf16" in out
    assert "test accuracy of the same training" in out
    assert "\x1b" not in out + err
    lines = err.splitlines()
    assert lines[0] == "9 cases"
    assert lines[1].startswith("[1/9] fcn, 1 run stacked, batch 2 fp32: ours ")
    assert lines[6].startswith("[6/9] alexnet, 1 run streams, batch 2 fp32: ours ")
    assert lines[9].startswith("[9/9] accuracy on digits, 1 epoch fp32, 2 seeds: ours ")
    content = json.loads((directory / "results.json").read_text())
    assert content["sessions"][0]["command"] == (
        "python -m benchmarks training --device cpu --nets fcn,alexnet --packs 1,2 --batch 2 --batches 1 "
        "--eager-precision bf16 --seconds 0.0 --epochs 1 --seeds 2"
    )
    assert [entry["status"] for item in content["cases"] for entry in item["entries"]] == ["ok"] * 24


def test_training_as_json_and_drawn_again(run, tmp_path):
    few = (
        "--device",
        "cpu",
        "--nets",
        "cnn",
        "--packs",
        "1",
        "--batch",
        "2",
        "--batches",
        "1",
        "--seconds",
        "0",
    )
    code, out, _ = run("training", *few, "--out", "here", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["files"][0] == "here/results.json"
    assert [item["case"]["arrangement"] for item in found["results"]["cases"]] == ["stacked", "streams"]
    before = (tmp_path / "here" / "results.json").read_bytes()
    picture = (tmp_path / "here" / "training.png").read_bytes()
    (tmp_path / "here" / "training.png").unlink()
    code, out, err = run("training", "--from", "here/results.json")
    assert (code, err) == (0, "")
    assert "ours / torch eager" in out
    assert (tmp_path / "here" / "training.png").read_bytes() == picture
    assert (tmp_path / "here" / "results.json").read_bytes() == before
    code, _, err = run("losses", "--from", "here/results.json")
    assert (code, err.count("does not hold results of 'softtargets bench losses'")) == (2, 1)


CALIBRATION = ("calibration", "--device", "cpu", "--examples", "200", "--classes", "5", "--batch", "64")
FEW = (*CALIBRATION, "--repeats", "1", "--no-memory")


def test_calibration_measures_prints_a_table_and_says_where_the_files_are(run, tmp_path):
    code, out, err = run(*FEW, "--threads", "1")
    assert code == 0
    directory = tmp_path / "benchmarks" / "calibration" / "cpu"
    names = {"results.json", "results.csv", "results.md", "calibration.png", "calibration.svg"}
    assert {file.name for file in directory.iterdir()} == names
    assert "ours: all, with intervals" in out
    assert err.startswith("1 cases\n[1/1] cpu, 200 x 5: ours ")
    content = json.loads((directory / "results.json").read_text())
    assert content["sessions"][0]["command"] == (
        "python -m benchmarks calibration --device cpu --examples 200 --classes 5 --batch 64 --repeats 1 --threads 1 "
        "--no-memory"
    )
    assert len(content["cases"][0]["entries"]) == 6


def test_scale_measures_a_store_and_removes_it(run, tmp_path):
    words = ("--sizes", "3", "--operations", "find", "--processes", "1", "--claims", "3", "--repeats", "1")
    code, out, err = run("scale", "--device", "cpu", *words, "--where", "stores")
    assert code == 0
    directory = tmp_path / "benchmarks" / "scale" / "cpu"
    names = {"results.json", "results.csv", "results.md", "scale.png", "scale.svg"}
    assert {file.name for file in directory.iterdir()} == names
    assert "find a run, each" in out
    assert "runs finished, all together" in out
    assert "[1/2] 3 runs: find " in err
    gc.collect()
    assert list((tmp_path / "stores").iterdir()) == []


def test_a_wrong_number_fails_loudly_after_saving(run, tmp_path, monkeypatch):
    from benchmarks.calibration import contestants

    real = contestants.measure_calibration

    def biased(logits, labels, **options):
        return real(-logits, labels, **options)

    monkeypatch.setattr(contestants, "measure_calibration", biased)
    code, out, err = run(*FEW, "--rivals", "none", "--out", "here")
    assert code == 2
    assert (
        "not everybody computes the same, so the times mean nothing: ours on cpu, 200 x 5: its ECE is" in err
    )
    assert "ours disagrees: " in out
    assert (tmp_path / "here" / "results.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["losses", "--losses", "lobo"], "--losses: no 'lobo' (did you mean 'labo'?)"),
        (["losses", "--sizes", "big"], "--sizes: 'big' is not rows x classes"),
        (["losses", "--dtypes", "fp8"], "--dtypes: no 'fp8'"),
        (["losses", "--device", "tpu"], "there is no device 'tpu'"),
        (["losses", "--from", "nothing.json"], "cannot read nothing.json"),
        (["losses", "--from", "x.json", "--resume"], "--from measures nothing"),
        (["losses", "--resume", "--overwrite"], "exclude each other"),
        (["losses", "--seconds", "-1"], "Invalid value for '--seconds'"),
        (["loses"], "No such command 'loses'"),
        (["training", "--nets", "resnet"], "--nets: no 'resnet' (did you mean 'resnet"),
        (["training", "--nets", "none"], "--nets none makes sense only with --accuracy"),
        (["training", "--packs", "few"], "--packs: 'few' is not a whole number from 1"),
        (["training", "--precision", "fp64"], "--precision: no 'fp64'"),
        (["training", "--seeds", "1"], "Invalid value for '--seeds'"),
        (["training", "--device", "tpu"], "there is no device 'tpu'"),
        (["training", "--from", "x.json", "--overwrite"], "--from measures nothing"),
        (["calibration", "--classes", "1"], "--classes must be at least 2, not 1"),
        (["calibration", "--rivals", "relplot"], "--rivals: no 'relplot'"),
        (["scale", "--operations", "verfy"], "--operations: no 'verfy' (did you mean 'verify'?)"),
        (["training", "--data", "mnist", "--data-dir", "nowhere", "--device", "cpu"], "mnist is not there"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(words, message, run, tmp_path):
    code, out, err = run(*words)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_bare_group_shows_its_help(run):
    _, out, err = run()
    assert {"losses", "training", "calibration"} <= set((out + err).split())


def test_help_lists_the_options_of_the_bench_and_those_that_all_have(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run("calibration", "--help")
    assert code == 0
    assert "python -m benchmarks calibration" in out
    for option in ("--cpu-examples", "--no-memory", "--device", "--from", "--resume", "--json", "--out"):
        assert option in out


RESULTS = "benchmarks/calibration/cpu/results.json"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["training", "--nets", "fnc"], "2", "--nets: no 'fnc' (did you mean 'fcn'?)"),
        (["calibration", "--from", f"{{root}}/{RESULTS}", "--out", "here"], "0", ""),
    ],
    ids=["misspelt", "drawn again"],
)
def test_the_module_is_the_command_and_needs_torch_only_to_measure(words, code, message, tmp_path):
    root = Path(__file__).parents[2]
    script = (
        f"import runpy, sys\nsys.argv[1:] = {[word.format(root=root) for word in words]!r}\n"
        "try:\n    runpy.run_module('benchmarks', run_name='__main__')\n"
        "except SystemExit as leaving:\n    print(leaving.code, 'torch' in sys.modules)"
    )
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=there
    )
    assert done.stdout.splitlines()[-1] == f"{code} False", done.stderr
    assert message in done.stderr


@pytest.mark.cuda
def test_the_command_on_a_gpu(run, tmp_path):
    code, out, _ = run(
        "losses", "--device", "cuda", "--sizes", "256x1000", "--losses", "labo", "--seconds", "0.02", "--json"
    )
    assert code == 0
    (item,) = json.loads(out)["results"]["cases"][:1]
    assert {entry["status"] for entry in item["entries"]} <= {"ok", "absent"}
    assert json.loads(out)["results"]["sessions"][0]["driver"]


@pytest.mark.cuda
def test_training_on_a_gpu(run):
    code, out, _ = run(
        *(
            "training",
            "--device",
            "cuda",
            "--nets",
            "cnn",
            "--packs",
            "1,2",
            "--batch",
            "32",
            "--batches",
            "4",
        ),
        *("--seconds", "0.05", "--accuracy", "--epochs", "2", "--seeds", "2", "--json"),
    )
    assert code == 0
    results = json.loads(out)["results"]
    assert {entry["status"] for item in results["cases"] for entry in item["entries"]} == {"ok"}
    assert results["accuracy"][0]["status"] == "ok"
