"""Exact values in JSON, for command lines that use a server instead of the database on their machine (`moot --url`).

The other responses of the API are views for people and pages: they shorten long outputs and leave out fields. Commands print the same on
both machines only if they get the same values, so these routes send them unchanged. Both sides must run the same version of moot.
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeAlias, cast, get_type_hints

from moot import errors
from moot.engine.locks import Place
from moot.features.approvals import Asked, CallPreview
from moot.types.approval import Answer, Approval, ApprovalPart, Grant, Option, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.conversation import Conversation, Conversations, ListChoices, Page, Project, Projects
from moot.types.event import Event
from moot.types.exchange import Exchange, Failure
from moot.types.message import Message
from moot.types.run import Run, Submitted
from moot.types.search import Hit, Search, SearchPage
from moot.types.store import LogReader, RunReader
from moot.types.tree import Compaction, Node, Tree
from moot.types.usage import Usage

VERSION = "moot-version"
"""Header with the client's version of moot."""

Operation: TypeAlias = Literal[
    "conversations.branch",
    "conversations.by_client_id",
    "conversations.by_key",
    "conversations.choices",
    "conversations.get",
    "conversations.list",
    "conversations.message",
    "log.last_seq",
    "log.read",
    "projects.get",
    "records.approval",
    "records.approvals",
    "records.children",
    "records.exchange",
    "records.run",
    "records.runs",
    "search.search",
    "tree.compactions",
    "tree.nodes",
]
"""Reading methods of the store."""

Change: TypeAlias = Literal[
    "conversations.delete", "conversations.rename", "conversations.update", "tree.delete", "tree.fork", "tree.switch"
]
"""Methods of the store that change a conversation."""

Question: TypeAlias = Literal[
    "approvals.asked",
    "approvals.check",
    "approvals.open",
    "approvals.preview",
    "meaning.search",
    "runs.current",
    "runs.place",
    "runs.wait",
    "translations.converters",
    "translations.first",
]
"""Questions that the engine answers."""

_PARTS: Mapping[str, type[object]] = {
    "conversations": Conversations,
    "log": LogReader,
    "projects": Projects,
    "records": RunReader,
    "search": Search,
    "tree": Tree,
}


def signature_of(operation: str) -> inspect.Signature:
    """Return the signature of a store's method, without `self`."""
    signature = inspect.signature(_method(operation))
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def types_of(operation: str, names: Collection[str]) -> dict[str, Any]:
    """Return the types of these arguments of a store's method."""
    method = _method(operation)
    wanted = {name: method.__annotations__[name] for name in names}  # only these: others may not exist at runtime
    return get_type_hints(type(operation, (), {"__annotations__": wanted, "__module__": method.__module__}))


def _method(operation: str) -> Callable[..., object]:
    part, _, name = operation.partition(".")
    return getattr(_PARTS[part], name)


_TAG, _VALUE = "~", "value"

_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Answer, Approval, ApprovalPart, Asked, CallPreview, Compaction, Conversation, Event, Exchange, Failure, Grant, Hit, ListChoices),
        *(Message, Node, Option, OutsideCall, Page, Place, Project, Run, SearchPage, Submitted, Usage),
    )
}
"""The classes whose values can be sent."""

_PLAIN: Mapping[str, Callable[[Any], object]] = {"tuple": tuple, "frozenset": frozenset, "bytes": base64.b64decode, "object": dict}


def encode(value: object) -> bytes:
    """Return the value as JSON. Raise TypeError for a class that can't be sent."""
    return dumps(_encoded(value))


def decode(data: bytes | str) -> object:
    """Return the value that `encode` was given. Raise ValueError if the data is something else."""
    try:
        return _decoded(json.loads(data))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"unknown value: {error}") from error


def _encoded(value: object) -> Json:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Event):
        return {_TAG: "Event", _VALUE: {name: _encoded(item) for name, item in value._asdict().items()}}
    if isinstance(value, bytes):
        return {_TAG: "bytes", _VALUE: base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_encoded(item) for item in cast("list[object]", value)]
    if isinstance(value, tuple | frozenset):
        items = cast("tuple[object, ...] | frozenset[object]", value)
        return {_TAG: "tuple" if isinstance(value, tuple) else "frozenset", _VALUE: [_encoded(item) for item in items]}
    if isinstance(value, dict):
        return _encoded_object(cast("dict[str, object]", value))
    name = type(value).__name__
    if not is_dataclass(value) or _KINDS.get(name) is not type(value):
        raise TypeError(f"{name} can't be sent")
    return {_TAG: name, _VALUE: {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}}


def _encoded_object(value: dict[str, object]) -> JsonObject:
    if _TAG in value:
        return {_TAG: "object", _VALUE: [[name, _encoded(item)] for name, item in value.items()]}
    return {name: _encoded(item) for name, item in value.items()}


def _decoded(value: Json) -> object:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {name: _decoded(item) for name, item in value.items()}
    name, inner = str(value[_TAG]), value[_VALUE]
    if name in _PLAIN:
        return _PLAIN[name](inner if isinstance(inner, str) else _decoded(inner))
    return _KINDS[name](**cast("dict[str, object]", _decoded(inner)))


def error_of(code: str, message: str, fix: str) -> errors.MootError | None:
    """Return the error that a server reported with this code, or None if the code is not that of one of moot's errors."""
    kinds = (cast("type[errors.MootError]", getattr(errors, name)) for name in errors.__all__)
    kind = next((one for one in kinds if one.code == code), None)
    return None if kind is None else kind(message, fix=fix)
