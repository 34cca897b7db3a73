"""Tables 2, 3 and 5 of the replication: claims on made-up numbers, and what stands in the tables."""

from __future__ import annotations

import pytest

from softtargets.claims import judge, published
from softtargets.studies import STUDIES, Results, find_study
from softtargets.studies.wagner.networks import NETWORKS
from softtargets.studies.wagner_table_5 import covered_by, ticks
from tests.studies.making import told

TABLE_2, TABLE_3, TABLE_5 = (find_study(STUDIES, f"wagner-table-{number}") for number in (2, 3, 5))


def as_printed(study, size="full", **changed):
    """The replication's numbers with a little noise, but for what is changed: by network, strength and measure."""

    def measures(trial):
        network, alpha = NETWORKS[trial.labels["network"]], trial.labels["alpha"]
        jitter = 1e-4 * (trial.recipe.seed % 3 - 1)
        found = {key: network.printed(key, alpha).value + jitter for key in ("accuracy", "ece")}
        found |= {
            "ece_scaled": published(f"wagner-2023/ece/{network.key}/scaled").value + jitter / 10,
            "temperature": published(f"wagner-2023/temperature/{network.key}/hard").value,
        }
        found |= {"ece_scaled_held_out": found["ece_scaled"], "temperature_held_out": found["temperature"]}
        for (key, strength, measure), value in changed.get("cells", {}).items():
            if (key, strength) == (network.key, alpha):
                found[measure] = value + jitter
        return {network.measure(measure): value for measure, value in found.items()}

    return told(study, measures, size)


def verdicts(study, results):
    return {one.claim.statement: one.verdict for one in judge(study.findings(results).claims)}


def test_the_printed_accuracies_reproduce_themselves():
    found = verdicts(TABLE_2, as_printed(TABLE_2))
    assert len(found) == 5 + 2 + 25
    assert set(found.values()) == {"reproduced"}
    assert "lowers the accuracy of ResNet-56 on CIFAR-10" in " ".join(found)


@pytest.mark.parametrize(
    ("cells", "fallen"),
    [
        (
            {("mnist-fcn", 0.1, "accuracy"): 0.985},
            {"raises the accuracy of FCN on MNIST", "0.1 has an accuracy of 99.31"},
        ),
        (
            {("cifar10-alexnet", 0.3, "accuracy"): 0.83},
            {"0.3 raises the accuracy of AlexNet", "AlexNet on CIFAR-10 with label smoothing of 0.3 has"},
        ),
        ({("cifar100-resnet56", 0.05, "accuracy"): 0.74}, {"accuracy of 71.99 %"}),
    ],
)
def test_a_claim_about_accuracy_falls_when_its_own_numbers_turn(cells, fallen):
    found = verdicts(TABLE_2, as_printed(TABLE_2, cells=cells))
    contradicted = [statement for statement, verdict in found.items() if verdict == "contradicted"]
    assert len(contradicted) == len(fallen)
    assert all(any(part in statement for statement in contradicted) for part in fallen)


def test_a_change_too_small_to_count_is_no_effect():
    results = as_printed(TABLE_2, cells={("cifar10-resnet56", 0.1, "accuracy"): 0.9359})
    found = verdicts(TABLE_2, results)
    assert found["Label smoothing of 0.1 lowers the accuracy of ResNet-56 on CIFAR-10."] == "no effect"
    answer = TABLE_2.findings(results).answer
    assert "lowers that of FCN on Fashion-MNIST;" in answer
    assert "for 1 of 5 networks no change is shown" in answer


def test_small_sizes_and_other_data_have_their_own_claims():
    small = TABLE_2.claims(as_printed(TABLE_2, "small"))
    assert not any(claim.printed for claim in small)
    assert len(small) == 5 + 1  # strengths of 0.05 are not trained
    emnist = TABLE_2.claims(as_printed(TABLE_2, "emnist"))
    assert [claim.printed for claim in emnist] == [None, 88.79, 89.11, 89.35, 89.19, 88.88]
    assert {claim.margin for claim in emnist[1:]} <= {0.45, 0.46}  # of 18,800 images


