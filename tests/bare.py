"""What must work with a wheel alone, in an environment without anything that only tests need: `make dist` runs this."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Rooms that an extra is for; each says so in one line when it is missing.
EXTRAS = ("integrations", "executors", "kernels", "tensorboard", "timm")


def main() -> None:
    """Import every module, train a small study, look at predictions."""
    import softtargets

    assert "site-packages" in softtargets.__file__, f"not the wheel: {softtargets.__file__}"
    assert (Path(softtargets.__file__).parent / "py.typed").exists(), "py.typed is not in the wheel"
    for module in pkgutil.walk_packages(softtargets.__path__, "softtargets."):
        if not any(name in module.name for name in (*EXTRAS, "__main__")):
            importlib.import_module(module.name)
    command = str(Path(sys.executable).parent / "softtargets")
    with tempfile.TemporaryDirectory() as directory:
        settings = ["--seeds", "1", "--set", "epochs=1", "--out", "page", "--device", "cpu"]
        subprocess.run(
            [command, "study", "run", "quickstart", *settings], cwd=directory, check=True, capture_output=True
        )
        assert (Path(directory) / "page" / "index.html").exists()
    print("the wheel works alone")


if __name__ == "__main__":
    main()
