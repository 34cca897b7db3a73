"""``python -m benchmarks.scale``: the same as ``python -m benchmarks scale``."""

from __future__ import annotations

import sys

from softtargets.cli import main

if __name__ == "__main__":
    main(["bench", "scale", *sys.argv[1:]])
