from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest
import torch
from torch import distributed, multiprocessing

from calibration import exact
from leaving import leave
from softtargets.calibration import CalibrationMetric, measure_calibration


def a_metric(**options):
    return CalibrationMetric(classes=5, from_logits=True, **options)


def updated(batches=4, **options):
    logits, y = exact.sampled()
    metric = a_metric(**options)
    for part, labels in zip(logits.chunk(batches), y.chunk(batches), strict=True):
        metric.update(part, labels)
    return metric


def expected():
    return measure_calibration(*exact.sampled(), from_logits=True, level=None).scalars()


@pytest.mark.parametrize("batches", [1, 4, 200])
def test_batches_come_to_what_all_examples_do(batches):
    assert updated(batches).compute().scalars() == pytest.approx(expected(), abs=1e-9)


def test_calling_it_measures_the_batch_and_remembers_it():
    logits, y = exact.sampled()
    metric = a_metric()
    metric.update(logits[:150], y[:150])
    batch = metric(logits[150:], y[150:])
    alone = measure_calibration(logits[150:], y[150:], from_logits=True, level=None)
    assert batch.scalars() == alone.scalars()
    assert metric.compute().scalars() == pytest.approx(expected(), abs=1e-9)


def test_reset_forgets():
    metric = updated()
    metric.reset()
    with pytest.raises(ValueError, match="nothing to measure"):
        metric.compute()
    metric.update(*exact.sampled())
    assert metric.compute().scalars() == pytest.approx(expected(), abs=1e-12)


def test_states_are_merged():
    logits, y = exact.sampled()
    first, second = a_metric(), a_metric()
    first.update(logits[:30], y[:30])
    second.update(logits[30:], y[30:])
    first.merge_state(second)
    assert first.compute().scalars() == pytest.approx(expected(), abs=1e-9)
    second.merge_state(a_metric().sums)
    assert second.compute().examples == 170


def test_it_is_pickled_copied_and_loaded():
    metric = updated(ignore_index=-1)
    assert not metric.state_dict()  # unless somebody wants it: see below
    state = a_metric()
    state.load_state_dict(metric.persistent().state_dict())
    for other in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric), state):
        assert other.compute().scalars() == metric.compute().scalars()
    other.update(*exact.sampled(seed=1))
    assert metric.compute().examples == 200


def test_the_precision_of_a_model_around_it_does_not_round_the_sums():
    model = torch.nn.ModuleDict({"net": torch.nn.Linear(2, 2), "metric": updated()})
    model.half()
    model.to(torch.bfloat16)
    assert model["net"].weight.dtype == torch.bfloat16
    assert model["metric"].compute().scalars() == pytest.approx(expected(), abs=1e-9)


def test_without_content_and_back_it_begins_anew():
    metric = updated().to("meta")
    assert metric.sums.device.type == "meta"
    metric.update(*exact.sampled())
    assert metric.compute().scalars() == pytest.approx(expected(), abs=1e-9)
    assert updated().to("meta").to_empty(device="cpu").sums.examples == 0
    with torch.device("meta"):
        metric = a_metric()
    metric.merge_state(updated())
    assert metric.compute().scalars() == pytest.approx(expected(), abs=1e-9)


def test_a_metric_is_in_nobodys_checkpoint_unless_wanted():
    older, model = torch.nn.Linear(2, 5), torch.nn.Linear(2, 5)
    model.metric = updated()
    model.load_state_dict(older.state_dict(), strict=True)
    older.load_state_dict(model.state_dict(), strict=True)
    assert model.metric.compute().examples == 200
    model.metric.persistent()
    model.load_state_dict(older.state_dict(), strict=True)
    state = model.state_dict()
    model.metric.reset()
    model.metric.persistent(False)
    model.load_state_dict(state, strict=True)  # which is found is loaded
    assert model.metric.compute().scalars() == pytest.approx(expected(), abs=1e-9)
    with pytest.raises(RuntimeError, match=r"Missing key.*metric.ranks"):
        model.load_state_dict({name: value for name, value in state.items() if name != "metric.ranks"})
    with pytest.raises(RuntimeError, match=r"metric.ranks must have the shape \(5,\), not \(4,\)"):
        model.load_state_dict(state | {"metric.ranks": torch.zeros(4)})


def test_bad_batches_leave_no_trace():
    metric = updated()
    logits, y = exact.sampled()
    logits[3, 1] = torch.nan
    for call in (metric, metric.update):
        with pytest.raises(ValueError, match="example 3 are not all finite"):
            call(logits, y)
    with pytest.raises(ValueError, match="nothing to measure"):
        a_metric(ignore_index=7)(logits, torch.full_like(y, 7))
    assert metric.compute().scalars() == pytest.approx(expected(), abs=1e-9)


