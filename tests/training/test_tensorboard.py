from __future__ import annotations

import sys
from collections import defaultdict
from types import ModuleType

import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training import Watcher, train
from softtargets.training.tensorboard import TensorBoard


class FakeWriter:
    """What `SummaryWriter` does, as far as it is used: files by directory, and how many are open."""

    files: defaultdict[str, list[FakeWriter]]
    open: int
    most: int

    def __init__(self, log_dir: str, purge_step: int | None = None, **_: object) -> None:
        kind = type(self)
        self.purge_step, self.scalars, self.texts = purge_step, [], []
        kind.files[log_dir].append(self)
        kind.open += 1
        kind.most = max(kind.most, kind.open)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars.append((tag, step, value))

    def add_text(self, tag: str, text: str, step: int) -> None:
        self.texts.append((tag, text))

    def close(self) -> None:
        type(self).open -= 1


@pytest.fixture
def fake(monkeypatch) -> type[FakeWriter]:
    writer = type("Writer", (FakeWriter,), {"files": defaultdict(list), "open": 0, "most": 0})
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return writer


class Stop(Watcher):
    """Interrupts in an epoch, as Ctrl-C does after what was measured is said."""

    def __init__(self, watcher: Watcher, after: int) -> None:
        self._watcher, self._left = watcher, after

    def epoch(self, recipe, row) -> None:
        self._watcher.epoch(recipe, row)
        self._left -= 1
        if not self._left:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)


def expected(run: Run) -> list[tuple[str, int, float]]:
    return [
        (name, row["step"], value) for row in run.history() for name, value in row.items() if name != "step"
    ]


def test_every_row_is_written_under_the_id_of_its_run(fake, recipe, tmp_path):
    recipes = [recipe.replace({"seed": seed}) for seed in range(3)]
    with TensorBoard(tmp_path / "logs") as board:
        runs = train(recipes, RunStore(tmp_path / "runs"), device="cpu", watcher=board)
        assert fake.open == 0, "a run's file is closed when it ends"
    assert fake.most <= 3
    assert set(fake.files) == {str(tmp_path / "logs" / run.id) for run in runs}
    for run in runs:
        (file,) = fake.files[str(tmp_path / "logs" / run.id)]
        assert file.scalars == expected(run)
        ((tag, text),) = file.texts
        assert tag == "recipe"
        assert all(line.startswith("    ") for line in text.splitlines())
        assert Recipe.from_yaml(text) == run.recipe


def test_a_resumed_run_is_written_whole(fake, recipe, tmp_path):
    store = RunStore(tmp_path / "runs")
    with TensorBoard(tmp_path / "logs") as board, pytest.raises(KeyboardInterrupt):
        train([recipe], store, device="cpu", watcher=Stop(board, after=2))
    assert fake.open == 0, "also an interrupted run's file is closed"
    with TensorBoard(tmp_path / "logs") as board:
        (run,) = train([recipe], store, device="cpu", watcher=board)
    before, resumed, whole = fake.files[str(tmp_path / "logs" / recipe.id)]
    steps = [row["step"] for row in run.history()]
    assert {step for _, step, _ in before.scalars} == set(steps[:2])
    assert {step for _, step, _ in resumed.scalars} == set(steps[2:])
    assert resumed.purge_step == steps[2]
    assert whole.purge_step == 0
    assert whole.scalars == expected(run)


def test_a_run_of_another_process_is_written_when_it_is_told_of(fake, recipe, tmp_path):
    (run,) = train([recipe], RunStore(tmp_path / "runs"), device="cpu")
    board = TensorBoard(tmp_path / "logs")
    board.finished(run)
    (file,) = fake.files[str(tmp_path / "logs" / run.id)]
    assert file.scalars == expected(run)
    assert fake.open == 0


def test_a_reused_run_is_written_unless_it_is_there(fake, recipe, tmp_path):
    (run,) = train([recipe], RunStore(tmp_path / "runs"), device="cpu")
    board = TensorBoard(tmp_path / "logs")
    board.reused(run)
    (file,) = fake.files[str(tmp_path / "logs" / run.id)]
    assert file.scalars == expected(run)
    (tmp_path / "logs" / run.id).mkdir()
    (tmp_path / "logs" / run.id / "events.out.tfevents.1").touch()
    board.reused(run)
    assert len(fake.files[str(tmp_path / "logs" / run.id)]) == 1


def test_a_value_that_was_not_found_is_left_out(fake, recipe, tmp_path):
    board = TensorBoard(tmp_path)
    board.epoch(recipe, {"epoch": 1, "step": 7, "train_loss": 0.5, "calibration.test_ece": None})
    (file,) = fake.files[str(tmp_path / recipe.id)]
    assert file.scalars == [("epoch", 7, 1), ("train_loss", 7, 0.5)]


def test_without_tensorboard_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SofttargetsError, match=r"pip install tensorboard"):
        TensorBoard(tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


def test_a_directory_that_cannot_be_is_refused_at_once(fake, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SofttargetsError, match="cannot write for TensorBoard in"):
        TensorBoard(tmp_path / "file" / "logs")


@pytest.mark.parametrize("broken", ["add_scalar", "close", "add_text"])
def test_a_full_disk_is_told_once_and_stops_no_training(fake, recipe, tmp_path, monkeypatch, broken):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fake, broken, full)
    short, store = recipe.replace({"epochs": 2}), RunStore(tmp_path / "runs")
    with (
        pytest.warns(UserWarning, match="No space left on device; the training continues") as told,
        TensorBoard(tmp_path / "logs") as board,
    ):
        (run,) = train([short], store, device="cpu", watcher=board)
    assert run.status == "finished"
    assert len([each for each in told if "TensorBoard" in str(each.message)]) == 1


def test_tensorboard_itself_reads_what_was_written(recipe, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    store = RunStore(tmp_path / "runs")
    with TensorBoard(tmp_path / "logs") as board, pytest.raises(KeyboardInterrupt):
        train([recipe], store, device="cpu", watcher=Stop(board, after=2))
    with TensorBoard(tmp_path / "logs") as board:
        (run,) = train([recipe], store, device="cpu", watcher=board)
    found = EventAccumulator(str(tmp_path / "logs" / run.id)).Reload()
    names = [name for name in run.history()[0] if name != "step"]
    assert sorted(found.Tags()["scalars"]) == sorted(names)
    for name in names:
        events = [(event.step, event.value) for event in found.Scalars(name)]
        assert events == [(row["step"], pytest.approx(row[name])) for row in run.history()]
    (text,) = found.Tensors("recipe/text_summary")
    assert Recipe.from_yaml(text.tensor_proto.string_val[0].decode()) == recipe
