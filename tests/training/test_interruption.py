from __future__ import annotations

import os
import signal

import pytest

from softtargets.training.interruption import graceful_interruption


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_a_request_and_the_next_is_as_before(name):
    number, heard = getattr(signal, name), []
    before = signal.signal(number, lambda *_: heard.append(1))
    try:
        with graceful_interruption() as asked:
            os.kill(os.getpid(), number)
            assert (asked.is_set(), heard) == (True, [])
            os.kill(os.getpid(), number)
            assert heard == [1]
    finally:
        signal.signal(number, before)


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with graceful_interruption() as asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not asked.is_set()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