def test_rows_of_table_2_stand_below_each_other():
    table = TABLE_2.findings(as_printed(TABLE_2)).sections[0].exhibits[0]
    shown = [[column.show(row[column.key]) for column in table.columns] for row in table.rows]
    assert shown[4] == ["CIFAR-10", "AlexNet", "Müller et al. 2019", "86.80 %", "–", "86.70 %", "–", "–"]
    assert shown[5][2:5] == ["replication 2023", "85.01 %", "85.13 %"]
    assert shown[6][2:4] == ["ours", "85.01 ± 0.01 %"]
    assert len(shown) == 5 * 2 + 2


def test_the_printed_calibration_errors_reproduce_themselves():
    found = verdicts(TABLE_3, as_printed(TABLE_3))
    assert len(found) == 3 + 5 + 30
    assert set(found.values()) == {"reproduced"}
    assert sum("lowers the calibration error" in statement for statement in found) == 2


def test_temperatures_on_held_out_examples_are_judged_by_themselves():
    worse = as_printed(TABLE_3, cells={("cifar10-alexnet", 0.0, "ece_scaled_held_out"): 0.04})
    found = verdicts(TABLE_3, worse)
    assert [verdict for statement, verdict in found.items() if "held-out examples" in statement] == [
        "contradicted"
    ]
    assert list(found.values()).count("contradicted") == 1
    assert TABLE_3.findings(worse).answer.startswith("A temperature calibrates better")


def test_a_network_for_digits_that_smoothing_calibrates_falls_out():
    found = verdicts(TABLE_3, as_printed(TABLE_3, cells={("fmnist-fcn", 0.05, "ece"): 0.002}))
    fallen = [statement for statement, verdict in found.items() if verdict == "contradicted"]
    assert len(fallen) == 4  # both temperatures, “even little smoothing”, and the printed number
    assert any(statement.startswith("Fully connected networks") for statement in fallen)


def test_both_temperatures_stand_in_table_3():
    table = TABLE_3.findings(as_printed(TABLE_3)).sections[0].exhibits[0]
    rows = [row for row in table.rows if row["network"] == "ResNet-56" and row["dataset"] == "CIFAR-100"]
    assert [row["source"] for row in rows] == ["Müller et al. 2019", "replication 2023", "ours"]
    assert [row["temperature"] if i < 2 else row["temperature"].mean for i, row in enumerate(rows)] == [
        1.9,
        2.9,
        2.9,
    ]
    assert [row.get("scaled_held_out") for row in rows[:2]] == [None, None]
    assert rows[2]["scaled_held_out"].mean == pytest.approx(0.029)
    shown = [[column.show(row.get(column.key)) for column in table.columns] for row in table.rows]
    assert all(len(row) == 12 for row in shown)


def test_table_5_names_a_study_for_every_tick_on_images():
    studies = {study.name: study for study in STUDIES}
    for key in NETWORKS:
        for experiment in ticks(key):
            if experiment != "distillation":
                assert covered_by(key, experiment, studies), (key, experiment)
    assert covered_by("mnist-fcn", "distillation", studies) == "mnist-distillation"
    assert covered_by("cub200-resnet34", "accuracy", studies) == "wagner-table-2 (size cub200)"
    assert covered_by("cub200-resnet34", "accuracy", {}) == ""
    assert sum(len(ticks(key)) for key in NETWORKS) == 24
    found = TABLE_5.findings(Results(()))
    rows = found.sections[0].exhibits[0].rows
    assert len(rows) == 8
    missing = [row["dataset"] for row in rows if "missing" in row.values()]
    assert found.answer.startswith("Not quite" if missing else "Yes")
    assert set(missing) <= {"CIFAR-10"}  # its distillation is a study of its own
