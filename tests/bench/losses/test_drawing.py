from __future__ import annotations

from bench.looking import ink, texts
from bench.losses.making import made_up, result, results
from benchmarks.losses.drawing import draw_linear, draw_losses
from benchmarks.losses.results import LossEntry, LossResult
from softtargets.report.drawing import house_style


def test_one_panel_per_size_with_labelled_bars():
    with house_style():
        drawing = draw_losses(made_up())
        assert ink(drawing) > 0.02
    panels = drawing.axes
    assert [axes.get_title(loc="left") for axes in panels][:2] == [
        "8,192 rows x 32,768 classes",
        "4,096 rows x 131,072 classes",
    ]
    assert len(panels) == 7
    assert "1.90×" in texts(panels[0])
    assert "torch eager: out of memory" in texts(panels[1])
    assert "13.2× *" in texts(panels[2])
    assert panels[0].get_xlabel() == "multiples of the floor (bf16 253 µs, fp32 505 µs)"
    assert panels[0].get_xscale() == "log"
    assert "60.0 µs" in texts(panels[6])
    assert panels[6].get_xlabel().startswith("microseconds per call")
    assert [label.get_text() for label in panels[0].get_yticklabels()] == [
        "label smoothing, bf16",
        "label smoothing, fp32",
        "LABO, bf16",
        "LABO, fp32",
    ]


def test_bars_lie_inside_their_panel():
    with house_style():
        drawing = draw_losses(made_up())
    for axes in drawing.axes:
        low, high = axes.get_xlim()
        for bar in axes.patches:
            assert low <= bar.get_x()
            assert bar.get_x() + bar.get_width() <= high


def test_a_case_where_everybody_failed_is_still_a_panel():
    item = made_up().of(LossResult)[0]
    failed = [LossEntry(entry.name, "failed", "$x$ ran out of luck") for entry in item.entries]
    with house_style():
        drawing = draw_losses(results(result(item.case, *failed)))
        assert ink(drawing) > 0
    assert texts(drawing.axes[0])[0] == r"ours: \$x\$ ran out of luck"


def test_the_linear_section_shows_time_and_memory():
    with house_style():
        drawing = draw_linear(made_up())
        assert ink(drawing) > 0.02
    time, memory = drawing.axes
    assert "1.30×" in texts(time)
    assert "0.40 GB" in texts(memory)
    assert texts(time).count("torch.compile: InductorError: no valid configuration") == 2
