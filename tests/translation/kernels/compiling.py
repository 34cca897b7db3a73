"""Kernels compiled for a GPU that need not be there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = """
import importlib, json, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

asked = json.loads(sys.argv[1])
kernel = getattr(importlib.import_module(asked["module"]), asked["name"])
names = [param.name for param in kernel.params]
constants = asked["constants"]
assert set(constants) <= set(names) and set(asked["types"]) <= set(names), names
types = {name: "constexpr" if name in constants else asked["types"].get(name, asked["otherwise"]) for name in names}
even = {(place,): [["tt.divisibility", 16]] for place, name in enumerate(names) if types[name].startswith("*")}
source = ASTSource(kernel, types, constants, even)
compile(source, target=GPUTarget("cuda", 90, 32), options=dict(num_warps=asked["warps"]))
"""


def compiled(module, name, types, otherwise, constants, warps):
    """Compile for an H100 or H200 in a process of its own, and refuse registers that are spilled."""
    asked = {
        "module": module,
        "name": name,
        "types": types,
        "otherwise": otherwise,
        "constants": constants,
        "warps": warps,
    }
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory() as empty:
        environment |= {"TRITON_CACHE_DIR": empty, "TRITON_DUMP_PTXAS_LOG": "1"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(asked)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert re.findall(r"(\d+) bytes spill stores", done.stdout) == ["0"], done.stdout
