"""What a training tells arrives whole, in order, and in few pieces."""

from __future__ import annotations

import threading
import time

from softtargets.executors.ray.relay import GATHER_SECONDS, Relay
from softtargets.runs import Run


def test_steps_are_put_together_and_the_rest_stays_in_order(recipe, tmp_path):
    relay, other = Relay(), recipe.replace({"seed": 1})
    relay.begin([recipe.id])
    relay.started(recipe, 0, 40)
    for step in range(1, 31):
        relay.progressed(recipe, step, 10)
        relay.progressed(other, step, 1)
    relay.epoch(recipe, {"step": 30})
    relay.noted("a sentence")
    relay.finished(Run(tmp_path / other.id))  # a teacher, which nobody asked for
    relay.finished(Run(tmp_path / recipe.id))
    assert relay.take(0.0) == [
        ("progressed", recipe.id, (30, 300)),
        ("progressed", other.id, (30, 30)),
        ("started", recipe.id, (0, 40)),
        ("epoch", recipe.id, {"step": 30}),
        ("noted", "", "a sentence"),
        ("finished", recipe.id, None),
    ]
    assert relay.take(0.0) == []
    assert (relay.ended, relay.under_way) == ({recipe.id}, set())


def test_nobody_waits_when_an_order_is_over(recipe):
    relay = Relay()
    relay.begin([recipe.id])
    heard = []

    def listen():
        begun = time.monotonic()
        heard.append((relay.take(30.0), time.monotonic() - begun))

    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(0.05)
    relay.started(recipe, 0, 1)
    relay.end()
    listener.join(10)
    ((events, seconds),) = heard
    assert events == [("started", recipe.id, (0, 1))]
    assert seconds < 5
    assert GATHER_SECONDS < 1
