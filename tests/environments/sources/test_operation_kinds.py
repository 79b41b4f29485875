"""Names of tools tell what they do."""

import pytest

from envsched.environments.sources.operation_kinds import operation_kind


@pytest.mark.parametrize(
    ("name", "changes_state", "kind"),
    [
        ("get_user", False, "read"),
        ("list_users", False, "search"),
        ("summarize_sales", False, "compute"),
        ("add_user", True, "create"),
        ("remove_user", True, "delete"),
        ("mark_paid", True, "update"),
        ("send_message", True, "communicate"),
        ("generate_report", False, "read"),
        ("displayCarStatus", None, "read"),
        ("grep", None, "search"),
        ("book_flight", None, "create"),
        ("mean", None, "compute"),
        ("setHeadlights", None, "update"),
        ("", None, "update"),
    ],
)
def test_kinds(name: str, changes_state: bool | None, kind: str) -> None:
    assert operation_kind(name, changes_state) == kind
