"""Kernels compiled for a GPU that need not be there: the interpreter takes more than the compiler does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_ONE_KERNEL = """
import importlib, json, sys
from tests.compiling import compiled, refuse_spills

asked = json.loads(sys.argv[1])
kernel = getattr(importlib.import_module(asked.pop("module")), asked.pop("name"))
assert set(asked["types"]) <= {param.name for param in kernel.params}, kernel.params
refuse_spills(compiled(kernel, **asked))
"""


def in_a_process(program, *arguments):
    """What a program prints that compiles kernels; here Triton's interpreter may be loaded, which stays."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=_ROOT,
            env=environment | {"TRITON_CACHE_DIR": empty},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def check(module, name, **asked):
    """That a kernel compiles, with arguments as of `compiled`, and keeps to registers."""
    in_a_process(_ONE_KERNEL, json.dumps({"module": module, "name": name, **asked}))


def compiled(kernel, constants, types, otherwise=None, even=None, warps=4, stages=3, capability=90):
    """What Triton makes of a kernel for an H100 or H200, in a process without the interpreter.

    Arguments are constants, of the type that is said, or `otherwise`. Those named in `even`, by default all tensors,
    are multiples of 16.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    names = [param.name for param in kernel.params]
    assert set(constants) <= set(names), (set(constants) - set(names), names)
    signature = {name: "constexpr" if name in constants else types.get(name, otherwise) for name in names}
    if even is None:
        even = [name for name in names if signature[name].startswith("*")]
    even = {(names.index(name),): [["tt.divisibility", 16]] for name in even if name not in constants}
    source = ASTSource(kernel, signature, constants, even)
    options = {"num_warps": warps, "num_stages": stages}
    return compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def refuse_detours(found, about):
    """Double precision creeps in through constants too small for single, and is slow or, in assembly, wrong."""
    assert "f64" not in found.asm["ttir"], (about, "computes in double precision")
    assert ".local" not in found.asm["ptx"], (about, "does not fit into registers")


def refuse_spills(found, most=0):
    """Ask the assembler how many bytes of registers it puts elsewhere, as not every Triton passes its report on.

    Those of Triton 3.3 and 3.4 (torch 2.7 and 2.8) are let pass: up to 316 bytes in the gradient of attention and 12 in
    a step of a search, which may make these kernels slower, but not wrong.
    """
    import triton

    target = re.search(r"^\.target (\w+)", found.asm["ptx"], re.MULTILINE)[1]
    version = [int(part) for part in triton.__version__.split(".")[:2]]
    with tempfile.TemporaryDirectory() as empty:
        source = Path(empty, "kernel.ptx")
        source.write_text(found.asm["ptx"])
        done = subprocess.run(
            [
                _assembler(version, target),
                "-v",
                f"--gpu-name={target}",
                source,
                "-o",
                Path(empty, "kernel.cubin"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    (size,) = re.findall(r"(\d+) bytes spill stores", done.stderr)
    assert int(size) <= most or version < [3, 5], (
        found.metadata.name,
        size,
        "bytes of registers are spilled",
    )


def _assembler(version, target):
    """Triton 3.9 brings two assemblers, of which the one without a name beside it is too old for what it compiles."""
    from triton.backends.nvidia import compiler

    if version >= [3, 9]:
        return compiler.get_ptxas(int(re.search(r"\d+", target)[0])).path
    return Path(compiler.__file__).parent / "bin" / "ptxas"
