"""Alerts in words: every change is told once."""

from envsched.reports.alerts import LONGEST_ERROR, alert_changes, alert_names, describe
from envsched.scheduling.scheduler import Alert

SHUT = Alert("mail_1", 0.0, 0.62, 4, "KeyError:\n 'inbox'")
OPEN = Alert("bank_2", 1.0, 0.3, 6)


def test_an_alert_names_environment_means_and_error() -> None:
    assert describe(SHUT) == (
        "mail_1 looks broken rather than hard: mean reward 0.00, 0.62 predicted from other environments; "
        "newest error: KeyError: 'inbox'"
    )
    assert describe(OPEN) == (
        "bank_2 looks open rather than easy: mean reward 1.00, 0.30 predicted from other environments; "
        "no errors"
    )
    cut = describe(Alert("e", 0.0, 0.5, 1, "x" * 500))
    assert cut.endswith("x" * (LONGEST_ERROR - 1) + "…")


def test_only_changes_are_told_raised_before_cleared() -> None:
    again = Alert("mail_1", 0.01, 0.6, 4, "other")
    assert alert_changes([SHUT], [again]) == []
    assert alert_changes([], [SHUT, OPEN]) == [f"ALERT {describe(OPEN)}", f"ALERT {describe(SHUT)}"]
    assert alert_changes([SHUT], [OPEN]) == [
        f"ALERT {describe(OPEN)}",
        "alert cleared: mail_1 (raised in step 4)",
    ]


def test_names() -> None:
    assert alert_names([]) == "none"
    assert alert_names([SHUT, OPEN]) == "bank_2, mail_1"
