"""Facts that each ACP agent reports in its own way: tool names, tokens, cost, the model."""

from __future__ import annotations

import re

from moot.convert._vendor import as_list, as_object, as_text, count, nano_dollars
from moot.types.canonical import Json, JsonObject
from moot.types.usage import Usage

REASONS = {"end_turn": "stop", "max_tokens": "length", "max_turn_requests": "other", "refusal": "content-filter", "cancelled": "other"}
"""`stopReason` of a prompt's response → finish reason."""

_TOOL = re.compile(r"[A-Za-z][\w.:-]{0,63}")


def agent_of(initialized: JsonObject) -> JsonObject:
    """Return the agent's name and version as it reports them."""
    info = as_object(initialized.get("agentInfo"))
    facts = {"agent": as_text(info.get("name")), "agent_version": as_text(info.get("version"))}
    return {name: value for name, value in facts.items() if value}


def model_of(opened: JsonObject) -> str:
    """Return the model of a session that was just opened, from its own field or from the session's options."""
    model = as_text(as_object(opened.get("models")).get("currentModelId"))
    options = [as_object(option) for option in as_list(opened.get("configOptions"))]
    return model or next((as_text(option.get("currentValue")) for option in options if option.get("id") == "model"), "")


def tool_name(update: JsonObject, agent: str) -> str:
    """Return the tool's name. Few agents send `name`; the kind is the fallback."""
    meta = as_object(update.get("_meta"))
    named = [update.get("name"), as_object(meta.get("claudeCode")).get("toolName"), meta.get("toolName"), meta.get("tool_name")]
    if agent == "gemini-cli":  # run_shell_command__call_17
        named.append(as_text(update.get("toolCallId")).partition("__")[0])
    if agent == "OpenCode" and update.get("sessionUpdate") == "tool_call":  # the first title is the name, later ones describe the action
        named.append(update.get("title"))
    named.append(update.get("kind"))
    return next((name for name in map(as_text, named) if _TOOL.fullmatch(name)), "tool")


def noted_result(meta: JsonObject) -> Json:
    """Return a result that claude-agent-acp reports before the call's end, or None. A cancelled call has no other output."""
    return as_object(meta.get("claudeCode")).get("toolResponse")


def parent_of(update: JsonObject) -> str:
    """Return the id of the call whose sub-agent sent this; empty for the agent itself."""
    return as_text(as_object(as_object(update.get("_meta")).get("claudeCode")).get("parentToolUseId"))


def shown_input(raw: Json, title: str, kind: str, locations: Json) -> Json:
    """Return a call's input. Gemini never sends one, so what it shows to users takes its place."""
    if raw not in (None, {}):
        return raw
    paths = [as_text(as_object(place).get("path")) for place in as_list(locations)]
    if kind == "execute" and title:
        return {"command": title}
    if paths and paths[0]:
        return {"path": paths[0]}
    return {"title": title} if title else {}


def usage_of(answer: JsonObject) -> Usage:
    """Return the tokens of a prompt's response; gemini reports them in a place of its own."""
    usage = answer.get("usage")
    if isinstance(usage, dict):
        return _usage(usage)
    spent = as_object(as_object(as_object(answer.get("_meta")).get("quota")).get("token_count"))
    return Usage(count(spent.get("input_tokens")), count(spent.get("output_tokens")))


def chunk_usage(update: JsonObject) -> Usage | None:
    """Return the tokens of one model call, which qwen attaches to the last piece of its message."""
    usage = as_object(update.get("_meta")).get("usage")
    return _usage(usage) if isinstance(usage, dict) else None


def session_tokens(update: JsonObject) -> Usage | None:
    """Return the tokens of the whole session, which vibe sends with usage updates. Its responses also count the session, not the turn."""
    meta = as_object(update.get("_meta"))
    if "promptTokens" not in meta:
        return None
    return Usage(count(meta.get("promptTokens")), count(meta.get("completionTokens")))


def cost_of(update: JsonObject) -> int | None:
    """Return the cost of the session so far, in nano-dollars."""
    cost = as_object(update.get("cost"))
    return nano_dollars(cost.get("amount")) if cost.get("currency") == "USD" else None


def _usage(said: JsonObject) -> Usage:
    arguments, made = count(said.get("inputTokens")), count(said.get("outputTokens"))
    read, written = count(said.get("cachedReadTokens")), count(said.get("cachedWriteTokens"))
    thought, total = count(said.get("thoughtTokens")), count(said.get("totalTokens"))
    if arguments is not None and made is not None and total is not None:
        # the rest of the total is cached tokens, reasoning or both, which the two counts don't include
        beyond, cached = total - arguments - made, (read or 0) + (written or 0)
        if cached and beyond in (cached, cached + (thought or 0)):
            arguments, beyond = arguments + cached, beyond - cached
        if thought and beyond == thought:
            made += thought
    return Usage(arguments, made, read, written, thought)