def test_batches_of_any_size_and_precision_follow_each_other():
    logits, y = exact.sampled(count=300)
    metric = a_metric()
    for size, dtype in ((7, torch.float64), (100, torch.float32), (50, torch.float64), (143, torch.float16)):
        start = metric.sums.examples
        metric.update(logits[start : start + size].to(dtype), y[start : start + size])
    found = metric.compute()
    assert found.examples == 300
    expected = measure_calibration(logits, y, from_logits=True, level=None).scalars()
    assert found.scalars() == pytest.approx(expected, abs=2e-2)  # half precision moves a few to other bins
    assert found.negative_log_likelihood == pytest.approx(expected["negative_log_likelihood"], rel=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_in_inference_mode_and_outside_follow_each_other(threads):
    generator = torch.Generator().manual_seed(5)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            metric = CalibrationMetric(100, from_logits=True)
        for turn in range(
            4
        ):  # several pieces, some of them looked at by helpers, which do not inherit the mode
            with torch.inference_mode(turn % 2 == 0):
                logits = torch.randn(25_000, 100, generator=generator)
                metric.update(logits, torch.zeros(25_000, dtype=torch.long))
                assert metric(logits[:10], torch.zeros(10, dtype=torch.long)).examples == 10
        metric.reset()
        metric.update(logits, torch.zeros(25_000, dtype=torch.long))
        assert metric.sums.examples == 25_000
    finally:
        torch.set_num_threads(before)


def test_intervals_are_given_when_asked_for():
    assert updated().compute().intervals == {}
    assert updated(level=0.9, resamples=20).compute().intervals


def _process(rank, world, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    logits, y = exact.sampled()
    metric = a_metric()
    if rank == 0:  # the other process has seen nothing of the first part
        metric.update(logits[:40], y[:40])
    part = slice(40 + 80 * rank, 120 + 80 * rank)
    metric.update(logits[part], y[part])
    found = metric.compute()
    again = metric.compute()  # adding up must not have changed what is remembered
    metric.sync_on_compute = False
    torch.save((found.scalars(), again.scalars(), metric.compute().examples), f"{results}/{rank}")
    leave(rank, 2, results)


class Measured(torch.nn.Module):
    """A model that measures itself while it is trained."""

    def __init__(self):
        super().__init__()
        self.net, self.metric = torch.nn.Linear(5, 5), a_metric()
        self.register_buffer("other", torch.zeros(1))  # such that there is something to overwrite

    def forward(self, logits, y):
        self.metric.update(logits, y)
        return self.net(logits.float()).sum()


def _trained(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(Measured())
    logits, y = exact.sampled()
    for part in range(5):
        some = slice(40 * part + 20 * rank, 40 * part + 20 * rank + 20)
        model(logits[some], y[some]).backward()
    torch.save(model.module.metric.compute().scalars(), f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_inside_a_model_that_ddp_trains_every_example_counts_once(tmp_path):
    multiprocessing.spawn(_trained, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    for rank in range(2):
        found = torch.load(tmp_path / str(rank), weights_only=False)
        assert found == pytest.approx(expected(), abs=1e-9)


def _alone(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=2, timeout=timedelta(seconds=120)
    )
    distributed.distributed_c10d._get_default_store().set_timeout(timedelta(seconds=1))
    metric = updated()
    if rank == 0:
        with pytest.raises(RuntimeError, match="call it in every process, or set sync_on_compute"):
            metric.compute()
    number = torch.tensor([rank])
    distributed.all_reduce(number)
    torch.save(int(number), f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_who_computes_alone_is_told_so_and_disturbs_nobody(tmp_path):
    multiprocessing.spawn(_alone, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    assert [torch.load(tmp_path / str(rank)) for rank in range(2)] == [1, 1]


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_two_processes_add_up(tmp_path):
    multiprocessing.spawn(_process, (2, tmp_path / "meet", str(tmp_path)), nprocs=2)
    for rank, examples in enumerate((120, 80)):
        found, again, own = torch.load(tmp_path / str(rank), weights_only=False)
        assert found == pytest.approx(expected(), abs=1e-9)
        assert again == found
        assert own == examples


@pytest.mark.cuda
def test_on_a_gpu():
    logits, y = exact.sampled(count=5000, classes=30, dtype=torch.float32)
    metric = CalibrationMetric(classes=30, from_logits=True, ignore_index=3).to("cuda")
    metric.update(logits.cuda(), y.cuda())
    found = metric.compute().scalars()
    assert found == pytest.approx(
        measure_calibration(logits, y, from_logits=True, ignore_index=3, level=None).scalars(), abs=1e-5
    )
