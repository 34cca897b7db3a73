"""The update of a stack is the same arithmetic whatever number of runs there are, as torch's compiler makes it of it.

A run is then what it would be alone to the last bit: `test_company` sees that on a GPU, this needs none.
"""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("triton")

from tests.compiling import in_a_process
from tests.inductor import VERSIONS

pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith(VERSIONS),
    reason="the compiler's insides are those of torch 2.11 to 2.13",
)

PROGRAM = r"""
import json, sys
from dataclasses import replace
import torch
from softtargets.recipes import SGD, Adam
from softtargets.training.optimisers import make_update, weight_update
from softtargets.training.optimisers.weight_update import WeightUpdate
from tests.inductor import arithmetic, code_for_a_gpu

OPTIMISERS = {
    "sgd": SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
    "nesterov": SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "dampened": SGD(lr=1.0, momentum=0.9, dampening=0.9),
    "loss": SGD(lr=0.01, weight_decay=0.004, decay_on=("1.weight",), decay_form="loss"),
    "norm": SGD(lr=0.1, momentum=0.9, weight_decay=0.01, decay_form="norm"),
    "adam": Adam(lr=0.001, weight_decay=0.01),
}
# A convolution and three linear layers, whose weights have shadows in bf16: as many parameters as clipping norms were
# seen to be put together differently.
LAYERS = [(32, 3, 5, 5), (256, 64), (64, 50), (50, 10)]
NAMES = [f"{place}.{kind}" for place in range(len(LAYERS)) for kind in ("weight", "bias")]
SHAPES = [shape for weights in LAYERS for shape in (weights, (weights[-1] if len(weights) == 2 else weights[0],))]


def made(name, runs, clip, average):
    # Every third run has a decay of its own, as in the packs of `test_company`.
    own = [OPTIMISERS[name]] * runs
    own[1::3] = [replace(each, weight_decay=2 * each.weight_decay) for each in own[1::3]]
    update = make_update(own, NAMES, lead=1)
    change = WeightUpdate(update, clip, average, lead=1)
    parameters = [torch.zeros(runs, *shape) for shape in SHAPES]
    low = [torch.bfloat16 if len(shape) == 2 else torch.float32 for shape in SHAPES]
    gradients = [one.to(dtype) for one, dtype in zip(parameters, low, strict=True)]
    shadows = [one for one in gradients if one.dtype == torch.bfloat16]
    memory = update.initial(parameters)
    averages = [torch.zeros_like(one) for one in parameters] if average else []
    lists = [parameters, gradients, *memory.values(), averages, shadows]
    # Numbers of an update are tensors where runs have their own: here all of them are, as arguments.
    numbers = {key: value for key, value in vars(update).items() if isinstance(value, torch.Tensor)}
    columns = {key: value for key, value in vars(update).items() if isinstance(value, list)}
    for values in columns.values():
        values[:] = [torch.full((runs,), value) if isinstance(value, float) else value for value in values]

    def function(rate, step, *tensors):
        left = list(tensors)
        taken = [[left.pop(0) for _ in one] for one in lists]
        for key in numbers:
            setattr(update, key, left.pop(0))
        for key, values in columns.items():
            setattr(update, key, [left.pop(0) for _ in values])
        parameters, gradients, *slots, averages, shadows = taken
        of_layer = [shadows.pop(0) if one.dtype == torch.bfloat16 else None for one in gradients]
        return change(parameters, gradients, dict(zip(memory, slots)), averages, of_layer, rate, step)

    flat = [tensor for one in lists for tensor in one] + [*numbers.values()]
    flat += [value for values in columns.values() for value in values]
    arguments = torch.zeros(runs), torch.zeros(runs, dtype=torch.int64), *flat
    return arithmetic(code_for_a_gpu(function, arguments))


name, counts, apart = json.loads(sys.argv[1])
if not apart:
    weight_update._apart = lambda shares: shares
differing = {}
for clip, average in ((1.0, None), (None, 0.9)):
    found = [{line for kernel in made(name, runs, clip, average) for line in kernel} for runs in counts]
    assert all(len(lines) > 2 * len(NAMES) for lines in found), "weights and memory are written"
    differing["clipped" if clip else "averaged"] = sorted(set.union(*found) - set.intersection(*found))
print(json.dumps(differing))
"""


def differences(name, counts, apart=True):
    """Formulas that are not there for each of these numbers of runs."""
    return json.loads(in_a_process(PROGRAM, json.dumps([name, counts, apart])))


@pytest.mark.parametrize("name", ["sgd", "nesterov", "dampened", "loss", "norm", "adam"])
def test_the_arithmetic_of_an_update_does_not_depend_on_the_number_of_runs(name):
    assert differences(name, [1, 2, 3, 17, 64]) == {"clipped": [], "averaged": []}


def test_shares_of_gradients_that_are_not_computed_apart_are_seen_to_depend_on_it():
    found = differences("sgd", [1, 3], apart=False)
    assert any("sqrt" in line for line in found["clipped"]), (
        "the root of a norm is in a weight's formula, or not"
    )
    assert found["averaged"] == []
