"""What is wrong with settings, in words: one line a field."""

import difflib
import json

from pydantic import BaseModel, ValidationError


def describe(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """One line a failed field of `root`: its dotted name, what was found, what is allowed."""
    lines = []
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            lines.append(f"{name}: no such setting{_suggest(root, item['loc'])}")
        elif not name:
            lines.append(item["msg"].removeprefix("Value error, "))
        else:
            found = json.dumps(item["input"], default=str)
            lines.append(f"{name}: found {found}; {item['msg'][0].lower()}{item['msg'][1:]}")
    return lines


def _suggest(block: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """Names near the wrong one, or all that are allowed there."""
    for part in loc[:-1]:
        annotation = block.model_fields[str(part)].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return ""
        block = annotation
    names = list(block.model_fields)
    near = difflib.get_close_matches(str(loc[-1]), names, n=1)
    return f"; did you mean {near[0]}?" if near else f"; allowed: {', '.join(names)}"
