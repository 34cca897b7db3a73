"""Our metrics as torchmetrics uses metrics: collections, groups, forward, plots, processes."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import distributed, multiprocessing
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassCalibrationError

from leaving import leave
from softtargets import calibration
from softtargets.integrations import torchmetrics as ours
from softtargets.selection import measure_selection

CLASSES = 5
NUMBERS = [kind for kind in ours.ALL if issubclass(kind, ours._Sums)]


def some(count=200, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, CLASSES, generator=generator)
    drawn = torch.multinomial(logits.softmax(-1).sqrt(), 1, generator=generator).squeeze(-1)
    return logits, drawn


def expected(logits, labels):
    whole = calibration.measure_calibration(logits, labels, from_logits=True, level=None).scalars()
    return whole | measure_selection(logits, labels, from_logits=True).numbers()


def batches(*tensors):
    return zip(*(tensor.split(37) for tensor in tensors), strict=True)


@pytest.mark.parametrize("kind", ours.ALL)
def test_each_is_the_function_of_its_name(kind):
    logits, labels = some()
    metric = kind(CLASSES, from_logits=True)
    for batch in batches(logits, labels):
        metric.update(*batch)
    assert float(metric.compute()) == pytest.approx(expected(logits, labels)[kind.value], rel=1e-6)
    given = getattr(calibration, kind.value, None)
    if given is not None:  # the function that has all examples
        scores = logits if given is calibration.negative_log_likelihood else logits.softmax(-1)
        assert float(metric.compute()) == pytest.approx(given(scores, labels), abs=2e-3)


def test_equal_to_torchmetrics_own_where_no_confidence_is_one():
    logits, labels = some()
    theirs = MulticlassCalibrationError(CLASSES, n_bins=15, norm="l1")(logits.softmax(-1), labels)
    torch.testing.assert_close(
        ours.ExpectedCalibrationError(CLASSES, from_logits=True)(logits, labels), theirs
    )


@pytest.mark.parametrize("kind", [ours.SmoothCalibrationError, ours.AURC])
def test_calling_gives_the_batch_and_remembers_all(kind):
    logits, labels = some()
    metric = kind(CLASSES, from_logits=True)
    for batch in batches(logits, labels):
        assert float(metric(*batch)) == pytest.approx(expected(*batch)[kind.value], rel=1e-6)
    assert float(metric.compute()) == pytest.approx(expected(logits, labels)[kind.value], rel=1e-6)
    again = pickle.loads(pickle.dumps(metric)).clone()
    assert again.compute() == metric.compute()
    again.reset()
    again.update(logits[:50], labels[:50])
    assert float(again.compute()) == pytest.approx(expected(logits[:50], labels[:50])[kind.value], rel=1e-6)


def test_classes_are_second_as_in_torchmetrics():
    logits, labels = some(CLASSES * 12)
    tokens = logits.reshape(12, CLASSES, CLASSES).transpose(1, 2)  # (N, C, length), with as many of both
    padded = labels.reshape(12, CLASSES).clone()
    padded[:, 3:] = -100
    metric = ours.ExpectedCalibrationError(CLASSES, from_logits=True, ignore_index=-100)
    counted = (padded != -100).reshape(-1)
    wanted = expected(logits[counted], labels[counted])["expected_calibration_error"]
    assert float(metric(tokens, padded)) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="with C = 5 classes, as in torchmetrics"):
        metric(logits[:, :4], labels)
    with pytest.raises(ValueError, match="target must have the shape"):
        metric(tokens, labels)


def test_a_collection_is_updated_once_for_all_that_share_their_sums(monkeypatch):
    calls = []
    add = calibration.CalibrationSums.of.__func__

    def counted(cls, *arguments, **options):
        calls.append(1)
        return add(cls, *arguments, **options)

    monkeypatch.setattr(ours.CalibrationSums, "of", classmethod(counted))
    logits, labels = some()
    found_out = MetricCollection({kind.value: kind(CLASSES, from_logits=True) for kind in ours.ALL})
    told = ours.calibration_metrics(CLASSES, from_logits=True)
    for metrics, first in ((found_out, len(NUMBERS)), (told, 1)):
        calls.clear()
        for batch in batches(logits, labels):
            metrics.update(*batch)
        assert len(calls) == first + 5  # six batches; at first torchmetrics looks which states are the same
        assert sorted(map(len, metrics.compute_groups.values())) == [3, len(NUMBERS)]
        wanted = expected(logits, labels)
        assert {name: float(value) for name, value in metrics.compute().items()} == pytest.approx(
            {kind.value: wanted[kind.value] for kind in ours.ALL}, rel=1e-6
        )
        metrics.reset()


def test_all_numbers_of_one_metric_in_a_collection():
    logits, labels = some()
    metrics = MetricCollection(
        [ours.CalibrationMetric(CLASSES, from_logits=True), ours.AURC(CLASSES, from_logits=True)]
    )
    for batch in batches(logits, labels):
        metrics.update(*batch)
    found, wanted = metrics.compute(), expected(logits, labels)
    for name in ("smooth_calibration_error", "negative_log_likelihood", "brier_score"):
        assert float(found[name]) == pytest.approx(wanted[name], rel=1e-6)
    assert float(found["AURC"]) == pytest.approx(wanted["aurc"], rel=1e-6)


def test_entries_are_metrics_that_share_one_state():
    logits, labels = some()
    metric = ours.CalibrationMetric(CLASSES, from_logits=True)
    wanted = calibration.measure_calibration(logits, labels, from_logits=True, level=None).scalars()
    assert list(dict(metric.items())) == list(wanted) == list(metric(logits[:9], labels[:9]))
    metric.reset()
    for at, batch in enumerate(batches(logits, labels)):
        if at % 2:
            assert float(metric["brier_score"](*batch)) == pytest.approx(expected(*batch)["brier_score"])
            # What Lightning logs after each step: the number of the last batch.
            assert float(metric["accuracy"]._forward_cache) == pytest.approx(expected(*batch)["accuracy"])
        else:
            metric["accuracy"].update(*batch)
        metric["accuracy"].compute()  # which must not be what it says after the next batch
    assert metric.update_count == metric["accuracy"].update_count == 6
    again = pickle.loads(pickle.dumps(metric)).clone()
    for whole in (metric, again):
        assert {name: float(one.compute()) for name, one in whole.items()} == pytest.approx(wanted, rel=1e-6)
    again["accuracy"].reset()
    assert (again.update_count, metric.update_count) == (0, 6)
    assert metric.state_dict() == {}
    better = {name: one.higher_is_better for name, one in metric.items()}
    assert {name for name, more in better.items() if more} == {"accuracy", "top_5_accuracy"}
    assert [name for name, more in better.items() if more is None] == ["mean_confidence"]
    assert repr(metric["accuracy"]) == "CalibrationMetric(num_classes=5, from_logits=True)['accuracy']"
    with pytest.raises(KeyError, match="'ece'; there are accuracy, top_5_accuracy"):
        metric["ece"]


def test_plots():
    import matplotlib

    matplotlib.use("Agg")
    logits, labels = some()
    metric = ours.CalibrationMetric(CLASSES, from_logits=True)
    metric.update(logits, labels)
    figure, axes = metric.plot()
    assert figure is axes.get_figure()
    wanted = 100 * float(metric.compute()["expected_calibration_error"])
    assert f"ECE {wanted:.2f} %" in [text.get_text() for text in axes.texts]
    assert metric.plot(ax=axes)[1] is axes
    single = ours.ExpectedCalibrationError(CLASSES, from_logits=True)
    values = [single(*batch) for batch in batches(logits, labels)]
    _, axes = single.plot(values)
    (line,) = [line for line in axes.lines if len(line.get_ydata()) == 6]
    assert list(line.get_ydata()) == pytest.approx([float(value) for value in values])
    both = ours.calibration_metrics(CLASSES, from_logits=True)
    both.update(logits, labels)
    assert len(both.plot()) == len(ours.ALL)


def _process(rank, file, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    logits, labels = some()
    part = slice(0, 70) if rank == 0 else slice(70, 200)
    metrics = ours.calibration_metrics(CLASSES, from_logits=True)
    for batch in batches(logits[part], labels[part]):
        metrics.update(*batch)
    whole = ours.CalibrationMetric(CLASSES, from_logits=True)
    whole.update(logits[part], labels[part])
    found = {name: float(value) for name, value in metrics.compute().items()}
    again = {name: float(entry.compute()) for name, entry in whole.items()}
    own = whole.found().examples  # what a process has seen stays its own
    torch.save((found, again, own), f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
def test_two_processes_add_up(tmp_path):
    multiprocessing.spawn(_process, (tmp_path / "meet", str(tmp_path)), nprocs=2)
    wanted = expected(*some())
    for rank, examples in enumerate((70, 130)):
        found, again, own = torch.load(tmp_path / str(rank), weights_only=False)
        assert found == pytest.approx({kind.value: wanted[kind.value] for kind in ours.ALL}, rel=1e-6)
        assert again == pytest.approx({name: wanted[name] for name in again}, rel=1e-6)
        assert own == examples


def _process_without(rank, file, results, how):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    logits, labels = some()
    metrics = ours.calibration_metrics(CLASSES, from_logits=True, ignore_index=-100)
    if rank == 0:
        metrics.update(logits, labels)
    elif how == "ignored":
        metrics.update(logits, torch.full_like(labels, -100))
    elif how == "empty":
        metrics.update(logits[:0], labels[:0])
    found = {name: float(value) for name, value in metrics.compute().items()}
    again = {name: float(value) for name, value in metrics.compute().items()}
    torch.save((found, again), f"{results}/{rank}")
    leave(rank, 2, results)


@pytest.mark.skipif(not distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize("how", ["ignored", "empty", "never called"])
def test_a_process_may_have_no_example(how, tmp_path):
    multiprocessing.spawn(_process_without, (tmp_path / "meet", str(tmp_path), how), nprocs=2)
    wanted = expected(*some())
    for rank in (0, 1):
        for found in torch.load(tmp_path / str(rank), weights_only=False):
            assert found == pytest.approx({kind.value: wanted[kind.value] for kind in ours.ALL}, rel=1e-6)


@pytest.mark.parametrize("kind", [*ours.ALL, ours.CalibrationMetric])
def test_without_an_example_all_say_the_same(kind):
    metric = kind(CLASSES, from_logits=True, ignore_index=-100)
    with pytest.raises(ValueError, match="there is nothing to measure: no example has been added"):
        metric.compute()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_precision_is_that_of_the_results_and_not_of_the_sums(dtype):
    logits, labels = some()
    wanted = expected(logits, labels)
    metrics = ours.calibration_metrics(CLASSES, from_logits=True).set_dtype(dtype)
    whole = ours.CalibrationMetric(CLASSES, from_logits=True).set_dtype(dtype)
    for found in (metrics(logits, labels), whole(logits, labels)):
        for name, value in found.items():
            assert value.dtype == dtype
            rounded = torch.tensor(wanted[name], dtype=dtype)
            torch.testing.assert_close(
                value, rounded, rtol=1e-12 if dtype == torch.float64 else 1e-3, atol=1e-12
            )


@pytest.mark.parametrize("kind", [*ours.ALL, ours.CalibrationMetric])
def test_batches_in_which_nothing_counts_change_nothing(kind):
    logits, labels = some()
    metric = kind(CLASSES, from_logits=True, ignore_index=-100)
    metric.update(logits, labels)
    before = metric.compute()
    metric.update(logits[:0], labels[:0])
    metric.update(logits, torch.full_like(labels, -100))
    torch.testing.assert_close(metric.compute(), before)


def test_predictions_of_smaller_images_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"interpolate\(preds, size=target.shape"):
        ours.ExpectedCalibrationError(5, from_logits=True).update(
            torch.zeros(2, 5, 8, 8), torch.zeros(2, 32, 32).long()
        )
