"""Reader for the entries that a task displayed. It is used if the messages that were sent to the model are missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from moot.formats.editors.cline.calls import Calls, calls_in, distinct
from moot.formats.editors.cline.task import SHOWN, Task
from moot.formats.kit.fields import flag, items, milliseconds, obj, text
from moot.formats.kit.json import ArrayItem, json_object, json_value
from moot.formats.kit.records import Output, Records, SessionRecord, file, reasoning, tool_call
from moot.types.canonical import JsonObject
from moot.types.format import ImportedRecord
from moot.types.message import Part, text_part

_SAYS = frozenset(
    (
        *("task", "text", "image", "reasoning", "completion_result", "user_feedback", "user_feedback_diff", "info", "error", "error_retry"),
        *("api_req_started", "api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_deleted", "deleted_api_reqs"),
        *("api_req_rate_limit_wait", "command", "command_output", "command_permission_denied", "tool", "subtask_result", "task_progress"),
        *("shell_integration_warning", "shell_integration_warning_with_suggestion", "use_mcp_server", "mcp_server_request_started"),
        *("mcp_server_response", "mcp_notification", "load_mcp_documentation", "browser_action_launch", "browser_action"),
        *("browser_action_result", "browser_session_status", "checkpoint_saved", "checkpoint_created", "diff_error", "rooignore_error"),
        *("clineignore_error", "condense_context", "condense_context_error", "sliding_window_truncation", "codebase_search_result"),
        *("user_edit_todos", "generate_explanation", "hook_status", "hook_output_stream", "conditional_rules_applied"),
    )
)
_ASKS = frozenset(
    (
        *("followup", "plan_mode_respond", "act_mode_respond", "command", "command_output", "completion_result", "tool", "new_task"),
        *("api_req_failed", "resume_task", "resume_completed_task", "mistake_limit_reached", "auto_approval_max_req_reached"),
        *("browser_action_launch", "use_mcp_server", "condense", "summarize_task", "report_bug", "interactive_app", "idle"),
    )
)
_CALLS = {"command": "command", "tool": "tool", "use_mcp_server": "mcp"}
_OUTPUTS = frozenset({"command_output", "mcp_server_response", "subtask_result", "browser_action_result"})
_ANSWERS = frozenset({"text", "completion_result"})
_SPEECH = _OUTPUTS | _ANSWERS | _CALLS.keys() | {"reasoning", "user_feedback"}


def is_shown(body: JsonObject) -> bool:
    """Return whether a record is an entry of `ui_messages.json` of a known type. It repeats a message or describes the program's work."""
    known = _SAYS if text(body, "type") == "say" else _ASKS if text(body, "type") == "ask" else frozenset[str]()
    return _kind(body) in known and isinstance(body.get("text"), str)


def _kind(shown: JsonObject) -> str:
    """Return the kind of content that an entry displays."""
    return text(shown, text(shown, "type")) if text(shown, "type") in ("say", "ask") else ""


@dataclass(slots=True)
class _Step:
    """The displayed content of one model call."""

    id: str
    at: int
    facts: JsonObject | None = None
    raws: list[bytes] = field(default_factory=list[bytes])
    parts: list[Part] = field(default_factory=list[Part])
    outputs: list[Output] = field(default_factory=list[Output])
    call: str = ""
    """Id of the newest tool call."""

    def record(self) -> SessionRecord:
        return SessionRecord(self.id, "assistant", b"".join(self.raws), tuple(self.parts), tuple(self.outputs), at=self.at, step=self.facts)

    def take(self, raw: bytes, id: str, kind: str, words: str) -> None:
        if kind in _OUTPUTS and self.call:
            self.outputs.append(Output(self.call, json_value(words)))
        elif kind in _CALLS:
            self.call, about = f"call-{id}", json_object(words)
            name = text(about, "tool") or text(about, "toolName") or _CALLS[kind]
            self.parts.append(tool_call(self.call, name, about or {"command": words}))
        elif kind == "reasoning" and words:
            self.parts.append(reasoning(words))
        elif kind in _ANSWERS and words:
            self.parts.append(text_part(words))
        elif kind == "api_req_started":
            pass
        else:
            return  # the entry is a record of its own
        self.raws.append(raw)


def messages_shown(task: Task, item: ArrayItem, *, counts_cache: bool) -> Records:
    """Yield the messages that were shown. Partial entries are omitted, because each is followed by a complete entry with the same time."""
    calls = calls_in((), task.metadata(), item, counts_cache=counts_cache)
    step: _Step | None = None
    prompted = False
    for element in distinct(task.elements(SHOWN)):
        value = element.value
        if not isinstance(value, dict) or flag(value, "partial"):
            continue
        kind, at, words = _kind(value), milliseconds(value, "ts"), text(value, "text")
        id, known = f"{at}.{element.number}", len(calls.calls)
        calls.take(b"", value)
        is_prompt = kind == "user_feedback" or (kind == "text" and not prompted)
        if step is not None and (is_prompt or kind == "api_req_started"):
            yield step.record()
            step = None
        if kind in _SPEECH and not isinstance(value.get("text"), str):
            yield ImportedRecord(element.raw, value, f"{SHOWN}: element {element.number} has no text")
        elif is_prompt:
            prompted = True
            pictures = [file(one, "") for one in items(value, "images") if isinstance(one, str)]
            yield SessionRecord(id, "user", element.raw, (text_part(words), *pictures), at=at)
        elif prompted or kind == "api_req_started":
            facts = calls.calls[-1][1].facts if len(calls.calls) > known else None
            step = step or _Step(id, at, facts)
            step.take(element.raw, id, kind, words)
    yield from _end(step, calls, item)


def _end(step: _Step | None, calls: Calls, item: ArrayItem) -> Records:
    """Yield the last model call, and the costs that don't belong to any call."""
    others = [counted for _, counted in calls.others]
    if step is None:
        yield from (ImportedRecord(one.raw, problem="a cost belongs to no answer, so it is not counted") for one in others)
        return
    if total := calls.total(obj(item.value)):
        step.facts = {**(step.facts or {}), **total}
        step.raws.append(item.raw)
    yield replace(step.record(), further_steps=tuple([one.facts for one in others]))
