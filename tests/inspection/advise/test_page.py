from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from inspection.advise.cases import advised, given, next_class, noisy, uniform
from inspection.advise.images import blobs
from softtargets.inspection.advise.figures import (
    largest,
    loss_rows,
    matrix_figure,
    matrix_table,
    suspects_figure,
)
from softtargets.inspection.advise.finding import advise
from softtargets.inspection.advise.page import (
    advise_page,
    code_lines,
    loss_code,
    loss_lines,
    matrix_code,
    summary_rows,
)
from softtargets.inspection.advise.training import Training, train_out_of_fold
from softtargets.inspection.advise.words import NO_REASON
from softtargets.inspection.shared.numbers import Estimate
from softtargets.losses import ForwardCorrection, LabelSmoothing
from softtargets.report import Code, Table, write_page
from softtargets.theory import p_from_alpha


def written(found, directory):
    path = write_page(advise_page(found), directory)
    return path.read_text(encoding="utf-8"), json.loads(
        (directory / "results.json").read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    """Noise with a pattern: what was found, the directory, HTML and results of its page."""
    directory = tmp_path_factory.mktemp("pattern")
    found = advised(next_class(0.75, 4))
    return found, directory, *written(found, directory)


def test_the_page_has_the_numbers_of_the_advice(pattern):
    found, _, html, results = pattern
    assert results["kind"] == "advise"
    rows = {row["what"]: row for row in results["tables"]["recommended"]}
    assert rows["label smoothing, shared among all K classes"]["value"] == found.alpha_all.value
    assert rows["mass on the label, p in Chen et al."]["low"] == found.p.low
    losses = {row["smoothing"]: row for row in results["tables"]["expected_losses"]}
    assert losses["no smoothing"]["by_heart"] is None  # infinite
    assert losses["recommended"]["by_heart"] == found.expected["recommended"].by_heart.value
    assert "a target for each label (matrix)" in losses
    assert f"label_smoothing={found.alpha_all.value:.3f}" in html
    assert "What theory does not say" in html


def test_the_matrix_of_the_page_makes_both_losses(pattern, monkeypatch):
    found, directory, html, _ = pattern
    code = matrix_code(4, smoothing=True)
    assert code.splitlines()[-1].split("(")[0] in html
    monkeypatch.chdir(directory)
    forward, smooth = {}, {}
    exec(code.split("\nS = ")[0], forward)
    exec(code, smooth)
    assert isinstance(forward["loss"], ForwardCorrection)
    assert forward["loss"].matrix.numpy() == pytest.approx(found.matrix, abs=1e-6)
    assert isinstance(smooth["loss"], LabelSmoothing)
    assert smooth["loss"].matrix.numpy() == pytest.approx(found.targets, abs=1e-6)
    logits = torch.randn(3, 4)
    targets = torch.tensor(found.targets, dtype=torch.float32)
    expected = torch.nn.functional.cross_entropy(logits, targets[[0, 2, 3]])
    assert float(smooth["loss"](logits, torch.tensor([0, 2, 3]))) == pytest.approx(float(expected), rel=1e-5)


def test_lines_of_libraries_that_are_here_can_be_run():
    lines = loss_lines(0.25, 0.2)
    import softtargets.losses

    theirs = eval(lines["PyTorch"], {"torch": torch})
    ours = eval(lines["softtargets"], {"softtargets": softtargets})
    logits, labels = torch.randn(5, 5), torch.arange(5)
    assert float(theirs(logits, labels)) == pytest.approx(float(ours(logits, labels)), rel=1e-5)
    # What timm and Hugging Face compute, after their sources.
    log_p = logits.log_softmax(1)
    smoothed = 0.75 * -log_p.gather(1, labels[:, None]).mean() + 0.25 * -log_p.mean()
    assert float(smoothed) == pytest.approx(float(ours(logits, labels)), rel=1e-5)
    assert "smoothing=0.250" in lines["timm"]
    assert "label_smoothing_factor=0.250" in lines["Hugging Face"]
    assert p_from_alpha(0.25, 5) == pytest.approx(p_from_alpha(0.2, 5, "others"))
    assert all(line in loss_code(0.25, 0.2) for line in lines.values())


def test_files_beside_the_page_hold_the_matrix_and_the_curve(pattern):
    found, directory, _, _ = pattern
    with open(directory / "tables" / "noise_matrix.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    for row in rows:
        assert float(row["share"]) == found.matrix[int(row["clean"]), int(row["label"])]
    curve = loss_rows(found)
    lowest = min(curve, key=lambda row: row["by_heart"])
    assert lowest["p"] == pytest.approx(found.p.value, abs=0.006)
    assert all(row["averaged"] <= row["by_heart"] + 1e-12 for row in curve)
    for name in ("noise_matrix", "landscape", "expected_loss"):
        assert (directory / "figures" / f"{name}.png").stat().st_size > 5000


def test_many_classes_get_a_list_of_mistakes(tmp_path):
    T = uniform(0.9, 22)
    T[3] = 0
    T[3, 3], T[3, 8] = 0.6, 0.4
    found = advised(T, 4400, sharpness=7.0, resamples=3)
    assert largest(found)[0] == (3, 8)
    _, results = written(found, tmp_path)
    assert results["tables"]["largest"][0]["clean"] == "class 3"
    assert len(results["tables"]["noise_matrix"]) == 22 * 22


def test_very_many_classes_keep_only_the_largest_entries():
    T = uniform(0.9, 101)
    found = advised(T, 606, sharpness=9.0, resamples=2, method="confident")
    assert found.numbers()["noise_matrix"] is None
    table = matrix_table(found)
    assert 0 < len(table.rows) <= 20
    shares = [row["share"] for row in table.rows]
    assert shares == sorted(shares, reverse=True)
    off = found.matrix - np.diag(np.diagonal(found.matrix))
    assert shares[0] == off.max()
    sections = {section.title: section for section in advise_page(found).sections}
    assert not any("noise_matrix.csv" in getattr(one, "text", "") for one in sections["What to do"].exhibits)


def shown(found):
    """What a page says to do: words, code and names of tables."""
    section = next(one for one in advise_page(found).sections if one.title == "What to do")
    words = " ".join(section.paragraphs)
    code = "\n".join(one.text for one in section.exhibits if isinstance(one, Code))
    return words, code, [one.name for one in section.exhibits if isinstance(one, Table)]


@pytest.mark.parametrize("purpose", ["teacher", "transfer"])
def test_a_teacher_is_offered_hard_labels_and_forward_correction(pattern, purpose):
    words, code, tables = shown(replace(pattern[0], purpose=purpose))
    assert "Train on hard labels" in words
    assert "torch.nn.CrossEntropyLoss()" in code
    assert "ForwardCorrection(matrix=T)" in code
    assert "smoothing" not in code.lower()
    assert tables == []


def test_pages_without_a_recommendation_have_none(pattern):
    found = pattern[0]
    assert shown(found)[2] == ["recommended"]
    few = replace(found, clean_rate=Estimate(0.995, 0.99, 0.999))
    assert shown(few) == (NO_REASON, "", [])
    assert code_lines(few) == {}
    assert [row[0] for row in summary_rows(few)] == ["wrong labels", "model agrees with"]
    assert len(summary_rows(found)) == 8
    assert code_lines(found) == loss_lines(found.alpha_all.value, found.alpha_others.value)


def test_a_page_that_cannot_tell_has_a_bound_a_list_and_no_code(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 1200, sharpness=1.0)
    found = advise(given(logits, labels), resamples=5)
    page = advise_page(found)
    assert not any(isinstance(one, Code) for section in page.sections for one in section.exhibits)
    assert [section.title for section in page.sections][:2] == ["What would help", "Labels to check"]
    html, results = written(found, tmp_path)
    assert "label_smoothing" not in html
    assert html.index("We cannot tell") < html.index("At most") < html.index(found.assessment.reason[:20])
    assert len(results["tables"]["most_suspicious"]) == 50
    assert results["tables"]["most_suspicious"][0]["row"] == str(found.suspects.row[0])
    assert summary_rows(found)[0][1].startswith("unknown, at most ")


def test_suspicious_images_are_shown_and_none_without_images(tmp_path):
    images, labels = blobs(300)
    labels[:40] = (labels[:40] + 1) % 3
    evidence = train_out_of_fold("blobs", images, labels, ("<b>", "$b$", "c"), Training("logistic"))
    found = advise(evidence, resamples=5)
    drawing = suspects_figure(found.suspects).draw()
    assert sum(len(axes.images) for axes in drawing.axes) == min(24, len(found.suspects))
    colour = replace(found.suspects, images=np.zeros((3, 3, 6, 6), np.uint8))
    assert sum(len(axes.images) for axes in suspects_figure(colour).draw().axes) == 3
    assert suspects_figure(replace(found.suspects, images=None)) is None
    html, _ = written(found, tmp_path)
    assert (tmp_path / "figures" / "suspicious.png").stat().st_size > 3000
    assert "<td>&lt;b&gt;</td>" in html
    assert len(html) < 3_000_000


def test_hostile_class_names_are_text(pattern, tmp_path):
    names = ("</script><img src=x>", "$x$", "b\\", "c")
    found = replace(pattern[0], understood=replace(pattern[0].understood, class_names=names))
    html, _ = written(found, tmp_path)
    assert "<img src=x>" not in html


def test_a_class_nobody_is_taken_for_is_drawn_as_unknown(pattern):
    noise = pattern[0].estimate
    broken = noise.matrix.copy()
    broken[1] = np.nan
    found = replace(pattern[0], estimate=replace(noise, matrix=broken))
    assert (1, 2) not in largest(found)
    texts = [one.get_text() for one in matrix_figure(found).draw().axes[0].texts]
    assert texts.count("?") == 4


@pytest.mark.parametrize("labels", [[0] * 30, [0, 1], [2]])
def test_tiny_input_makes_a_page(tmp_path, labels):
    logits = np.random.default_rng(0).standard_normal((len(labels), 3))
    html, _ = written(advise(given(logits, np.array(labels)), resamples=5), tmp_path)
    assert "We cannot tell" in html
