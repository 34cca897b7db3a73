from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from bench.looking import ink, texts
from bench.training.making import made_up, results
from benchmarks.results import BenchResults
from benchmarks.training.drawing import draw_training
from benchmarks.training.results import AccuracyResult, TrainingEntry, TrainingResult
from softtargets.report.drawing import BLUE, GREY, ORANGE, SKY, house_style


def drawn(results: BenchResults):
    with house_style():
        drawing = draw_training(results)
        assert ink(drawing) > 0.01
    return drawing


def lines(axes) -> dict[str, list[float]]:
    return {to_hex(line.get_color()): list(line.get_ydata()) for line in axes.lines}


def test_one_panel_per_net_with_a_line_per_arrangement():
    panels = drawn(made_up()).axes
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles[0] == "FCN 784-1200-1200-10, 28 x 28"
    assert titles[2] == "AlexNet of the TensorFlow tutorial, 24 x 24"
    assert titles[-1] == "Accuracy on digits, 30 epochs: a dot per seed"
    assert len(panels) == 6
    found = lines(panels[0])
    assert found[BLUE] == pytest.approx([9.6, 24, 44, 55])
    assert found[SKY] == pytest.approx([10.4, 19, 21])
    assert found[GREY] == [1, 1]
    assert BLUE not in lines(panels[2])


def test_points_say_multiples_and_images_per_second():
    panels = drawn(made_up()).axes
    assert "55.0×\n11.0 M/s" in texts(panels[0])
    assert "torch eager: 200 k/s" in texts(panels[0])
    (bold,) = [text for text in panels[0].texts if text.get_text().startswith("55.0")]
    assert bold.get_fontweight() == "bold"
    (other,) = [text for text in panels[0].texts if text.get_text().startswith("21.0")]
    assert other.get_fontweight() == "normal"


def test_both_scales_show_the_same():
    (axes, *_) = drawn(made_up()).axes
    (right,) = axes.child_axes
    assert right.get_ylim() == pytest.approx([200_000 * limit for limit in axes.get_ylim()])
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "0.5",
        "1",
        "2",
        "5",
        "10",
        "20",
        "50",
        "100",
    ]
    assert "1 M/s" in [label.get_text() for label in right.get_yticklabels()]


def test_a_pack_that_failed_says_why():
    panels = drawn(made_up()).axes
    assert "streams: out of memory" in texts(panels[4])


def test_a_second_rival_is_a_line_beside_the_eager_loop():
    drawing = drawn(made_up(also_bf16=True))
    assert lines(drawing.axes[0])[ORANGE] == pytest.approx([0.85, 0.85])
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "ours, stacked",
        "ours, on streams",
        "torch eager",
        "torch eager, bf16",
        "bold: as the engine arranges them",
    ]


def test_points_lie_inside_their_panel():
    for axes in drawn(made_up()).axes[:5]:
        low, high = axes.get_ylim()
        assert all(low < value < high for line in axes.lines for value in line.get_ydata())


def test_the_accuracies_of_both_sides():
    axes = drawn(made_up()).axes[-1]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours, bf16", "torch eager"]
    assert "97.04 %" in texts(axes)
    assert "difference +0.20 ± 0.24 points (s.e.): within the allowed 0.69 points" in texts(axes)


def test_panels_where_nothing_worked_are_still_panels():
    first, (check,) = made_up().of(TrainingResult)[0], made_up().of(AccuracyResult)
    broken = replace(
        first, entries=(TrainingEntry("ours", "failed", "$x$"), TrainingEntry("eager", "failed", "no"))
    )
    check = replace(check, ours=(), eager=(), status="failed", reason="a run failed")
    drawing = drawn(results(broken, check, sessions=()))
    assert texts(drawing.axes[0]) == [r"stacked: \$x\$"]
    assert texts(drawing.axes[1]) == ["a run failed", "a run failed"]


def test_only_accuracies_is_a_picture_too():
    assert len(drawn(results(*made_up().of(AccuracyResult))).axes) == 1
