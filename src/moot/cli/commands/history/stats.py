"""The command `moot stats`, and the status line, which needs neither the engine nor the configuration."""

from __future__ import annotations

import os
import select
import sys
import time
from datetime import datetime
from typing import Annotated, Literal

from moot.cli.arguments.signatures import AsJson, Call, Parameter, Plain
from moot.cli.console.lines import Lines
from moot.config.home import home_of
from moot.convert.serialization import describe_cost
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.plugins.registry import attribute
from moot.store.database.connection import Connection
from moot.store.database.snapshot import snapshot_of
from moot.store.stats.windows import usage_windows
from moot.types.canonical import Json, JsonObject, loads_object
from moot.types.windows import UsageWindow

By = Literal["hour", "day", "week", "month", "hour-of-day", "model", "agent", "project", "host", "tool", "error", "window"]

_SHOW = "moot.cli.commands.history.usage:show_usage"
_LARGEST = 1 << 20
_PATIENCE = 0.2
"""Maximum number of seconds to wait for the first byte on stdin. An agent writes this byte before it starts the command."""
_TODAY = "SELECT coalesce(sum(cost), 0), coalesce(sum(unpriced), 0), coalesce(sum(runs), 0) FROM answer_slot WHERE slot >= ?"
_SESSION = (
    "WITH RECURSIVE tree(no, id) AS (SELECT c.no, c.id FROM import_conversation AS i JOIN conversation AS c ON c.no = i.conversation"
    " WHERE i.source_id = ? UNION SELECT k.no, k.id FROM tree AS t JOIN conversation AS k ON k.parent_id = t.id)"
    " SELECT coalesce(sum(a.cost), 0), coalesce(sum(a.unpriced), 0), count(*)"
    " FROM tree AS t JOIN answer AS a ON a.conversation = t.no"
)
_IMPOSSIBLE = 1e12
_FARTHEST = 366 * 86_400_000
_LIMITS = {"five_hour": "5 h", "seven_day": "7 d"}


def stats(
    *,
    by: Annotated[
        By | None,
        Parameter(metavar="GROUP", help="Field to group usage by. By default, usage is shown by day, model, agent, project and tool."),
    ] = None,
    days: Annotated[int | None, Parameter(help="Number of days to include, up to today.", minimum=1, maximum=36_500)] = None,
    conversation: Annotated[
        str | None,
        Parameter(name=("--conversation", "-c"), kind="conversation", help="Only this conversation and its sub-agents."),
    ] = None,
    sub_agents: Annotated[bool, Parameter(help="Count sub-agents separately instead of as part of the agent that started them.")] = False,
    tz: Annotated[str | None, Parameter(metavar="ZONE", help="Time zone for days and hours. Defaults to this machine's time zone.")] = None,
    statusline: Annotated[
        bool, Parameter(help="Print one line for an agent's status line. The agent can pass its state as JSON on stdin.")
    ] = False,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> int:
    """Print token usage, cost, durations, tool calls and errors. Answers without a known price are counted separately."""
    if by == "window" and (conversation or sub_agents):
        raise UsageError("--by window covers all conversations, so it cannot be combined with --conversation or --sub-agents.")
    asked = {"by": by, "days": days, "conversation": conversation, "sub_agents": sub_agents, "tz": tz}
    if not statusline:
        status: int | None = attribute("moot.cli.runner:perform")(Call(attribute(_SHOW), (), {**asked, "json": json}, bare=False))
        return status or 0
    if json or any(asked.values()):
        raise UsageError("--statusline cannot be combined with other options.")
    output.line(status_line(_state(), int(time.time() * 1000)))
    return 0


def status_line(state: JsonObject, now: int) -> str:
    """Return the model, the session's cost, today's cost, and the used share of each limit.
    `state` comes from the agent and may be empty.
    """
    today, session, windows = (0, 0, 0), (0, 0, 0), tuple[UsageWindow, ...]()
    told = _number(_object(state.get("cost")).get("total_cost_usd"))
    model = _object(state.get("model"))
    with snapshot_of(home_of(os.environ)) as connection:
        if connection is not None:
            today = _sums(connection, _TODAY, _midnight(now) // 900_000)
            if told is None and (id := _text(state.get("session_id"))):
                session = _sums(connection, _SESSION, id)
            windows = usage_windows(connection, now=now, days=1, owner=None).current
    session_cost = f"${told:,.2f}" if told is not None else describe_cost(*session[:2], digits=2) if session[2] else ""
    pieces = [
        " ".join(clean(_text(model.get("display_name")) or _text(model.get("id"))).split()),
        f"{session_cost} session" if session_cost else "",
        f"{describe_cost(*today[:2], digits=2)} today" if today[2] else "",
        *_limits(state, windows, now),
        _context(state),
    ]
    return " · ".join(filter(None, pieces)) or "no usage yet"


def _sums(connection: Connection, sql: str, value: int | str) -> tuple[int, int, int]:
    cost, unpriced, answers = connection.execute(sql, (value,)).fetchone()
    return cost, unpriced, answers


def _limits(state: JsonObject, windows: tuple[UsageWindow, ...], now: int) -> list[str]:
    """Return the current block with the time left, and the used share of each limit, both those in the agent's state and recorded ones."""
    shown = [_block(window, now) for window in windows if window.resets and window.used is None]
    for name, length in _LIMITS.items():
        limit = _object(_object(state.get("rate_limits")).get(name))
        if (used := _number(limit.get("used_percentage"))) is not None:
            resets = _number(limit.get("resets_at"))
            left = f", {span(round(resets * 1000) - now)} left" if resets is not None and now < resets * 1000 < now + _FARTHEST else ""
            shown.append(f"{length} {used:.0f}%{left}")
    return [*shown, *(f"{window.agent} {length_of(window)} {window.used:.0f}%" for window in windows if window.used is not None)]


def _block(window: UsageWindow, now: int) -> str:
    rate = "" if window.cost_per_hour is None else f", ${window.cost_per_hour / 1e9:,.2f}/h"
    return f"{describe_cost(window.cost, window.unpriced, digits=2)} block ({span(window.until - now)} left{rate})"


def span(ms: int) -> str:
    """Format a duration, such as `2h 41m`."""
    minutes = max(0, ms) // 60_000
    hours, rest = divmod(minutes, 60)
    return f"{hours // 24}d {hours % 24}h" if hours >= 24 else f"{hours}h {rest:02}m" if hours else f"{rest}m"


def length_of(window: UsageWindow) -> str:
    """Format the length of a window, such as `5 h` or `7 d`."""
    hours, minutes = divmod(window.minutes, 60)
    return f"{window.minutes} min" if minutes else f"{hours} h" if hours < 48 or hours % 24 else f"{hours // 24} d"


def _context(state: JsonObject) -> str:
    used = _number(_object(state.get("context_window")).get("used_percentage"))
    return "" if used is None else f"context {used:.0f}%"


def _midnight(now: int) -> int:
    day = datetime.fromtimestamp(now / 1000).replace(hour=0, minute=0, second=0, microsecond=0)
    return int(day.timestamp() * 1000)


def _state() -> JsonObject:
    """Return the JSON object that the agent wrote to stdin.
    Return an empty object for any other input, because a status line must not fail.
    """
    if sys.stdin.isatty() or not select.select([sys.stdin], [], [], _PATIENCE)[0]:
        return {}
    try:
        return loads_object(sys.stdin.buffer.read(_LARGEST))
    except ValueError:
        return {}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """Return a number from the agent's state. Return None for a value that is negative, too large or not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _IMPOSSIBLE else None
