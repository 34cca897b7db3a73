"""``python -m benchmarks``: the same as ``softtargets bench``, whose exit codes and one-line errors it has."""

from __future__ import annotations

import sys

from softtargets.cli import main

if __name__ == "__main__":
    main(["bench", *sys.argv[1:]])
