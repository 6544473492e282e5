"""Types of values that are used in several sections of the configuration, with their validation."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from moot.types.command_tool import COMMAND_CHARACTERS, problem_of_check

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """Convert a duration such as `5m`, `90s` or `1h` to seconds. Other types are left for the field's validation."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError("Expected a number of seconds, or a duration such as 90s, 5m or 1h.")
    return float(match[1]) * _SECONDS[match[2]]


def valid_notify(value: Any) -> Any:
    """Validate `ui.notify`."""
    words = cast("list[object]", value) if isinstance(value, list) else []
    if not (words and all(isinstance(word, str) for word in words)) and (words or value not in (True, False, "bell", "osc", "off")):
        raise ValueError("Expected `bell`, `osc`, `off`, `true`, or a list of a program and its arguments, such as `[notify-send, moot]`.")
    return cast("Any", value)


Notify = Annotated[Any, BeforeValidator(valid_notify)]
Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]

_PORT = r"(:\d{1,5})?"
HostName = Annotated[str, Field(pattern=rf"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]
Origin = Annotated[str, Field(pattern=rf"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]


def one_test(value: Any) -> Any:
    """Validate `skip_if`, which is the word `empty` or a mapping with a single key. Other types are left for the field's validation."""
    if isinstance(value, str):
        if value != "empty":
            raise ValueError("Expected `empty`, `{empty: true}`, `{equals: …}`, `{contains: …}` or `{matches: …}`.")
        return {"empty": True}
    if isinstance(value, dict) and len(cast("dict[str, object]", value)) != 1:
        raise ValueError("Expected exactly one of the keys `empty`, `equals`, `contains` and `matches`.")
    return cast("Any", value)


def one_or_many(value: Any) -> Any:
    """Return a single text as a list with one item."""
    return [value] if isinstance(value, str) else value


def valid_expression(value: Any) -> Any:
    """Validate a matcher, which must be a regular expression or `*`."""
    if isinstance(value, str) and value != "*":
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"Expected a regular expression ({error}).") from None
    return value


Text = Annotated[str, Field(max_length=COMMAND_CHARACTERS)]


def as_words(value: Any) -> Any:
    """Validate `command`, which is a shell line or a list of words."""
    words = cast("list[object]", value) if isinstance(value, list) else []
    if not all(isinstance(word, str) for word in words) or not (words or isinstance(value, str)):
        raise ValueError("Expected a shell line, or a command as a list of words ([ruff, check, '{{path}}']).")
    return cast("Any", value)


def valid_check(value: Any) -> Any:
    """Validate a formatter or check, which is a shell line."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("Expected a command.")
        if problem := problem_of_check(value):
            raise ValueError(problem)
    return value


CheckLine = Annotated[Text, BeforeValidator(valid_check)]
FilePattern = Annotated[str, Field(min_length=1, max_length=1_000)]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
