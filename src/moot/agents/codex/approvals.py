"""Codex's approval requests, converted to calls for moot's policy to decide on, and the decisions in Codex's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moot.convert.agents.codex_calls import unwrap_shell
from moot.convert.vendor import as_list, as_object, as_text
from moot.types.approval import Effect, Option, OptionKind, OutsideAnswer, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps

_ACCEPT = Option("accept", "Yes", "allow_once")
_SESSION = Option("acceptForSession", "Yes, for this session", "allow_always")
_DECLINE = Option("decline", "No, continue without it", "reject_once")
_CANCEL = Option("cancel", "No, and stop", "reject_once")
_ALIKE, _NETWORK = "acceptWithExecpolicyAmendment", "applyNetworkPolicyAmendment"


class ApprovalRequest(NamedTuple):
    """An approval request: the call to authorize, and how to return the decision."""

    call: OutsideCall
    reply: Callable[[OutsideAnswer], Json]


def approval_request(method: str, params: JsonObject, item: JsonObject, tool_call: str) -> ApprovalRequest | None:
    """Return the call that a request asks about, or None if moot answers the request itself. `item` is the item that Codex sent for the
    call."""
    match method:
        case "item/commandExecution/requestApproval":
            return _command(params, item, tool_call)
        case "item/fileChange/requestApproval":
            return _files(params, item, tool_call)
        case "item/permissions/requestApproval":
            return _permissions(params, tool_call)
        case "mcpServer/elicitation/request" if _meta(params).get("codex_approval_kind") == "mcp_tool_call":
            return _server_tool(params, tool_call)
        case _:
            return None


def item_asked(params: JsonObject, items: Mapping[str, JsonObject]) -> str:
    """Return the id of the item that a request is about, or an empty string if unknown.

    An MCP tool call is identified by its tool and arguments.
    """
    if id := as_text(params.get("itemId")):
        return id
    wanted_call = (params.get("serverName"), _meta(params).get("tool_name"), _meta(params).get("tool_params") or {})
    return next(
        (id for id, item in items.items() if (item.get("server"), item.get("tool"), item.get("arguments") or {}) == wanted_call), ""
    )


def _command(params: JsonObject, item: JsonObject, tool_call: str) -> ApprovalRequest:
    command = unwrap_shell(as_text(params.get("command")) or as_text(item.get("command")))
    host = as_text(as_object(params.get("networkApprovalContext")).get("host"))
    effects: frozenset[Effect] = frozenset({"network"}) if host else frozenset({"execute"})
    about: JsonObject = {"command": command, **_told(params, "cwd", "reason")}
    if host:
        about["host"] = host
    decisions = _decisions(params)
    call = OutsideCall(
        tool_call=tool_call,
        name="commandExecution",
        title=as_text(params.get("reason")) or f"Run {command}",
        arguments=dumps(about),
        effects=effects,
        subject=host or command,
        options=tuple(option for option, _ in decisions),
        like="fetch_url" if host else "shell",
    )
    return ApprovalRequest(call, _replying(decisions))


def _decisions(params: JsonObject) -> list[tuple[Option, Json]]:
    """Return the possible answers: those that Codex lists, and always a plain "no" that lets Codex continue."""
    listed = as_list(params.get("availableDecisions")) or ["accept", "acceptForSession", "cancel"]
    found: list[tuple[Option, Json]] = []
    for decision in listed:
        if (option := _option(decision)) is not None:
            found.append((option, decision))
    refusing = next((index for index, (option, _) in enumerate(found) if not option.allows), len(found))
    if not any(option == _DECLINE for option, _ in found):
        found.insert(refusing, (_DECLINE, "decline"))
    return found


def _option(decision: Json) -> Option | None:
    if isinstance(decision, str):
        return {"accept": _ACCEPT, "acceptForSession": _SESSION, "decline": _DECLINE, "cancel": _CANCEL}.get(decision)
    fields = as_object(decision)
    if _ALIKE in fields:
        words = [as_text(word) for word in as_list(as_object(fields[_ALIKE]).get("execpolicy_amendment"))]
        return Option(_ALIKE, f"Yes, and don't ask again for commands that begin with {' '.join(words)!r}", "allow_always")
    if _NETWORK in fields:
        rule = as_object(as_object(fields[_NETWORK]).get("network_policy_amendment"))
        action, host = as_text(rule.get("action")), as_text(rule.get("host"))
        kind: OptionKind = "allow_always" if action == "allow" else "reject_always"
        return Option(f"{_NETWORK}:{action}", f"{'Yes' if action == 'allow' else 'No'}, always for {host}", kind)
    return None


def _files(params: JsonObject, item: JsonObject, tool_call: str) -> ApprovalRequest:
    changes = [as_object(change) for change in as_list(item.get("changes"))]
    paths = [as_text(change.get("path")) for change in changes]
    added = all(as_object(change.get("kind")).get("type") == "add" for change in changes)
    decisions: list[tuple[Option, Json]] = [(_ACCEPT, "accept"), (_SESSION, "acceptForSession"), (_DECLINE, "decline"), (_CANCEL, "cancel")]
    root = as_text(params.get("grantRoot"))
    if root:
        paths.append(root)
    call = OutsideCall(
        tool_call=tool_call,
        name="fileChange",
        title=as_text(params.get("reason")) or f"Change {', '.join(paths) or 'files'}",
        arguments=dumps({"changes": list[Json](changes), **_told(params, "reason", "grantRoot")}),
        effects=frozenset({"write"}),
        subject=paths[0] if paths else "",
        more=tuple(paths[1:]),
        options=tuple(option for option, _ in decisions),
        like="write_file" if added and changes else "edit_file",
    )
    return ApprovalRequest(call, _replying(decisions))


def _permissions(params: JsonObject, tool_call: str) -> ApprovalRequest:
    wanted = params.get("permissions")
    call = OutsideCall(
        tool_call=tool_call,
        name="permissions",
        title=as_text(params.get("reason")) or "Let Codex reach more than its sandbox allows",
        arguments=dumps({"permissions": wanted, **_told(params, "cwd", "reason")}),
        effects=frozenset({"write", "execute", "network"}),
        subject=dumps(wanted).decode(),
        options=(_ACCEPT, _DECLINE),
    )

    def reply(answer: OutsideAnswer) -> Json:
        return {"permissions": wanted if answer.approved else {}, "scope": "turn"}

    return ApprovalRequest(call, reply)


def _server_tool(params: JsonObject, tool_call: str) -> ApprovalRequest:
    meta = _meta(params)
    name = f"mcp__{as_text(params.get('serverName'))}__{as_text(meta.get('tool_name'))}"
    lasting = {"session": _SESSION, "always": Option("always", "Yes, always (stored in Codex's settings)", "allow_always")}
    persists = {lasting[as_text(word)]: word for word in as_list(meta.get("persist")) if as_text(word) in lasting}
    arguments = dumps(meta.get("tool_params") or {})
    call = OutsideCall(
        tool_call=tool_call,
        name=name,
        title=as_text(params.get("message")) or f"Call {name}",
        arguments=arguments,
        effects=frozenset({"read", "write", "execute", "network"}),
        subject=arguments.decode(),
        options=(_ACCEPT, *persists, _DECLINE),
    )

    def reply(answer: OutsideAnswer) -> Json:
        lasts = persists.get(answer.option) if answer.option is not None else None
        meta: JsonObject = {"_meta": {"persist": lasts}} if lasts is not None else {}
        return {"action": "accept" if answer.approved else "decline", "content": {} if answer.approved else None, **meta}

    return ApprovalRequest(call, reply)


def _meta(params: JsonObject) -> JsonObject:
    return as_object(params.get("_meta"))


def _replying(decisions: list[tuple[Option, Json]]) -> Callable[[OutsideAnswer], Json]:
    def reply(answer: OutsideAnswer) -> Json:
        plain: Json = "accept" if answer.approved else "decline"
        return {"decision": next((decision for option, decision in decisions if option == answer.option), plain)}

    return reply


def _told(params: JsonObject, *names: str) -> JsonObject:
    return {name: params[name] for name in names if params.get(name)}
