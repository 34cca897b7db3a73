from __future__ import annotations

import json
import subprocess
import sys

import pytest

from softtargets.cli import main

TINY = ("--device", "cpu", "--sizes", "4x5,3x2", "--losses", "label_smoothing,labo", "--rivals", "eager")
FAST = (*TINY, "--seconds", "0")


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
        "softtargets bench losses --device cpu --sizes 4x5,3x2 --losses label_smoothing,labo --rivals eager "
        "--seconds 0.0 --linear-size 6x4x8 --in-place --linear"
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
    from softtargets.bench import running

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "measure", pressed)
    code, _, err = run("losses", *TINY)
    assert code == 130
    assert err.endswith(
        "interrupted; what was measured is in benchmarks/losses/cpu/results.json. Go on with: softtargets bench "
        "losses --device cpu --sizes 4x5,3x2 --losses label_smoothing,labo --rivals eager --resume\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["losses", "--losses", "lobo"], "--losses: no 'lobo' (did you mean 'labo'?)"),
        (["losses", "--sizes", "big"], "--sizes: 'big' is not rows x classes"),
        (["losses", "--dtypes", "fp8"], "--dtypes: no 'fp8'"),
        (["losses", "--device", "tpu"], "no such device: 'tpu'"),
        (["losses", "--from", "nothing.json"], "cannot read nothing.json"),
        (["losses", "--from", "x.json", "--resume"], "--from measures nothing"),
        (["losses", "--resume", "--overwrite"], "exclude each other"),
        (["losses", "--seconds", "-1"], "Invalid value for '--seconds'"),
        (["loses"], "No such command 'loses'"),
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
    assert "losses" in out + err


def test_a_misspelt_word_is_refused_without_torch(tmp_path):
    code = (
        "import sys\nfrom softtargets.cli import main\n"
        "try:\n    main(['bench', 'losses', '--losses', 'lobo'])\nexcept SystemExit:\n    pass\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "False"


@pytest.mark.cuda
def test_the_command_on_a_gpu(run, tmp_path):
    code, out, _ = run(
        "losses", "--device", "cuda", "--sizes", "256x1000", "--losses", "labo", "--seconds", "0.02", "--json"
    )
    assert code == 0
    (item,) = json.loads(out)["results"]["cases"][:1]
    assert {entry["status"] for entry in item["entries"]} <= {"ok", "absent"}
    assert json.loads(out)["results"]["sessions"][0]["driver"]
