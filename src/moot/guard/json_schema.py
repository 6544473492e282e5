"""Validation of answers and arguments against JSON Schemas.

Schemas come from users and from clients of the server, so they must not hang the process or access the network. `check_schema` is called
before a run starts. A value is validated in this process if the sizes of schema and value limit the work. Otherwise, because references
can multiply and regular expressions can backtrack for hours, a child process validates it and is killed after `SECONDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import anyio
import anyio.to_thread

from moot.errors import OutputContract, UsageError
from moot.guard.processes import spawn
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps, loads_exact, loads_object
from moot.types.message import Message

SECONDS = 5.0
"""Time limit for validating one value in a child process."""
_MAX_SCHEMA = 20_000
"""Maximum number of values in a schema."""
_MAX_WORK = 2_000_000
"""Maximum product of the number of values in the schema and in the instance for evaluating the schema in this process."""
_UNBOUNDED = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties", "uniqueItems"})
_RETRY = "Try again, or use another model."


async def check_schema(schema: JsonObject) -> None:
    """Raise UsageError if the schema is invalid, too large or contains a reference that can't be resolved locally."""
    if sum(1 for _ in _values(schema)) > _MAX_SCHEMA:
        raise UsageError(f"The JSON Schema has more than {_MAX_SCHEMA:,} values.", fix="Use a smaller schema.")
    # imported by name on first use, because jsonschema takes long to import
    check = attribute("moot.guard.json_schema_evaluation:schema_fault")
    if fault := await anyio.to_thread.run_sync(check, schema):
        raise UsageError(f"The JSON Schema is not valid: {fault}", fix="Fix the schema and run the command again.")


async def check_answer(message: Message, schema: JsonObject) -> Json:
    """Return the last text of the message as JSON. Raise OutputContract if it is not JSON or does not match the schema."""
    texts = [str(part.get("text", "")) for part in message.parts if part.get("type") == "text"]
    try:
        value = loads_exact(texts[-1] if texts else "")
    except ValueError as error:
        raise OutputContract(f"The answer is not valid JSON: {error}", fix=_RETRY) from error
    if problem := await find_problem(value, schema):
        raise OutputContract(f"The answer does not match the schema: {problem}", fix=_RETRY)
    return value


async def find_problem(value: Json, schema: JsonObject, name: str = "answer") -> str:
    """Return where and why the value does not match the schema; empty if it matches. `name` is the name of the value in the result.

    Raise UsageError if the schema can't be evaluated within the time limit.
    """
    if not schema:
        return ""
    if _is_bounded(schema, value):
        evaluate = attribute("moot.guard.json_schema_evaluation:evaluate")
        result: JsonObject = await anyio.to_thread.run_sync(evaluate, value, schema, name)
    else:
        result = await _evaluate_in_child({"value": value, "schema": schema, "name": name})
    if fault := result.get("fault"):
        raise UsageError(f"The JSON Schema can't be evaluated: {fault}", fix="Simplify the schema.")
    return str(result.get("problem") or "")


def _is_bounded(schema: JsonObject, value: Json) -> bool:
    size = 0
    for item in _values(schema):
        size += 1
        if isinstance(item, dict) and not _UNBOUNDED.isdisjoint(item):
            return False
    return size * sum(1 for _ in _values(value)) <= _MAX_WORK


def _values(root: Json) -> Iterator[Json]:
    stack = [root]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value


async def _evaluate_in_child(request: JsonObject) -> JsonObject:
    child = await spawn([sys.executable, "-I", "-m", "moot.guard.json_schema_evaluation"], stdin="pipe", stderr="null")
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with anyio.fail_after(SECONDS):
            child.stdin.write(dumps(request))
            await child.stdin.drain()
            child.stdin.close()
            return loads_object(await child.stdout.read(-1))
    except TimeoutError:
        return {"fault": f"Validation took longer than {SECONDS:g} seconds, because of its regular expressions or references."}
    except (ConnectionError, ValueError):
        return {"fault": "The validating process failed."}
    finally:
        await child.kill(0)
