"""Calibration as modules: the same numbers as the fits, saved, exported, run by ONNX."""

import io
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from softtargets.calibration import (
    Correction,
    HistogramBinning,
    IsotonicScaling,
    LogitScaling,
    PlattScaling,
    bias_corrected_temperature,
    histogram_binning,
    isotonic_regression,
    logits_from_probabilities,
    platt_scaling,
    temperature_scaling,
    vector_scaling,
    zero_floor,
)


def made(classes=4):
    random = torch.Generator().manual_seed(3)
    z = 3 * torch.randn(400, classes, generator=random)
    y = torch.multinomial((z / 2).softmax(1), 1, generator=random).squeeze(1)
    return z, y


def with_zeros():
    z, y = made()
    p = z.softmax(1)
    p = torch.where(p < 0.01, 0.0, p)
    return p / p.sum(1, keepdim=True), y


def every_module():
    z, y = made()
    p, _ = with_zeros()
    floor = zero_floor(p, y)
    logs = logits_from_probabilities(p, floor=floor)
    yield z, LogitScaling.of(temperature_scaling(z, y))
    yield z, LogitScaling.of(bias_corrected_temperature(z, y))
    yield z, LogitScaling.of(vector_scaling(z, y))
    yield p, LogitScaling.of(temperature_scaling(logs, y), kind="probabilities", floor=floor)
    yield z, platt_scaling(z, y)
    yield p, platt_scaling(p, y, from_logits=False)
    yield z, isotonic_regression(z, y)
    yield p, isotonic_regression(p, y, from_logits=False)
    yield z, histogram_binning(z, y)


CASES = list(every_module())
NAMES = [f"{type(module).__name__}-{module.kind}-{place}" for place, (_, module) in enumerate(CASES)]


def test_scaling_is_what_the_fit_does():
    z, y = made()
    for fit in (temperature_scaling(z, y), bias_corrected_temperature(z, y), vector_scaling(z, y)):
        module = LogitScaling.of(fit)
        assert torch.allclose(module(z), fit(z).softmax(1), atol=1e-6)
        assert torch.allclose(module.logits(z), fit(z), atol=1e-5)


def test_a_correction_of_probabilities_is_the_same_as_its_module():
    p, y = with_zeros()
    floor = zero_floor(p, y)
    fit = vector_scaling(logits_from_probabilities(p, floor=floor), y)
    correction = Correction.of(fit, kind="probabilities", classes=4, floor=floor)
    assert torch.allclose(LogitScaling.of(correction)(p), correction(p), atol=1e-6)


@pytest.mark.parametrize(("scores", "module"), CASES, ids=NAMES)
def test_any_leading_shape_gives_probabilities_in_their_precision(scores, module):
    found = module(scores[:12].reshape(2, 3, 2, 4))
    assert found.dtype == scores.dtype
    assert torch.allclose(found.reshape(12, 4), module(scores[:12]))
    assert torch.allclose(found.sum(-1), torch.ones(2, 3, 2), atol=1e-6)


@pytest.mark.parametrize(("scores", "module"), CASES, ids=NAMES)
def test_a_state_is_loaded_into_a_module_of_any_size(scores, module):
    empty = {
        LogitScaling: lambda: LogitScaling(),
        PlattScaling: lambda: PlattScaling(torch.ones(2), torch.zeros(2)),
        IsotonicScaling: lambda: IsotonicScaling(torch.zeros(1, 2), torch.zeros(1, 2)),
        HistogramBinning: lambda: HistogramBinning(torch.zeros(1, 1), torch.zeros(1, 2)),
    }[type(module)]()
    buffer = io.BytesIO()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    empty.load_state_dict(torch.load(buffer, weights_only=True))
    assert empty.kind == module.kind
    assert torch.equal(empty(scores), module(scores))


@pytest.mark.parametrize(("scores", "module"), CASES, ids=NAMES)
def test_export_keeps_every_bit(scores, module):
    exported = torch.export.export(module, (scores[:5],), dynamic_shapes=({0: torch.export.Dim("n")},))
    assert torch.equal(exported.module()(scores), module(scores))


@pytest.mark.parametrize(("scores", "module"), CASES, ids=NAMES)
def test_onnx_runs_to_the_same_probabilities(scores, module):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript, which torch exports ONNX with, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            nn.Sequential(nn.Identity(), module).eval(),
            (scores[:5],),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("n")},),
            verbose=False,
        )
    session = runtime.InferenceSession(program.model_proto.SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: scores.numpy()})
    assert found == pytest.approx(module(scores).numpy(), abs=2e-6)
    assert found.dtype == np.float32


def test_in_half_precision_it_stays_in_half_precision():
    z, y = made()
    module = LogitScaling.of(temperature_scaling(z, y))
    assert module(z.bfloat16()).dtype == torch.bfloat16
    assert module.half()(z.half()).dtype == torch.float16


def test_where_nothing_is_left_all_classes_are_equally_likely():
    steps = torch.zeros(3, 1) + 0.5
    module = HistogramBinning(steps, torch.zeros(3, 2), kind="probabilities")
    assert module(torch.tensor([[0.2, 0.3, 0.5]])).tolist() == [pytest.approx([1 / 3] * 3)]


def test_reprs_say_what_it_is():
    shown = [repr(module) for _, module in CASES]
    assert shown[0].startswith("LogitScaling(temperature=")
    assert "biases of 4 classes" in shown[1]
    assert shown[2] == "LogitScaling(classes=4, kind='logits')"
    assert shown[-1] == "HistogramBinning(classes=4, places=14, kind='logits')"


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="'logits' or 'probabilities'"):
        LogitScaling(kind="scores")
    with pytest.raises(ValueError, match="floor must lie between 0 and 1"):
        LogitScaling(floor=2.0)


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_other_columns_than_it_was_fitted_to_are_refused(columns):
    """One column would be spread over all classes, and nobody would notice."""
    scores = torch.zeros(4, columns)
    table = torch.zeros(5, 2)
    for module in (
        LogitScaling(torch.ones(5), torch.zeros(5)),
        LogitScaling(2.0, torch.zeros(5)),
        PlattScaling(torch.ones(5), torch.zeros(5)),
        IsotonicScaling(table, table),
    ):
        with pytest.raises(
            ValueError, match=rf"a column for each of the 5 classes, not the shape \(4, {columns}\)"
        ):
            module(scores)
    if columns == 1:
        with pytest.raises(ValueError, match=r"at least 2, .*; two classes need two columns"):
            LogitScaling(2.0)(scores)
    else:
        assert LogitScaling(2.0)(scores).shape == scores.shape
