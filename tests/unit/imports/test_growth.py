"""Sessions that are imported after each write of their program. The result equals one import of the whole session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from import_stage import stored
from moot.formats.kit.database import create_database
from moot.formats.kit.fidelity import steps_of
from moot.formats.kit.fields import at
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.types.store import Store

Writes: TypeAlias = Iterator[tuple[str, bytes]]
"""Paths below the home and contents of files, in the order in which a program writes them."""


async def imported(store: Store, home: Path) -> Report:
    report = Report()
    await import_sources(store, local_sources(home, {}, home / "moot"), ImportOptions(home=home), report)
    return report


async def contents(store: Store) -> list[Any]:
    """Return everything that is shown and counted of the conversations."""
    found: list[Any] = []
    for one in (await store.conversations.list()).items:
        shown = [(message.role, message.parts, message.metadata) for message in await store.conversations.branch(one.id)]
        found.append((one.origin and one.origin["source_id"], one.title, one.message_count, one.usage, one.cost, one.unpriced_runs, shown))
    return sorted(found, key=str)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def openhands(clock: bool) -> Writes:
    """Return two turns. The model calls are stored before the answers, and those of the title and of a summary have no answer."""
    folder = ".openhands/conversations/c0ffee"
    calls: list[str] = []

    def event(number: int, kind: str, **fields: Any) -> tuple[str, bytes]:
        value = {"kind": kind, "id": f"e{number}", "timestamp": f"2026-07-31T10:00:{number:02}", **fields}
        return f"{folder}/events/event-{number:05}-e{number}.json", encoded(value)

    def state(call: str) -> tuple[str, bytes]:
        calls.append(call)
        costs = [{"cost": number + 1.0, **({"timestamp": 1_785_492_000.0 + number} if clock else {})} for number in range(len(calls))]
        usages = [{"prompt_tokens": 100 * len(one), "completion_tokens": 10, "response_id": one} for one in calls]
        metrics = {"model_name": "mock-1", "costs": costs, "token_usages": usages}
        return f"{folder}/base_state.json", encoded({"id": "c0ffee", "stats": {"usage_to_metrics": {"agent": metrics}}})

    def said(source: str, words: str, **fields: Any) -> dict[str, Any]:
        return {"source": source, "llm_message": {"content": [{"type": "text", "text": words}]}, **fields}

    def action(words: str, call: str) -> dict[str, Any]:
        called = {"tool_name": "ls", "tool_call_id": call, "tool_call": {"id": call, "name": "ls", "arguments": "{}"}}
        return {"source": "agent", "thought": [{"type": "text", "text": words}], **called}

    yield event(0, "MessageEvent", **said("user", "What is here?"))
    yield state("r1")
    yield event(1, "ActionEvent", **action("I look.", "c1"), llm_response_id="r1")
    yield state("title")
    yield event(2, "ObservationEvent", tool_name="ls", tool_call_id="c1", observation={"content": [{"type": "text", "text": "a.txt"}]})
    yield state("r2")
    yield event(3, "MessageEvent", **said("agent", "One file.", llm_response_id="r2"))
    yield event(4, "MessageEvent", **said("user", "And now?"))
    yield state("summary")
    yield state("r3")
    yield event(5, "MessageEvent", **said("agent", "Still one.", llm_response_id="r3"))


def aider() -> Writes:
    """Return two runs, of which each write adds a few bytes. The first prompt has several lines."""
    begun = "# aider chat started at 2026-08-13 22:59:40\n\n> Main model: gpt-4o with diff edit format~\n\n"
    tokens = "> Tokens: 2.1k sent, 40 received. Cost: $0.01 message, $0.01 session.~\n"
    first = f"#### What is a  b here?~\n#### ~\n#### Count the files.~\n\n#### No prompt\nOne file.\n\n{tokens}> Applied edit to a.txt~\n"
    second = f"\n#### And now?~\n\nStill one.\n\n{tokens}"
    text = f"\n{begun}{first}{second}\n{begun.replace('22', '23')}#### Once more~\n\nNo.\n\n{tokens}".replace("~", "  ").encode()
    sizes = {text.index(b"a  b") + 3, text.index(b"Count"), *range(50, len(text), 37)}
    yield from ((".aider.chat.history.md", text[:size]) for size in sorted(sizes))
    yield ".aider.chat.history.md", text


def turns(user: Callable[[int, str], Any], answer: Callable[[int, str, str], Any], output: Callable[[int, str, str], Any]) -> Iterator[Any]:
    """Yield the records of three turns, made from a number and their content. An answer has a text and perhaps the id of a call."""
    yield user(1, "What is here?")
    yield answer(2, "I look.", "c1")
    yield output(3, "c1", "a.txt")
    yield answer(4, "One file.", "")
    yield user(5, "And now?")
    yield answer(6, "I look again.", "c2")
    yield output(7, "c2", "a.txt")
    yield answer(8, "Still one.", "")
    yield user(9, "Thanks.")
    yield answer(10, "Gladly.", "")


def calling(call: str, **more: Any) -> list[Any]:
    return [{"type": "tool_use", "id": call, "name": "ls", "input": {}, **more}] if call else []


def prefixes(records: list[Any]) -> Iterator[list[Any]]:
    return (records[: count + 1] for count in range(len(records)))


def lines(records: list[Any]) -> bytes:
    return b"".join(encoded(one) + b"\n" for one in records)


def droid() -> Writes:
    def message(number: int, role: str, *content: Any) -> Any:
        return {"type": "message", "id": f"m{number}", "message": {"role": role, "content": list(content)}}

    def text(words: str) -> Any:
        return {"type": "text", "text": words}

    records = turns(
        lambda number, words: message(number, "user", text(words)),
        lambda number, words, call: message(number, "assistant", text(words), *calling(call)),
        lambda number, call, said: message(number, "user", {"type": "tool_result", "tool_use_id": call, "content": said}),
    )
    path = ".factory/sessions/-p/s1"
    for known in prefixes([{"type": "session_start", "id": "s1", "title": "Files", "cwd": "/p"}, *records]):
        yield f"{path}.jsonl", lines(known)
        usage = {"inputTokens": 100 * len(known), "outputTokens": len(known)}
        yield f"{path}.settings.json", encoded({"model": "claude-sonnet-4-5", "tokenUsage": usage})


def grok(after: bool) -> Writes:
    """Return turns whose tokens are written before or after their last answer."""
    records = turns(
        lambda number, words: {"type": "user", "content": words, "prompt_index": number},
        lambda number, words, call: {
            "type": "assistant",
            "content": words,
            "tool_calls": [{"id": call, "name": "ls", "arguments": "{}"}] if call else [],
            "model_id": "grok-4.5",
        },
        lambda number, call, said: {"type": "tool_result", "tool_call_id": call, "content": said},
    )
    folder, updates = ".grok/sessions/p/s1", list[Any]()
    for known in prefixes(list(records)):
        is_end = known[-1]["type"] == "assistant" and not known[-1]["tool_calls"]
        if after or not is_end:
            yield f"{folder}/chat_history.jsonl", lines(known)
        if is_end:
            usage = {"modelUsage": {"grok-4.5": {"inputTokens": 100 * len(known), "outputTokens": 5, "costUsdTicks": 43_000_000}}}
            update = {"sessionUpdate": "turn_completed", "prompt_id": f"p{len(known)}", "usage": usage}
            updates.append({"method": "session/update", "params": {"update": update}})
            yield f"{folder}/updates.jsonl", lines(updates)
            yield f"{folder}/chat_history.jsonl", lines(known)


def vibe_old() -> Writes:
    records = turns(
        lambda number, words: {"role": "user", "content": words, "message_id": f"m{number}"},
        lambda number, words, call: {
            "role": "assistant",
            "content": words,
            "tool_calls": [{"id": call, "function": {"name": "ls", "arguments": "{}"}}] if call else [],
            "message_id": f"m{number}",
        },
        lambda number, call, said: {"role": "tool", "content": said, "name": "ls", "tool_call_id": call},
    )
    folder = ".vibe/logs/session/session_1"
    for known in prefixes(list(records)):
        yield f"{folder}/messages.jsonl", lines(known)
        stats = {"session_prompt_tokens": 100 * len(known), "session_completion_tokens": 5, "session_cost": 0.01 * len(known)}
        yield f"{folder}/meta.json", encoded({"session_id": "s1", "config": {"active_model": "mock-1"}, "stats": stats})


def copilot_cli() -> Writes:
    """Return a session that is ended and resumed after each turn."""

    def event(number: int, type: str, **data: Any) -> Any:
        return {"type": type, "id": f"e{number}", "timestamp": f"2026-07-27T21:10:{number:02}.000Z", "data": data}

    records = turns(
        lambda number, words: event(number, "user.message", content=words),
        lambda number, words, call: event(
            number, "assistant.message", content=words, toolRequests=[{"toolCallId": call, "name": "ls", "arguments": {}}] if call else []
        ),
        lambda number, call, said: event(number, "tool.execution_complete", toolCallId=call, success=True, result={"content": said}),
    )
    events = [event(0, "session.start", sessionId="s1", startTime="2026-07-27T21:10:00.000Z")]
    for record in records:
        events.append(record)
        if record["type"] == "assistant.message" and not record["data"]["toolRequests"]:
            usage = {"inputTokens": 100 * len(events), "outputTokens": 5}
            metrics = {"mock-1": {"usage": usage}, "mock-2": {"usage": usage}}
            events.append(event(20 + len(events), "session.shutdown", totalNanoAiu=430_000_000 * len(events), modelMetrics=metrics))
    for known in prefixes(events):
        yield ".copilot/session-state/s1/events.jsonl", lines(known)
    yield ".copilot/session-state/s1/workspace.yaml", b"name: Files\n"


def cline_cli() -> Writes:
    def message(number: int, role: str, *content: Any) -> Any:
        return {"id": f"m{number}", "role": role, "content": list(content), "ts": 1_700_000_000_000 + number}

    def text(words: str) -> Any:
        return {"type": "text", "text": words}

    records = turns(
        lambda number, words: message(number, "user", text(f'<user_input mode="act">{words}</user_input>')),
        lambda number, words, call: message(number, "assistant", text(words), *calling(call)),
        lambda number, call, said: message(number, "user", {"type": "tool_result", "tool_use_id": call, "content": said}),
    )
    path = ".cline/data/sessions/s1/s1"
    for known in prefixes(list(records)):
        yield f"{path}.messages.json", encoded({"messages": known})
        usage = {"inputTokens": 100 * len(known), "outputTokens": 5, "totalCost": 0.01 * len(known)}
        yield f"{path}.json", encoded({"session_id": "s1", "model": "m", "provider": "p", "metadata": {"title": "Files", "usage": usage}})


def cline(by_time: bool) -> Writes:
    """Return a task whose requests are listed before their answers, with a failed request, deleted requests and a summary."""

    def message(number: int, role: str, *content: Any) -> Any:
        return {"role": role, "content": list(content), **({"ts": 1_700_000_000_000 + number} if by_time else {})}

    def text(words: str) -> Any:
        return {"type": "text", "text": words}

    def shown(number: int, say: str, about: Any = None, **more: Any) -> Any:
        words = about if isinstance(about, str) else json.dumps(about)
        return {"ts": 1_700_000_000_000 + number, "type": "say", "say": say, "text": words, **more}

    records = turns(
        lambda number, words: message(number, "user", text(f"<task>{words}</task>" if number == 1 else f"<feedback>{words}</feedback>")),
        lambda number, words, call: message(number, "assistant", text(words), *calling(call)),
        lambda number, call, said: message(number, "user", {"type": "tool_result", "tool_use_id": call, "content": said}),
    )
    folder, requests = ".cline/data/tasks/1700000000000", list[Any]()
    for known in prefixes(list(records)):
        number = len(known)
        if known[-1]["role"] == "assistant":
            counts = {"tokensIn": 100 * number, "tokensOut": 5, "cost": 0.01 * number}
            requests.append(shown(number, "api_req_started", {"request": "x", **counts}))
            yield f"{folder}/ui_messages.json", encoded(requests)
        if number == 4:
            requests += [shown(number, "api_req_started", {"request": "x", "tokensIn": 7, "tokensOut": 1, "cost": 0.5})]
            requests += [shown(number, "deleted_api_reqs", {"tokensIn": 9, "tokensOut": 1, "cost": 0.25})]
            requests += [shown(number, "condense_context", "", contextCondense={"cost": 0.125})]
            yield f"{folder}/ui_messages.json", encoded(requests)
        yield f"{folder}/api_conversation_history.json", encoded(known)


def roo() -> Writes:
    """Return a task of which only the totals are known."""
    records = turns(
        lambda number, words: {"role": "user", "content": f"<user_message>{words}</user_message>", "ts": 1_700_000_000_000 + number},
        lambda number, words, call: {
            "role": "assistant",
            "content": [{"type": "text", "text": words}, *calling(call)],
            "ts": 1_700_000_000_000 + number,
        },
        lambda number, call, said: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": said}]},
    )
    folder = ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/t1"
    for known in prefixes(list(records)):
        yield f"{folder}/api_conversation_history.json", encoded(known)
        yield (
            f"{folder}/history_item.json",
            encoded({"id": "t1", "tokensIn": 100 * len(known), "tokensOut": 5, "totalCost": 0.5 * len(known)}),
        )


def cline_shown() -> Writes:
    """Return a task of which only the displayed entries are stored."""

    def shown(number: int, say: str, words: str, **more: Any) -> Any:
        return {"ts": 1_700_000_000_000 + number, "type": "say", "say": say, "text": words, **more}

    entries = [
        shown(1, "text", "What is here?"),
        shown(2, "api_req_started", json.dumps({"tokensIn": 100, "tokensOut": 5, "cost": 0.5})),
        shown(3, "text", "One file."),
        shown(4, "condense_context", "", contextCondense={"cost": 0.125}),
        shown(5, "user_feedback", "And now?"),
        shown(6, "api_req_started", json.dumps({"tokensIn": 200, "tokensOut": 5, "cost": 0.25})),
        shown(7, "text", "Still one."),
    ]
    for known in prefixes(entries):
        yield ".cline/data/tasks/1700000000000/ui_messages.json", encoded(known)


def goose(ledger: bool) -> Writes:
    """Return sessions with a row for each model call, which is written before the answer, or with totals."""
    sql = """CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP, provider_name TEXT,
        model_config_json TEXT, parent_session_id TEXT, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        accumulated_cost REAL);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
        created_timestamp INTEGER, metadata_json TEXT);
        CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, created_timestamp INTEGER, model TEXT, input_tokens INTEGER,
        output_tokens INTEGER, cost REAL, is_compaction INTEGER);"""

    def message(number: int, role: str, *content: Any) -> Any:
        return (number, f"m{number}", "s1", role, json.dumps(content), 1_784_495_380 + number, None)

    def text(words: str) -> Any:
        return {"type": "text", "text": words}

    def request(call: str) -> list[Any]:
        return [{"type": "toolRequest", "id": call, "toolCall": {"value": {"name": "ls", "arguments": {}}}}] if call else []

    records = turns(
        lambda number, words: message(number, "user", text(words)),
        lambda number, words, call: message(number, "assistant", text(words), *request(call)),
        lambda number, call, said: message(
            number, "user", {"type": "toolResponse", "id": call, "toolResult": {"value": {"content": [text(said)]}}}
        ),
    )
    rows, calls = list(records), list[Any]()

    def stored_session(known: list[Any]) -> bytes:
        session = (
            "s1",
            "Files",
            "/p",
            "2026-07-19 21:09:40",
            "mock",
            '{"model_name":"mock-1"}',
            None,
            100 * len(known),
            5,
            0.5 * len(known),
        )
        return create_database(
            sql,
            [
                ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [session]),
                ("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", known),
                ("INSERT INTO usage_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)", calls),
            ],
        )

    path = ".local/share/goose/sessions/sessions.db"
    for known in prefixes(rows):
        if ledger and known[-1][3] == "assistant":
            calls.append((len(calls), "s1", known[-1][5], "mock-1", 100 * len(known), 5, 0.5 * len(known), 0))
            yield path, stored_session(known[:-1])
        if ledger and len(known) == 5:
            calls.append((len(calls), "s1", known[-1][5], "mock-1", 7, 1, 0.25, 1))
        yield path, stored_session(known)


def crush() -> Writes:
    sql = """CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, cost REAL, updated_at INTEGER,
        created_at INTEGER);
        CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER,
        provider TEXT);"""

    def message(number: int, role: str, *pieces: Any) -> Any:
        return (f"m{number}", "s1", role, json.dumps(pieces), "mock-1", 1_783_282_840 + number, "mock")

    def piece(kind: str, **data: Any) -> Any:
        return {"type": kind, "data": data}

    records = turns(
        lambda number, words: message(number, "user", piece("text", text=words)),
        lambda number, words, call: message(
            number, "assistant", piece("text", text=words), *([piece("tool_call", id=call, name="ls", input="{}")] if call else [])
        ),
        lambda number, call, said: message(number, "tool", piece("tool_result", tool_call_id=call, name="ls", content=said)),
    )
    yield ".local/share/crush/projects.json", encoded({"projects": [{"path": "~/p", "data_dir": "~/p/.crush"}]})
    for known in prefixes(list(records)):
        session = ("s1", None, "Files", 0.01 * len(known), 1_783_282_900, 1_783_282_840)
        inserts = [
            ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", [session]),
            ("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", known),
        ]
        yield "p/.crush/crush.db", create_database(sql, inserts)


def hermes() -> Writes:
    sql = """CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL,
        input_tokens INTEGER, output_tokens INTEGER, estimated_cost_usd REAL, title TEXT, api_call_count INTEGER);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT,
        timestamp REAL);"""

    def message(number: int, role: str, words: str, call: str = "", made: str = "") -> Any:
        calls = json.dumps([{"id": made, "function": {"name": "ls", "arguments": "{}"}}]) if made else None
        return (number, "s1", role, words, call or None, calls, 1_785_752_920.0 + number)

    records = turns(
        lambda number, words: message(number, "user", words),
        lambda number, words, call: message(number, "assistant", words, made=call),
        lambda number, call, said: message(number, "tool", said, call),
    )
    for known in prefixes(list(records)):
        session = ("s1", "mock-1", None, 1_785_752_920.0, None, 100 * len(known), 5, 0.01 * len(known), "Files", len(known))
        inserts = [
            ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [session]),
            ("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", known),
        ]
        yield ".hermes/state.db", create_database(sql, inserts)


def zed(total: bool) -> Writes:
    sql = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data TEXT, parent_id TEXT)"
    records = turns(
        lambda number, words: {"User": {"id": f"u{number}", "content": [{"Text": words}]}},
        lambda number, words, call: {
            "Agent": {
                "content": [{"Text": words}, *([{"ToolUse": {"id": call, "name": "ls", "input": {}}}] if call else [])],
                "tool_results": {call: {"tool_use_id": call, "tool_name": "ls", "content": {"Text": "a.txt"}}} if call else {},
            }
        },
        lambda number, call, said: None,
    )
    usages: dict[str, Any] = {}
    for known in prefixes([one for one in records if one is not None]):
        counts = {"input_tokens": 100 * len(known), "output_tokens": 5}
        prompts = [one["User"]["id"] for one in known if "User" in one]
        usages = {**usages, prompts[-1]: counts}
        head = {"version": "0.3.0", "title": "Files", "model": {"provider": "anthropic", "model": "claude-sonnet-4-5"}}
        value = {**head, "messages": known, **({"cumulative_token_usage": counts} if total else {"request_token_usage": usages})}
        row = ("t1", "Files", f"2026-07-27T02:06:{len(known):02}Z", "json", json.dumps(value), None)
        yield ".local/share/zed/threads/threads.db", create_database(sql, [("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?)", [row])])


SESSIONS: dict[str, Callable[[], Writes]] = {
    "aider": aider,
    "cline with times": lambda: cline(by_time=True),
    "cline without times": lambda: cline(by_time=False),
    "cline as displayed": cline_shown,
    "cline-cli": cline_cli,
    "copilot-cli": copilot_cli,
    "crush": crush,
    "droid": droid,
    "goose with calls": lambda: goose(ledger=True),
    "goose with totals": lambda: goose(ledger=False),
    "grok": lambda: grok(after=True),
    "grok with early tokens": lambda: grok(after=False),
    "hermes": hermes,
    "roo with totals": roo,
    "vibe-old": vibe_old,
    "zed with totals": lambda: zed(total=True),
    "zed with prompts": lambda: zed(total=False),
    "openhands": lambda: openhands(clock=True),
    "openhands without times": lambda: openhands(clock=False),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.slow
async def test_a_session_imported_after_each_write_equals_one_import_of_the_whole(name: str, tmp_path: Path) -> None:
    home = tmp_path / "user"
    async with stored(tmp_path / "step by step") as store:
        for file, data in SESSIONS[name]():
            path = home / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            await imported(store, home)
        grown, counted = await contents(store), (await store.stats.usage(wait=10)).total
    async with stored(tmp_path / "at once") as store:
        assert (await imported(store, home)).problems == 0
        whole = await contents(store)
        assert grown == whole
        assert counted == (await store.stats.usage(wait=10)).total
    assert (whole[0][3].input or name == "crush") and whole[0][4]


def steps_of_answers(home: Path) -> list[list[Any]]:
    """Return the input tokens of the model calls of each answer."""
    (source,) = local_sources(home, {}, home / "moot")
    (found,) = [one.whole() for one in source.format.read(source.path)]
    return [[at(step, "usage", "input") for step in steps_of(one)] for one in found.messages if one.role == "assistant"]


def test_a_summary_does_not_shift_the_calls_after_it(tmp_path: Path) -> None:
    *_, (file, data) = goose(ledger=True)
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert steps_of_answers(tmp_path) == [[200, 7, 400], [600, 800], [1000]]


@pytest.mark.parametrize(("said", "counted"), [("uua", [[300]]), ("uat", [[300]]), ("uatua", [[100], [200]])])
def test_the_tokens_of_turns_without_a_last_answer_are_counted(tmp_path: Path, said: str, counted: list[list[int]]) -> None:
    folder, kinds = tmp_path / ".grok" / "sessions" / "p" / "s1", {"u": "user", "a": "assistant", "t": "tool_result"}
    folder.mkdir(parents=True)
    usages = [{"modelUsage": {"grok-4.5": {"inputTokens": tokens}}} for tokens in (100, 200)]
    updates = [{"sessionUpdate": "turn_completed", "prompt_id": str(at), "usage": usage} for at, usage in enumerate(usages)]
    (folder / "chat_history.jsonl").write_bytes(lines([{"type": kinds[one], "content": one} for one in said]))
    (folder / "updates.jsonl").write_bytes(lines([{"params": {"update": one}} for one in (updates[0], *updates)]))  # one is repeated
    assert steps_of_answers(tmp_path) == counted
