"""How soon alerts come and go where an environment is broken, and how often where none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envsched.benchmarks.simulate import Course


def alert_lines(world: str, arms: Mapping[str, Mapping[int, Course]]) -> list[str]:
    """A line for each arm that raised an alert in a world; none where there are none.

    `arms` are courses by arm and seed.
    """
    return [line for arm, courses in arms.items() if (line := _line(world, arm, list(courses.values())))]


def _line(world: str, arm: str, courses: Sequence[Course]) -> str:
    if not any(course.alerts for course in courses):
        return ""
    first = [(course, _first(course)) for course in courses if course.broken]
    raised = [alert["step"] for _, alert in first if alert]
    late = [
        alert["cleared"] - course.repaired
        for course, alert in first
        if course.repaired >= 0 and alert and alert["cleared"]
    ]
    false = sum(alert["environment"] not in course.broken for course in courses for alert in course.alerts)
    parts = []
    if first:
        shares = [
            course.environments.get(name, 0) / sum(course.environments.values())
            for course, _ in first
            for name in course.broken
        ]
        parts.append(f"raised in {len(raised)} of {len(first)} courses{_steps(', before step', raised)}")
        if late:
            parts.append(f"cleared in {len(late)}{_steps(', steps after the repair:', late)}")
        parts.append(f"{np.mean(shares):.1%} of all groups went to the broken environment")
    parts.append(f"{false} false alerts in {len(courses)} courses")
    return f"{world}, {arm}: {'; '.join(parts)}"


def _first(course: Course) -> dict[str, Any] | None:
    """The first alert about a broken environment."""
    return next((alert for alert in course.alerts if alert["environment"] in course.broken), None)


def _steps(words: str, steps: Sequence[int]) -> str:
    return f"{words} {np.median(steps):.0f} (median), {max(steps)} (latest)" if steps else ""
