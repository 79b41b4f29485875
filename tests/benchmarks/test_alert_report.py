from typing import Any

from envsched.benchmarks.alert_report import alert_lines
from envsched.benchmarks.simulate import Course


def course(broken: list[str], *alerts: tuple[str, int, int | None]) -> Course:
    made: list[dict[str, Any]] = [
        {"environment": name, "step": step, "cleared": cleared} for name, step, cleared in alerts
    ]
    return Course(
        start=0.1, alerts=made, broken=broken, repaired=40 if broken else -1, environments={"a": 1, "b": 3}
    )


def test_alerts_are_counted_by_when_they_came_and_went() -> None:
    courses = {
        0: course(["a"], ("a", 4, 43)),
        1: course(["a"], ("b", 2, None), ("a", 8, 49)),
        2: course(["a"]),
    }
    assert alert_lines("grader", {"envsched": courses, "uniform": {0: course(["a"])}}) == [
        "grader, envsched: raised in 2 of 3 courses, before step 6 (median), 8 (latest); cleared in 2, steps "
        "after the repair: 6 (median), 9 (latest); 25.0% of all groups went to the broken environment; "
        "1 false alerts in 3 courses"
    ]


def test_where_nothing_is_broken_all_alerts_are_false() -> None:
    assert alert_lines("mixed", {"envsched": {0: course([], ("b", 3, 9))}}) == [
        "mixed, envsched: 1 false alerts in 1 courses"
    ]
