from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import fields

import pytest

from forking import finish, start
from softtargets.cli import live, main, pace
from softtargets.cli.console import ConsoleWatcher
from softtargets.runs import ENGINE, ENGINES

RECIPE = """
data: {name: digits, validation: 100, limit: 150}
model: {name: mlp, hidden: [16]}
regulariser: {name: label_smoothing, alpha: 0.1}
optimiser: {name: sgd, lr: 1e-1}
epochs: 2
batch: 32
"""


@pytest.fixture
def run(capsys):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(words)
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def softtargets(*words: str, **options) -> subprocess.CompletedProcess[str]:
    code = "from softtargets.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, **options)


def test_help_comes_without_anything_that_takes_long_to_import():
    code = "import sys; sys.argv[1:] = ['--help']; from softtargets.cli import main\n"
    code += "try: main()\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "study" in done.stdout
    imported = set(done.stderr.split())
    heavy = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "PIL", "safetensors", "yaml", "http.client"}
    assert imported & heavy == set()
    # Commands import the rooms they need when they are called.
    ours = {name.split(".")[1] for name in imported if name.startswith("softtargets.")}
    rooms = {
        "recipes",
        "runs",
        "training",
        "studies",
        "data",
        "inspection",
        "predictions",
        "losses",
        "report",
    }
    assert ours & rooms == set()


@pytest.mark.parametrize("words", [[], ["study"], ["runs"], ["data"], ["recipe"]])
def test_a_bare_group_shows_its_help(words, run):
    _, out, err = run(*words)
    assert "Usage" in out + err
    assert "error" not in err


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "softtargets", "--version"], capture_output=True, text=True)
    assert done.returncode == 0


