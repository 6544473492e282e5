"""Types that several sections of the configuration share."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """Convert a duration such as `5m`, `90s` or `1h` to seconds. Other types are left for the field's validation."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError("Expected seconds or a duration such as 90s, 5m or 1h.")
    return float(match[1]) * _SECONDS[match[2]]


def valid_notify(value: Any) -> Any:
    """Validate `ui.notify`."""
    words = cast("list[object]", value) if isinstance(value, list) else []
    if not (words and all(isinstance(word, str) for word in words)) and (words or value not in (True, False, "bell", "osc", "off")):
        raise ValueError("Expected bell, osc, off, true, or a program and its arguments as a list ([notify-send, moot]).")
    return cast("Any", value)


Notify = Annotated[Any, BeforeValidator(valid_notify)]
Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]

_PORT = r"(:\d{1,5})?"
HostName = Annotated[str, Field(pattern=rf"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]
Origin = Annotated[str, Field(pattern=rf"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]){_PORT}$")]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
