"""What torch's compiler makes of a function for a GPU that need not be there, and the arithmetic of its kernels.

It goes by the insides of the compiler, which are known here of torch 2.11 to 2.13.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

import torch

VERSIONS = ("2.11.", "2.12.", "2.13.")
# Of an H200, as far as the compiler asks.
_LIMITS = {
    "multi_processor_count": 132,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
    "warp_size": 32,
}
_MEMORY = {"total_memory": 140 << 30, "shared_memory_per_block_optin": 227 << 10, "L2_cache_size": 50 << 20}


def code_for_a_gpu(function, arguments):
    """The program that computes a function of tensors on an H200; the tensors given say shapes and types."""
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.func import functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    plain = functionalize(function, remove="mutations_and_views")
    with mock.patch.object(
        torch.Tensor, "is_cuda", True
    ):  # so that code takes the way that it takes on a GPU
        graph = make_fx(plain, select_decomp_table(), "fake")(*arguments)
    gpu = torch.device("cuda", 0)
    for node in graph.graph.nodes:
        if node.kwargs.get("device") is not None:
            node.kwargs = {**node.kwargs, "device": gpu}
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        there = [torch.empty(each.shape, dtype=each.dtype, device=gpu) for each in arguments]
    with ExitStack() as pretended:
        for name, value in _pretences().items():
            pretended.enter_context(mock.patch(name, value))
        pretended.enter_context(V.set_fake_mode(mode))
        pretended.enter_context(V.set_debug_handler(DebugContext()))
        lowering = GraphLowering(graph, example_inputs=there, shape_env=mode.shape_env, is_inference=True)
        with V.set_graph_handler(lowering):
            lowering.run(*there)
            code, _ = lowering.codegen()
    return code.value


def _pretences():
    from torch._inductor.runtime.hints import DeviceProperties

    known = DeviceProperties(type="cuda", index=0, cc=90, major=9, max_threads_per_block=1024, **_LIMITS)
    asked = SimpleNamespace(major=9, minor=0, name="H200", **_LIMITS, **_MEMORY)
    return {
        "torch.cuda.is_available": lambda: True,
        "torch.cuda.current_device": lambda: 0,
        "torch.cuda.get_device_capability": lambda *_: (9, 0),
        "torch.cuda.get_device_properties": lambda *_: asked,
        "torch.utils._triton.triton_backend": lambda: None,
        "torch.utils._triton.triton_hash_with_backend": lambda: "",
        "torch._inductor.scheduler.has_triton": lambda *_: True,
        "torch._inductor.runtime.hints.DeviceProperties.create": staticmethod(lambda _: known),
    }


_KERNEL = re.compile(r"def (triton_\w+)\(([^\n]*)\):\n(.*?)\n''', device_str", re.S)
_CALL = re.compile(r"(triton_\w+)\.run\(([^\n]*?), stream")


def arithmetic(code):
    """What each kernel writes: the arguments (others are "buf") and formulas that say what, without shapes."""
    called = {name: [word.strip() for word in given.split(",")] for name, given in _CALL.findall(code)}
    return [_written(params, called[name], body) for name, params, body in _KERNEL.findall(code)]


def _written(params, given, body):
    names = [param.split(":")[0].strip() for param in params.split(",")]
    stands_for = {name: re.sub(r"^buf\d+$", "buf", word) for name, word in zip(names, given, strict=False)}
    known, found = {}, set()
    for line in body.splitlines():
        if made := re.match(r"\s*(tmp\d+) = (.*)$", line):
            known[made[1]] = _formula(made[2], stands_for, known)
        if stored := re.match(r"\s*tl\.store\((\w+) \+ .*?, (tmp\d+), ", line):
            found.add(f"{stands_for[stored[1]]} = {known[stored[2]]}")
    return sorted(found)


def _formula(text, stands_for, known):
    if loaded := re.search(r"tl\.load\((\w+)", text):
        return stands_for[loaded[1]] + (".to(tl.float32)" if ".to(tl.float32)" in text else "")
    if spread := re.search(r"tl\.broadcast_to\((\w+)", text):
        return known[spread[1]]
    formula = re.sub(r"\btmp\d+\b", lambda name: known[name[0]], text)
    return f"({formula.replace('[1, 1]', '[1]')})"  # tiles of one dimension or two
