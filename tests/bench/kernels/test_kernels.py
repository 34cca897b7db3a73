"""The bench of kernels: which run is profiled, when its steps are timed, and what a trace says of them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
import torch

from benchmarks.kernels.__main__ import main
from benchmarks.kernels.measure import Kernel, from_trace, profiled, short, timed
from benchmarks.kernels.packs import (
    _IMAGES,
    _warm_up,
    arranged,
    check_numbers,
    matching,
    material,
    packs,
    step_within_an_epoch,
    undisturbed,
)
from benchmarks.translation.sentences import made_up
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import CIFAR10, CNN, MLP, MNIST, Digits, Multi30k, Recipe, ResNet18, Transformer
from softtargets.studies import STUDIES, find_study
from softtargets.training.pack import Fleet, Pack

CPU = torch.device("cpu")
SMALL = Recipe(data=MNIST(), model=MLP(hidden=(16,)), batch=8, epochs=2)
CONVOLVING = Recipe(data=CIFAR10(), model=CNN(), batch=4, epochs=2)


def ready(recipe, sizes, steps=6):
    recipe = undisturbed(recipe)
    task, teacher = material(recipe, steps, CPU)
    return packs(recipe, task, teacher, CPU, sizes)


def complete(category, name, begin, duration, thread=1):
    return {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": duration, "tid": thread}


# --- which run ---


def test_runs_are_found_by_their_labels():
    study = find_study(STUDIES, "labo-table-1")
    found = matching(study, "full", {"pair": "de-en", "method": "ls"})
    assert [(trial.labels["pair"], trial.labels["method"]) for trial in found] == [("de-en", "ls")]
    assert found[0].labels["size"] == "full"
    assert len(matching(study, None, {})) > 1
    by_number = matching(find_study(STUDIES, "quickstart"), None, {"role": "teacher", "alpha": "0.1"})
    assert [trial.labels["alpha"] for trial in by_number] == [0.1]


def test_every_study_with_images_has_some_to_train_on():
    for study in STUDIES:
        for size in study.sizes or (None,):
            if study.trials(study.settings(1, {"size": size} if size else {})):
                for trial in matching(study, size, {}):
                    recipe = undisturbed(trial.recipe)  # none of them refuses to be
                    assert recipe.data.task == "translation" or recipe.data.name in _IMAGES
    for name, size in (("labo-table-5", "full"), ("wagner-table-2", "cub200"), ("wagner-table-2", "emnist")):
        recipe = matching(find_study(STUDIES, name), size, {})[0].recipe
        task, _ = material(replace(recipe, batch=1), 2, CPU)
        assert len(task.splits["train"]) == 2
        assert task.net_arguments(recipe)["classes"] in (47, 200, 1000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("labo-tabel-1", "there is no study 'labo-tabel-1' (did you mean 'labo-table-1'?)"),
        ("labo-table-1 --only method=lss", "has method=lss (did you mean 'ls'?); allowed: hard, "),
        (
            "labo-table-1 --only methd=ls",
            "has label methd (did you mean 'method'?); allowed: size, pair, method",
        ),
        ("quickstart --only role=teacher --only temperature=2.0", "has all of role=teacher, temperature=2.0"),
        ("labo-table-1 --only ls", "'ls' is not KEY=VALUE"),
        ("labo-table-1 --size huge", "--size: no 'huge'; allowed: small, full"),
        ("quickstart --size full", "'quickstart' has only one size"),
        ("chen-theory", "'chen-theory' trains nothing"),
        ("quickstart --runs many", "--runs: 'many' is not a whole number from 1"),
        ("quickstart --steps 0", "'0' is not a whole number from 1"),
        ("quickstart --device tpu", "there is no device 'tpu'"),
        ("muller-figure-3 --device cpu --data-dir nowhere", "multi30k"),
    ],
)
def test_a_users_mistake_is_an_error_and_exit_code_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as leaving:
        main(words.split())
    assert leaving.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert message.lower() in error.lower()
    assert "error: " in error


# --- packs ---


def test_stacks_are_made_anew_and_smaller_fleets_go_on_with_the_runs_of_larger_ones():
    stacks = [(each.runs, type(each.pack), each.set_up is None) for each in ready(SMALL, (1, 3))]
    assert stacks == [(3, Pack, False), (1, Pack, False)]
    large, small = ready(CONVOLVING, (1, 2))
    assert [isinstance(each.pack, Fleet) for each in (large, small)] == [True, True]
    assert [slot.recipe.seed for slot in large.pack.slots] == [0, 1]
    assert small.pack.slots == large.pack.slots[:1]
    assert small.set_up is None


def test_the_arrangement_is_the_engines():
    for recipe, stacked in ((SMALL, True), (CONVOLVING, False)):
        task, _ = material(recipe, 2, CPU)
        assert arranged(recipe, task, CPU).stacked is stacked


def test_a_recipe_with_a_teacher_gets_an_untrained_one():
    recipe = matching(find_study(STUDIES, "quickstart"), None, {"role": "student"})[0].recipe
    task, teacher = material(recipe, 4, CPU)
    assert teacher.recipe == recipe.teacher
    assert len(teacher.task.splits["train"]) == len(task.splits["train"])
    (pack,) = ready(recipe, (2,))
    assert timed(pack.pack, 2, CPU).units_per_second > 0


def test_timed_steps_neither_open_nor_close_an_epoch_nor_are_runs_measured():
    (each,) = ready(replace(SMALL, measure_every=1), (1,))
    pack = each.pack
    for _ in range(3):
        step_within_an_epoch(pack, 4)
        assert pack.place == 1
        for _ in range(4):
            assert pack.advance() == []
        assert pack.place == 5
    step_within_an_epoch(pack, 6)  # an epoch has no more: there is no better place
    assert pack.place == 5
    assert pack.slots[0].history == []


def test_on_a_gpu_every_shape_is_recorded_before_the_clock_starts():
    model = Transformer(width=8, heads=2, inner=8, encoder_layers=1, decoder_layers=1)
    recipe = undisturbed(Recipe(data=Multi30k(), model=model, batch=64, epochs=1))
    (each,) = packs(recipe, made_up(200, 4, CPU).task, None, CPU, (2,))
    steps = _warm_up(each.pack, recorded=True)
    for slot in each.pack.slots:
        shapes = slot.course.epoch(0).shapes
        assert set(shapes[:steps]) == set(shapes)
        assert len(set(shapes)) > 1
    assert timed(each.pack, 2, CPU).units_per_second > 0


def test_losses_that_are_no_numbers_are_refused():
    (each,) = ready(replace(SMALL, optimiser=replace(SMALL.optimiser, lr=1e30)), (2,))
    timed(each.pack, 4, CPU)
    with pytest.raises(SofttargetsError, match="no longer a number"):
        check_numbers(each.pack)


# --- traces ---


def test_a_trace_of_a_gpu_is_its_kernels_and_copies():
    trace = [
        complete("cpu_op", "aten::mm", 0.0, 900.0),
        complete("cuda_runtime", "cudaGraphLaunch", 0.0, 90.0),
        complete("kernel", "gemm", 100.0, 30.0),
        complete("kernel", "softmax", 132.0, 8.0),
        complete("gpu_memset", "Memset (Device)", 141.0, 1.0),
        complete("kernel", "gemm", 190.0, 10.0, thread=2),
        {"ph": "i", "cat": "kernel", "name": "no duration", "ts": 500.0},
    ]
    found = from_trace({"traceEvents": trace}, 2)
    assert found.kernels == (
        Kernel("gemm", 20.0, 1.0),
        Kernel("softmax", 4.0, 0.5),
        Kernel("Memset (Device)", 0.5, 0.5),
    )
    assert (found.wall, found.busy, found.launches, found.kernels[0].each) == (50.0, 24.5, 2.0, 20.0)


def test_a_trace_without_kernels_is_refused():
    with pytest.raises(SofttargetsError, match="saw no kernels"):
        from_trace({"traceEvents": [complete("cpu_op", "mm", 0.0, 9.0)]}, 1)


def test_steps_under_the_profiler_are_those_of_the_training():
    (each,) = ready(SMALL, (1,))
    found = profiled(each.pack, 2, CPU)
    products = [kernel.launches for kernel in found.kernels if kernel.name in ("aten::bmm", "aten::baddbmm")]
    assert sum(products) >= 3, "two layers forward and backward"
    assert 0 < found.busy <= found.wall


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
            "::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, "
            "std::array<char*, 2ul>, 4>(int, std::array<char*, 2ul>)",
            "unrolled_elementwise_kernel<direct_copy_kernel_cuda, array<char*, 2ul>, 4>",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_64x64_nn_align8>(cutlass_80::Params)",
            "Kernel2<cutlass_80_tensorop_bf16_s16816gemm_64x64_nn_align8>",
        ),
        ("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT"),
    ],
)
def test_names_of_kernels_are_shown_short(name, shown):
    assert short(name) == shown
    assert len(short(name * 9)) <= 90


# --- the command ---


def test_the_command_prints_and_writes(tmp_path, capsys):
    asked = "labo-readings --only method=ls --device cpu --runs 1,2 --steps 2 --profiled 2 --top 3 --out"
    main([*asked.split(), str(tmp_path)])
    out = capsys.readouterr().out
    assert "times are those of the CPU" in out
    lines = out.splitlines()
    assert sum("images/s" in line for line in lines) == 2
    heading = next(place for place, line in enumerate(lines) if line.startswith("µs a step"))
    assert lines[heading + 4].startswith("and "), "three rows"
    content = json.loads((tmp_path / "kernels.json").read_text())
    assert content["command"].startswith("python -m benchmarks.kernels labo-readings --only method=ls")
    assert {"date", "commit", "torch", "device_name"} <= set(content)
    assert content["recipe"]["regulariser"]["name"] == "label_smoothing"
    assert [each["runs"] for each in content["packs"]] == [2, 1]
    with (tmp_path / "kernels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["kernel"] for row in rows] == [each["kernel"] for each in content["profile"]["kernels"]]
    assert f"{float(rows[0]['microseconds_per_step']):,.1f}" in lines[heading + 1]


@pytest.mark.cuda
def test_kernels_of_recorded_steps_are_seen_on_a_gpu(tmp_path):
    asked = "quickstart --only role=teacher --device cuda --runs 1,2 --steps 10 --profiled 5 --out"
    main([*asked.split(), str(tmp_path)])
    profile = json.loads((tmp_path / "kernels.json").read_text())["profile"]
    assert profile["wall_microseconds"] > 0
    assert all(each["microseconds_per_step"] > 0 for each in profile["kernels"])
    assert sum(each["launches_per_step"] for each in profile["kernels"]) > 5
    recorded = undisturbed(Recipe(data=CIFAR10(), model=ResNet18(), batch=8, epochs=1, precision="bf16"))
    device = torch.device("cuda")
    task, _ = material(recorded, 8, device)
    (each,) = packs(recorded, task, None, device, (1,))
    assert len(profiled(each.pack, 2, device).kernels) > 5


def test_digits_are_a_study_of_images_too():
    task, _ = material(Recipe(data=Digits(), model=MLP(), batch=3, epochs=1), 2, CPU)
    assert task.net_arguments(SMALL) == {"shape": (1, 8, 8), "classes": 10}
