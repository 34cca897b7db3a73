"""Learning-rate schedules as pure functions of the step."""

from __future__ import annotations

import math

from softtargets.recipes import Constant, Cosine, InverseSqrt, Linear, Schedule, Step


def rate_factor(schedule: Schedule, step: int, steps_per_epoch: int, total_steps: int) -> float:
    """What the learning rate is multiplied by at a step, counted from 0.

    >>> [round(rate_factor(Linear(), step, 10, 4), 2) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    >>> [rate_factor(Step(milestones=[1], factor=0.5), step, 2, 6) for step in range(6)]
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    """
    per_unit = steps_per_epoch if schedule.unit == "epoch" else 1
    now = step // per_unit
    length = math.ceil(total_steps / per_unit)
    if now < schedule.warmup:
        return (now + 1) / schedule.warmup
    if isinstance(schedule, Constant):
        return 1.0
    if isinstance(schedule, Step):
        return float(schedule.factor ** sum(now >= milestone for milestone in schedule.milestones))
    if isinstance(schedule, InverseSqrt):
        return math.sqrt(schedule.warmup / now)
    progress = (now - schedule.warmup) / max(length - schedule.warmup, 1)
    if isinstance(schedule, Linear):
        return 1 - (1 - schedule.end) * progress
    if isinstance(schedule, Cosine):
        return schedule.end + (1 - schedule.end) * (1 + math.cos(math.pi * progress)) / 2
    raise TypeError(f"no rule for the schedule {schedule!r}")
