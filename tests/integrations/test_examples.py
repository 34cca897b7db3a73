"""Every script under examples/ runs as a user runs it, trains on real data, and says what came out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import softtargets
from integrations import torchvision_shim

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each prints: a pattern, and how often.
SAYS = {
    "accelerate_loop": (
        r"OnlineLabelSmoothing, 1 process: [\d.]+ % of the test digits are right",
        1,
    ),
    "huggingface_classification": (r"\w+: [\d.]+ % of the test digits are right", 3),
    "huggingface_distillation": (r"% (of the test digits )?are right", 4),
    "huggingface_language_model": (r"\w+: [\d.]+ % of held-out characters are predicted", 3),
    "lightning_digits": (r"clusters have a spread of [\d.]+ \(4 pictures were drawn\)", 3),
    "tensorboard_report": (r"the smooth calibration error is [\d.]+ %", 1),
    "timm_mixup": (r"\w+ with mixup: [\d.]+ % of the test digits are right", 3),
    "torchmetrics_digits": (r"the AURC is [\d.]+", 3),
}
SHIMMED = """
import runpy, sys
from integrations.torchvision_shim import declare
kept, sys.argv = declare(), sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(name, *options, shim=False, processes=1):
    source, tests = Path(softtargets.__file__).parents[1], Path(__file__).parents[1]
    paths = [str(source), str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    script = str(EXAMPLES / f"{name}.py")
    command = [script]
    if shim:
        command = ["-c", SHIMMED, script]
    if processes > 1:
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}", script]
    return subprocess.run(
        [sys.executable, *command, *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


def test_all_examples_are_here():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert set(SAYS) <= scripts


@pytest.mark.parametrize("name", SAYS)
def test_an_example(name, tmp_path):
    shim = name == "timm_mixup"
    if shim:
        torchvision_shim.timm()
    options = ["--out", str(tmp_path / "logs")] if name == "tensorboard_report" else []
    done = run(name, "--fast", *options, shim=shim)
    assert done.returncode == 0, done.stderr
    pattern, times = SAYS[name]
    assert len(re.findall(pattern, done.stdout)) == times, done.stdout
    if name == "tensorboard_report":
        assert list((tmp_path / "logs").glob("events*"))


def test_two_processes_of_accelerate_learn_one_table():
    done = run("accelerate_loop", "--fast", processes=2)
    assert done.returncode == 0, done.stderr
    assert len(re.findall("OnlineLabelSmoothing, 2 processes: ", done.stdout)) == 1, done.stdout
