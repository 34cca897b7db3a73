from __future__ import annotations

from bench.calibration.making import cpu, made_up, result, results
from bench.looking import ink, texts
from benchmarks.calibration.drawing import draw_calibration
from benchmarks.calibration.results import CalibrationEntry
from softtargets.report.drawing import house_style


def test_times_beside_memory_one_row_per_device():
    with house_style():
        drawing = draw_calibration(made_up())
        assert ink(drawing) > 0.02
    on_cpu, unweighed, on_gpu, weights = drawing.axes
    assert on_cpu.get_title(loc="left") == "CPU, 2 threads: 1,000 x 10 logits"
    assert texts(on_cpu) == ["1.00 s", "1.50 s   1.50× ours", "1.10 s   1.10× ours", "2.00 s   2.00× ours"]
    assert not unweighed.axison
    assert on_gpu.get_title(loc="left") == "NVIDIA H200: 10,000 x 10 logits"
    assert texts(on_gpu)[0] == "250 ms   40.0× the CPU"
    assert texts(on_gpu)[-1] == "out of memory"
    assert [label.get_text() for label in on_cpu.get_yticklabels()][
        -1
    ] == "torchmetrics: ECE"  # absent: no bar
    assert weights.get_xscale() == "log"
    assert texts(weights)[-2:] == ["10.0 MB", "40.0 MB"]


def test_bars_and_labels_lie_inside_their_panel():
    with house_style():
        drawing = draw_calibration(made_up())
    for axes in drawing.axes:
        low, high = axes.get_xlim()
        for bar in axes.patches:
            assert low <= bar.get_x()
            assert bar.get_x() + bar.get_width() <= high


def test_without_memory_there_is_one_column_and_failures_are_told():
    failed = [CalibrationEntry(entry.name, "failed", "$x$ broke") for entry in cpu().entries]
    with house_style():
        drawing = draw_calibration(results(result(cpu().case, *failed, threads=1)))
        assert ink(drawing) > 0
    (axes,) = drawing.axes
    assert axes.get_title(loc="left") == "CPU, 1 thread: 1,000 x 10 logits"
    assert texts(axes)[0] == r"\$x\$ broke"
