"""Alerts in words."""

from __future__ import annotations

from collections.abc import Sequence

from envsched.scheduling.scheduler import Alert

LONGEST_ERROR = 160
"""Characters of an error text that are shown."""
NONE = "none"


def alert_changes(before: Sequence[Alert], now: Sequence[Alert]) -> list[str]:
    """One line for each alert that was raised, then one for each that was cleared, by environment."""
    old, new = ({alert.environment: alert for alert in alerts} for alerts in (before, now))
    raised = [f"ALERT {describe(new[name])}" for name in sorted(new.keys() - old.keys())]
    cleared = [
        f"alert cleared: {name} (raised in step {old[name].since})"
        for name in sorted(old.keys() - new.keys())
    ]
    return raised + cleared


def describe(alert: Alert) -> str:
    """What is odd about an environment: measured and predicted mean reward, and the newest error."""
    looks = "broken rather than hard" if alert.measured <= alert.predicted else "open rather than easy"
    error = " ".join(alert.error.split())
    if len(error) > LONGEST_ERROR:
        error = error[: LONGEST_ERROR - 1] + "…"
    return (
        f"{alert.environment} looks {looks}: mean reward {alert.measured:.2f}, "
        f"{alert.predicted:.2f} predicted from other environments; "
        + (f"newest error: {error}" if error else "no errors")
    )


def alert_names(alerts: Sequence[Alert]) -> str:
    """Environments under alert, comma-separated; `none` if there are none."""
    return ", ".join(sorted(alert.environment for alert in alerts)) or NONE