def test_version(run):
    import softtargets

    assert run("--version") == (0, softtargets.__version__ + "\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stduy", "list"], "No such command 'stduy'"),
        (["study", "run"], "Missing argument"),
        (["study", "run", "quickstrat"], "no study 'quickstrat' (did you mean 'quickstart'?)"),
        (["study", "run", "quickstart", "--seeds", "many"], "Invalid value for '--seeds'"),
        (["study", "run", "quickstart", "--seeds", "0"], "--seeds must be at least 1, not 0"),
        (["study", "run", "quickstart", "--set", "epochs"], "write it as KEY=VALUE"),
        (["study", "run", "quickstart", "--set", "epoch=3"], "(did you mean 'epochs'?)"),
        (["study", "run", "quickstart", "--set", "model.hidden=[0]"], "model.hidden.0: 0 is out of range"),
        (["study", "run", "quickstart", "--set", "regulariser.alpha=0.3"], "it is what the study compares"),
        (["study", "run", "quickstart", "--no-train"], "none of the 80 runs of 'quickstart' is finished in"),
        (["study", "run", "quickstart", "--device", "tpu"], "there is no device 'tpu'"),
        (["study", "page", "quickstart", "--from", "nowhere"], "there is no nowhere/results.json"),
        (["train", "missing.yaml"], "cannot read missing.yaml: No such file or directory"),
        (["runs", "show", "abcd"], "no run 'abcd'"),
        (["runs", "delete", ""], "'' is too short"),
        (["data", "verify", "minst"], "(did you mean 'mnist'?)"),
        (["data", "fetch", "imagenet"], "cannot be fetched automatically"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(words, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert out == ""
    assert "Traceback" not in err


def test_debug_shows_the_traceback(tmp_path):
    done = softtargets("train", "missing.yaml", "--debug", cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert "RecipeError" in done.stderr


def test_our_own_bugs_exit_with_1_and_one_line(run, monkeypatch):
    import softtargets.data

    def broken(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(softtargets.data, "status", broken)
    code, _, err = run("data", "list")
    assert code == 1
    assert (
        err
        == "softtargets failed: ZeroDivisionError: division by zero (this is a bug; --debug shows where)\n"
    )


def test_train_list_show_verify_delete(run, recipe_file):
    code, out, err = run("train", str(recipe_file), "--json")
    assert code == 0
    trained = json.loads(out)
    assert "1 run, 0 already finished" in err
    identity = trained["id"]
    code, out, _ = run("runs", "list", "--json")
    assert [entry["id"] for entry in json.loads(out)] == [identity]
    assert identity in run("runs", "list", "--where", "regulariser.alpha=0.1", "--where", "data=digits")[1]
    assert identity not in run("runs", "list", "--where", "regulariser.alpha=0.2")[1]
    code, _, err = run("runs", "list", "--where", "regulariser.alpa=0.2")
    assert code == 2
    assert "did you mean 'regulariser.alpha'" in err
    shown = json.loads(run("runs", "show", identity[:6], "--json")[1])
    assert shown["summary"] == trained["summary"]
    for_people = run("runs", "show", identity[:6])[1]
    assert "provenance:" in for_people
    assert (
        "  regulariser: {name: label_smoothing, alpha: 0.1, spread: all, matrix: null, prior: uniform}"
        in for_people
    )
    assert f"{ENGINE}. {ENGINES[ENGINE]}" in " ".join(for_people.split())
    assert "{'" not in for_people, "a Python dictionary"
    assert re.search(rf"{identity}  finished  20\d\d-\d\d-\d\d \d\d:\d\d  digits", run("runs", "list")[1])
    assert run("runs", "verify") == (0, "1 run checked: all files are undamaged\n", "")
    file = os.path.join(os.path.dirname(recipe_file), "predictions.npz")
    assert "predictions of 1 run " in run("runs", "export", "--predictions", file)[1]
    (measured,) = json.loads(run("runs", "measure", file, "--json")[1]).values()
    assert measured["accuracy"] == pytest.approx(trained["summary"]["test_accuracy"])
    assert identity in run("runs", "measure", file)[1]
    code, _, err = run("runs", "export")
    assert code == 2
    assert "--predictions FILE.npz" in err
    weights = os.path.join(trained["directory"], "weights.safetensors")
    with open(weights, "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    code, out, err = run("runs", "verify", identity)
    assert code == 2
    assert "has changed since" in out
    code, out, err = run("runs", "delete", identity[:8])
    assert (code, out) == (2, "")
    assert f"run {identity} was not deleted: there is no terminal to ask on; add --yes" in err
    assert run("runs", "delete", identity[:8], "--yes") == (0, f"deleted {identity}\n", "")
    assert "no runs in" in run("runs", "list")[1]


def test_recipe_check_prints_a_recipe_that_is_the_same_recipe(run, recipe_file, tmp_path):
    out = run("recipe", "check", str(recipe_file), "--set", "optimiser.lr=5e-2")[1]
    again = tmp_path / "again.yaml"
    again.write_text(out)
    first = json.loads(run("recipe", "check", str(again), "--json")[1])
    assert out.startswith(f"# {first['id']}\n")
    assert first["recipe"]["optimiser"]["lr"] == 0.05


def test_recipe_parts_lists_every_field(run):
    from softtargets.recipes import Recipe, Regulariser, kinds

    rows = {row["field"]: row for row in json.loads(run("recipe", "parts", "--json")[1])}
    assert {field.name for field in fields(Recipe)} <= set(rows)
    for name, part in kinds(Regulariser).items():
        assert {f"regulariser.{field.name} ({name})" for field in fields(part)} <= set(rows)
    assert rows["regulariser.alpha (label_smoothing)"]["accepts"] == "a number of at least 0 and at most 1"
    assert rows["batch"]["default"] == "128"


def test_study_list_and_show(run):
    assert json.loads(run("study", "list", "--json")[1])[0]["name"] == "quickstart"
    assert "quickstart" in run("study", "list")[1]
    shown = json.loads(run("study", "show", "quickstart", "--json")[1])
    assert len(shown["runs"]) == 16 * shown["seeds"]
    told = run("study", "show", "quickstart")[1]
    assert "80 with 5 seeds, 0 finished" in told
    assert "digits (ready)" in told
    assert "749,100 images in all" in told
    assert "It tests 8 claims:" in told
    assert "to do" not in told
    assert len(told.splitlines()) < 40
    more = run("study", "show", "quickstart", "--seeds", "2", "--runs")[1]
    assert "32 with 2 seeds" in more
    assert more.count("to do") == 32
    assert "softtargets study run quickstart --seeds 2\n" in more
    assert "million tokens in all" in run("study", "show", "labo-figure-2")[1]


@pytest.mark.parametrize(
    "words", [["chen-theory"], ["chen-cifar10", "--set", "size=full"], ["chen-human-noise"]]
)
def test_every_kind_of_study_can_be_shown_before_it_was_run(words, run):
    code, told, err = run("study", "show", *words)
    assert (code, err) == (0, "")
    assert re.search(r"It tests \d+ claims:", told)


def test_data_where_list_verify(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTTARGETS_DATA", str(tmp_path / "env"))
    assert json.loads(run("data", "where", "--json")[1])["directory"] == str(tmp_path / "env")
    assert str(tmp_path / "flag") in run("data", "where", "--data-dir", str(tmp_path / "flag"))[1]
    status = {row["name"]: row["status"] for row in json.loads(run("data", "list", "--json")[1])}
    assert status["digits"] == "ready"
    assert status["mnist"] == "missing"
    code, out, err = run("data", "verify", "mnist")
    assert code == 2
    assert "BAD" in out
    assert "softtargets data fetch mnist" in err
    assert run("data", "verify", "digits")[0] == 0


def test_training_on_a_missing_dataset_names_the_command_that_fetches_it(
    run, recipe_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("SOFTTARGETS_DATA", str(tmp_path / "none"))
    code, _, err = run("train", str(recipe_file), "--set", "data=mnist")
    assert code == 2
    assert "softtargets data fetch mnist" in err
    assert "train-images-idx3-ubyte" in err


def command(words: list[str], errors: str) -> None:
    """A command line in a child, with its errors in a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(errors, "w") as sys.stderr:
        main(words)


def interrupt(words: list[str], runs) -> tuple[int, str]:
    """Start a command, press Ctrl-C once it has saved a step, and return its exit code and errors."""
    errors = runs.with_suffix(".err")
    words = [*words, "--runs-dir", str(runs), "--checkpoint-seconds", "0"]
    child = start(command, words, str(errors), daemon=False)
    try:
        while not any(runs.glob("*/checkpoint.safetensors")):
            assert child.is_alive(), errors.read_text()
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGINT)
        code, err = finish(child), errors.read_text()
    finally:
        child.kill()
    assert "Traceback" not in err
    return code, err.strip().splitlines()[-1]


def test_ctrl_c_leaves_a_resumable_state_and_says_how_to_go_on(tmp_path, run):
    runs = tmp_path / "runs"
    code, last = interrupt(["study", "run", "quickstart", "--seeds", "1", "--set", "epochs=400"], runs)
    assert code == 130
    again = f"softtargets study run quickstart --seeds 1 --set epochs=400 --runs-dir {runs}"
    assert last == f"interrupted; everything so far is saved. Go on with: {again}"
    states = {
        entry["status"] for entry in json.loads(run("runs", "list", "--json", "--runs-dir", str(runs))[1])
    }
    assert "interrupted" in states


def test_an_interrupted_training_goes_on_with_the_same_command(tmp_path, recipe_file, run):
    runs = tmp_path / "runs"
    words = ["train", str(recipe_file), "--set", "epochs=150"]
    code, last = interrupt(words, runs)
    assert code == 130
    assert "is saved; the same command resumes it" in last
    (identity,) = (path.name for path in runs.glob("*") if path.is_dir())
    shown = run("runs", "show", identity, "--runs-dir", str(runs))[1]
    assert "interrupted" in shown
    assert "label_smoothing" in shown
    code, _, err = run(*words, "--runs-dir", str(runs))
    assert code == 0
    assert "resumed at step" in err


def test_piped_progress_is_plain_lines(tmp_path, recipe_file):
    errors = tmp_path / "errors"
    assert (
        finish(start(command, ["train", str(recipe_file), "--runs-dir", str(tmp_path / "runs")], str(errors)))
        == 0
    )
    assert "\x1b" not in errors.read_text()
    assert "\r" not in errors.read_text()
    assert "[1/1]" in errors.read_text()


def test_metrics_are_logged_for_tensorboard_on_request(run, recipe_file, tmp_path, monkeypatch):
    import softtargets.training as module

    heard = []

    class Fake(module.TensorBoard):
        def __init__(self, directory) -> None:
            heard.append(directory)

        def close(self) -> None:
            heard.append("closed")

        def epoch(self, recipe, row) -> None:
            heard.append((recipe.id, row["epoch"]))

        def finished(self, run) -> None:
            heard.append(run.id)

    monkeypatch.setattr(module, "TensorBoard", Fake)
    code, out, _ = run("train", str(recipe_file), "--json", "--tensorboard", str(tmp_path / "logs"))
    assert code == 0
    identity = json.loads(out)["id"]
    assert heard == [tmp_path / "logs", (identity, 1), (identity, 2), identity, "closed"]


def test_without_tensorboard_nothing_is_trained(run, recipe_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    code, out, err = run("train", str(recipe_file), "--tensorboard", str(tmp_path / "logs"))
    assert code == 2
    assert "pip install tensorboard" in err
    assert err.count("\n") == 1
    assert out == ""
    assert not (tmp_path / "runs").exists()


def test_an_interrupted_study_goes_on_logging(run, tmp_path, monkeypatch):
    import softtargets.studies
    import softtargets.training as module

    def pressed(*_: object, command: str, **__: object) -> None:
        assert "tensorboard" not in command, "the page can be made again without"
        raise KeyboardInterrupt

    monkeypatch.setattr(softtargets.studies, "run_study", pressed)
    monkeypatch.setattr(module, "TensorBoard", lambda directory: contextlib.nullcontext())
    code, _, err = run("study", "run", "quickstart", "--tensorboard", "my logs")
    assert code == 130
    assert err.endswith("Go on with: softtargets study run quickstart --tensorboard 'my logs'\n")


def test_a_terminal_gets_a_live_view_with_rate_and_time_left(tmp_path, recipe_file, monkeypatch):
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "140", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pace, "_MARKS", 1_000_000)  # a rate is known after a moment
    monkeypatch.setattr(
        live.LiveView,
        "epoch",
        lambda view, *about: (ConsoleWatcher.epoch(view, *about), view._live.refresh()),
    )
    primary, secondary = pty.openpty()
    shown = []

    def look() -> None:
        with contextlib.suppress(OSError):  # the terminal closes when everybody has let go of it
            while block := os.read(primary, 4096):
                shown.append(block)

    reader = threading.Thread(target=look)
    reader.start()
    with open(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit) as leaving:
            main(["train", str(recipe_file), "--set", "epochs=4", "--runs-dir", str(tmp_path / "runs")])
    reader.join()
    assert leaving.value.code == 0
    text = b"".join(shown).decode(errors="replace")
    assert "0 of 1 run done, 1 under way, " in text
    assert "images/s" in text
    assert re.search(r"\d+:\d\d:\d\d left", text)
    assert re.search(r"\d+%  +\d+/20  +\d\.\d{3}   val \d\.\d{3}  +[\d,]+  \d+:\d\d:\d\d", text)
    assert "digits mlp label_smoothing 0.1 seed 0" in text


def test_output_into_a_closed_pipe_is_quiet():
    code = "from softtargets.cli import main; main()"
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -c '{code}' recipe parts | head -1"], capture_output=True, text=True
    )
    assert done.stdout.startswith("A recipe has these fields")
    assert done.stderr == ""
