"""A run is what it would be alone: bit for bit, whatever trains beside it, in every arrangement."""

from __future__ import annotations

import os

import pytest
import torch

from forking import finish, start
from softtargets.recipes import (
    LABO,
    SGD,
    Adam,
    CrossEntropy,
    Distillation,
    Focal,
    ForwardCorrection,
    LabelSmoothing,
    LogitSmoothing,
    MaxSup,
    OnlineLabelSmoothing,
    Recipe,
    TFReg,
)
from softtargets.runs import RunStore
from softtargets.training import train

# What may differ inside of a pack, so that all kinds of loss and all numbers are there.
LOSSES = [
    LabelSmoothing(alpha=0.1),
    OnlineLabelSmoothing(),
    MaxSup(),
    CrossEntropy(),
    Focal(),
    LABO(),
    TFReg(),
    LogitSmoothing(alpha=0.2),
    ForwardCorrection(),
    LabelSmoothing(
        alpha=0.3, matrix=tuple(tuple(0.55 if i == j else 0.05 for j in range(10)) for i in range(10))
    ),
]
FEW, MANY = 3, 17
COLOUR = ({"name": "brightness"}, {"name": "contrast"}, {"name": "flip"})
# What is trained, and in which precisions it is stacked on a GPU. Ten classes, and other widths that no tile divides.
STACKED = {
    "fcn-bf16": {"precision": "bf16", "model": {"name": "mlp", "hidden": (50, 37), "dropout": 0.2}},
    "fcn-wide": {"precision": "bf16", "model": {"name": "mlp", "hidden": (256, 144)}, "average": 0.9},
    "fcn-fp32": {"precision": "fp32", "model": {"name": "mlp", "hidden": (50, 37)}},
    "fcn-tf32": {"precision": "tf32", "model": {"name": "mlp", "hidden": (64, 30)}},
    "cnn": {"precision": "bf16", "model": {"name": "cnn", "dropout": 0.3}, "clip": 1.0},
    "alexnet": {
        "precision": "bf16",
        "model": {"name": "alexnet"},
        "data.standardise": "image",
        "augmentation": COLOUR,
        "clip": 1.0,  # of ten parameters: so many norms torch's compiler would not add up one after another
        "optimiser": SGD(
            lr=0.01, weight_decay=0.004, decay_on=("local3.weight", "local4.weight"), decay_form="loss"
        ),
    },
    "fcn-adam": {
        "precision": "bf16",
        "model": {"name": "mlp", "hidden": (64, 50)},
        "optimiser": Adam(lr=0.001, weight_decay=0.01),
    },
    "fcn-norm": {
        "precision": "bf16",
        "model": {"name": "mlp", "hidden": (64, 50)},
        "optimiser": SGD(lr=0.1, momentum=0.9, weight_decay=0.01, decay_form="norm"),
        "clip": 0.5,
    },
}
SIDE_BY_SIDE = {
    "resnet18": {"name": "resnet18"},
    "preact_resnet": {"name": "preact_resnet", "depth": 8},
    "tensor2tensor": {"name": "preact_resnet", "depth": 14, "variant": "tensor2tensor"},
}


def company(recipe: Recipe, count: int) -> list[Recipe]:
    """The recipe first, and others of its kind with other seeds, rates, decays and losses."""
    found = []
    for place in range(count):
        rate = {"optimiser.lr": recipe.optimiser.lr * (1 + place % 4)}
        if place % 3 == 1:
            rate |= {"optimiser.weight_decay": recipe.optimiser.weight_decay * 2}
        found.append(recipe.replace({"seed": place, "regulariser": LOSSES[place % len(LOSSES)], **rate}))
    return found


def check_company(recipe, directory, device, few=FEW, many=MANY):
    """Weights, and all that was logged: losses of the training, and what was measured on held-out examples."""
    together = train(company(recipe, many), RunStore(directory / "many"), device=device)
    fewer = train(company(recipe, few), RunStore(directory / "few"), device=device)
    alone = [
        train([own], RunStore(directory / f"alone {place}"), device=device)[0]
        for place, own in enumerate(company(recipe, few))
    ]
    for place in range(few):
        for other in (fewer[place], together[place]):
            assert other.recipe.id == alone[place].recipe.id
            for name, value in alone[place].weights().items():
                assert torch.equal(other.weights()[name], value), (place, name)
            assert _logged(other) == _logged(alone[place])


