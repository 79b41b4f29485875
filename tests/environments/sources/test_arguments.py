"""Arguments against schemas."""

from typing import Any

import pytest

from envsched.environments.sources.arguments import schema_violation


def check(schema: dict[str, Any], value: Any) -> str | None:
    return schema_violation({"type": "object", "properties": {"x": schema}, "required": ["x"]}, {"x": value})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "integer"}, 1, 1.5),
        ({"type": "integer"}, 1, True),
        ({"type": "number"}, 1.5, "1.5"),
        ({"type": "number"}, 1, False),
        ({"type": "boolean"}, True, 1),
        ({"type": "array"}, [1], "1"),
        ({"type": "object"}, {}, []),
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "string", "enum": ["a", "b"]}, "b", "c"),
    ],
)
def test_types(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert check(schema, good) is None
    assert "'x'" in (check(schema, bad) or "")


def test_what_the_schema_does_not_say_is_allowed() -> None:
    assert check({}, 1) is None
    assert check({"type": "anything"}, 1) is None
    assert schema_violation({"type": "object"}, {}) is None


def test_names() -> None:
    schema = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    assert schema_violation(schema, {}) == "missing argument 'x'"
    assert schema_violation(schema, {"x": 1, "y": 2}) == "unknown argument 'y'"
