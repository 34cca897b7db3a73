"""Figure 1 of Müller et al.: its classes, its numbers, its claims and pages."""

from __future__ import annotations

import json
import math

import pytest
import torch

from softtargets.claims import judge
from softtargets.runs import RunStore, export_logs
from softtargets.studies import STUDIES, find_study, redraw_study, run_study
from softtargets.studies.muller_figure_1.geometry import arc_ratio, logit_gaps, norm_variation
from softtargets.studies.muller_figure_1.measures import NAMES, TRIPLES, places
from tests.studies.making import head, told, written

STUDY = find_study(STUDIES, "muller-figure-1")
AS_THE_PAPER_SAYS = {
    "train_spread": (0.4, 0.1),
    "validation_spread": (0.5, 0.3),
    "train_triangle": (0.7, 0.95),
    "train_scale": (10.0, 2.0),
    "gap_deviation": (0.5, 0.1),
    "gap_ratio": (2.0, 1.0),
    "norm_variation": (0.03, 0.02),
    "validation_arc": (1.0, 0.4),
}


def made_up(size="full", **changed):
    numbers = AS_THE_PAPER_SAYS | changed

    def measures(trial):
        place = int(trial.labels["alpha"] > 0)
        return {key: pair[place] + 1e-4 * trial.recipe.seed for key, pair in numbers.items()}

    return told(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"train_spread": (0.1, 0.4)}, {0, 3}),
        ({"train_triangle": (0.95, 0.7)}, {1}),
        ({"train_scale": (2.0, 10.0)}, {2}),
        ({"validation_spread": (0.5, 0.01)}, {3}),
        ({"gap_deviation": (0.1, 0.5)}, {4}),
        ({"gap_ratio": (1.0, 2.0)}, {5}),
        ({"norm_variation": (0.3, 0.02)}, {6}),
        ({"validation_arc": (0.4, 1.0)}, {7}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.claims(made_up(**changed)))
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_every_network_must_hold():
    for claim in STUDY.claims(made_up()):
        if "CIFAR-100" not in claim.statement:
            assert {name.partition(",")[0] for name, _ in claim.cells} == {"CIFAR-10", "CIFAR-100"}


def test_classes_are_the_papers_and_similar_ones_with_another():
    assert [NAMES["cifar10"][place] for place in places("cifar10", "paper")] == [
        "airplane",
        "automobile",
        "bird",
    ]
    assert places("cifar100", "paper") == (4, 30, 55)
    for network, triples in TRIPLES.items():
        assert all(name in NAMES[network] for names in triples.values() for name in names)


def test_the_arc_is_turned_moved_and_scaled_without_a_change():
    draw = torch.Generator().manual_seed(0)
    angles, radii = torch.randn(200, generator=draw) / 5, 3 + torch.randn(200, generator=draw) / 10
    points = torch.stack([radii * angles.cos(), radii * angles.sin()], dim=1)
    points = torch.cat([torch.zeros(5, 2), points]).double()
    labels = torch.cat([torch.full((5,), 2), torch.arange(200) % 2])
    found = arc_ratio(points, labels, third=2)
    assert found == pytest.approx(
        float(radii.std(correction=0) / (radii.mean() * angles.std(correction=0))), rel=1e-2
    )
    turn = torch.tensor([[math.cos(2), -math.sin(2)], [math.sin(2), math.cos(2)]], dtype=torch.float64)
    assert arc_ratio(7 * points @ turn + 11, labels, third=2) == pytest.approx(found)
    with pytest.raises(ValueError, match="no arc"):
        arc_ratio(torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), torch.tensor([2, 0, 1]), third=2)


def test_gaps_and_norms_by_hand():
    mean, deviation = logit_gaps(torch.tensor([[3.0, 1.0, 0.0]]), torch.tensor([0]))
    assert (mean, deviation) == (2.5, pytest.approx(0.5 / 2.5))
    # (3, 0) with bias 4 has norm 5, (0, 5) with bias 0 too.
    assert norm_variation(torch.tensor([[3.0, 0.0], [0.0, 5.0]]), torch.tensor([4.0, 0.0])) == pytest.approx(
        0
    )
    assert norm_variation(torch.tensor([[1.0], [3.0]]), torch.zeros(2)) == pytest.approx(0.5)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("figure-1")
    store, settings = RunStore(directory / "runs"), STUDY.settings(1, {"size": "full"})
    for trial in STUDY.trials(settings):
        written(store, trial)
    made = run_study(STUDY, settings, store, directory / "page", command="c", train=None, device="cpu")
    return made, store, settings


def test_spreads_are_those_of_the_activations_on_the_plane(page):
    made, store, settings = page
    rows = {
        row["run"]: row for row in json.loads((made.parent / "results.json").read_text())["tables"]["runs"]
    }
    for trial in STUDY.trials(settings):
        network = trial.labels["network"]
        said = store.find(trial.recipe).predictions("train")
        weights, _ = head(len(NAMES[network]))
        a, b, c = places(network, "paper")
        # A basis by Gram and Schmidt, another than the QR decomposition's.
        first = weights[a] - weights[c]
        first = first / first.norm()
        second = weights[b] - weights[c]
        second = second - (second @ first) * first
        basis = torch.stack([first, second / second.norm()], dim=1)
        clouds = [said.features[said.labels == label] @ basis for label in (a, b, c)]
        means = torch.stack([cloud.mean(0) for cloud in clouds])
        between = sum((means[i] - means[j]).norm() for i, j in ((0, 1), (0, 2), (1, 2))) / 3
        within = torch.cat([cloud - mean for cloud, mean in zip(clouds, means, strict=True)])
        spread = within.square().sum(1).mean().sqrt() / between
        assert rows[trial.recipe.id]["train_spread"] == pytest.approx(float(spread), rel=1e-4)
        assert rows[trial.recipe.id]["train_scale"] == pytest.approx(float(between), rel=1e-4)


def test_the_page_has_a_picture_for_every_row_and_redraws_it(page, tmp_path):
    made, store, _ = page
    pictures = [f"planes_{which}_{network}" for which in ("paper", "similar") for network in NAMES]
    export_logs([store.get(entry.id) for entry in store.entries()], made.parent / "logs.jsonl.gz")
    again = redraw_study(STUDY, made.parent, tmp_path / "again", command="redraw")
    for name in pictures:
        path = f"figures/{name}.svg"
        assert (again.parent / path).read_bytes() == (made.parent / path).read_bytes()
    kept = json.loads((made.parent / "results.json").read_text())["kept"]["details"]
    for details in kept.values():
        assert all(len(view["points"]) <= 300 for view in details.values())


def test_a_page_without_smoothing(tmp_path):
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(1, {"size": "full"})
    for trial in STUDY.trials(settings):
        if trial.labels["alpha"] == 0 and trial.labels["network"] == "cifar10":
            written(store, trial)
    made = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    results = json.loads((made.parent / "results.json").read_text())
    assert results["answer"].startswith("Not known yet")
    assert (made.parent / "figures" / "planes_paper_cifar10.svg").is_file()
    assert not (made.parent / "figures" / "planes_paper_cifar100.svg").exists()