def _logged(run):
    return [{name: value for name, value in row.items() if "second" not in name} for row in run.history()]


@pytest.mark.cuda
@pytest.mark.parametrize("name", STACKED)
def test_on_a_gpu_a_stacked_run_is_what_it_would_be_alone(recipe, name, tmp_path):
    check_company(recipe.replace({"epochs": 2, **STACKED[name]}), tmp_path, "cuda")


@pytest.mark.cuda
@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_on_a_gpu_a_run_on_a_stream_of_its_own_is_what_it_would_be_alone(recipe, name, tmp_path):
    fields = {"epochs": 1, "data.limit": 64, "precision": "bf16", "model": SIDE_BY_SIDE[name]}
    check_company(recipe.replace(fields), tmp_path, "cuda", few=2, many=3)


@pytest.mark.cuda
@pytest.mark.parametrize("view", ["student", "teacher", "stored"])
@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet18"])
def test_on_a_gpu_a_student_is_what_it_would_be_alone(recipe, model, view, tmp_path):
    """Teachers are asked about augmented images in every step, stacked or one after another, or once."""
    teachers = [
        recipe.replace({"precision": "bf16", "model": {"name": model}, "seed": 7 + place, "epochs": 1})
        for place in range(2)
    ]
    students = [
        recipe.replace(
            {
                "precision": "bf16",
                "epochs": 1,
                "seed": place,
                "regulariser": Distillation(teacher=teacher, view=view),
            }
        )
        for place, teacher in enumerate(teachers)
    ]
    together = train(students, RunStore(tmp_path / "together"), device="cuda")
    for student, run in zip(students, together, strict=True):
        (alone,) = train([student], RunStore(tmp_path / student.id), device="cuda")
        for name, value in alone.weights().items():
            assert torch.equal(run.weights()[name], value), name


def with_the_fastest(sign, recipe, root, device):
    """Train with a compiler that takes the first of its candidates for the fastest, or the last."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(root / "cache")
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    def timed(self, *arguments, **named):
        return {launcher: sign * place for place, launcher in enumerate(self.launchers)}

    assert hasattr(CachingAutotuner, "benchmark_all_configs")  # or all would be as it is, and nothing asked
    CachingAutotuner.benchmark_all_configs = timed
    train([recipe], RunStore(root / "runs"), device=device, progress=False)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_what_the_compiler_finds_fastest_decides_about_no_bits(recipe, device, tmp_path):
    """Torch times several ways to add up, which round differently: by chance another may win on another machine."""
    model = {"name": "preact_resnet", "depth": 8, "variant": "tensor2tensor"}
    small = recipe.replace({"precision": "bf16", "model": model, "epochs": 2})
    runs = []
    for name, sign in (("first", 1), ("last", -1)):
        assert finish(start(with_the_fastest, sign, small, tmp_path / name, device, daemon=False)) == 0
        runs.append(RunStore(tmp_path / name / "runs").find(small))
    for name, value in runs[0].weights().items():
        assert torch.equal(runs[1].weights()[name], value), name


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "norm", "clip"])
def test_on_a_cpu_a_stacked_run_is_what_it_would_be_alone(recipe, optimiser, tmp_path):
    """Layers of even widths; weight decays that differ, or do not, are rounded alike."""
    kinds = {
        "sgd": SGD(lr=0.1, momentum=0.9, weight_decay=1e-3),
        "adam": Adam(lr=0.001, weight_decay=0.01),
        "norm": SGD(lr=0.1, weight_decay=0.01, decay_form="norm"),
    }
    clips = {"model.hidden": (32, 32), "clip": 0.1} if optimiser == "clip" else {"model.hidden": (32,)}
    varied = recipe.replace({"epochs": 2, "optimiser": kinds.get(optimiser, kinds["sgd"]), **clips})
    check_company(varied, tmp_path, "cpu", many=4)
