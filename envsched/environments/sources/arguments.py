"""Whether a call's arguments keep to the tool's JSON schema, at the top level."""

from collections.abc import Mapping
from typing import Any

PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def schema_violation(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """The first argument that breaks the schema, in words; None if all keep to it."""
    properties = parameters.get("properties", {})
    for name in parameters.get("required", ()):
        if name not in arguments:
            return f"missing argument {name!r}"
    for name, value in arguments.items():
        schema = properties.get(name)
        if schema is None:
            return f"unknown argument {name!r}"
        if not _has_type(value, schema.get("type")):
            return f"argument {name!r}: expected {schema['type']}, found {value!r:.80}"
        if "enum" in schema and value not in schema["enum"]:
            return f"argument {name!r}: expected one of {schema['enum']}, found {value!r:.80}"
    return None


def _has_type(value: Any, declared: Any) -> bool:
    names = declared if isinstance(declared, list) else [declared]
    if any(name not in PYTHON_TYPES for name in names):
        return True
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, PYTHON_TYPES[name]) for name in names)
