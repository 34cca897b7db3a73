"""A command line, run in this process."""

from __future__ import annotations

import pytest

from softtargets.cli import main


def ran(capsys, *words) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as leaving:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(leaving.value.code or 0), out, err
