"""Databases of OpenCode 2, with the schema of its source code, whose rows are made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moot.formats.kit.database import create_database

_RECORDED = Path(__file__).parents[1] / "recorded" / "formats" / "opencode"
_START = 1_790_000_000_000
_MODEL = {"id": "mock-1", "providerID": "mock", "variant": "default"}


def _tokens(fresh: int, output: int, reasoning: int = 0, read: int = 0) -> dict[str, Any]:
    return {"input": fresh, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": 0}}


def _row(session: str, seq: int, kind: str, id: str = "", **data: Any) -> tuple[Any, ...]:
    at = _START + 1000 * seq
    time = {"created": at, **({"completed": at + 500} if kind == "assistant" else {})}
    return (id or f"msg_{session}_{seq}", session, kind, seq, at, at + 500, json.dumps({"time": time, **data}))


def _answer(session: str, seq: int, tokens: dict[str, Any], cost: float, *content: Any, **more: Any) -> tuple[Any, ...]:
    return _row(session, seq, "assistant", agent="build", model=_MODEL, content=content, finish="stop", cost=cost, tokens=tokens, **more)


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _tool(id: str, name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool", "id": id, "name": name, "state": state, "time": {"created": _START}}


_LISTED = {"status": "completed", "input": {"command": "ls"}, "content": [_text("a.txt")], "metadata": {"exit": 0}}
_FILE = {"data": "bm90ZXM=", "mime": "text/plain", "source": {"type": "inline"}, "name": "notes.txt"}
_COPIED = [
    _row("ses_1", 0, "user", text="What is here?"),
    _answer("ses_1", 1, _tokens(100, 10), 0.5, _text("One file.")),
]
"""Messages of OpenCode 1, as OpenCode 2 copies them."""
_CONTINUED = [
    _row("ses_1", 2, "user", text="And now?", files=[_FILE]),
    _answer(
        *("ses_1", 3, _tokens(200, 20, 5, 50), 0.25),
        {"type": "reasoning", "text": "I look again.", "native": {"signature": "c2ln"}},
        _tool("call-1", "bash", _LISTED),
    ),
    _answer("ses_1", 4, _tokens(300, 30), 0.125, _text("Still one.")),
]
_FORK = [
    *((f"msg_fork_{row[3]}", "ses_2", *row[2:]) for row in (*_COPIED, *_CONTINUED)),
    _row("ses_2", 6, "user", text="What if not?"),
    _answer("ses_2", 7, _tokens(400, 40), 1.0, _text("Then two.")),
]
_STARTED = {"status": "running", "input": {"prompt": "Count"}, "metadata": {"sessionID": "ses_4", "status": "running"}}
_OTHER = [
    _row("ses_3", 0, "user", text="Count the files."),
    _row("ses_3", 1, "system", text="It is Monday."),
    _row("ses_3", 2, "synthetic", text="The user opened a.txt."),
    _row("ses_3", 3, "skill", skill="sk_1", name="counting", text="Count carefully."),
    _row("ses_3", 4, "shell", shellID="sh_1", command="pwd", status="exited", exit=0, output={"output": "/home/user", "cursor": 10}),
    _row("ses_3", 5, "model-switched", model=_MODEL),
    _answer("ses_3", 6, _tokens(10, 1), 0.5, _text("I ask."), _tool("call-2", "subagent", _STARTED)),
    _row("ses_3", 7, "compaction", status="completed", reason="auto", summary="Files were counted.", cost=0.25, tokens=_tokens(7, 3)),
    _row("ses_3", 8, "poll", text="A question of an unknown type."),
    _row("ses_3", 9, "idle", outcome="succeeded"),
]
_HELPER = [_row("ses_4", 0, "user", text="Count"), _answer("ses_4", 1, _tokens(20, 2), 0.5, _text("One."))]
_MESSAGES = (*_COPIED, *_CONTINUED, *_FORK, *_OTHER, *_HELPER)


def _session(id: str, title: str, parent: str | None = None, forked: str | None = None) -> tuple[Any, ...]:
    boundary = json.dumps({"type": "through", "messageID": "msg_ses_1_4"}) if forked else None
    return (id, "p1", parent, forked, boundary, id, "/home/user/project", title, "2.0.3", json.dumps(_MODEL), _START, _START)


_SESSIONS = [
    *(_session("ses_1", "Lists"), _session("ses_2", "Lists (fork #1)", forked="ses_1")),
    *(_session("ses_3", "Counts"), _session("ses_4", "Count", parent="ses_3")),
]


_OLDER_NAMES = "id, project_id, slug, directory, title, version, time_created, time_updated"


def _older_rows() -> list[tuple[str, list[tuple[Any, ...]]]]:
    """Return the statements that insert the session of OpenCode 1."""
    messages: list[tuple[Any, ...]] = []
    parts: list[tuple[Any, ...]] = []
    for id, session, kind, _, created, updated, written in _COPIED:
        data = json.loads(written)
        words = data.get("text") or data["content"][0]["text"]
        names = {"modelID": "mock-1", "providerID": "mock"} if kind == "assistant" else {}
        about = {name: data[name] for name in ("time", "tokens", "cost", "finish") if name in data}
        messages.append((id, session, created, updated, json.dumps({"role": kind, **about, **names})))
        parts.append((f"prt_{id}", id, session, created, updated, json.dumps(_text(words))))
    session = [("ses_1", "p1", "ses_1", "/home/user/project", "Lists", "1.18.33", _START, _START)]
    return [
        (f"INSERT INTO session ({_OLDER_NAMES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", session),
        ("INSERT INTO message VALUES (?, ?, ?, ?, ?)", messages),
        ("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", parts),
    ]


_NAMES = "id, project_id, parent_id, fork_session_id, fork_boundary, slug, directory, title, version, model, time_created, time_updated"


def database(*, older: bool, later: bool) -> bytes:
    """Return a database with the tables of OpenCode 1 and one session, with those of OpenCode 2, which has copied it, or with both."""
    old, new = ((_RECORDED / name).read_text() for name in ("schema.sql", "schema-2.sql"))
    if older and later:  # the tables that both have are those of OpenCode 1
        new = new[new.index("CREATE TABLE `session_message`") :]
    rows: list[tuple[str, list[tuple[Any, ...]]]] = _older_rows() if older else []
    if later:
        rows += [(f"INSERT INTO session_v2 ({_NAMES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _SESSIONS)]
        rows += [("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", list(_MESSAGES))]
    return create_database((old if older else "") + (new if later else ""), rows)


SAMPLES = {"upgraded database": database(older=True, later=True), "database of version 2": database(older=False, later=True)}
