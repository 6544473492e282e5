"""Imported entries in the log: their digest and usage, and the events that extend a message after its source has grown.

The body of such a `message` event is `{"id": …, "keep": k, "parts": […], "metadata": {…}, "without": […], "keep_steps": n, "steps": […],
"anew": true}`. The message keeps its first `k` parts, and `parts` are appended. `metadata` sets keys and `without` removes keys. The first
`n` steps are kept, and `steps` are appended. Unchanged fields are omitted. The event's raw bytes are appended to the earlier ones, or
replace them if `anew` is true.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from hashlib import blake2b
from typing import cast

from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, is_tool
from moot.types.usage import LARGEST, NO_USAGE, Usage

DIGEST_SIZE = 16


def digest_of(raw: bytes | memoryview) -> bytes:
    """Return a 16-byte digest of raw bytes."""
    return blake2b(raw, digest_size=DIGEST_SIZE).digest()


def key_at_host(host: str, source_id: str) -> str:
    """Return the id of a session in a form that differs from the ids of sessions on other machines. `host` is empty for this machine."""
    return f"ssh://{host}/{source_id}" if host else source_id


def path_at_host(host: str, path: str) -> str:
    """Return a path in the home folder of another machine in the form in which it is shown, such as `laptop:~/notes.md`."""
    return f"{host}:~/{path}"


def usage_of_steps(metadata: JsonObject) -> tuple[Usage, int | None, bool]:
    """Return the tokens and the cost of a message's steps, and whether any step has tokens but no price.
    The cost is in nano-dollars, or None if no step has a price.
    """
    usage, cost, unpriced = NO_USAGE, None, False
    steps = metadata.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, dict):
            continue
        reported = step.get("usage")
        of_step = Usage.from_json(reported) if isinstance(reported, dict) else NO_USAGE
        usage = of_step if usage is NO_USAGE else usage + of_step
        if type(spent := step.get("cost")) is int and -LARGEST < spent < LARGEST:
            cost = spent if cost is None else cost + spent
        else:
            unpriced = unpriced or of_step != NO_USAGE
    return usage, cost, unpriced


STEPS = "steps"


def without_copies(parts: Sequence[Part], metadata: JsonObject, copies: Set[int]) -> tuple[Sequence[Part], JsonObject]:
    """Return the parts and metadata of a message without these steps, which are given by their indexes in the metadata."""
    steps = _list(metadata.get(STEPS))
    if not copies or steps is None:
        return parts, metadata
    numbers = [step.get("step") for index, step in enumerate(steps) if index in copies and isinstance(step, dict)]
    kept, number = list[Part](), 0
    for part in parts:
        number += part.get("type") == "step-start"
        if number not in numbers:
            kept.append(part)
    return kept, {**metadata, STEPS: [step for index, step in enumerate(steps) if index not in copies]}


def is_growth(body: JsonObject) -> bool:
    """Return True if the body of a `message` event extends an earlier message."""
    return type(body.get("keep")) is int


def growth_body(id: str, before: tuple[Sequence[Part], JsonObject], after: tuple[Sequence[Part], JsonObject]) -> JsonObject:
    """Return the body of the event that extends a message, given the message's parts and metadata before and after."""
    (parts, facts), (new_parts, new_facts) = before, after
    keep = _common(parts, new_parts)
    body: JsonObject = {"id": id, "keep": keep, "parts": list(new_parts[keep:])}
    steps, new_steps = _list(facts.get(STEPS)), _list(new_facts.get(STEPS))
    apart = {STEPS} if steps is not None and new_steps is not None else set[str]()
    changed = {name: value for name, value in new_facts.items() if name not in apart and (name not in facts or facts[name] != value)}
    gone = [name for name in facts if name not in new_facts]
    if changed:
        body["metadata"] = changed
    if gone:
        body["without"] = list[Json](gone)
    if steps is not None and new_steps is not None and steps != new_steps:
        same = _common(steps, new_steps)
        body |= {"keep_steps": same, STEPS: new_steps[same:]}
    return body


def apply_growth(parts: Sequence[Part], metadata: JsonObject, body: JsonObject) -> tuple[tuple[Part, ...], JsonObject]:
    """Return the parts and metadata of a message after an event that extends it. Invalid fields are ignored."""
    keep, added = body.get("keep"), _list(body.get("parts")) or []
    kept = parts[:keep] if isinstance(keep, int) and keep >= 0 else parts
    parts_after = (*kept, *(cast("Part", part) for part in added if isinstance(part, dict)))
    gone, changed = _list(body.get("without")) or [], body.get("metadata")
    facts: JsonObject = {name: value for name, value in metadata.items() if name not in gone}
    steps, same = _list(facts.get(STEPS)), body.get("keep_steps")
    if steps is not None and isinstance(same, int) and same >= 0:
        facts[STEPS] = [*steps[:same], *(_list(body.get(STEPS)) or [])]
    return parts_after, {**facts, **changed} if isinstance(changed, dict) else facts


def is_continuation(before: Sequence[Part], after: Sequence[Part]) -> bool:
    """Return True if the later parts extend the earlier parts, so that both belong to the same message even if its source was rewritten."""
    return len(after) >= len(before) and all(_extends(old, new) for old, new in zip(before, after, strict=False) if old != new)


def _extends(old: Part, new: Part) -> bool:
    if old.get("type") != new.get("type"):
        return False
    if is_tool(old):
        return old.get("toolCallId") == new.get("toolCallId")
    return str(new.get("text", "")).startswith(str(old.get("text", "")))


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _list(value: Json) -> list[Json] | None:
    return value if isinstance(value, list) else None
